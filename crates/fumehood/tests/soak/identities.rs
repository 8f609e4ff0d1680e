//! What the kernel and the file system have, by identity.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, wait};

/// How long what was killed has to go.
const SETTLES_WITHIN: Duration = Duration::from_secs(20);

/// Sets of identities, each by the name of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Identities(BTreeMap<&'static str, BTreeSet<String>>);

/// What only goes when the program is started again.
pub(crate) const NEED_RECOVERY: [&str; 1] = ["control group"];

impl Identities {
    /// Looks at everything: processes that descend from this one and their namespaces, mounts of the machine, loop
    /// devices with a file below `top`, control groups of owners that are dead, and all files below `top` outside the state
    /// directory.
    pub(crate) fn now(top: &Path) -> Self {
        let family = family();
        Self(BTreeMap::from([
            ("process", family.iter().map(|(pid, start)| format!("{pid} started at {start}")).collect()),
            ("namespace", namespaces(&family)),
            ("mount", mounts()),
            ("control group", control_groups()),
            ("loop device", loop_devices(top)),
            ("file", files(top)),
            ("file in a shared place", shared_places()),
        ]))
    }

    pub(crate) fn of(&self, kind: &str) -> usize {
        self.0.get(kind).map_or(0, BTreeSet::len)
    }

    /// Returns what is there now and was not before, and the other way around.
    pub(crate) fn differences(&self, now: &Self, leave_out: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for (kind, before) in self.0.iter().filter(|(kind, _)| !leave_out.contains(kind)) {
            let after = &now.0[kind];
            found.extend(after.difference(before).map(|what| format!("{kind} {what} is new")));
            found.extend(before.difference(after).map(|what| format!("{kind} {what} is gone")));
        }
        found
    }

    /// Demands that all is as it was, as soon as what is on its way out has gone.
    pub(crate) fn are_back(&self, top: &Path, leave_out: &[&str], when: &str) {
        let deadline = Instant::now() + SETTLES_WITHIN;
        loop {
            reap();
            let differences = self.differences(&Self::now(top), leave_out);
            if differences.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{when}: {differences:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Takes note of the ends of orphans that became our children.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Returns the processes that descend from this one, with their start times: a number alone may come to mean another.
fn family() -> Vec<(u32, u64)> {
    let mut children: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for pid in numbers("/proc") {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<u64> =
            rest.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        let parent = u32::try_from(fields[0]).unwrap_or(0);
        children.entry(parent).or_default().push((pid, fields[18]));
    }
    let mut family = Vec::new();
    let mut open = vec![std::process::id()];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            open.push(child.0);
            family.push(child);
        }
    }
    family
}

fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the namespaces in which a process of the family is, which one of its descriptors holds, or which are mounted
/// somewhere: there is no other way to keep one.
fn namespaces(family: &[(u32, u64)]) -> BTreeSet<String> {
    let own = std::process::id();
    let mut found = BTreeSet::new();
    for pid in family.iter().map(|(pid, _)| *pid).chain([own]) {
        for place in ["ns", "fd"] {
            let links = fs::read_dir(format!("/proc/{pid}/{place}")).into_iter().flatten().flatten();
            let names = links.filter_map(|link| fs::read_link(link.path()).ok()?.to_str().map(str::to_owned));
            found.extend(names.filter(|name| is_namespace(name)));
        }
    }
    found.extend(mounts().into_iter().filter(|mount| mount.contains(" nsfs ")));
    found
}

fn is_namespace(name: &str) -> bool {
    let kinds = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    name.split_once(":[").is_some_and(|(kind, _)| kinds.iter().any(|known| kind.starts_with(known)))
}

/// Returns the mounts of our namespace: each with its number, its root, its place and what it is of.
fn mounts() -> BTreeSet<String> {
    let list = fs::read_to_string("/proc/self/mountinfo").expect("mounts are listed");
    list.lines().map(str::to_owned).collect()
}

/// Returns our control groups whose owner is dead: those of others on this machine are alive.
fn control_groups() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let is_ours = directory.ends_with("fumehood");
            if is_ours && owner_is_dead(&entry.file_name().to_string_lossy()) {
                found.insert(entry.path().display().to_string());
            }
            open.push(entry.path());
        }
    }
    found
}

/// Reads `NAMESPACE-PID-START-…`.
fn owner_is_dead(group: &str) -> bool {
    let mut parts = group.split('-').skip(1).map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(start))) = (parts.next(), parts.next()) else { return false };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let started = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)?.parse().ok());
    started != Some(start)
}

/// Returns the loop devices whose files lie below a directory, with these. Those of other programs come and go.
fn loop_devices(top: &Path) -> BTreeSet<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let behind = |device: PathBuf| {
        let file = fs::read_to_string(device.join("loop/backing_file")).ok()?;
        Path::new(&file).starts_with(top).then_some(file)
    };
    devices
        .filter_map(|device| {
            Some(format!("{} {}", device.file_name().display(), behind(device.path())?.trim()))
        })
        .collect()
}

/// Returns every file below a directory but those of the state: place, inode, kind and rights, size and time.
fn files(top: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path == top.join("state") {
                continue;
            }
            let Ok(file) = fs::symlink_metadata(&path) else { continue };
            found.insert(format!(
                "{} inode {} mode {:o} owner {}:{} size {} time {}.{:09}",
                path.display(),
                file.ino(),
                file.mode(),
                file.uid(),
                file.gid(),
                file.size(),
                file.mtime(),
                file.mtime_nsec()
            ));
            if file.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// Returns the names in the places that everybody writes to, when nobody else does so now.
fn shared_places() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if std::env::var_os("FUMEHOOD_SOAK_ALONE").is_some() {
        for place in ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/run/lock"] {
            for entry in fs::read_dir(place).into_iter().flatten().flatten() {
                found.insert(entry.path().display().to_string());
            }
        }
    }
    found
}
