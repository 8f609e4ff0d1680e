//! Copies of files, whole, with what belongs to them.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, BorrowedFd};

use model::FileKind;
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use crate::tree::{Node, Time, open_file};

/// What a new file is to be like.
#[derive(Debug, Clone, Copy)]
pub struct Like<'a> {
    /// Its permissions.
    pub mode: u32,
    /// The times to give it; now when there are none.
    pub times: Option<&'a Node>,
    /// The user and the group that own it, where we can choose.
    pub owner: Option<(u32, u32)>,
}

/// Makes a new file with what a closure writes.
///
/// # Errors
/// When the name is taken, or the kernel refuses a step; a file that is not whole may be left.
pub fn make_file(
    directory: BorrowedFd<'_>,
    name: &CStr,
    like: &Like<'_>,
    attributes_of: Option<&File>,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
    write(&mut file)?;
    if let Some((owner, group)) = like.owner {
        rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)))?;
    }
    if let Some(from) = attributes_of {
        copy_attributes(from, &file);
    }
    rustix::fs::fchmod(&file, Mode::from_raw_mode(like.mode))?;
    if let Some(node) = like.times {
        rustix::fs::futimens(&file, &times(node))?;
    }
    Ok(())
}

/// Copies what a file holds; holes stay holes.
///
/// # Errors
/// When reading or writing fails.
pub fn copy_content(from: &File, to: &mut File, size: u64) -> io::Result<()> {
    let mut at = 0;
    while at < size {
        let Some((start, end)) = data_after(from, at, size) else { break };
        (&*from).seek(io::SeekFrom::Start(start))?;
        to.seek(io::SeekFrom::Start(start))?;
        io::copy(&mut io::Read::take(from, end - start), to)?;
        at = end;
    }
    to.set_len(size)
}

/// Returns where the next data begins and ends; a file system that does not know its holes has data everywhere.
fn data_after(file: &File, at: u64, size: u64) -> Option<(u64, u64)> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return None,
        Err(_) => at,
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size).min(size);
    (start < size && start < end).then_some((start, end))
}

/// Makes a symbolic link.
///
/// # Errors
/// When the name is taken, or the kernel refuses a step.
pub fn make_link(directory: BorrowedFd<'_>, name: &CStr, target: &CStr, like: &Like<'_>) -> io::Result<()> {
    rustix::fs::symlinkat(target, directory, name)?;
    if let Some((owner, group)) = like.owner {
        let (owner, group) = (Some(Uid::from_raw(owner)), Some(Gid::from_raw(group)));
        rustix::fs::chownat(directory, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    if let Some(node) = like.times {
        rustix::fs::utimensat(directory, name, &times(node), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Copies a file, link or pipe from one directory to another, with permissions, times, owner and attributes.
///
/// # Errors
/// When it is something else, the name is taken, or the kernel refuses a step.
pub fn copy(
    from: (BorrowedFd<'_>, &CStr),
    node: &Node,
    to: (BorrowedFd<'_>, &CStr),
    owner: Option<(u32, u32)>,
) -> io::Result<()> {
    let like = Like { mode: node.mode(), times: Some(node), owner };
    match node.kind {
        FileKind::File => {
            let source = open_file(from.0, from.1)?;
            make_file(to.0, to.1, &like, Some(&source), |file| copy_content(&source, file, node.size))
        }
        FileKind::Symlink => {
            let target: CString = rustix::fs::readlinkat(from.0, from.1, Vec::new())?;
            make_link(to.0, to.1, &target, &like)
        }
        FileKind::Fifo => {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(to.0, to.1, kind, Mode::from_raw_mode(node.mode()), 0)
                .map_err(io::Error::from)
        }
        FileKind::Directory | FileKind::Socket | FileKind::Device => Err(Errno::OPNOTSUPP.into()),
    }
}

/// Carries over the attributes that a person may have set on a file. What the kernel refuses is left out: the content
/// is what matters.
pub fn copy_attributes<From: AsFd, To: AsFd>(from: From, to: To) {
    let mut list = Vec::with_capacity(65_536);
    if rustix::fs::flistxattr(&from, spare_capacity(&mut list)).is_err() {
        return;
    }
    let kept = |name: &&[u8]| {
        let own = name.starts_with(b"user.") && !crate::tree::of_overlay(name);
        own || *name == b"system.posix_acl_access" || *name == b"security.selinux"
    };
    for name in list.split(|byte| *byte == 0).filter(kept) {
        let mut value = Vec::with_capacity(65_536);
        if rustix::fs::fgetxattr(&from, name, spare_capacity(&mut value)).is_ok() {
            let _ = rustix::fs::fsetxattr(&to, name, &value, XattrFlags::empty());
        }
    }
}

/// Returns the times of a file in the form that the kernel takes.
pub fn times(node: &Node) -> Timestamps {
    let time = |time: Time| Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanos) };
    Timestamps { last_access: time(node.accessed), last_modification: time(node.modified) }
}
