//! The host's directory, and names beneath it.
//!
//! The kernel itself refuses what would leave: every directory is opened with `openat2`, beneath the workspace, through
//! no link and into no other mount (Linux 5.6).

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use inspect::Node;
use inspect::tree::look_up;
use model::WorkspacePath;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::error::ApplyError;

/// Bytes of a path that are opened at a time; the kernel takes less than 4096.
const PATH_STEP: usize = 3072;

/// The host's directory, open.
#[derive(Debug)]
pub(super) struct Workspace {
    top: OwnedFd,
    pub(super) node: Node,
}

/// A name in an open directory beneath the workspace.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) directory: OwnedFd,
    pub(super) name: CString,
}

impl Workspace {
    pub(super) fn open(path: &Path) -> Result<Self, ApplyError> {
        let fail = |source| ApplyError::Workspace { step: "open", source };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| fail(errno.into()))?;
        let node = look_up(&top, c"").map_err(fail)?;
        Ok(Self { top, node })
    }

    pub(super) fn top(&self) -> BorrowedFd<'_> {
        self.top.as_fd()
    }

    /// Opens the directory that holds a path.
    pub(super) fn place(&self, path: &WorkspacePath) -> Result<Place, Errno> {
        let bytes = path.as_bytes();
        let cut = bytes.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = cut.map_or((&bytes[..0], bytes), |cut| (&bytes[..cut], &bytes[cut + 1..]));
        Ok(Place {
            directory: self.directory(directory)?,
            name: CString::new(name).map_err(|_| Errno::INVAL)?,
        })
    }

    /// Says what is at a path; nothing when it, or a directory on the way, is not there.
    pub(super) fn look(&self, path: &WorkspacePath) -> Result<Option<Node>, Errno> {
        match self.place(path) {
            Ok(place) => place.look(),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut rest = path;
        let mut open = open_beneath(self.top.as_fd(), b".")?;
        while !rest.is_empty() {
            let end = match rest.get(PATH_STEP..) {
                Some(far) => {
                    far.iter().position(|byte| *byte == b'/').map_or(rest.len(), |slash| PATH_STEP + slash)
                }
                None => rest.len(),
            };
            open = open_beneath(open.as_fd(), &rest[..end])?;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(open)
    }
}

impl Place {
    /// Says what has the name now.
    pub(super) fn look(&self) -> Result<Option<Node>, Errno> {
        match look_up(&self.directory, &self.name) {
            Ok(node) => Ok(Some(node)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => Ok(None),
                other => Err(other.unwrap_or(Errno::IO)),
            },
        }
    }
}

fn open_beneath(directory: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(directory, OsStr::from_bytes(path), flags, Mode::empty(), resolve)
}
