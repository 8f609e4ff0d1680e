//! What the processes of a group have used, by the kernel's own count.

use std::time::Duration;

use model::Bytes;

use super::CgroupError;
use super::files::{Directory, keyed};
use super::mounts::Version;

/// What was used. A number that the kernel does not give is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The most memory at once.
    pub memory_peak: Option<Bytes>,
    /// Memory in use now.
    pub memory_now: Option<Bytes>,
    /// How many processes were ended because memory ran out.
    pub oom_kills: Option<u64>,
    /// How often the memory limit was met; most of the time the kernel finds something to give back.
    pub memory_limit_hits: Option<u64>,
    /// How many times a process or thread could not be made.
    pub pids_refused: Option<u64>,
    /// Processor time of all processes, with those that are gone.
    pub cpu_time: Option<Duration>,
    /// Time for which processes had to wait for their next share of processor time.
    pub throttled: Option<Duration>,
    /// In how many periods that was.
    pub throttled_periods: Option<u64>,
}

impl Usage {
    /// Adds what one of the group's directories tells, to what others told.
    pub(super) fn read(&mut self, group: &Directory, version: Version) -> Result<(), CgroupError> {
        match version {
            Version::V2 => self.read_modern(group),
            Version::V1 => self.read_old(group),
        }
    }

    fn read_modern(&mut self, group: &Directory) -> Result<(), CgroupError> {
        self.memory_peak = self.memory_peak.or(number(group, "memory.peak")?.map(Bytes::new));
        self.memory_now = self.memory_now.or(number(group, "memory.current")?.map(Bytes::new));
        if let Some(events) = group.read("memory.events")? {
            self.oom_kills = self.oom_kills.or(keyed(&events, "oom_kill"));
            self.memory_limit_hits = self.memory_limit_hits.or(keyed(&events, "max"));
        }
        self.read_pids(group)?;
        if let Some(stat) = group.read("cpu.stat")? {
            let micros = |key| keyed(&stat, key).map(Duration::from_micros);
            self.cpu_time = self.cpu_time.or(micros("usage_usec"));
            self.throttled = self.throttled.or(micros("throttled_usec"));
            self.throttled_periods = self.throttled_periods.or(keyed(&stat, "nr_throttled"));
        }
        Ok(())
    }

    fn read_old(&mut self, group: &Directory) -> Result<(), CgroupError> {
        self.memory_peak = self.memory_peak.or(number(group, "memory.max_usage_in_bytes")?.map(Bytes::new));
        self.memory_now = self.memory_now.or(number(group, "memory.usage_in_bytes")?.map(Bytes::new));
        self.memory_limit_hits = self.memory_limit_hits.or(number(group, "memory.failcnt")?);
        if let Some(control) = group.read("memory.oom_control")? {
            self.oom_kills = self.oom_kills.or(keyed(&control, "oom_kill"));
        }
        self.read_pids(group)?;
        self.cpu_time = self.cpu_time.or(number(group, "cpuacct.usage")?.map(Duration::from_nanos));
        if let Some(stat) = group.read("cpu.stat")? {
            self.throttled = self.throttled.or(keyed(&stat, "throttled_time").map(Duration::from_nanos));
            self.throttled_periods = self.throttled_periods.or(keyed(&stat, "nr_throttled"));
        }
        Ok(())
    }

    fn read_pids(&mut self, group: &Directory) -> Result<(), CgroupError> {
        if let Some(events) = group.read("pids.events")? {
            self.pids_refused = self.pids_refused.or(keyed(&events, "max"));
        }
        Ok(())
    }
}

fn number(group: &Directory, file: &str) -> Result<Option<u64>, CgroupError> {
    Ok(group.read(file)?.and_then(|text| text.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(place.path().join(name), text).unwrap();
        }
        let directory = Directory::open(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn the_files_of_version_2_are_read() {
        let (_place, group) = group(&[
            ("memory.peak", "4096\n"),
            ("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n"),
            ("pids.events", "max 3\n"),
            ("cpu.stat", "usage_usec 1500\nuser_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 20\n"),
        ]);
        let mut usage = Usage::default();
        usage.read(&group, Version::V2).unwrap();
        assert_eq!(usage.memory_peak, Some(Bytes::new(4096)));
        assert_eq!(
            (usage.oom_kills, usage.memory_limit_hits, usage.pids_refused),
            (Some(2), Some(7), Some(3))
        );
        assert_eq!(usage.cpu_time, Some(Duration::from_micros(1500)));
        assert_eq!((usage.throttled, usage.throttled_periods), (Some(Duration::from_micros(20)), Some(4)));
        assert_eq!(usage.memory_now, None);
    }

    #[test]
    fn the_files_of_version_1_are_read() {
        let (_place, group) = group(&[
            ("memory.max_usage_in_bytes", "8192\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"),
            ("memory.failcnt", "11\n"),
            ("cpuacct.usage", "123\n"),
            ("cpu.stat", "nr_periods 1\nnr_throttled 2\nthrottled_time 3\n"),
        ]);
        let mut usage = Usage::default();
        usage.read(&group, Version::V1).unwrap();
        assert_eq!((usage.oom_kills, usage.memory_limit_hits, usage.pids_refused), (Some(5), Some(11), None));
        assert_eq!(usage.cpu_time, Some(Duration::from_nanos(123)));
        assert_eq!((usage.throttled, usage.throttled_periods), (Some(Duration::from_nanos(3)), Some(2)));
    }

    #[test]
    fn nonsense_in_a_file_is_a_number_that_is_not_there() {
        let (_place, group) =
            group(&[("memory.peak", "max\n"), ("memory.events", "oom_kill x\noom_killed 4\n")]);
        let mut usage = Usage::default();
        usage.read(&group, Version::V2).unwrap();
        assert_eq!(usage, Usage::default());
    }
}
