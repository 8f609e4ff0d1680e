//! Renames directories that come from a lower layer.
//!
//! An overlay without redirects answers EXDEV for those, and `git mv` and `rename(2)` users take that for a broken
//! disk. Here the directory is made anew and its entries are moved, with no more rights than the command has. It
//! is not atomic: a reader can see both halves, and a kill in the middle leaves both.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, Timestamps};
use rustix::io::Errno;

use crate::root::path_of;

/// A rename that the command asked for.
pub(crate) struct Request {
    /// The process, by its number here.
    pub(crate) pid: i32,
    /// The descriptor that the old path starts from.
    pub(crate) from_dir: i32,
    /// The old path, when it could be read.
    pub(crate) from: Option<Vec<u8>>,
    /// The descriptor that the new path starts from.
    pub(crate) to_dir: i32,
    /// The new path, when it could be read.
    pub(crate) to: Option<Vec<u8>>,
    /// The flags of `renameat2(2)`.
    pub(crate) flags: u32,
}

/// What became of a rename.
pub(crate) enum Outcome {
    /// The kernel shall carry it out: it is no directory, or nothing that needs help.
    LeaveToKernel,
    /// It was carried out as it stands.
    Done,
    /// It was carried out by moving the entries.
    Healed,
    /// It was refused with this error number.
    Refused(i32),
}

/// One end of a rename: the directory that holds the name, and the name.
struct Place {
    directory: OwnedFd,
    name: PathBuf,
}

/// Carries out a rename if it is one of a directory, and leaves everything else to the kernel.
pub(crate) fn carry_out(request: &Request) -> Outcome {
    let (Some(from), Some(to)) = (&request.from, &request.to) else { return Outcome::LeaveToKernel };
    let Some(from) = resolve(request.pid, request.from_dir, from) else { return Outcome::LeaveToKernel };
    let Ok(stat) = rustix::fs::statat(&from.directory, &from.name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Outcome::LeaveToKernel;
    };
    let exchange = request.flags & RenameFlags::EXCHANGE.bits() != 0;
    if !is_directory(&stat) && !exchange {
        return Outcome::LeaveToKernel;
    }
    let Some(to) = resolve(request.pid, request.to_dir, to) else { return Outcome::LeaveToKernel };
    let Some(flags) = RenameFlags::from_bits(request.flags) else { return Outcome::LeaveToKernel };
    answer(rename(&from, &to, flags))
}

fn answer(result: Result<bool, Errno>) -> Outcome {
    match result {
        Ok(false) => Outcome::Done,
        Ok(true) => Outcome::Healed,
        Err(error) => Outcome::Refused(error.raw_os_error()),
    }
}

