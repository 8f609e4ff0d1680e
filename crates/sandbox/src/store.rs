//! The store, in memory or in an image: measures it, and copies the layer, the artifacts and what is new of the cache out
//! of it.

mod merge;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use model::Bytes;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, XattrFlags, fgetxattr,
    flistxattr, fsetxattr,
};
use rustix::io::Errno;

use crate::disk;
use crate::plan::own_files;
use crate::quota::Quota;
use crate::spec::Spec;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// Returns the bytes and the files that the writable places hold.
pub(crate) fn measure(store: Option<&OwnedFd>, spec: &Spec, quota: &Quota) -> (Bytes, u64) {
    match (quota, store) {
        (Quota::Image(image), _) => image.used(),
        (Quota::Memory, Some(store)) => {
            let Ok(stat) = rustix::fs::fstatvfs(store) else { return (Bytes::default(), 0) };
            let bytes = (stat.f_blocks - stat.f_bfree) * stat.f_frsize;
            (Bytes::new(bytes), (stat.f_files - stat.f_ffree).saturating_sub(own_files(spec)))
        }
        _ => disk::measure(&disk::places(spec)),
    }
}

/// Copies the layer and the artifacts out of the store, with whiteouts, holes, links, modes and times. Out of an image, what
/// is new of the cache comes too; one in memory goes with its action.
pub(crate) fn take_out(store: &OwnedFd, spec: &Spec, quota: &Quota) -> io::Result<()> {
    copy_directory(store, c"upper", &spec.workspace.layer, c"upper")?;
    if let Some(git) = spec.git_layer() {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&git)?;
        copy_directory(store, c"git/upper", &git, c"upper")?;
    }
    let (artifacts, name) = (spec.artifacts.parent(), spec.artifacts.file_name());
    let (Some(parent), Some(name)) = (artifacts, name) else { return Ok(()) };
    let name = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(name))?;
    copy_directory(store, c"artifacts", parent, &name)?;
    if quota.image().is_some() { merge::cache(store, spec) } else { Ok(()) }
}

/// One directory that is being copied.
struct Pair {
    from: OwnedFd,
    to: OwnedFd,
    stat: Stat,
}

/// A hard link group: files that were one file stay one file.
type Links = std::collections::HashMap<(u64, u64), OwnedFd>;

fn copy_directory(from: &OwnedFd, from_name: &CStr, to: &Path, to_name: &CStr) -> io::Result<()> {
    let to = rustix::fs::openat(CWD, to, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let top = match enter(from.as_fd(), from_name, to.as_fd(), to_name) {
        // A workspace that is read-only has no layer.
        Err(Errno::NOENT) => return Ok(()),
        result => result?,
    };
    walk(top, copy_entry)
}

/// Goes through a directory and all below it; `each` puts one entry in its place, and returns it when it is a directory.
fn walk(top: Pair, each: impl Fn(&Pair, &CStr, &mut Links) -> io::Result<Option<Pair>>) -> io::Result<()> {
    let mut links = Links::new();
    // Directories get their times when all in them is done, innermost last in, so the list is walked backwards.
    let mut done = Vec::new();
    let mut left = vec![top];
    while let Some(pair) = left.pop() {
        for name in names(&pair.from)? {
            if let Some(below) = each(&pair, &name, &mut links)? {
                left.push(below);
            }
        }
        done.push(pair);
    }
    done.iter().rev().try_for_each(|pair| restore(pair.to.as_fd(), &pair.stat)).map_err(Into::into)
}

/// Opens a directory of the store and makes its copy.
fn enter(
    from: std::os::fd::BorrowedFd<'_>,
    from_name: &CStr,
    to: std::os::fd::BorrowedFd<'_>,
    to_name: &CStr,
) -> Result<Pair, Errno> {
    let stat = rustix::fs::statat(from, from_name, AtFlags::SYMLINK_NOFOLLOW)?;
    let from = open_readable(from, from_name, &stat, OFlags::DIRECTORY)?;
    match rustix::fs::mkdirat(to, to_name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::openat(to, to_name, flags, Mode::empty())?;
    copy_attributes(&from, &to)?;
    Ok(Pair { from, to, stat })
}

/// Opens something for reading, also what its owner closed to itself; the store goes away right after.
fn open_readable(
    directory: std::os::fd::BorrowedFd<'_>,
    name: &CStr,
    stat: &Stat,
    more: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(stat.st_mode & 0o7777) | Mode::RUSR | Mode::XUSR;
            rustix::fs::chmodat(directory, name, mode, AtFlags::empty())?;
            rustix::fs::openat(directory, name, flags, Mode::empty())
        }
        result => result,
    }
}

