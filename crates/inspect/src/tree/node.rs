//! What the kernel says about one name.

use std::os::fd::AsFd;

use model::FileKind;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use serde::{Deserialize, Serialize};

/// A time of a file, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time {
    /// Whole seconds since the start of 1970; files may claim times before it.
    pub seconds: i64,
    /// Nanoseconds after that.
    pub nanos: u32,
}

/// What a name stands for, and the facts that the kernel keeps about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// What kind of thing it is.
    pub kind: FileKind,
    /// Type and permission bits as `stat` gives them.
    pub st_mode: u32,
    /// Bytes, as `stat` gives them.
    pub size: u64,
    /// The device that holds it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// How many names it has.
    pub links: u32,
    /// For a device node, its numbers (major, minor).
    pub device_numbers: (u32, u32),
    /// Who owns it.
    pub owner: u32,
    /// The group that owns it.
    pub group: u32,
    /// When it was last read.
    pub accessed: Time,
    /// When its content changed.
    pub modified: Time,
    /// When anything about it changed; programs cannot set it.
    pub changed: Time,
    /// Whether something is mounted here.
    pub mount_point: bool,
}

impl Node {
    /// Returns the low twelve permission bits.
    pub fn mode(&self) -> u32 {
        self.st_mode & 0o7777
    }

    /// Tells whether it is a character device 0:0, which is how overlay writes down that a name is gone.
    pub(crate) fn is_whiteout_device(&self) -> bool {
        FileType::from_raw_mode(self.st_mode) == FileType::CharacterDevice && self.device_numbers == (0, 0)
    }

    /// Tells whether it is the same file with nothing changed since: inode, size and time of change.
    pub fn is_unchanged(&self, later: &Self) -> bool {
        self.is_same_file(later)
            && (self.st_mode, self.size, self.changed) == (later.st_mode, later.size, later.changed)
    }

    /// Tells whether it is one and the same file as another, however it is named.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Asks the kernel about one name in an open directory, or about the directory itself when the name is empty. No link
/// is followed.
///
/// # Errors
/// When there is no such name, or the kernel cannot answer.
pub fn look_up<Fd: AsFd>(directory: Fd, name: &std::ffi::CStr) -> std::io::Result<Node> {
    stat(directory, name).map_err(std::io::Error::from)
}

/// Asks the kernel about one name in a directory, without following a link.
pub(crate) fn stat<Fd: AsFd>(directory: Fd, name: impl Arg) -> Result<Node, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS).map(|statx| node(&statx))
}

/// Starts to list a directory. The descriptor that we came by may be one opened with `O_PATH`.
pub(crate) fn list<Fd: AsFd>(directory: Fd) -> Result<Dir, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Dir::new(rustix::fs::openat(directory, c".", flags, Mode::empty())?)
}

fn node(statx: &Statx) -> Node {
    let time = |t: &rustix::fs::StatxTimestamp| Time { seconds: t.tv_sec, nanos: t.tv_nsec };
    let st_mode = u32::from(statx.stx_mode);
    Node {
        kind: kind(st_mode),
        st_mode,
        size: statx.stx_size,
        device: rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor),
        inode: statx.stx_ino,
        links: statx.stx_nlink,
        device_numbers: (statx.stx_rdev_major, statx.stx_rdev_minor),
        owner: statx.stx_uid,
        group: statx.stx_gid,
        accessed: time(&statx.stx_atime),
        modified: time(&statx.stx_mtime),
        changed: time(&statx.stx_ctime),
        mount_point: statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
    }
}

fn kind(st_mode: u32) -> FileKind {
    match FileType::from_raw_mode(st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        // What the kernel may add one day is no ordinary file either.
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => FileKind::Device,
    }
}
