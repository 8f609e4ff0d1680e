//! Spends a permit: makes one disposable sandbox, proves it, runs one action in it and takes it down.
//!
//! Guarantees: nothing runs unless a permit is spent, the sandbox was built in full, and every probe held; what was
//! written is in one layer; when the supervisor or the command ends, everything inside ends.
//! Leaves to others: deciding (`gate`), believing what came out (`inspect`), keeping the record (`audit`, `engine`).
//! This crate (with its launcher) is the only one with `unsafe`, and the only one that starts processes.

pub mod cgroup;
pub mod fail_point;
pub mod seccomp;
pub mod service;
pub mod view;

mod address;
mod canary;
mod control;
mod disk;
mod error;
mod gateway;
mod groups;
mod held;
mod image;
mod launch;
mod mutants;
mod native;
mod network;
mod observe;
mod output;
mod plan;
mod proof;
mod quota;
mod reads;
mod spec;
mod start;
mod store;
mod supervise;
mod sys;
mod teardown;
mod terminal;
mod tool;
mod wait;
mod way_out;

pub use cgroup::leave_own_group;
pub use control::{Controller, Handle, Phase, Request, controller};
pub use error::SandboxError;
pub use gateway::{Record, Watch, Watched};
pub use groups::remove_leftover_groups;
pub use mutants::{MUTANTS, Mutant};
pub use native::{Prepared, Report, prepare};
pub use output::{Printed, Silent, Sink, Stream};
pub use spec::{GatewaySpec, GitDirectory, Joined, Spec, Workspace};
pub use start::{Started, Unstarted};
pub use supervise::{Execution, Io};
pub use teardown::{clear_directory, remove_tree};
pub use tool::Program;
pub use view::Identity;
