//! Whether what an action was asked on is still as it was.
//!
//! Guarantees: told of every file and directory of a live base and of the inputs that changed since (by the time that the
//! kernel notes at each change, statx(2), which no program can set back), but for what git keeps beside the current
//! commit: looking at a repository changes that. Leaves to others: the host's own programs.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inspect::tree::Time;
use model::action::Base;
use model::task::Task;
use model::text::escape;
use model::{ActionId, Timestamp};

use crate::Engine;
use crate::error::EngineError;
use crate::execute::file_time;
use crate::store::StoredAction;

/// Files of git that say where the current commit is.
const COMMIT: [&str; 2] = ["HEAD", "logs/HEAD"];

impl Engine {
    /// Says what changed below an action since a moment; nothing when all is as it was.
    pub(super) fn moved_since(
        &self,
        task: &Task,
        stored: &StoredAction,
        since: Timestamp,
    ) -> Result<Option<String>, EngineError> {
        let kept = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let layers: Vec<ActionId> = kept.into_iter().map(|layer| layer.action).collect();
        if layers != stored.start.layers {
            return Ok(Some("the task stands on other layers now".to_owned()));
        }
        let since = file_time(since);
        let live = match task.base {
            Base::Live => Some(self.base_of(task)),
            // Nobody edits what was checked out.
            Base::Commit { .. } => None,
        };
        let inputs = stored.grant.inputs.iter().map(|input| input.source.to_path_buf());
        for top in live.into_iter().chain(inputs) {
            if let Some(path) = changed_since(&top, since)? {
                return Ok(Some(format!("`{}` changed since it was asked", escape(&path.to_string_lossy()))));
            }
        }
        Ok(None)
    }
}

/// Returns the first file or directory that changed since a moment; one that is gone changed its directory.
fn changed_since(top: &Path, since: Time) -> Result<Option<PathBuf>, EngineError> {
    let mut open = vec![top.to_owned()];
    while let Some(path) = open.pop() {
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound && path != top => return Ok(Some(path)),
            Err(error) => return Err(EngineError::file("look at", &path)(error)),
        };
        if changed(&found) >= since && !is_git(&path, &found) {
            return Ok(Some(path));
        }
        if found.is_dir() {
            open.extend(inside(&path)?);
        }
    }
    Ok(None)
}

fn changed(found: &Metadata) -> Time {
    Time { seconds: found.ctime(), nanos: u32::try_from(found.ctime_nsec()).unwrap_or(0) }
}

fn is_git(path: &Path, found: &Metadata) -> bool {
    found.is_dir() && path.file_name().is_some_and(|name| name == ".git")
}

/// Lists what is looked at in a directory.
fn inside(directory: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if directory.file_name().is_some_and(|name| name == ".git") {
        let commit = COMMIT.iter().map(|name| directory.join(name));
        return Ok(commit.filter(|path| path.symlink_metadata().is_ok()).collect());
    }
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        // What we may not enter the action could not either.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Vec::new()),
        Err(error) => return Err(EngineError::file("list", directory)(error)),
    };
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    paths.map_err(EngineError::file("list", directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// Waits until the clock of the kernel's files, which goes in steps, is past now.
    fn a_moment_later() -> Time {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let moment = file_time(now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        moment
    }

    #[test]
    fn every_change_is_told_and_looking_is_none() {
        let place = tempfile::tempdir().expect("a directory");
        let top = place.path().join("base");
        fs::create_dir_all(top.join("a/b")).expect("makes directories");
        fs::create_dir_all(top.join(".git/logs")).expect("makes directories");
        for file in ["a/b/x", "a/y", ".git/HEAD", ".git/index"] {
            fs::write(top.join(file), "1").expect("writes");
        }
        let told = |change: &dyn Fn()| {
            let before = a_moment_later();
            change();
            let path = changed_since(&top, before).expect("can be looked at");
            path.map(|path| path.strip_prefix(&top).expect("below").to_string_lossy().into_owned())
        };
        assert_eq!(told(&|| {}), None);
        assert_eq!(told(&|| drop(fs::read(top.join("a/b/x")))), None);
        let index = || {
            fs::write(top.join(".git/index.lock"), "2").expect("writes");
            fs::rename(top.join(".git/index.lock"), top.join(".git/index")).expect("renames");
        };
        assert_eq!(told(&index), None);
        assert_eq!(told(&|| fs::write(top.join("a/b/x"), "2").expect("writes")), Some("a/b/x".to_owned()));
        assert_eq!(told(&|| fs::remove_file(top.join("a/y")).expect("removes")), Some("a".to_owned()));
        assert_eq!(told(&|| fs::write(top.join("new"), "").expect("writes")), Some(String::new()));
        assert_eq!(
            told(&|| fs::write(top.join(".git/HEAD"), "3").expect("writes")),
            Some(".git/HEAD".to_owned())
        );
        // A time that is set back says nothing: the kernel notes the change all the same.
        let back = || {
            let file = fs::File::options().write(true).open(top.join("a/b/x")).expect("opens");
            file.set_modified(std::time::UNIX_EPOCH).expect("sets the time");
        };
        assert_eq!(told(&back), Some("a/b/x".to_owned()));
    }
}
