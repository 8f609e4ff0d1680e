//! The store of root in `disk` mode: a file system of its own, as large as the limits, in a file that grows as it is filled.
//!
//! Guarantees: no more bytes and files fit into it than the limits say, in all writable places together, by what the kernel
//! itself reports of it; nothing of it is left when its last user is gone, whatever became of this process.
//! Leaves to others: what is on it (`steps.rs` of the launcher, `store.rs`), and showing by the prober that the writable
//! places lie on it.

mod attach;
mod ext4;
mod template;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::Bytes;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatVfs, fstat, fstatvfs, statvfs};

use crate::plan::own_files;
use crate::spec::Spec;
use crate::sys;
use template::Template;

/// What always stays free on the disk of the state directory, where it is large enough.
const HOST_RESERVE: u64 = 256 << 20;
/// The least that an action starts with, unless its limit is smaller.
const LEAST: u64 = 16 << 20;

/// From so much in it on, an image is stopped at the end and not written out: the kernel tells of each stop in its log, as
/// an alert (`ext4_force_shutdown`), so everyday actions do without.
const STOPPED_FROM: Bytes = Bytes::mib(64);

/// A file system of its own, mounted.
#[derive(Debug)]
pub(crate) struct Image {
    /// Its mount, until the launcher has it.
    mount: Option<OwnedFd>,
    /// Its root directory.
    top: OwnedFd,
    /// The file that it is in.
    file: File,
    /// The number of its device.
    device: u64,
    /// What it said of itself when it was empty.
    empty: Counts,
    /// What it said when the sandbox was built.
    built: Counts,
    /// The limit that it holds.
    limit: Bytes,
    /// Why that is less than what the profile says, if so.
    bounded: Option<String>,
}

/// What a file system says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// Bytes of the whole.
    bytes: u64,
    /// Bytes that are free, with those that the kernel keeps back.
    free: u64,
    /// Bytes that can be written.
    usable: u64,
    /// Inodes of the whole.
    files: u64,
    /// Inodes that are free.
    free_files: u64,
}

/// What may be written at most, when so much is free on the disk of the state directory.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    /// The limit.
    All,
    /// Less, because what is kept is copied while the image is still there.
    Less(u64),
    /// Too little to start.
    TooLittle,
}

/// Why there is no image.
#[derive(Debug)]
pub(crate) enum NoImage {
    /// The host has no means for one: the limits are watched instead.
    NotHere(String),
    /// The disk of the state directory is full.
    Full(io::Error),
}

