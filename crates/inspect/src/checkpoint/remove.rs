//! Removing a tree of any depth.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd};

use model::FileKind;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::error::InspectError;
use crate::tree::{Position, Tree, list, stat};

/// Removes one name of a directory of ours, with all that is in it. Tells whether there was one.
///
/// # Errors
/// When the kernel refuses a step.
pub fn remove_tree(directory: &Tree, name: &CStr) -> Result<bool, InspectError> {
    let fail = |errno| InspectError::at("remove", name.to_bytes(), errno);
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(fail(errno)),
    }
    let mut position = Position::new(directory.clone());
    let mut above: Vec<(CString, Vec<CString>)> = vec![(CString::default(), vec![name.to_owned()])];
    while let Some((_, pending)) = above.last_mut() {
        if let Some(next) = pending.pop() {
            make_enterable(position.directory(), &next).map_err(fail)?;
            position.enter(&next).map_err(fail)?;
            let below = empty(&position).map_err(fail)?;
            above.push((next, below));
        } else if let Some((left, _)) = above.pop().filter(|_| !above.is_empty()) {
            if !position.leave().map_err(fail)? {
                return Err(InspectError::Moved { path: crate::error::shown(name.to_bytes()) });
            }
            rustix::fs::unlinkat(position.directory(), &left, AtFlags::REMOVEDIR).map_err(fail)?;
        }
    }
    Ok(true)
}

/// Removes all but the directories in a directory, and returns those.
fn empty(position: &Position) -> Result<Vec<CString>, Errno> {
    let mut below = Vec::new();
    for entry in list(position.directory())? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match stat(position.directory(), name)?.kind {
            FileKind::Directory => below.push(name.to_owned()),
            _ => rustix::fs::unlinkat(position.directory(), name, AtFlags::empty())?,
        }
    }
    Ok(below)
}

/// An ordinary user cannot empty a directory without permission even if it is their own.
fn make_enterable<Fd: AsFd>(directory: Fd, name: &CStr) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    match rustix::fs::chmod(format!("/proc/self/fd/{}", open.as_raw_fd()), Mode::RWXU) {
        // Somebody else's; if it cannot be emptied, the next step says so.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno),
    }
}
