//! Our own processes that run beside the sandboxes: how they are started, and what they take away from themselves.
//!
//! Guarantees: such a process is started by `posix_spawn(3)` with nothing of our environment and our descriptors; when
//! [`confine_agent`] or [`confine_gateway`] returns, the process that called it opens no file, starts no program and no process, speaks to no
//! local daemon, and ends when the process that started it does; what it says about that was tried, not assumed.
//! Leaves to others: what the process does with what it keeps (its standard streams, and connections to the ports it
//! named), and refusing one whose tries did not hold.

mod calls;
mod confine;
mod spawn;
mod tries;

#[cfg(test)]
mod tests;

pub use confine::{confine_agent, confine_gateway};
pub use spawn::{Started, ask_provider, ask_tool, spawn_agent};
pub(crate) use spawn::{run_tool, spawn_gateway};