fn names(directory: &OwnedFd) -> Result<Vec<std::ffi::CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

/// Copies one entry; returns the pair when it is a directory.
fn copy_entry(pair: &Pair, name: &CStr, links: &mut Links) -> io::Result<Option<Pair>> {
    let stat = rustix::fs::statat(&pair.from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => return Ok(Some(enter(pair.from.as_fd(), name, pair.to.as_fd(), name)?)),
        FileType::RegularFile => copy_file(pair, name, &stat, links)?,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&pair.from, name, Vec::new())?;
            rustix::fs::symlinkat(target, &pair.to, name)?;
            give_to_owner(pair, name, &stat)?;
            rustix::fs::utimensat(&pair.to, name, &times(&stat), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // Whiteouts are character devices with number zero, which an ordinary user may make (Linux 5.8).
        kind => {
            rustix::fs::mknodat(
                &pair.to,
                name,
                kind,
                Mode::from_raw_mode(stat.st_mode & 0o7777),
                stat.st_rdev,
            )?;
            give_to_owner(pair, name, &stat)?;
        }
    }
    Ok(None)
}

fn copy_file(pair: &Pair, name: &CStr, stat: &Stat, links: &mut Links) -> io::Result<()> {
    let key = (stat.st_dev, stat.st_ino);
    if let Some(first) = links.get(&key) {
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(first));
        rustix::fs::linkat(CWD, path, &pair.to, name, AtFlags::SYMLINK_FOLLOW)?;
        return Ok(());
    }
    let from = open_readable(pair.from.as_fd(), name, stat, OFlags::empty())?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let to = rustix::fs::openat(&pair.to, name, flags, Mode::RUSR | Mode::WUSR)?;
    copy_content(&from, &to, u64::try_from(stat.st_size).unwrap_or(0))?;
    copy_attributes(&from, &to)?;
    restore(to.as_fd(), stat)?;
    if stat.st_nlink > 1 {
        links.insert(key, to);
    }
    Ok(())
}

/// Copies the parts of a file that hold data, and leaves its holes as holes.
fn copy_content(from: &OwnedFd, to: &OwnedFd, size: u64) -> io::Result<()> {
    rustix::fs::ftruncate(to, size)?;
    let mut at = 0;
    let mut buffer = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE)).max(1)];
    while at < size {
        let data = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let hole = rustix::fs::seek(from, SeekFrom::Hole(data))?;
        at = data;
        while at < hole {
            let piece = usize::try_from(hole - at).unwrap_or(PIECE).min(buffer.len());
            let read = rustix::io::pread(from, &mut buffer[..piece], at)?;
            if read == 0 {
                break;
            }
            write_all(to, &buffer[..read], at)?;
            at += read as u64;
        }
    }
    Ok(())
}

fn write_all(to: &OwnedFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::pwrite(to, bytes, at)?;
        bytes = &bytes[written..];
        at += written as u64;
    }
    Ok(())
}

/// Copies extended attributes of the `user.` kind: the overlay's marks, and those of programs.
fn copy_attributes(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut list = vec![0; 64 << 10];
    let length = match flistxattr(from, &mut list) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut value = vec![0; 64 << 10];
    for name in list[..length].split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        let length = fgetxattr(from, name, &mut value)?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

/// Gives the copy the owner, mode and times of the original.
fn restore(file: std::os::fd::BorrowedFd<'_>, stat: &Stat) -> Result<(), Errno> {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (rustix::fs::Uid::from_raw(stat.st_uid), rustix::fs::Gid::from_raw(stat.st_gid));
        rustix::fs::fchown(file, Some(uid), Some(gid))?;
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    rustix::fs::futimens(file, &times(stat))
}

fn give_to_owner(pair: &Pair, name: &CStr, stat: &Stat) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (rustix::fs::Uid::from_raw(stat.st_uid), rustix::fs::Gid::from_raw(stat.st_gid));
    rustix::fs::chownat(&pair.to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

fn times(stat: &Stat) -> Timestamps {
    let time = |seconds: i64, nanos: u64| Timespec { tv_sec: seconds, tv_nsec: nanos.cast_signed() };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}
