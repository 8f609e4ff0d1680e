//! Locks that end with their owner: an advisory lock on an open file is gone when the process is.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::EngineError;

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes a lock, and calls `waiting` once when somebody else has it.
    pub(crate) fn take(path: &Path, waiting: impl FnOnce()) -> Result<Self, EngineError> {
        if let Some(lock) = Self::try_take(path)? {
            return Ok(lock);
        }
        waiting();
        let file = open(path)?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| EngineError::file("lock", path)(error.into()))?;
        Ok(Self(file))
    }

    /// Tells whether the file that is locked is the one that has this path now.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let names = |file: Metadata| (file.dev(), file.ino());
        let there = std::fs::symlink_metadata(path).ok().map(names);
        there.is_some() && there == self.0.metadata().ok().map(names)
    }

    /// Takes a lock when nobody has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, EngineError> {
        Self::try_lock(open(path)?, path)
    }

    /// Takes the lock of a directory, and waits for whoever has it.
    pub(crate) fn take_directory(path: &Path) -> Result<Self, EngineError> {
        let directory = open_directory(path)?;
        flock(&directory, FlockOperation::LockExclusive)
            .map_err(|error| EngineError::file("lock", path)(error.into()))?;
        Ok(Self(directory))
    }

    /// Takes the lock of a directory when nobody has it.
    pub(crate) fn try_take_directory(path: &Path) -> Result<Option<Self>, EngineError> {
        Self::try_lock(open_directory(path)?, path)
    }

    fn try_lock(file: File, path: &Path) -> Result<Option<Self>, EngineError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(EngineError::file("lock", path)(error.into())),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A process that another thread is just starting has the descriptor too, until it executes its program; closing ours
        // would leave the lock with it for that long.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn open(path: &Path) -> Result<File, EngineError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(libc_nofollow());
    options.open(path).map_err(EngineError::file("open", path))
}

fn open_directory(path: &Path) -> Result<File, EngineError> {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::DIRECTORY;
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(path).map_err(EngineError::file("open", path))
}

fn libc_nofollow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_given_back_is_free_at_once_also_where_a_copy_of_its_descriptor_lives_on() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock");
        let lock = Lock::take(&path, || {}).expect("nobody has it");
        // What a process that is being started holds.
        let copy = lock.0.try_clone().expect("a descriptor");
        assert!(Lock::try_take(&path).expect("can be asked").is_none());
        drop(lock);
        assert!(Lock::try_take(&path).expect("can be asked").is_some());
        drop(copy);
    }
}
