//! One group: made, entered, read, ended, removed.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::files::{Directory, failed};
use super::mounts::{Hierarchies, Version};
use super::owner::Owner;
use super::place::Place;
use super::usage::Usage;
use super::{CgroupError, NotDelegated, Request, Resource, Support, own, settings};

/// The directory that holds all our groups. Nothing outside of it is ever changed.
pub(super) const OURS: &str = "fumehood";

/// Another process may remove our directory between its making and its use, when its last group has gone.
const TRIES: u32 = 16;
/// How long a group that is given up may take to end and to go.
const GIVE_UP_AFTER: Duration = Duration::from_secs(2);

/// What became of a request.
#[derive(Debug)]
pub enum Creation {
    /// A group, which may hold only some of the limits: see [`Group::support`].
    Made(Group),
    /// The host gives this process no place for a group. The limits can still be watched.
    NotDelegated(NotDelegated),
}

/// A group with limits. Dropping it ends its processes and removes it; [`Group::remove`] does so and tells.
#[derive(Debug)]
pub struct Group {
    parts: Vec<Part>,
    support: Vec<Support>,
}

/// The group in one hierarchy.
#[derive(Debug)]
pub(super) struct Part {
    pub version: Version,
    /// Our directory, which holds the group.
    pub above: Directory,
    pub name: String,
    pub group: Directory,
}

impl Hierarchies {
    /// Makes a group with limits. No process is in it yet.
    ///
    /// # Errors
    /// When the kernel refuses what the host seemed to offer, or the label is no plain name. Nothing is left then.
    pub fn create(&self, request: &Request<'_>) -> Result<Creation, CgroupError> {
        if !is_label(request.label) {
            return Err(CgroupError::Label(request.label.to_owned()));
        }
        let places = self.places();
        if places.list.is_empty() {
            let reason = places.support.iter().find_map(|support| support.by.clone().err());
            return Ok(Creation::NotDelegated(reason.unwrap_or_else(nothing_mounted)));
        }
        let owner = Owner::current().map_err(|error| failed("read", "/proc/self".as_ref(), error))?;
        let name = owner.name(request.label);
        let mut group = Group { parts: Vec::new(), support: places.support };
        for place in &places.list {
            // What is made so far goes with `group` when the next step fails.
            group.parts.push(Part::make(place, &name, &owner)?);
            let part = group.parts.last().map(|part| &part.group);
            for resource in &place.resources {
                part.map_or(Ok(()), |part| settings::apply(part, place.version, *resource, request))?;
            }
        }
        Ok(Creation::Made(group))
    }
}

impl Group {
    /// Says for each resource by what the group holds it, or why it does not.
    pub fn support(&self) -> &[Support] {
        &self.support
    }

    /// Tells whether the kernel holds the limit on a resource.
    pub fn holds(&self, resource: Resource) -> bool {
        self.support.iter().any(|support| support.resource == resource && support.by.is_ok())
    }

    /// Opens what it takes to enter, before the launcher drops what it may. There are at most four.
    ///
    /// For version 1 that is a file into which a process of one thread writes `0`; the kernel asks what the opener was
    /// allowed, not the writer. For version 2 it is the directory, in which a process is made (`CLONE_INTO_CGROUP`).
    ///
    /// Neither moves a process that runs. A whole process enters under a lock that every start and end of a process takes
    /// for reading, and the writer of that lock first waits for all processors: ten milliseconds and more. A thread that
    /// moves itself does not need it (`cgroup_procs_write_start` in `kernel/cgroup/cgroup.c`, since Linux 5.12), nor does
    /// a process that is made in the group (`cgroup_css_set_fork`).
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn entries(&self) -> Result<Vec<OwnedFd>, CgroupError> {
        self.parts.iter().map(Part::entry).collect()
    }

    /// Returns the directories of the group, for the record.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.parts.iter().map(|part| part.group.path.clone()).collect()
    }

    /// Reads what the processes have used so far.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn usage(&self) -> Result<Usage, CgroupError> {
        let mut usage = Usage::default();
        self.parts.iter().try_for_each(|part| usage.read(&part.group, part.version))?;
        Ok(usage)
    }

    /// Tells whether a process is in every directory of the group. Nobody but the launcher is given what it takes to
    /// enter, so that one that is there came from it.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn has_members(&self) -> Result<bool, CgroupError> {
        for part in &self.parts {
            if part.group.processes()?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends every process in the group, and waits until the group is empty.
    ///
    /// # Errors
    /// [`CgroupError::Populated`] when processes are left after `within`.
    pub fn end_all(&self, within: Duration) -> Result<(), CgroupError> {
        self.parts.iter().try_for_each(|part| end_all(&part.group, within))
    }

    /// Ends every process and removes the group.
    ///
    /// # Errors
    /// When processes or directories are left.
    pub fn remove(mut self, within: Duration) -> Result<(), CgroupError> {
        std::mem::take(&mut self.parts).into_iter().try_for_each(|part| part.remove(within))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for part in std::mem::take(&mut self.parts) {
            // Nobody is left to tell. What stays is found by the next start, which looks for dead owners.
            let _ = part.remove(GIVE_UP_AFTER);
        }
    }
}

impl Part {
    fn entry(&self) -> Result<OwnedFd, CgroupError> {
        match self.version {
            Version::V1 => self.group.open_for_writing("tasks"),
            Version::V2 => {
                let again = self.group.fd.try_clone();
                again.map_err(|error| failed("open", &self.group.path, error))
            }
        }
    }

    pub(super) fn make(place: &Place, name: &str, owner: &Owner) -> Result<Self, CgroupError> {
        let top = Directory::open(&place.directory)?;
        let mut tries = 0..TRIES;
        loop {
            let result = make_below(&top, place, name, owner);
            match result {
                Err(CgroupError::File { source, .. }) if is_gone(&source) && tries.next().is_some() => {}
                result => return result,
            }
        }
    }

