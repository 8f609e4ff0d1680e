//! Puts what an action wrote to the cache of its task into that cache.
//!
//! Guarantees: the cache then is what the action saw of it at its end; it never holds more than the limits of one action:
//! what would, is emptied, as a cache may be. Nothing but the cache is touched: no link is followed.
//! Leaves to others: that no other action of the task runs, and that nobody else may write there.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fgetxattr, fremovexattr};
use rustix::io::Errno;

use super::{Links, Pair, copy_entry, enter, names, walk};
use crate::disk;
use crate::spec::Spec;
use crate::teardown::remove_tree;

/// What an overlay marks a directory with whose lower ones are not shown (`overlayfs.rst`).
const OPAQUE: &CStr = c"user.overlay.opaque";
/// What it marks copies with; below another overlay these would mean something.
const MARKS: [&CStr; 5] =
    [OPAQUE, c"user.overlay.origin", c"user.overlay.impure", c"user.overlay.uuid", c"user.overlay.nlink"];

/// Puts what is new of the cache into it.
pub(super) fn cache(store: &OwnedFd, spec: &Spec) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let upper = rustix::fs::openat(store, "cache/upper", flags, Mode::empty())?;
    if names(&upper)?.is_empty() && !is_opaque(&upper) {
        return Ok(());
    }
    let to = rustix::fs::openat(CWD, &spec.cache, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&to)?;
    let merged = walk(Pair { from: upper, to, stat }, merge_entry);
    let limits = &spec.grant.profile.limits;
    let (bytes, files) = disk::measure(std::slice::from_ref(&spec.cache));
    if merged.is_ok() && bytes <= limits.disk && files <= limits.files {
        return Ok(());
    }
    // A cache that is half of one action and half of another is worse than none.
    for entry in std::fs::read_dir(&spec.cache)? {
        remove(&entry?.path())?;
    }
    Ok(())
}

/// Puts one entry in the place of what had its name; returns the pair when it is a directory.
fn merge_entry(pair: &Pair, name: &CStr, links: &mut Links) -> io::Result<Option<Pair>> {
    let new = rustix::fs::statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let old = match rustix::fs::statat(&pair.to, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(old) => Some(old),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if is_whiteout(&new) {
        return old.map_or(Ok(()), |_| remove(&below(pair, name))).map(|()| None);
    }
    let both = is_directory(&new) && old.as_ref().is_some_and(is_directory);
    if !both {
        old.map_or(Ok(()), |_| remove(&below(pair, name)))?;
        let copied = copy_entry(pair, name, links)?;
        if let Some(copied) = &copied {
            without_marks(&copied.to)?;
        }
        return Ok(copied);
    }
    let next = enter(pair.from.as_fd(), name, pair.to.as_fd(), name)?;
    if is_opaque(&next.from) {
        for name in names(&next.to)? {
            remove(&below(&next, &name))?;
        }
    }
    without_marks(&next.to)?;
    Ok(Some(next))
}

fn below(pair: &Pair, name: &CStr) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(name.to_bytes());
    PathBuf::from(format!("/proc/self/fd/{}", pair.to.as_raw_fd())).join(name)
}

fn remove(path: &std::path::Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path)?.is_dir() { remove_tree(path) } else { std::fs::remove_file(path) }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(directory: &OwnedFd) -> bool {
    let mut value = [0; 1];
    fgetxattr(directory, OPAQUE, &mut value).is_ok_and(|length| &value[..length] == b"y")
}

fn without_marks(directory: &OwnedFd) -> Result<(), Errno> {
    for mark in MARKS {
        match fremovexattr(directory, mark) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
