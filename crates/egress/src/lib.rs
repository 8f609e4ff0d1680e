//! The gateway: the only way out of a sandbox, in a process of its own outside of it.
//!
//! Guarantees: what leaves was named by a rule, and is told to the supervisor, and so is what was refused. The gateway
//! serves one action: whose it is follows from whose listening sockets it was handed, not from anything said on them.
//! Leaves to others: which rules an action gets (`gate`), making the sockets and the process (`sandbox`), and keeping what
//! it tells (`engine`).
#![forbid(unsafe_code)]

mod attempts;
mod carry;
mod context;
mod converse;
mod credentials;
pub mod decide;
mod dns;
mod entrances;
pub mod heard;
mod hello;
pub mod http;
mod names;
pub mod packages;
mod public;
mod refusal;
mod serve;
mod socks;
mod stream;
pub mod talk;
pub mod tls;
mod tunnel;
mod upstream;

pub use attempts::Attempts;
pub use context::Context;
pub use credentials::Credentials;
pub use refusal::Refusal;
pub use serve::{Machine, serve};
pub use upstream::Upstream;
