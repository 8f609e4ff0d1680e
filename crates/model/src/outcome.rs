//! How an action ended, and what it used.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::LimitKind;
use crate::os_text::OsText;
use crate::units::Bytes;

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ended", rename_all = "kebab-case")]
pub enum Ending {
    /// It left by itself with this status.
    Exited {
        /// The status, 0 to 255.
        status: u8,
    },
    /// A signal ended it.
    Signaled {
        /// The number of the signal.
        signal: i32,
    },
    /// The supervisor ended it because it passed a limit.
    Limit {
        /// The limit.
        limit: LimitKind,
    },
    /// Somebody stopped it.
    Stopped,
    /// It tried to start a program that its grant does not list, and its profile ends an action for that.
    UnlistedProgram {
        /// The file, as the caller named it.
        file: OsText,
    },
    /// The program was not found inside.
    NotFound,
    /// The program was found but could not be started; the error number of `execve` says why.
    NotExecutable {
        /// The error number.
        errno: i32,
    },
    /// The directory in which it was to start could not be entered, so it was not started.
    NoDirectory {
        /// The error number of `chdir`.
        errno: i32,
    },
}

impl Ending {
    /// Returns the exit code that stands for this ending, by the table in `docs/cli.md`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Exited { status } => *status,
            Self::Signaled { signal } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            Self::Limit { limit: LimitKind::WallTime } => 124,
            // The kernel ends what passes a memory limit with SIGKILL; so do we.
            Self::Limit { .. } | Self::Stopped | Self::UnlistedProgram { .. } => 128 + 9,
            Self::NotFound => 127,
            Self::NotExecutable { .. } => 126,
            // Nothing was started: that is no answer of the command.
            Self::NoDirectory { .. } => 125,
        }
    }

    /// Tells whether the command left by itself with status zero.
    pub fn succeeded(&self) -> bool {
        matches!(self, Self::Exited { status: 0 })
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { status } => write!(f, "exited with {status}"),
            Self::Signaled { signal } => write!(f, "was ended by signal {signal}"),
            Self::Limit { limit } => write!(f, "passed its {limit} limit and was ended"),
            Self::Stopped => f.write_str("was stopped"),
            Self::UnlistedProgram { file } => {
                write!(f, "tried to start `{file}`, which its grant does not list, and was ended")
            }
            Self::NotFound => f.write_str("was not found in the sandbox"),
            Self::NotExecutable { errno } => write!(f, "could not be started: {}", error_of(*errno)),
            Self::NoDirectory { errno } => {
                write!(f, "was not started, its directory could not be entered: {}", error_of(*errno))
            }
        }
    }
}

fn error_of(errno: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}

/// What the action used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// From the start of the command to its end.
    pub wall_time: Duration,
    /// Processor time of all processes that were waited for.
    pub cpu_time: Duration,
    /// The most memory at once, as far as it was measured.
    pub memory_peak: Bytes,
    /// The most processes at once, as far as it was measured.
    pub processes_peak: u32,
    /// Bytes in the writable places at the end.
    pub disk: Bytes,
    /// Files, directories and links in the writable places at the end.
    pub files: u64,
    /// Bytes that the command printed.
    pub output: Bytes,
    /// Memory over time, in byte-seconds, as far as it was measured.
    pub memory_byte_seconds: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_has_the_exit_code_that_people_expect() {
        assert_eq!(Ending::Exited { status: 37 }.exit_code(), 37);
        assert_eq!(Ending::Signaled { signal: 15 }.exit_code(), 143);
        assert_eq!(Ending::Limit { limit: LimitKind::WallTime }.exit_code(), 124);
        assert_eq!(Ending::Limit { limit: LimitKind::Memory }.exit_code(), 137);
        assert_eq!(Ending::NotFound.exit_code(), 127);
        assert_eq!(Ending::NotExecutable { errno: 13 }.exit_code(), 126);
        assert_eq!(Ending::NoDirectory { errno: 2 }.exit_code(), 125);
    }
}
