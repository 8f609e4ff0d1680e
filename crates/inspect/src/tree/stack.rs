//! A stack of trees, and looking up paths in it.

use std::ffi::{CStr, CString};

use model::WorkspacePath;
use rustix::fs::{Mode, OFlags};

use super::Tree;
use super::cursor::{Cursor, Hit};
use super::entry::Entry;
use crate::error::InspectError;

/// Layers over a base. Uppers are the layers that are looked at, lowers are what was there before them; both are
/// listed newest first, and the base is the last of the lowers.
#[derive(Debug, Clone)]
pub struct Stack {
    uppers: Vec<Tree>,
    lowers: Vec<Tree>,
}

impl Stack {
    /// Puts layers over what was there before.
    pub fn new(uppers: Vec<Tree>, lowers: Vec<Tree>) -> Self {
        Self { uppers, lowers }
    }

    /// Starts to look up paths as they are with the uppers.
    pub fn after(&self) -> Finder {
        Finder { cursor: Cursor::new(&self.uppers, &self.lowers) }
    }

    /// Starts to look up paths as they were without the uppers.
    pub fn before(&self) -> Finder {
        Finder { cursor: Cursor::new(&[], &self.lowers) }
    }

    /// Returns the mode of the directory that all of it is about, as the host has it.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn top_mode(&self) -> Result<u32, InspectError> {
        let Some(base) = self.lowers.last() else { return Ok(0) };
        let stat = rustix::fs::fstat(base).map_err(|errno| InspectError::at("look at", b"", errno))?;
        Ok(stat.st_mode)
    }

    pub(crate) fn cursor(&self) -> Cursor {
        Cursor::new(&self.uppers, &self.lowers)
    }
}

/// Looks up paths in a stack. Paths in sorted order cost least: what two of them share is walked once.
#[derive(Debug)]
pub struct Finder {
    cursor: Cursor,
}

impl Finder {
    /// Looks up one path without following a link in any part of it.
    ///
    /// # Errors
    /// When a directory on the way may not be entered, or the kernel cannot answer.
    pub fn find(&mut self, path: &WorkspacePath) -> Result<Option<Entry>, InspectError> {
        let bytes = path.as_bytes();
        let (parent, name) = match bytes.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&bytes[..slash], &bytes[slash + 1..]),
            None => (&bytes[..0], bytes),
        };
        if !self.go_to(parent)? {
            return Ok(None);
        }
        let name = c_string(name);
        match self.cursor.look(&name)?.after {
            Some(hit) => self.entry(name, hit).map(Some),
            None => Ok(None),
        }
    }

    /// Goes to a directory; tells whether there is one.
    fn go_to(&mut self, parent: &[u8]) -> Result<bool, InspectError> {
        while !is_at_or_above(self.cursor.path(), parent) {
            self.cursor.leave()?;
        }
        let rest =
            parent[self.cursor.path().len()..].split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        for part in rest {
            let name = c_string(part);
            match self.cursor.look(&name)?.after {
                Some(hit) if hit.node.kind == model::FileKind::Directory => self.cursor.enter(&name)?,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn entry(&self, name: CString, hit: Hit) -> Result<Entry, InspectError> {
        let path = self.cursor.path_of(&name);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.cursor.directory(hit.tree), c".", flags, Mode::empty())
            .map_err(|errno| InspectError::at("open the directory of", &path, errno))?;
        Ok(Entry { directory, name, path, node: hit.node })
    }
}

/// Tells whether a directory is the one that is looked for, or on the way to it.
fn is_at_or_above(directory: &[u8], wanted: &[u8]) -> bool {
    directory.is_empty()
        || wanted.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Turns a part of a path into a name for the kernel.
fn c_string(part: &[u8]) -> CString {
    // INVARIANT: a `WorkspacePath` holds no NUL byte.
    CString::new(part).unwrap_or_else(|_| <&CStr>::default().to_owned())
}