/// Renames, by hand where the overlay cannot; says whether it was by hand.
fn rename(from: &Place, to: &Place, flags: RenameFlags) -> Result<bool, Errno> {
    match rustix::fs::renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags) {
        Ok(()) => Ok(false),
        Err(Errno::XDEV) if same_file_system(from, to)? => {
            if flags.contains(RenameFlags::EXCHANGE) {
                exchange(from, to)?;
            } else if flags.contains(RenameFlags::WHITEOUT) {
                return Err(Errno::INVAL);
            } else {
                move_tree(from, to, flags.contains(RenameFlags::NOREPLACE))?;
            }
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

/// Tells whether both ends are on one file system; between two, EXDEV is the right answer.
fn same_file_system(from: &Place, to: &Place) -> Result<bool, Errno> {
    Ok(rustix::fs::fstat(&from.directory)?.st_dev == rustix::fs::fstat(&to.directory)?.st_dev)
}

/// Exchanges two names by way of a third.
fn exchange(one: &Place, two: &Place) -> Result<(), Errno> {
    let name = PathBuf::from(format!(".fumehood-exchange-{}", rustix::process::getpid().as_raw_nonzero()));
    let aside = Place { directory: one.directory.try_clone().map_err(|_| Errno::MFILE)?, name };
    rename(one, &aside, RenameFlags::NOREPLACE)?;
    if let Err(error) = rename(two, one, RenameFlags::NOREPLACE) {
        rename(&aside, one, RenameFlags::NOREPLACE)?;
        return Err(error);
    }
    rename(&aside, two, RenameFlags::NOREPLACE).map(|_| ())
}

/// Moves a directory: makes the new one, moves the entries, and removes the old one.
fn move_tree(from: &Place, to: &Place, no_replace: bool) -> Result<(), Errno> {
    refuse_below_itself(from, to)?;
    let stat = rustix::fs::statat(&from.directory, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_directory(&stat) {
        let flags = if no_replace { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        return rustix::fs::renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags);
    }
    make_target(to, no_replace)?;
    let (old, new) = (open_directory(from)?, open_directory(to)?);
    if let Err(error) = move_entries(&old, &new) {
        // Puts back what was moved, so that a full disk does not leave two halves.
        move_entries(&new, &old)?;
        rustix::fs::unlinkat(&to.directory, &to.name, AtFlags::REMOVEDIR)?;
        return Err(error);
    }
    restore(&new, &stat)?;
    rustix::fs::unlinkat(&from.directory, &from.name, AtFlags::REMOVEDIR)
}

/// Makes the new directory; an empty one that is there is replaced, as `rename(2)` does.
fn make_target(to: &Place, no_replace: bool) -> Result<(), Errno> {
    match rustix::fs::mkdirat(&to.directory, &to.name, Mode::RWXU) {
        Err(Errno::EXIST) if !no_replace => {
            rustix::fs::unlinkat(&to.directory, &to.name, AtFlags::REMOVEDIR)?;
            rustix::fs::mkdirat(&to.directory, &to.name, Mode::RWXU)
        }
        result => result,
    }
}

fn move_entries(old: &OwnedFd, new: &OwnedFd) -> Result<(), Errno> {
    for name in names_in(old)? {
        let from = Place { directory: old.try_clone().map_err(|_| Errno::MFILE)?, name: name.clone() };
        let to = Place { directory: new.try_clone().map_err(|_| Errno::MFILE)?, name };
        rename(&from, &to, RenameFlags::NOREPLACE)?;
    }
    Ok(())
}

fn names_in(directory: &OwnedFd) -> Result<Vec<PathBuf>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(path_of(name).to_owned());
        }
    }
    Ok(names)
}

/// Gives the new directory the mode, times and attributes of the old one.
fn restore(new: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
    rustix::fs::fchmod(new, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    let time =
        |seconds: i64, nanos: u64| rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanos.cast_signed() };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    };
    rustix::fs::futimens(new, &times)
}

/// Refuses to move a directory below itself, as `rename(2)` does.
fn refuse_below_itself(from: &Place, to: &Place) -> Result<(), Errno> {
    let moved = rustix::fs::statat(&from.directory, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mut above = to.directory.try_clone().map_err(|_| Errno::MFILE)?;
    loop {
        let here = rustix::fs::fstat(&above)?;
        if (here.st_dev, here.st_ino) == (moved.st_dev, moved.st_ino) {
            return Err(Errno::INVAL);
        }
        let parent = rustix::fs::openat(&above, "..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let up = rustix::fs::fstat(&parent)?;
        if (up.st_dev, up.st_ino) == (here.st_dev, here.st_ino) {
            return Ok(());
        }
        above = parent;
    }
}

fn open_directory(place: &Place) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&place.directory, &place.name, flags, Mode::empty())
}

/// Finds the directory that holds a path of the command, and the last name of it. The kernel judges everything
/// that is odd: an empty path, a last name of `.` or `..`, a missing parent.
fn resolve(pid: i32, start: i32, path: &[u8]) -> Option<Place> {
    let end = path.iter().rposition(|byte| *byte != b'/')? + 1;
    let path = &path[..end];
    let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let name = path_of(&path[name_at..]);
    if name == Path::new(".") || name == Path::new("..") {
        return None;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = &path[..name_at];
    let directory = if path[0] == b'/' {
        rustix::fs::open(path_of(parent), flags, Mode::empty()).ok()?
    } else {
        let start = if start == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{start}") };
        let start = rustix::fs::openat(CWD, format!("/proc/{pid}/{start}"), flags, Mode::empty()).ok()?;
        let parent = if parent.is_empty() { b"." } else { parent };
        rustix::fs::openat(start.as_fd(), path_of(parent), flags, Mode::empty()).ok()?
    };
    Some(Place { directory, name: name.to_owned() })
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}
