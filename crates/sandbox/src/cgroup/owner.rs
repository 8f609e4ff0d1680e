//! Who a group belongs to: a process, told apart from a later one with the same number.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that made a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The inode of its process namespace, in which the number means something.
    pub namespace: u64,
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
}

/// Whether an owner is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// Its number belongs to another process namespace: nobody here can tell.
    Unknown,
}

impl Owner {
    /// Returns this process.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        let start = start_time(pid)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { namespace: namespace()?, pid, start })
    }

    /// Tells whether the process is still there.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn fate(&self) -> io::Result<Fate> {
        if self.namespace != namespace()? {
            return Ok(Fate::Unknown);
        }
        let is_alive = start_time(self.pid)? == Some(self.start);
        Ok(if is_alive { Fate::Alive } else { Fate::Dead })
    }

    /// Returns a name for a new group, which no other group has.
    pub(super) fn name(&self, label: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{}-{}-{}-{number}-{label}", self.namespace, self.pid, self.start)
    }

    /// Returns the name of the group that this process itself moves to; the same each time.
    pub(super) fn own_name(&self) -> String {
        format!("{}-{}-{}-0-supervisor", self.namespace, self.pid, self.start)
    }

    /// Reads the owner from a group's name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut parts = name.splitn(5, '-');
        let mut number = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        let namespace = number()?.parse().ok()?;
        let pid = number()?.parse().ok()?;
        let start = number()?.parse().ok()?;
        number()?.parse::<u32>().ok()?;
        parts.next()?;
        Some(Self { namespace, pid, start })
    }
}

fn namespace() -> io::Result<u64> {
    fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino())
}

/// Returns when a process started; `None` when there is none with this number.
fn start_time(pid: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // ESRCH: it ended while it was read.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(Some(start_in(&String::from_utf8_lossy(&stat)).ok_or(io::ErrorKind::InvalidData)?))
}

/// Finds field 22 of `/proc/PID/stat`. The name in field 2 may hold spaces and brackets, so the last bracket counts.
fn start_in(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_owner() {
        let owner = Owner { namespace: 4_026_531_836, pid: 17, start: 99 };
        assert_eq!(Owner::of(&owner.name("a-1")), Some(owner));
        assert_ne!(owner.name("a"), owner.name("a"));
        for foreign in
            ["", "x", "1-2-3", "1-2-3-4", "1-2-x-4-a", "-1-2-3-4-a", "1-+2-3-4-a", "1-2-3-99999999999-a"]
        {
            assert_eq!(Owner::of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn this_process_is_alive_and_its_past_and_namesakes_are_not() {
        let now = Owner::current().unwrap();
        assert_eq!(now.fate().unwrap(), Fate::Alive);
        assert_eq!(Owner { start: now.start + 1, ..now }.fate().unwrap(), Fate::Dead);
        assert_eq!(Owner { pid: u32::MAX, ..now }.fate().unwrap(), Fate::Dead);
        assert_eq!(Owner { namespace: 1, ..now }.fate().unwrap(), Fate::Unknown);
    }

    #[test]
    fn a_name_with_brackets_does_not_move_the_start_time() {
        let rest = "S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        assert_eq!(start_in(&format!("5 (a) b) ) {rest}")), Some(4711));
        assert_eq!(start_in("5 (a S 1"), None);
    }
}
