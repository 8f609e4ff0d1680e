//! Bringing files to the disk.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use inspect::tree::open_file;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Brings files to the disk before anything relies on them: one by one when they are few, else the file system.
pub(super) fn settle(directory: &OwnedFd, names: &[CString]) -> io::Result<()> {
    const FEW: usize = 64;
    let open = rustix::fs::openat(
        directory,
        c".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if names.len() > FEW {
        return rustix::fs::syncfs(&open).map_err(io::Error::from);
    }
    for name in names {
        match open_file(directory, name) {
            Ok(file) => file.sync_data()?,
            // A link has nothing beside its name, and what we may not read was not written by us.
            Err(Errno::LOOP | Errno::ACCESS | Errno::NXIO) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    rustix::fs::fsync(&open).map_err(io::Error::from)
}
