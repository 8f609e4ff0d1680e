//! What an action did to the files of its workspace.

use serde::{Deserialize, Serialize};

use crate::path::WorkspacePath;

/// One file, directory or link that an action left different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where it is.
    pub path: WorkspacePath,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it is now, or was when it is gone.
    pub file: FileKind,
    /// The permission bits now (the low twelve), or zero when it is gone.
    pub mode: u32,
    /// Bytes now, or zero when it is gone or no ordinary file.
    pub size: u64,
    /// Whether git ignores it; then it stays in the layer and is applied only when asked.
    pub ignored: bool,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It was there and is different: content, mode, or what kind of thing it is.
    Modified,
    /// It is gone.
    Deleted,
}

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device node.
    Device,
}
