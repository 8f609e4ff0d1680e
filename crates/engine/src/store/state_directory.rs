//! The state directory: made for its owner alone, and refused when anybody else could have a hand in it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

use super::error::StoreError;

/// What stands in a state directory from its first moment on, finished or not.
const MARKS: [&str; 2] = ["fumehood.db", "key"];

/// Makes the directory when it is not there, checks it, and returns it resolved. One that holds other things is refused
/// before anything in it is touched: what looks like a leftover of ours would be removed.
pub(super) fn prepare(path: &Path) -> Result<PathBuf, StoreError> {
    make(path)?;
    let found = fs::symlink_metadata(path).map_err(|source| failed("look at", path, source))?;
    if found.is_symlink() {
        return Err(StoreError::Link { path: path.to_owned() });
    }
    if !found.is_dir() {
        return Err(StoreError::Kind { path: path.to_owned(), expected: "a directory" });
    }
    refuse_others(path)?;
    check(path, &found, 0o700)?;
    path.canonicalize().map_err(|source| failed("resolve", path, source))
}

fn make(path: &Path) -> Result<(), StoreError> {
    // The parents, too: the XDG base directories have this mode.
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Ok(()) => Ok(()),
        // What is there is looked at next, and gets a better message than this error has.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(failed("make the state directory", path, source)),
    }
}

/// Refuses a directory in which something stands and nothing of ours.
fn refuse_others(path: &Path) -> Result<(), StoreError> {
    let entries = fs::read_dir(path).map_err(|source| failed("read", path, source))?;
    let mut names = entries.flatten().map(|entry| entry.file_name()).peekable();
    let is_ours = |name: std::ffi::OsString| {
        let name = name.to_string_lossy().into_owned();
        MARKS.iter().any(|mark| name.starts_with(mark))
    };
    if names.peek().is_none() || names.any(is_ours) {
        return Ok(());
    }
    Err(StoreError::NotEmpty { path: path.to_owned() })
}

/// Checks a file in the directory; tells whether it is there.
pub(super) fn check_file(path: &Path) -> Result<bool, StoreError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(failed("look at", path, source)),
        Ok(found) if !found.is_file() => {
            Err(StoreError::Kind { path: path.to_owned(), expected: "an ordinary file" })
        }
        Ok(found) => check(path, &found, 0o600).map(|()| true),
    }
}

/// Refuses what others own or can write. What they can merely read becomes ours alone.
fn check(path: &Path, found: &Metadata, mode: u32) -> Result<(), StoreError> {
    let user = rustix::process::geteuid().as_raw();
    let others = found.mode() & 0o077;
    if found.uid() != user {
        return Err(StoreError::Owner { path: path.to_owned(), owner: found.uid(), user });
    }
    if others & 0o022 != 0 {
        return Err(StoreError::Writable { path: path.to_owned(), mode: found.mode() & 0o7777 });
    }
    if others != 0 {
        let narrowed = fs::set_permissions(path, Permissions::from_mode(mode));
        narrowed.map_err(|source| failed("narrow the mode of", path, source))?;
    }
    Ok(())
}

/// Waits until no other process makes something in the directory, and keeps them waiting until it is dropped.
pub(super) fn lock(directory: &Path) -> Result<File, StoreError> {
    let file = File::open(directory).map_err(|source| failed("open", directory, source))?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))
        .map_err(|error| failed("lock", directory, error.into()))?;
    Ok(file)
}

/// Makes a file that was not there, for the owner alone.
pub(super) fn create(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options.open(path).map_err(|source| failed("make", path, source))
}

/// Gives a finished file its name, durably: after a crash the name stands for all of the file, or for nothing.
pub(super) fn publish(directory: &Path, from: &Path, to: &Path) -> Result<(), StoreError> {
    let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
    sync(from).map_err(|source| failed("sync", from, source))?;
    fs::rename(from, to).map_err(|source| failed("rename", from, source))?;
    sync(directory).map_err(|source| failed("sync", directory, source))
}

/// Removes what is left of a file that was not finished.
pub(super) fn remove_unfinished(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path, error)),
        _ => Ok(()),
    }
}

pub(super) fn failed(doing: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::File { doing, path: path.to_owned(), source }
}
