//! Our own orchestrator and its DeepSeek client: a child process that holds the model key and may only propose.
//!
//! Guarantees: the crate starts no process and writes no file; what a model says becomes an action only as a
//! [`protocol::Proposal`] that somebody else decides about; everything that is sent to a model has passed
//! [`context::Outgoing`]; the key is shown by nothing here and leaves in one header only.
//! Leaves to others: deciding, running and recording (the engine), storing the conversation (whoever holds the
//! other end of the pipe), and taking away this process's rights (a callback of [`main_loop`]).
#![forbid(unsafe_code)]

mod answer;
mod child;
pub mod context;
pub mod conversation;
pub mod deepseek;
mod lines;
pub mod protocol;
mod redact;
pub mod replay;
pub mod run_loop;
mod secret;
mod steps;
pub mod tools;

pub use answer::{Stream, ToolResult};
pub use child::{AgentError, Reach, main_loop};
pub use redact::Secrets;
pub use secret::Secret;
