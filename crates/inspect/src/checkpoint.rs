//! Merging a layer into the checkpoint below it, so that a task is mounted as a few layers however many it has.
//!
//! Guarantees: the checkpoint then shows over any base what both layers showed over it, by names, content,
//! permissions, times and owners. Files are shared by hard links where that is possible, so that the cost goes by the
//! changed paths. Each name changes at once, and the layer stays as it is: what a crash cuts off is made good by merging
//! again. Leaves to others: that nothing is mounted over the checkpoint meanwhile, which layers it holds, and when it is
//! on the disk.

mod remove;

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use model::FileKind;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::Errno;

use crate::copy::{copy, copy_attributes, times};
use crate::error::{InspectError, shown};
use crate::tree::{Attributes, Node, Position, Seen, Tree, list, stat};
pub use remove::remove_tree;

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merged {
    /// Files that both share now.
    pub linked: u64,
    /// Files that had to be copied.
    pub copied: u64,
    /// Names that were taken out of the checkpoint, with all that was in them.
    pub removed: u64,
}

/// Merges a layer into the checkpoint that is below it. `scratch` is an empty directory on the file system of the
/// checkpoint, for what is not in its place yet.
///
/// # Errors
/// When the kernel refuses a step. The checkpoint is then somewhere between both states, and merging again goes on.
pub fn merge(layer: &Tree, checkpoint: &Tree, scratch: &Tree) -> Result<Merged, InspectError> {
    let mut merge = Merge {
        layer: Position::new(layer.clone()),
        checkpoint: Position::new(checkpoint.clone()),
        scratch: scratch.clone(),
        path: Vec::new(),
        levels: Vec::new(),
        merged: Merged::default(),
    };
    merge.clear_scratch()?;
    merge.run()?;
    Ok(merge.merged)
}

/// The name of what is not in its place yet.
const NEW: &CStr = c"new";
const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What the owner of a directory needs to look into it, and at what overlay wrote to it.
const LOOK: u32 = 0o500;

/// Changes the mode of a directory, of the open one itself by the name `.`.
fn chmod(directory: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    let below = match name.to_bytes() {
        // In what is closed nothing can be looked up, not even `.`.
        b"." => None,
        _ => Some(rustix::fs::openat(directory, name, DIRECTORY, Mode::empty())?),
    };
    let directory = below.as_ref().map_or(directory, AsFd::as_fd);
    rustix::fs::chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), Mode::from_raw_mode(mode))
}

fn is_closed(node: &Node) -> bool {
    node.mode() & LOOK != LOOK && !rustix::process::geteuid().is_root()
}

struct Merge {
    layer: Position,
    checkpoint: Position,
    scratch: Tree,
    path: Vec<u8>,
    levels: Vec<Level>,
    merged: Merged,
}

/// A directory that is being merged.
struct Level {
    /// What the layer says of it.
    node: Node,
    /// Directories in it that are still to be merged.
    pending: Vec<(CString, Node)>,
    /// Whether nothing below the checkpoint shows here: then what is gone needs no mark.
    hides_all: bool,
    /// How long the path is above it.
    above: usize,
}

impl Merge {
    fn run(&mut self) -> Result<(), InspectError> {
        let top = stat(self.layer.directory(), c"").map_err(|errno| self.fail("look at", c"", errno))?;
        self.let_us_in(c".", &top)?;
        self.make_enterable(c".")?;
        self.visit(top, 0, false)?;
        while let Some(level) = self.levels.last_mut() {
            match level.pending.pop() {
                Some((name, node)) => self.descend(&name, node)?,
                None => self.finish()?,
            }
        }
        Ok(())
    }

    fn descend(&mut self, name: &CStr, node: Node) -> Result<(), InspectError> {
        self.let_us_in(name, &node)?;
        self.layer.enter(name).map_err(|errno| self.fail("open the directory", name, errno))?;
        self.checkpoint.enter(name).map_err(|errno| self.fail("open the directory", name, errno))?;
        let above = self.path.len();
        self.path = self.path_of(name);
        let around = self.levels.last().is_some_and(|level| level.hides_all);
        self.visit(node, above, around || self.checkpoint.attributes() == Attributes::Opaque)
    }

