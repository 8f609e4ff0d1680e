//! The pieces that a root is put together from.

use std::path::{Path, PathBuf};

/// One piece of the root. Targets are absolute paths inside, without links; the launcher makes missing mount points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A file or directory of the host, bound read-only with nosuid and nodev.
    ReadOnly {
        /// Where it is on the host, resolved.
        source: PathBuf,
        /// Where it appears.
        target: PathBuf,
        /// What it is.
        kind: Kind,
        /// Whether file systems are mounted below the source. They are shown as well, because the kernel refuses to
        /// bind the source alone in a user namespace.
        recursive: bool,
        /// Whether the files belong to the caller, only the owner can read them, and the command has another id: the
        /// mount then maps the caller's ids to the command's.
        map_owner: bool,
    },
    /// A file that we write, owned by the command's user.
    Generated {
        /// Where it appears.
        target: PathBuf,
        /// What it holds.
        contents: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link.
    Symlink {
        /// Where it appears.
        target: PathBuf,
        /// What it holds.
        points_to: PathBuf,
    },
    /// A directory in the private root or in the piece around it, owned by the command's user. It may be there already.
    Directory {
        /// Where it appears.
        target: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// An empty writable directory, owned by the command's user, in the disk quota; its mount covers what is below it.
    Private {
        /// Where it appears.
        target: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A directory of the host with a private writable layer above it, in the disk quota: tools write locks and
    /// indexes into their caches, and the host never sees that. Nothing is mounted below the lower directory.
    Overlay {
        /// Where it is on the host, resolved.
        lower: PathBuf,
        /// Where it appears.
        target: PathBuf,
        /// Whether the command has another id than the caller, to whom the files belong: see [`Piece::ReadOnly`].
        map_owner: bool,
    },
    /// A file or directory of an earlier piece, covered by an empty one that cannot be read.
    Mask {
        /// What is covered.
        target: PathBuf,
        /// What it is.
        kind: Kind,
    },
}

/// Whether a path is a directory or anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file, or a device, socket or pipe.
    File,
}

/// Something of the host that was found and is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Where it is on the host, or what the caller named.
    pub path: PathBuf,
    /// Why it is not shown: a sentence without a full stop.
    pub why: String,
}

impl Piece {
    /// Returns where the piece appears.
    pub fn target(&self) -> &Path {
        match self {
            Self::ReadOnly { target, .. }
            | Self::Generated { target, .. }
            | Self::Symlink { target, .. }
            | Self::Directory { target, .. }
            | Self::Private { target, .. }
            | Self::Overlay { target, .. }
            | Self::Mask { target, .. } => target,
        }
    }

    /// Returns what of the host the piece shows, where it shows something.
    pub fn source(&self) -> Option<&Path> {
        match self {
            Self::ReadOnly { source, .. } => Some(source),
            Self::Overlay { lower, .. } => Some(lower),
            Self::Generated { .. } | Self::Symlink { .. } | Self::Directory { .. } => None,
            Self::Private { .. } | Self::Mask { .. } => None,
        }
    }
}
