//! The gateway: the only way out of a sandbox, in a process of its own outside of it.
//!
//! Guarantees: what leaves was named by a rule, and is told to the supervisor, and so is what was refused. The gateway
//! serves one action: whose it is follows from whose listening sockets it was handed, not from anything said on them.
//! Leaves to others: which rules an action gets (`gate`), making the sockets and the process (`sandbox`), and keeping what
//! it tells (`engine`).
#![forbid(unsafe_code)]

pub mod http;
mod refusal;
pub mod talk;
pub mod tls;

pub use refusal::Refusal;
