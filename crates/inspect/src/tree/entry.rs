//! One file of a stack, found and ready to be read.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use model::{FileKind, OsText};
use rustix::fs::{Mode, OFlags};

use super::node::{Node, stat};
use crate::error::{InspectError, shown};

/// One name of a tree: the open directory that holds it, and what it was when it was looked up.
#[derive(Debug)]
pub struct Entry {
    pub(crate) directory: OwnedFd,
    pub(crate) name: CString,
    pub(crate) path: Vec<u8>,
    /// What it is.
    pub node: Node,
}

impl Entry {
    /// Opens an ordinary file for reading.
    ///
    /// # Errors
    /// When it is no ordinary file, is no longer the one that was found, or may not be read.
    pub fn open(&self) -> Result<File, InspectError> {
        if self.node.kind != FileKind::File {
            return Err(InspectError::Kind { path: shown(&self.path), wanted: "an ordinary file" });
        }
        let file = open_file(&self.directory, &self.name)
            .map_err(|errno| InspectError::at("open", &self.path, errno))?;
        let opened = stat(&file, c"").map_err(|errno| InspectError::at("look at", &self.path, errno))?;
        if opened.kind != FileKind::File || !opened.is_same_file(&self.node) {
            return Err(InspectError::Moved { path: shown(&self.path) });
        }
        Ok(file)
    }

    /// Reads at most `limit` bytes of an ordinary file.
    ///
    /// # Errors
    /// Like [`Entry::open`], and when reading fails.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, InspectError> {
        let mut content = Vec::new();
        let mut file = self.open()?.take(limit);
        file.read_to_end(&mut content).map_err(|error| InspectError::at("read", &self.path, error))?;
        Ok(content)
    }

    /// Returns where a symbolic link points, unchanged.
    ///
    /// # Errors
    /// When it is no link, or cannot be read.
    pub fn link_target(&self) -> Result<OsText, InspectError> {
        if self.node.kind != FileKind::Symlink {
            return Err(InspectError::Kind { path: shown(&self.path), wanted: "a symbolic link" });
        }
        let target = rustix::fs::readlinkat(&self.directory, &self.name, Vec::new())
            .map_err(|errno| InspectError::at("read the link", &self.path, errno))?;
        Ok(shown(target.as_bytes()))
    }
}

/// Opens a file for reading without following a link, waiting for a pipe's writer, or taking a terminal.
///
/// # Errors
/// When there is no such name, it is a link, or it may not be read.
pub fn open_file<Fd: AsFd>(directory: Fd, name: &CStr) -> Result<File, rustix::io::Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from)
}
