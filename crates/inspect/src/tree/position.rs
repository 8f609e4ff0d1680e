//! A place in one tree, moved one name at a time.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Tree;
use super::attributes::{Attributes, is_whiteout_file};
use super::node::{Node, stat};

/// Descriptors that one tree keeps open below its top. Directories further up are opened again on the way back,
/// by `..`, and must be the same ones.
const OPEN_AT_ONCE: usize = 12;

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A place in one tree.
#[derive(Debug)]
pub(crate) struct Position {
    tree: Tree,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    open: Option<OwnedFd>,
    device: u64,
    inode: u64,
    attributes: Attributes,
}

/// What one tree has under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing; what is below shows through.
    Nothing,
    /// A mark that the name is gone.
    Whiteout,
    /// Something.
    Node(Node),
}

impl Position {
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree, levels: Vec::new() }
    }

    /// Returns the directory where we are.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        match self.levels.last().map(|level| &level.open) {
            Some(Some(open)) => open.as_fd(),
            // INVARIANT: the deepest level is always open, so this is the top.
            _ => self.tree.as_fd(),
        }
    }

    /// Tells what the directory where we are says to overlay; the top is always merged, as it is for the kernel.
    pub(crate) fn attributes(&self) -> Attributes {
        self.levels.last().map_or(Attributes::Merged, |level| level.attributes)
    }

    /// Looks up a name.
    pub(crate) fn see(&self, name: &CStr) -> Result<Seen, Errno> {
        let node = match stat(self.directory(), name) {
            Ok(node) => node,
            // ENAMETOOLONG: a layer on another file system may allow longer names than this one.
            Err(Errno::NOENT | Errno::NAMETOOLONG) => return Ok(Seen::Nothing),
            Err(errno) => return Err(errno),
        };
        let in_marked = self.attributes() == Attributes::Whiteouts;
        let gone =
            node.is_whiteout_device() || (in_marked && is_whiteout_file(self.directory(), name, &node)?);
        Ok(if gone { Seen::Whiteout } else { Seen::Node(node) })
    }

    /// Goes down into a directory.
    pub(crate) fn enter(&mut self, name: &CStr) -> Result<(), Errno> {
        let open = rustix::fs::openat(self.directory(), name, DIRECTORY, Mode::empty())?;
        let node = stat(&open, c"")?;
        let attributes = Attributes::of_directory(&open)?;
        self.levels.push(Level { open: Some(open), device: node.device, inode: node.inode, attributes });
        if let Some(far) = self.levels.len().checked_sub(OPEN_AT_ONCE + 1) {
            self.levels[far].open = None;
        }
        Ok(())
    }

    /// Goes back up. `Ok(false)` says that the directory above is not the one that we came through.
    pub(crate) fn leave(&mut self) -> Result<bool, Errno> {
        let Some(left) = self.levels.pop() else { return Ok(true) };
        let Some(above) = self.levels.last_mut().filter(|level| level.open.is_none()) else {
            return Ok(true);
        };
        let Some(left) = left.open else { return Ok(false) };
        let open = rustix::fs::openat(left, c"..", DIRECTORY, Mode::empty())?;
        let node = stat(&open, c"")?;
        if (node.device, node.inode) != (above.device, above.inode) {
            return Ok(false);
        }
        above.open = Some(open);
        Ok(true)
    }
}