impl Image {
    /// Makes and mounts an image for one run.
    pub(crate) fn make(spec: &Spec) -> Result<Self, NoImage> {
        let limits = &spec.grant.profile.limits;
        let not_here = |error: io::Error| match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => NoImage::Full(error),
            _ => NoImage::NotHere(error.to_string()),
        };
        let host = statvfs(&spec.run_directory).map_err(|error| not_here(error.into()))?;
        let (limit, bounded) = match room(limits.disk.get(), &host) {
            Room::All => (limits.disk, None),
            Room::Less(bytes) => {
                let free = Bytes::new(host.f_bavail * host.f_frsize);
                let why = format!("bounded to {}: its disk has {free} free", Bytes::new(bytes));
                (Bytes::new(bytes), Some(why))
            }
            Room::TooLittle => {
                let free = Bytes::new(host.f_bavail * host.f_frsize);
                let text = format!("the disk of the state directory has only {free} free: make room there");
                return Err(NoImage::Full(io::Error::other(text)));
            }
        };
        Self::with(spec, limit, bounded).map_err(not_here)
    }

    fn with(spec: &Spec, limit: Bytes, bounded: Option<String>) -> io::Result<Self> {
        // Nearly all files of ours are directories, each of which takes a block.
        let own = own_files(spec);
        let blocks = limit.get().div_ceil(ext4::BLOCK) + own;
        let files = spec.grant.profile.limits.files.saturating_add(own);
        let template = Template::of(&spec.images, blocks, files)?;
        let file = attach::nameless_file(&spec.run_directory)?;
        template.write_to(&file)?;
        let device = attach::attach(&file, &spec.run_directory)?;
        let mount = attach::mount(&device)?;
        let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&mount, ".", open, Mode::empty())?;
        let device = fstat(&device)?.st_rdev;
        rustix::fs::unlinkat(&top, "lost+found", AtFlags::REMOVEDIR)?;
        let (uid, gid) = (spec.identity.uid, spec.identity.gid);
        let owner = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        rustix::fs::fchown(&top, Some(owner.0), Some(owner.1))?;
        let empty = counts(&top)?;
        let image = Self { mount: Some(mount), top, file, device, empty, built: empty, limit, bounded };
        image.check(blocks * ext4::BLOCK, files)?;
        Ok(image)
    }

    /// The kernel's own numbers must be the limits.
    fn check(&self, bytes: u64, files: u64) -> io::Result<()> {
        let has = (self.empty.usable, self.empty.free_files);
        if has == (bytes, files) && fstat(&self.top)?.st_dev == self.device {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the image was made for {bytes} bytes and {files} files, and takes {} and {}",
            has.0, has.1
        )))
    }

    /// Returns the mount, for the launcher.
    pub(crate) fn mount(&self) -> Option<BorrowedFd<'_>> {
        self.mount.as_ref().map(AsFd::as_fd)
    }

    /// Lets go of the mount: the launcher has it, and has made what is ours in it. What is left of the room for that is taken
    /// away, where the command cannot see it, so that the limit is exact.
    pub(crate) fn handed_over(&mut self, files: u64) -> io::Result<()> {
        self.mount = None;
        let surplus = counts(&self.top)?.free_files.saturating_sub(files + 1);
        let make = |name: String| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&self.top, name, flags, Mode::empty())
        };
        (0..surplus).try_for_each(|number| make(format!("surplus-{number}")).map(drop))?;
        let file = make("surplus".to_owned())?;
        let bytes = counts(&self.top)?.usable.saturating_sub(self.limit.get().next_multiple_of(ext4::BLOCK));
        if bytes > 0 {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        }
        self.built = counts(&self.top)?;
        Ok(())
    }

    /// Returns the bytes and the files that the kernel says of the whole.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.empty.bytes, self.empty.files)
    }

    /// Returns what counts as its limit being reached: the kernel refuses a large write when the last blocks are promised to
    /// writes before it, of which it gives some back later.
    pub(crate) fn reached_at(&self) -> Bytes {
        let limit = self.limit.get();
        Bytes::new(limit - (limit / 16).min(2 << 20))
    }

    /// Says by what the limits are held.
    pub(crate) fn by(&self) -> String {
        let by = "one ext4 in a file of the state directory, behind every writable place".to_owned();
        self.bounded.as_ref().map_or_else(|| by.clone(), |bounded| format!("{by}, {bounded}"))
    }

    /// Returns the bytes and the files in it.
    pub(crate) fn used(&self) -> (Bytes, u64) {
        let Ok(now) = counts(&self.top) else { return (Bytes::default(), 0) };
        let bytes = self.built.free.saturating_sub(now.free);
        let files = self.built.free_files.saturating_sub(now.free_files);
        (Bytes::new(bytes), files)
    }

    /// Tells whether the disk of the state directory gets full: what is in the image must fit into its file, and then beside
    /// it, where it is copied to.
    pub(crate) fn disk_gets_full(&self, run_directory: &Path) -> bool {
        let (Ok(host), Ok(file)) = (statvfs(run_directory), self.file.metadata()) else { return false };
        let used = self.used().0.get();
        let missing = used.saturating_sub(file.blocks() * 512);
        host.f_bavail * host.f_frsize < missing + used + reserve(&host)
    }

    /// Lets go of it. Of much that was not written to its file yet the rest never is: nobody will read it.
    pub(crate) fn let_go(self) {
        // By its number it is this very device and no other, whatever else happened to the descriptor.
        let is_ours = || fstat(&self.top).is_ok_and(|top| top.st_dev == self.device);
        if self.used().0 > STOPPED_FROM && is_ours() {
            // It only saves time.
            let _ = sys::stop_file_system(self.top.as_fd());
        }
    }
}

fn counts(top: &OwnedFd) -> io::Result<Counts> {
    let says = fstatvfs(top)?;
    Ok(Counts {
        bytes: says.f_blocks * says.f_frsize,
        free: says.f_bfree * says.f_frsize,
        usable: says.f_bavail * says.f_frsize,
        files: says.f_files,
        free_files: says.f_ffree,
    })
}

fn reserve(host: &StatVfs) -> u64 {
    HOST_RESERVE.min(host.f_blocks * host.f_frsize / 16)
}

fn room(limit: u64, host: &StatVfs) -> Room {
    let free = (host.f_bavail * host.f_frsize).saturating_sub(reserve(host));
    // Whole steps, so that there are not many sizes to make templates for.
    let step = if free / 2 < 1 << 30 { 1 << 20 } else { 64 << 20 };
    let most = free / 2 / step * step;
    if most >= limit {
        Room::All
    } else if most >= LEAST {
        Room::Less(most)
    } else {
        Room::TooLittle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(total: u64, free: u64) -> StatVfs {
        let mut host = statvfs("/").expect("a file system");
        (host.f_frsize, host.f_blocks, host.f_bavail) = (1, total, free);
        host
    }

    #[test]
    fn as_much_as_fits_twice_beside_the_reserve_may_be_written() {
        let (mib, gib) = (1u64 << 20, 1u64 << 30);
        assert_eq!(room(8 * gib, &host(100 * gib, 40 * gib)), Room::All);
        assert_eq!(room(8 * gib, &host(100 * gib, 10 * gib)), Room::Less(4992 * mib));
        assert_eq!(room(32 * mib, &host(64 * mib, 60 * mib)), Room::Less(28 * mib));
        assert_eq!(room(32 * mib, &host(64 * mib, 20 * mib)), Room::TooLittle);
        assert_eq!(room(8 * mib, &host(64 * mib, 24 * mib)), Room::All);
    }
}
