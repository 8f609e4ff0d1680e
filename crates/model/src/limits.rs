//! What an action may use at most, and the names of the limits that can end it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The most that one action may use. Every field is a hard number; how each is held is in the [`enforcement`]
/// report of the run.
///
/// [`enforcement`]: crate::enforcement
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of all processes together, without what the writable places hold in `memory` disk mode.
    pub memory: Bytes,
    /// Processes and threads at once.
    pub processes: u32,
    /// Processor time a second, in thousandths of one processor; `None` leaves all but a reserve.
    pub millicpus: Option<u32>,
    /// Time from the start of the command to its end, by the clock that does not stop in suspend.
    pub wall_time: Duration,
    /// Bytes in every writable place together.
    pub disk: Bytes,
    /// Files, directories and links in every writable place together.
    pub files: u64,
    /// Where the writable places are kept.
    pub disk_mode: DiskMode,
    /// Bytes kept of each output stream; the head and the tail are kept and the rest is counted.
    pub output: Bytes,
    /// Open descriptors of one process.
    pub open_files: u64,
    /// Size of one file.
    pub file_size: Bytes,
}

/// Where the writable places of a sandbox are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskMode {
    /// In one tmpfs: the kernel holds the quota for root and user alike, and the memory limit grows by it.
    Memory,
    /// On the disk that holds the state directory: no memory is used. For root a file system of its own holds the quota,
    /// where the host can have one; otherwise the supervisor measures it.
    Disk,
}

/// Names a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::processes`].
    Processes,
    /// [`Limits::millicpus`].
    Cpu,
    /// [`Limits::wall_time`].
    WallTime,
    /// [`Limits::disk`].
    Disk,
    /// [`Limits::files`].
    Files,
    /// [`Limits::output`].
    Output,
    /// [`Limits::open_files`].
    OpenFiles,
    /// [`Limits::file_size`].
    FileSize,
}

impl LimitKind {
    /// Every limit there is.
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::Processes,
        Self::Cpu,
        Self::WallTime,
        Self::Disk,
        Self::Files,
        Self::Output,
        Self::OpenFiles,
        Self::FileSize,
    ];
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpu => "cpu",
            Self::WallTime => "wall-time",
            Self::Disk => "disk",
            Self::Files => "files",
            Self::Output => "output",
            Self::OpenFiles => "open-files",
            Self::FileSize => "file-size",
        })
    }
}

impl Limits {
    /// Names the limits in which `self` allows more than `other`.
    pub fn wider_than(&self, other: &Self) -> Vec<LimitKind> {
        let cpu = |limits: &Self| limits.millicpus.unwrap_or(u32::MAX);
        let more = |kind| match kind {
            LimitKind::Memory => self.memory > other.memory,
            LimitKind::Processes => self.processes > other.processes,
            LimitKind::Cpu => cpu(self) > cpu(other),
            LimitKind::WallTime => self.wall_time > other.wall_time,
            LimitKind::Disk => self.disk > other.disk,
            LimitKind::Files => self.files > other.files,
            LimitKind::Output => self.output > other.output,
            LimitKind::OpenFiles => self.open_files > other.open_files,
            LimitKind::FileSize => self.file_size > other.file_size,
        };
        LimitKind::ALL.into_iter().filter(|kind| more(*kind)).collect()
    }

    /// Returns the smaller of both in every field.
    pub fn tightest(&self, other: &Self) -> Self {
        Self {
            memory: self.memory.min(other.memory),
            processes: self.processes.min(other.processes),
            millicpus: match (self.millicpus, other.millicpus) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            },
            wall_time: self.wall_time.min(other.wall_time),
            disk: self.disk.min(other.disk),
            files: self.files.min(other.files),
            disk_mode: match (self.disk_mode, other.disk_mode) {
                (DiskMode::Disk, DiskMode::Disk) => DiskMode::Disk,
                _ => DiskMode::Memory,
            },
            output: self.output.min(other.output),
            open_files: self.open_files.min(other.open_files),
            file_size: self.file_size.min(other.file_size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    #[test]
    fn the_tightest_of_two_is_wider_than_neither() {
        let strict = Profile::strict().limits;
        let mut other = Profile::default_profile().limits;
        other.processes = 3;
        let both = strict.tightest(&other);
        assert!(both.wider_than(&strict).is_empty());
        assert!(both.wider_than(&other).is_empty());
        assert_eq!(both.processes, 3);
    }

    #[test]
    fn every_limit_is_compared() {
        let strict = Profile::strict().limits;
        let wide = Limits {
            memory: Bytes::gib(900),
            processes: 99_999,
            millicpus: None,
            wall_time: Duration::from_secs(99_999),
            disk: Bytes::gib(900),
            files: 99_999_999,
            disk_mode: DiskMode::Disk,
            output: Bytes::gib(9),
            open_files: 9_999_999,
            file_size: Bytes::gib(900),
        };
        let narrow = Limits { millicpus: Some(1), ..strict };
        assert_eq!(wide.wider_than(&narrow), LimitKind::ALL);
    }
}
