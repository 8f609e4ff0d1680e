//! Stopping a task: what runs in it is ended by the process that runs it, and nothing new starts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::task::{Task, TaskState};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::Engine;
use crate::error::EngineError;
use crate::lock::Lock;

/// How long an owner has: a command gets five seconds to end by itself, and its sandbox is taken down after that.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// Tells whether an action of a task is running, or an agent is at work on it.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn is_busy(&self, task: &Task) -> Result<bool, EngineError> {
        for lock in self.locks(task) {
            if lock.exists() && Lock::try_take(&lock)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the locks of a task: the agent's first, because it would only start another action.
    fn locks(&self, task: &Task) -> [PathBuf; 2] {
        ["agent.lock", "lock"].map(|name| self.places().task(&task.id).join(name))
    }

    /// Stops a task: no further action starts in it, and what runs is asked to end and waited for. It can be resumed.
    ///
    /// # Errors
    /// When the task is closed, the state cannot be written, or what runs does not end.
    pub fn stop(&self, task: &Task) -> Result<(), EngineError> {
        match task.state {
            TaskState::Open => self.set_task_state(&task.id, TaskState::Stopped)?,
            TaskState::Stopped => {}
            state => {
                return Err(EngineError::Nothing(format!(
                    "task {} is {state}: there is nothing to stop",
                    task.id
                )));
            }
        }
        self.end_what_runs(task)
    }

    /// Asks what runs in a task to end, and does not wait.
    pub(crate) fn ask_to_end(&self, task: &Task) -> Result<(), EngineError> {
        for lock in self.locks(task) {
            if lock.exists()
                && Lock::try_take(&lock)?.is_none()
                && let Some(pid) = owner(&lock)?
            {
                ask_to_end(&lock, pid)?;
            }
        }
        Ok(())
    }

    /// Asks what runs in a task to end, and waits until it has.
    pub(crate) fn end_what_runs(&self, task: &Task) -> Result<(), EngineError> {
        self.locks(task).iter().try_for_each(|lock| end_owner(lock))
    }
}

/// Asks the process that holds a lock to end, and waits until it has let go.
fn end_owner(lock: &Path) -> Result<(), EngineError> {
    let start = Instant::now();
    let mut asked = None;
    while lock.exists() && Lock::try_take(lock)?.is_none() {
        match owner(lock)? {
            Some(pid) if asked != Some(pid) => {
                ask_to_end(lock, pid)?;
                asked = Some(pid);
            }
            _ if start.elapsed() > PATIENCE => return Err(still_there(lock, asked)),
            _ => sleep(PAUSE),
        }
    }
    Ok(())
}

fn still_there(lock: &Path, pid: Option<Pid>) -> EngineError {
    let who = pid.map_or_else(|| "a process that cannot be found".to_owned(), |pid| format!("process {pid}"));
    EngineError::Nothing(format!("{who} holds `{}` and does not end: end it by hand", lock.display()))
}

/// Sends SIGTERM to a process that holds a lock. Its number cannot come to mean another one in between: the process is
/// opened first, and looked for once more.
fn ask_to_end(lock: &Path, pid: Pid) -> Result<(), EngineError> {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if owner(lock)? == Some(pid) {
        // It may have ended just now, which is what is wanted.
        let _ = pidfd_send_signal(process, Signal::TERM);
    }
    Ok(())
}

/// Returns the process that holds an advisory lock on a file, as the kernel lists it.
fn owner(lock: &Path) -> Result<Option<Pid>, EngineError> {
    let file = match fs::metadata(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::file("look at", lock)(error)),
    };
    let locks = PathBuf::from("/proc/locks");
    let list = fs::read_to_string(&locks).map_err(EngineError::file("read", &locks))?;
    let place =
        format!("{:02x}:{:02x}:{}", rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()), file.ino());
    Ok(holder(&list, &place))
}

/// Finds the holder of a lock in the form of `/proc/locks`. Those that wait for it are marked with an arrow.
fn holder(list: &str, place: &str) -> Option<Pid> {
    list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, at, ..] = words[..] else { return None };
        (at == place).then(|| pid.parse().ok().and_then(Pid::from_raw)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_and_not_who_waits() {
        let list = "1: POSIX  ADVISORY  WRITE 7 08:01:9 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 08:01:9 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 9 08:01:9 0 EOF\n3: FLOCK  ADVISORY  WRITE 0 08:01:5 0 EOF\n";
        assert_eq!(holder(list, "08:01:9"), Pid::from_raw(8));
        assert_eq!(holder(list, "08:01:5"), None, "a process of another namespace");
        assert_eq!(holder(list, "08:01:4"), None);
    }

    #[test]
    fn a_lock_of_ours_is_ours() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let held = Lock::try_take(&path).expect("can be locked").expect("nobody has it");
        assert_eq!(owner(&path).expect("is listed"), Some(rustix::process::getpid()));
        drop(held);
        assert_eq!(owner(&path).expect("is not listed"), None);
        assert!(end_owner(&path).is_ok());
    }
}
