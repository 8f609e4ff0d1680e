//! Watches which files of the workspace and the inputs are opened: as root, by fanotify on their mounts.
//!
//! It is evidence, not a wall. A file is told once: after that the kernel ignores it, so the cost is that of the
//! different files and not of the openings. Where there are too many of those, watching ends and the record says so.
//!
//! The kernel may take some milliseconds to give up a group that watched a mount (`synchronize_srcu` in
//! `fsnotify_destroy_group`). Its marks are taken off as soon as everything inside has ended, and a thread waits for the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use model::OsText;
use model::evidence::Reads;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;

use crate::spec::Spec;
use crate::sys;

/// Files that are kept one by one. What a large build opens stays below; each costs its path in the record.
const READS_MAX: usize = 5000;
/// Bytes of events that are read at once.
const BUFFER: usize = 16 << 10;

/// Watches the openings of one sandbox.
#[derive(Debug)]
pub(crate) struct ReadWatch {
    stop: OwnedFd,
    watcher: Option<JoinHandle<(Reads, OwnedFd)>>,
}

/// Why the files that are read are not observed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoReads {
    /// The kernel lets only root watch a mount.
    #[error("reads are not observed: only root can watch a mount")]
    NotRoot,
    /// The kernel refused.
    #[error("reads are not observed: {what}: {source}")]
    Refused {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl ReadWatch {
    /// Starts to watch. To be called when the sandbox stands and nothing of the command runs: `first_process` is its
    /// first process, through which its mounts are found.
    pub(crate) fn start(spec: &Spec, first_process: i32) -> Result<Self, NoReads> {
        if !rustix::process::geteuid().is_root() {
            return Err(NoReads::NotRoot);
        }
        let refused = |what| move |source| NoReads::Refused { what, source };
        let group = sys::file_notifications().map_err(refused("fanotify"))?;
        let mut mounts = BTreeMap::new();
        for place in places(spec) {
            let inside = place.strip_prefix("/").unwrap_or(&place);
            let path = Path::new(&format!("/proc/{first_process}/root")).join(inside);
            let path = CString::new(path.as_os_str().as_bytes())
                .map_err(|error| NoReads::Refused { what: "a path", source: io::Error::other(error) })?;
            sys::notify_of_opens(group.as_fd(), &path)
                .map_err(refused("the mount of the workspace or an input"))?;
            let mount = mount_of(&path).map_err(refused("the number of a mount"))?;
            mounts.insert(mount, place);
        }
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| refused("eventfd")(error.into()))?;
        let stopped = stop.try_clone().map_err(refused("eventfd"))?;
        let watcher = std::thread::spawn(move || Watcher::new(group, mounts).until(&stopped));
        Ok(Self { stop, watcher: Some(watcher) })
    }

    /// Ends watching when everything inside has ended, and returns what was opened.
    pub(crate) fn finish(mut self) -> Reads {
        self.end()
    }

    fn end(&mut self) -> Reads {
        let Some(watcher) = self.watcher.take() else { return Reads::default() };
        // It cannot be full after one.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        let Ok((reads, group)) = watcher.join() else { return Reads::default() };
        std::thread::spawn(move || drop(group));
        reads
    }
}

impl Drop for ReadWatch {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns where the workspace and the inputs are inside.
fn places(spec: &Spec) -> Vec<PathBuf> {
    let inputs = spec.grant.inputs.iter().map(|input| Path::new("/inputs").join(&input.name));
    [spec.workspace.path.clone()].into_iter().chain(inputs).collect()
}

/// Returns the number of the mount that a path is on.
fn mount_of(path: &CStr) -> io::Result<u64> {
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    Ok(found.stx_mnt_id)
}

/// Returns the number of the mount that a descriptor was opened on (`proc_pid_fdinfo(5)`).
fn mount_of_descriptor(file: &OwnedFd) -> Option<u64> {
    let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

struct Watcher {
    group: OwnedFd,
    /// Where each mount is inside, by its number.
    mounts: BTreeMap<u64, PathBuf>,
    files: BTreeSet<OsText>,
    complete: bool,
}

impl Watcher {
    fn new(group: OwnedFd, mounts: BTreeMap<u64, PathBuf>) -> Self {
        Self { group, mounts, files: BTreeSet::new(), complete: true }
    }

    /// Takes events until it is told to stop, and then those that are still there.
    fn until(mut self, stop: &OwnedFd) -> (Reads, OwnedFd) {
        let mut buffer = vec![0; BUFFER];
        loop {
            let mut fds = [PollFd::new(&self.group, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            let waited = poll(&mut fds, None);
            let stops = !fds[1].revents().is_empty() || waited.is_err_and(|error| error != Errno::INTR);
            self.complete &= self.take_all(&mut buffer).is_ok();
            if stops {
                let _ = sys::forget_mounts(self.group.as_fd());
                let reads = Reads { files: self.files.into_iter().collect(), complete: self.complete };
                return (reads, self.group);
            }
        }
    }

    fn take_all(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let events = match sys::opened_files(self.group.as_fd(), buffer) {
                Ok(events) if events.is_empty() => return Ok(()),
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            for file in events {
                match file {
                    Some(file) => self.take(&file),
                    // The queue of the kernel was full.
                    None => self.complete = false,
                }
            }
        }
    }

    fn take(&mut self, file: &OwnedFd) {
        if self.files.len() >= READS_MAX {
            // Nothing more is asked for, so that a command that opens everything is not slowed down for nothing.
            self.complete = false;
            let _ = sys::forget_mounts(self.group.as_fd());
            return;
        }
        // A kernel that cannot ignore it tells it again; it is kept once in any case.
        let _ = sys::forget_opens(self.group.as_fd(), file.as_fd());
        match self.path_of(file).and_then(|path| OsText::try_from(path.as_path()).ok()) {
            Some(path) => drop(self.files.insert(path)),
            None => self.complete = false,
        }
    }

    /// Returns where a file is inside. When the sandbox is gone already, the kernel knows its path on the mount only.
    fn path_of(&self, file: &OwnedFd) -> Option<PathBuf> {
        let place = self.mounts.get(&mount_of_descriptor(file)?)?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        if path.starts_with(place) {
            return Some(path);
        }
        let on_mount = path.strip_prefix("/").ok()?;
        Some(if on_mount.as_os_str().is_empty() { place.clone() } else { place.join(on_mount) })
    }
}