    /// Merges what is in the directory where we are, but for the directories in it.
    fn visit(&mut self, node: Node, above: usize, hides_all: bool) -> Result<(), InspectError> {
        self.levels.push(Level { node, pending: Vec::new(), hides_all, above });
        let entries = list(self.layer.directory()).map_err(|errno| self.fail("list", c"", errno))?;
        for entry in entries {
            let entry = entry.map_err(|errno| self.fail("list", c"", errno))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match self.layer.see(name).map_err(|errno| self.fail("look up", name, errno))? {
                Seen::Nothing => {}
                Seen::Whiteout => self.erase(name)?,
                Seen::Node(node) if node.kind == FileKind::Directory => {
                    self.open_up(name, &node)?;
                    self.levels
                        .last_mut()
                        .into_iter()
                        .for_each(|level| level.pending.push((name.to_owned(), node.clone())));
                }
                Seen::Node(node) => self.put_file(name, &node)?,
            }
        }
        Ok(())
    }

    /// Gives the directory where we are what the layer says of it, and goes back up.
    fn finish(&mut self) -> Result<(), InspectError> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        self.dress(&level.node).map_err(|errno| self.fail("finish", c"", errno))?;
        self.let_nobody_in(c".", &level.node)?;
        for position in [&mut self.layer, &mut self.checkpoint] {
            match position.leave() {
                Ok(true) => {}
                Ok(false) => return Err(InspectError::Moved { path: shown(&self.path) }),
                Err(errno) => return Err(InspectError::at("return from", &self.path, errno)),
            }
        }
        self.path.truncate(level.above);
        Ok(())
    }

    /// Lets us into a directory of the layer that a command closed to its owner, which is us when we are an ordinary user.
    /// A mount that has it as a lower shows that until [`Merge::let_nobody_in`].
    fn let_us_in(&self, name: &CStr, node: &Node) -> Result<(), InspectError> {
        if !is_closed(node) {
            return Ok(());
        }
        let changed = chmod(self.layer.directory(), name, node.mode() | LOOK);
        changed.map_err(|errno| self.fail("open up", name, errno))
    }

    fn let_nobody_in(&self, name: &CStr, node: &Node) -> Result<(), InspectError> {
        if !is_closed(node) {
            return Ok(());
        }
        let changed = chmod(self.layer.directory(), name, node.mode());
        changed.map_err(|errno| self.fail("close again", name, errno))
    }

    fn dress(&self, node: &Node) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let from = rustix::fs::openat(self.layer.directory(), c".", flags, Mode::empty())?;
        let to = rustix::fs::openat(self.checkpoint.directory(), c".", flags, Mode::empty())?;
        copy_attributes(&from, &to);
        if rustix::process::geteuid().is_root() {
            rustix::fs::fchown(&to, Some(Uid::from_raw(node.owner)), Some(Gid::from_raw(node.group)))?;
        }
        rustix::fs::fchmod(&to, Mode::from_raw_mode(node.mode()))?;
        rustix::fs::futimens(&to, &times(node))
    }

    /// Makes sure that the checkpoint has a directory of this name, which hides what it must hide.
    fn open_up(&mut self, name: &CStr, node: &Node) -> Result<(), InspectError> {
        let old = self.old(name)?;
        self.let_us_in(name, node)?;
        let opaque = self.is_opaque(name);
        self.let_nobody_in(name, node)?;
        let opaque = opaque?;
        if !opaque && old.as_ref().is_some_and(|old| old.kind == FileKind::Directory) {
            return self.make_enterable(name);
        }
        let made = rustix::fs::mkdirat(&self.scratch, NEW, Mode::RWXU).and_then(|()| {
            match opaque || old.is_some() {
                // What the checkpoint had there, a mark included, must go on hiding what is below.
                true => self.mark(NEW, "user.overlay.opaque", b"y"),
                false => Ok(()),
            }
        });
        made.map_err(|errno| self.fail("make the directory", name, errno))?;
        self.move_in(name, old.as_ref(), node)
    }

    fn is_opaque(&self, name: &CStr) -> Result<bool, InspectError> {
        let attributes = rustix::fs::openat(self.layer.directory(), name, DIRECTORY, Mode::empty())
            .and_then(Attributes::of_directory)
            .map_err(|errno| self.fail("read the marks of", name, errno))?;
        Ok(attributes == Attributes::Opaque)
    }

    /// An ordinary user cannot write into a directory without permission even if it is their own. It gets its real
    /// permissions at the end.
    fn make_enterable(&self, name: &CStr) -> Result<(), InspectError> {
        chmod(self.checkpoint.directory(), name, 0o700).map_err(|errno| self.fail("open up", name, errno))
    }

    fn put_file(&mut self, name: &CStr, node: &Node) -> Result<(), InspectError> {
        let old = self.old(name)?;
        if old.as_ref().is_some_and(|old| old.is_same_file(node)) {
            return Ok(());
        }
        let from = self.layer.directory();
        match rustix::fs::linkat(from, name, &self.scratch, NEW, AtFlags::empty()) {
            Ok(()) => self.merged.linked += 1,
            // Another file system, too many names, or one of them belongs to somebody else.
            Err(Errno::XDEV | Errno::MLINK | Errno::PERM) => {
                let owner = rustix::process::geteuid().is_root().then_some((node.owner, node.group));
                copy((from, name), node, (self.scratch.as_fd(), NEW), owner)
                    .map_err(|error| InspectError::at("copy", &self.path_of(name), error))?;
                self.merged.copied += 1;
            }
            Err(errno) => return Err(self.fail("link", name, errno)),
        }
        self.move_in(name, old.as_ref(), node)
    }

    /// Takes a name out of the checkpoint, and marks it as gone where something below would show.
    fn erase(&mut self, name: &CStr) -> Result<(), InspectError> {
        let old = self.old(name)?;
        if self.levels.last().is_some_and(|level| level.hides_all) {
            return match old {
                Some(_) => self.move_out(name),
                None => Ok(()),
            };
        }
        if old.as_ref().is_some_and(Node::is_whiteout_device) {
            return Ok(());
        }
        let made = rustix::fs::mknodat(&self.scratch, NEW, FileType::CharacterDevice, Mode::empty(), 0)
            .and_then(|()| self.mark_as_copied());
        made.map_err(|errno| self.fail("mark as gone", name, errno))?;
        let mark = stat(&self.scratch, NEW).map_err(|errno| self.fail("mark as gone", name, errno))?;
        self.move_in(name, old.as_ref(), &mark)
    }

    /// The kernel looks for marks in a directory only when it is merged with another one or came out of one. A
    /// directory of the checkpoint alone must say so, or its marks would show as names (`ovl_get_inode`).
    fn mark_as_copied(&self) -> Result<(), Errno> {
        let link = format!("/proc/self/fd/{}/.", self.checkpoint.directory().as_raw_fd());
        match rustix::fs::setxattr(link, "user.overlay.origin", b"", XattrFlags::CREATE) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn mark(&self, name: &CStr, attribute: &str, value: &[u8]) -> Result<(), Errno> {
        let name = name.to_string_lossy();
        let link = format!("/proc/self/fd/{}/{name}", self.scratch.as_fd().as_raw_fd());
        rustix::fs::lsetxattr(link, attribute, value, XattrFlags::empty())
    }

    fn old(&self, name: &CStr) -> Result<Option<Node>, InspectError> {
        match stat(self.checkpoint.directory(), name) {
            Ok(node) => Ok(Some(node)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.fail("look up", name, errno)),
        }
    }

    /// Moves what is new into its place, in one step; what was there goes.
    fn move_in(&mut self, name: &CStr, old: Option<&Node>, new: &Node) -> Result<(), InspectError> {
        let directories = |node: &Node| node.kind == FileKind::Directory;
        let exchange = old.is_some_and(directories) || (old.is_some() && directories(new));
        let how = match old {
            Some(_) if exchange => RenameFlags::EXCHANGE,
            Some(_) => RenameFlags::empty(),
            None => RenameFlags::NOREPLACE,
        };
        rustix::fs::renameat_with(&self.scratch, NEW, self.checkpoint.directory(), name, how)
            .map_err(|errno| self.fail("put in its place", name, errno))?;
        if exchange { self.clear_scratch() } else { Ok(()) }
    }

    fn move_out(&mut self, name: &CStr) -> Result<(), InspectError> {
        rustix::fs::renameat_with(
            self.checkpoint.directory(),
            name,
            &self.scratch,
            NEW,
            RenameFlags::NOREPLACE,
        )
        .map_err(|errno| self.fail("take away", name, errno))?;
        self.clear_scratch()
    }

    /// Removes what is not, or no longer, in its place.
    fn clear_scratch(&mut self) -> Result<(), InspectError> {
        if remove_tree(&self.scratch, NEW)? {
            self.merged.removed += 1;
        }
        Ok(())
    }

    fn path_of(&self, name: &CStr) -> Vec<u8> {
        match (self.path.as_slice(), name.to_bytes()) {
            (path, b"") => path.to_vec(),
            (b"", name) => name.to_vec(),
            (path, name) => [path, b"/", name].concat(),
        }
    }

    fn fail(&self, step: &'static str, name: &CStr, errno: Errno) -> InspectError {
        InspectError::at(step, &self.path_of(name), errno)
    }
}
