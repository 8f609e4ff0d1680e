//! Trees of files, one over the other, as an overlay mount shows them.
//!
//! Guarantees: every step goes from an open directory to one name in it and never through a symbolic link, so depth
//! has no limit and the number of open descriptors does; whiteouts and opaque directories count as they do for the
//! kernel. Leaves to others: that nobody writes to a layer while it is read.

mod attributes;
mod cursor;
mod entry;
mod node;
mod position;
mod stack;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::error::InspectError;

pub use entry::{Entry, open_file};
pub use node::{Node, Time, look_up};
pub use stack::{Finder, Stack};

pub(crate) use attributes::{Attributes, of_overlay, overlay_names, remove_attribute};
pub(crate) use cursor::{Cursor, Hit, Pair};
pub(crate) use node::{list, stat};
pub(crate) use position::{Position, Seen};

/// The top directory of one tree: the upper directory of a layer, or a base.
#[derive(Debug, Clone)]
pub struct Tree {
    top: Arc<OwnedFd>,
    /// What stays open as long as somebody can read the tree.
    _kept: Option<Arc<OwnedFd>>,
}

impl Tree {
    /// Opens a directory by its path on the host.
    ///
    /// # Errors
    /// When it cannot be opened, or is a link or no directory.
    pub fn open(path: &Path) -> Result<Self, InspectError> {
        use std::os::unix::ffi::OsStrExt;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| InspectError::at("open the directory", path.as_os_str().as_bytes(), errno))?;
        Ok(Self::from(fd))
    }

    /// Keeps another descriptor open as long as anything reads the tree: a lock, say.
    #[must_use]
    pub fn keeping(self, kept: OwnedFd) -> Self {
        Self { _kept: Some(Arc::new(kept)), ..self }
    }
}

impl From<OwnedFd> for Tree {
    /// Takes an open directory; a descriptor opened with `O_PATH` is enough.
    fn from(directory: OwnedFd) -> Self {
        Self { top: Arc::new(directory), _kept: None }
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }
}
