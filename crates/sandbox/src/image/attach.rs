//! A file behind a loop device, and its file system as a mount that hangs nowhere yet.
//!
//! Guarantees: the file has no name, and the kernel takes it from the device when the last user of that is gone: whenever
//! this process ends, nothing stays but the device's free node.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, makedev, mknodat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use crate::sys;

/// The major number of loop devices (`Documentation/admin-guide/devices.txt`).
const LOOP_MAJOR: u32 = 7;
/// How often another free device is asked for: somebody else may take it in between.
const TRIES: u64 = 1000;

/// Makes a file without a name.
pub(super) fn nameless_file(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system has such files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let path = directory.join("image");
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::open(&path, flags, mode)?;
            std::fs::remove_file(&path)?;
            Ok(file.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Puts a file behind a loop device that nobody uses. `directory` is private: a node is made there where `/dev` has none.
pub(super) fn attach(file: &File, directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let control = rustix::fs::open("/dev/loop-control", flags, Mode::empty())
        .map_err(|error| described("/dev/loop-control", error.into()))?;
    for tried in 0..TRIES {
        let number =
            sys::free_loop_device(control.as_fd()).map_err(|error| described("/dev/loop-control", error))?;
        let device = open_device(number, directory).map_err(|error| described("a loop device", error))?;
        match sys::attach_to_loop(device.as_fd(), file.as_fd()) {
            Ok(()) => return Ok(device),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                // Many that start at once are given the same one; each waits for another time.
                let spread = u64::from(std::process::id()) * 7 + tried * 13 + u64::from(number);
                std::thread::sleep(Duration::from_micros(50 + spread % 400));
            }
            Err(error) => return Err(described("the loop device", error)),
        }
    }
    Err(io::Error::other("every free loop device was taken by somebody else"))
}

fn open_device(number: u32, directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let device = match rustix::fs::open(format!("/dev/loop{number}"), flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NXIO) => {
            let path = directory.join("loop");
            mknodat(CWD, &path, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, makedev(LOOP_MAJOR, number))?;
            let opened = rustix::fs::open(&path, flags, Mode::empty());
            unlinkat(CWD, &path, AtFlags::empty())?;
            opened?
        }
        opened => opened?,
    };
    // A container may have put anything there.
    if fstat(&device)?.st_rdev == makedev(LOOP_MAJOR, number) {
        return Ok(device);
    }
    Err(io::Error::other(format!("/dev/loop{number} is something else")))
}

/// Mounts what is on a device. Nothing in it outlives the action, so nothing waits for the disk.
pub(super) fn mount(device: &OwnedFd) -> io::Result<OwnedFd> {
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let source = format!("/proc/self/fd/{}", device.as_raw_fd());
    fsconfig_set_string(context.as_fd(), "source", source)?;
    for option in ["nobarrier", "noinit_itable", "nodiscard", "noauto_da_alloc"] {
        fsconfig_set_flag(context.as_fd(), option)?;
    }
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOATIME;
    Ok(fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn described(what: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
