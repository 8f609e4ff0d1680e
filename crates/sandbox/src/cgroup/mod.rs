//! Control groups: limits that the kernel holds for all processes of a sandbox together, and their common end.
//!
//! Guarantees: only groups below a directory of our own name (`fumehood`) are made, changed or removed; a sandbox's
//! group stands below the group of this process wherever the kernel allows it, so that it never gets more than its
//! caller has; a limit is reported as held only after it was read back; a group is gone when `remove` says so.
//! Version 2 is used where it offers a controller, version 1 where that is what the host has, and both together on a
//! hybrid host. Leaves to others: putting processes into a group (the launcher writes itself into the files that
//! [`Group::entries`] opens, or is made in it); choosing the numbers; and deciding what a profile accepts when the host
//! delegates nothing.

mod files;
mod group;
mod leftovers;
mod mounts;
mod own;
mod owner;
mod place;
pub(crate) mod scope;
mod settings;
mod usage;

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod place_tests;

use std::io;
use std::path::PathBuf;

use model::Bytes;
use model::text::escape;

pub use group::{Creation, Group};
pub use leftovers::Leftover;
pub use mounts::{Hierarchies, Version, detect};
pub use own::leave as leave_own_group;
pub use owner::{Fate, Owner};
#[doc(hidden)]
pub use scope::read_message as read_manager_message;
pub use usage::Usage;

/// What can be limited by a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Memory of all processes together.
    Memory,
    /// Swap space on top of it.
    Swap,
    /// Processes and threads at once.
    Pids,
    /// Processor time.
    Cpu,
}

impl Resource {
    /// Every resource.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Swap, Self::Pids, Self::Cpu];

    /// Returns the kernel's name of the controller that limits it.
    pub const fn controller(self) -> &'static str {
        match self {
            Self::Memory | Self::Swap => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// How much processor time a group gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// So many thousandths of one processor.
    Millis(u32),
    /// Every processor but a hundredth of all, and half the weight of a group that says nothing, so that the
    /// supervisor and the person at the machine come first.
    AllButReserve,
}

impl From<Option<u32>> for Cpu {
    /// Takes [`model::Limits::millicpus`].
    fn from(millicpus: Option<u32>) -> Self {
        millicpus.map_or(Self::AllButReserve, Self::Millis)
    }
}

/// The group that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Tells the groups of one owner apart for people: up to 32 lower-case letters, digits and dashes.
    pub label: &'a str,
    /// Memory of all processes together.
    pub memory: Bytes,
    /// Swap space on top of it.
    pub swap: Bytes,
    /// Processes and threads at once, with those that the launcher needs.
    pub pids: u32,
    /// Processor time.
    pub cpu: Cpu,
}

/// Why the kernel cannot hold a limit here, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDelegated {
    /// Why.
    pub why: String,
    /// What a person can do.
    pub fix: String,
}

/// How one resource is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The resource.
    pub resource: Resource,
    /// By what the kernel holds it, or why not.
    pub by: Result<&'static str, NotDelegated>,
}

/// A control group could not be made, read, ended or removed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A file of the kernel could not be read or written.
    #[error("cannot {doing} `{}`", escape(&path.to_string_lossy()))]
    File {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The kernel took a limit and keeps another.
    #[error("`{}` was set to {wanted} and holds `{}`", escape(&path.to_string_lossy()), escape(found))]
    NotHeld {
        /// The file.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// Processes are left after the time to end them.
    #[error("{count} processes are left in `{}`: they cannot be killed, a disk or a network may hang", escape(&path.to_string_lossy()))]
    Populated {
        /// The group.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// The label would not be a plain name.
    #[error("`{}` is not a label: use up to 32 lower-case letters, digits and dashes", escape(.0))]
    Label(String),
}
