//! Tasks: what the store keeps about a workspace and the actions that were run on it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::{Base, Principal};
use crate::id::TaskId;
use crate::os_text::OsText;
use crate::units::Timestamp;

/// A workspace and the actions that were run on it, until their result is applied or thrown away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// The directory on the host, resolved, with the device and inode that it had.
    pub workspace: WorkspaceKey,
    /// What is below its layers.
    pub base: Base,
    /// Who opened it.
    pub owner: Principal,
    /// What it is for, in the words of who opened it.
    pub title: Option<String>,
    /// Where it stands.
    pub state: TaskState,
    /// When it was opened.
    pub opened: Timestamp,
}

/// Tells one workspace from another, also when a directory is replaced by one with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WorkspaceKey {
    /// The directory, resolved.
    pub path: OsText,
    /// The device that holds it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Actions can be run.
    Open,
    /// Somebody stopped it; it can be resumed.
    Stopped,
    /// What was denied in it was tried again in too many other ways; a person can resume it.
    Frozen,
    /// Everything was applied.
    Applied,
    /// It was thrown away; its layers stay until their retention ends.
    Discarded,
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Stopped => "stopped",
            Self::Frozen => "frozen",
            Self::Applied => "applied",
            Self::Discarded => "discarded",
        })
    }
}