    /// Ends the processes of the group and removes it, and our directory with it when that is empty.
    pub(super) fn remove(self, within: Duration) -> Result<(), CgroupError> {
        end_all(&self.group, within)?;
        let until = Instant::now() + within;
        remove_tree(&self.above, &self.name, until, 0)?;
        tidy(&self.above);
        Ok(())
    }
}

/// Tells whether somebody removed a directory that was being used: a name in it is not found, and its files that are open
/// answer that there is no such device (`kernfs_get_active` in `fs/kernfs`).
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

fn make_below(top: &Directory, place: &Place, name: &str, owner: &Owner) -> Result<Part, CgroupError> {
    make_directory(top, OURS)?;
    let above = top.child(OURS)?;
    if place.version == Version::V2 {
        if place.move_self {
            own::enter(top, &above, owner)?;
        }
        give_controllers(top, place)?;
        give_controllers(&above, place)?;
    }
    above.make(name).map_err(|error| failed("make", &above.path.join(name), error))?;
    let group = above.child(name)?;
    Ok(Part { version: place.version, above, name: name.to_owned(), group })
}

pub(super) fn make_directory(above: &Directory, name: &str) -> Result<(), CgroupError> {
    match above.make(name) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(failed("make", &above.path.join(name), error)),
    }
}

fn give_controllers(directory: &Directory, place: &Place) -> Result<(), CgroupError> {
    let given = directory.read("cgroup.subtree_control")?.unwrap_or_default();
    for resource in &place.resources {
        let controller = resource.controller();
        if !given.split_ascii_whitespace().any(|word| word == controller) {
            directory.write("cgroup.subtree_control", &format!("+{controller}"))?;
        }
    }
    Ok(())
}

/// Ends every process of a group and of those below, by the group and never by a bare number.
pub(super) fn end_all(group: &Directory, within: Duration) -> Result<(), CgroupError> {
    let until = Instant::now() + within;
    let mut pause = Duration::from_micros(200);
    loop {
        let count = members(group, 0)?;
        if count == 0 {
            return Ok(());
        }
        kill_once(group, 0)?;
        if Instant::now() >= until {
            return Err(CgroupError::Populated { path: group.path.clone(), count });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// A group that the kernel makes for us has none below; no one nests deeper by accident.
const DEPTH_MAX: u32 = 16;

fn members(group: &Directory, depth: u32) -> Result<usize, CgroupError> {
    let mut count = group.processes()?.len();
    for name in group.children()?.iter().filter(|_| depth < DEPTH_MAX) {
        if let Ok(child) = group.child(name) {
            count += members(&child, depth + 1)?;
        }
    }
    Ok(count)
}

fn kill_once(group: &Directory, depth: u32) -> Result<(), CgroupError> {
    if group.has("cgroup.kill") {
        return group.write("cgroup.kill", "1");
    }
    let freezes = group.has("freezer.state");
    if freezes {
        // A frozen process makes no new one while the list is read.
        group.write("freezer.state", "FROZEN")?;
    }
    for pid in group.processes()? {
        kill_member(group, pid)?;
    }
    for name in group.children()?.iter().filter(|_| depth < DEPTH_MAX) {
        if let Ok(child) = group.child(name) {
            kill_once(&child, depth + 1)?;
        }
    }
    if freezes { group.write("freezer.state", "THAWED") } else { Ok(()) }
}

/// Kills one process if it is still in the group once it is held by a descriptor: its number may have gone to another.
fn kill_member(group: &Directory, pid: i32) -> Result<(), CgroupError> {
    // Zero is a process that has no number here.
    if pid <= 0 || pid.cast_unsigned() == std::process::id() {
        return Ok(());
    }
    let Some(process) = pidfd(pid) else { return Ok(()) };
    if group.processes()?.contains(&pid) {
        let _ = rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL);
    }
    Ok(())
}

fn pidfd(pid: i32) -> Option<OwnedFd> {
    // SAFETY: the call takes numbers and answers with a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the descriptor is new, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Removes a group and those below it, and looks whether it is gone.
pub(super) fn remove_tree(
    above: &Directory,
    name: &str,
    until: Instant,
    depth: u32,
) -> Result<(), CgroupError> {
    let path = above.path.join(name);
    let mut pause = Duration::from_micros(200);
    loop {
        match rustix::fs::unlinkat(&above.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => break,
            // A group below, or a process that is on its way out.
            Err(Errno::BUSY | Errno::NOTEMPTY) if Instant::now() < until => {}
            Err(error) => return Err(failed("remove", &path, error)),
        }
        if depth < DEPTH_MAX
            && let Ok(group) = above.child(name)
        {
            // Whoever holds the file to enter can come in until the directory is gone.
            kill_once(&group, depth)?;
            for child in group.children()? {
                remove_tree(&group, &child, until, depth + 1)?;
            }
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    if above.has(name) { Err(failed("remove", &path, io::ErrorKind::AlreadyExists)) } else { Ok(()) }
}

/// Removes our directory when no group is in it. Someone may make one at this moment: then the kernel refuses.
pub(super) fn tidy(ours: &Directory) {
    if ours.path.file_name().is_some_and(|name| name == OURS) {
        let _ = rustix::fs::unlinkat(rustix::fs::CWD, &ours.path, AtFlags::REMOVEDIR);
    }
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&label.len()) && label.bytes().all(plain)
}

fn nothing_mounted() -> NotDelegated {
    NotDelegated {
        why: "no control groups are mounted".to_owned(),
        fix: "mount cgroup2 on /sys/fs/cgroup".to_owned(),
    }
}
