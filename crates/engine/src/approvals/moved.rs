//! Whether what an action was asked on is still as it was.
//!
//! Guarantees: told of every file and directory of a live base and of the inputs that changed since (by the time that the
//! kernel notes at each change, statx(2), which no program can set back), but for what git keeps beside the current
//! commit: looking at a repository changes that. Leaves to others: the host's own programs.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use inspect::tree::Time;
use model::action::Base;
use model::grant::Input;
use model::task::Task;
use model::text::escape;
use model::{ActionId, Canonical, Digest};

use crate::Engine;
use crate::error::EngineError;
use crate::execute::file_time;
use crate::store::{StoredAction, StoredApproval};

/// The largest file of git that is read.
const CONTENT_MAX: u64 = 16 << 20;
/// Files of git that say where the current commit is.
const COMMIT: [&str; 2] = ["HEAD", "logs/HEAD"];

impl Engine {
    /// Says what changed below an action since a moment; nothing when all is as it was.
    pub(super) fn moved_since(
        &self,
        task: &Task,
        stored: &StoredAction,
        approval: &StoredApproval,
    ) -> Result<Option<String>, EngineError> {
        let kept = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let layers: Vec<ActionId> = kept.into_iter().map(|layer| layer.action).collect();
        if layers != stored.start.layers {
            return Ok(Some("the task stands on other layers now".to_owned()));
        }
        if ground(stored.start.workspace.as_path(), &stored.grant.inputs) != approval.ground {
            let what = "the directory, its current commit or an input is another one than when it was asked";
            return Ok(Some(what.to_owned()));
        }
        let since = file_time(stored.created);
        let live = match task.base {
            Base::Live => Some(self.base_of(task)),
            // Nobody edits what was checked out.
            Base::Commit { .. } => None,
        };
        let inputs = stored.grant.inputs.iter().map(|input| input.source.to_path_buf());
        for top in live.into_iter().chain(inputs) {
            if let Some(path) = changed_since(&top, since, &stored.start.workspace.as_path().join(".git"))? {
                return Ok(Some(format!("`{}` changed since it was asked", escape(&path.to_string_lossy()))));
            }
        }
        Ok(None)
    }
}

/// Returns a digest over what an action is asked on that no time of a file tells: which directory that is, the commit that
/// is checked out there, and which directories the inputs are.
pub(super) fn ground(workspace: &Path, inputs: &[Input]) -> Digest {
    let mut canonical = Canonical::new("fumehood ground 1");
    identity(&mut canonical, workspace);
    commit(&mut canonical, workspace);
    for input in inputs {
        identity(&mut canonical, input.source.as_path());
    }
    canonical.digest()
}

/// Adds which file or directory has a name; nothing tells of one that is not there.
fn identity(canonical: &mut Canonical, path: &Path) {
    let found = fs::symlink_metadata(path).map_or((0, 0), |found| (found.dev(), found.ino()));
    canonical.field(path.as_os_str().as_bytes()).number(found.0).number(found.1);
}

/// Adds the current commit, by the files in which git keeps it (gitrepository-layout(5)).
fn commit(canonical: &mut Canonical, workspace: &Path) {
    let git = workspace.join(".git");
    let text = |path: &Path| String::from_utf8_lossy(&content(path)).trim().to_owned();
    // In a linked worktree `.git` is a file that names the place.
    let own = match text(&git).strip_prefix("gitdir: ") {
        Some(place) => workspace.join(place),
        None => git,
    };
    let common = match text(&own.join("commondir")) {
        named if named.is_empty() => own.clone(),
        named => own.join(named),
    };
    let head = text(&own.join("HEAD"));
    canonical.field(head.as_bytes()).field(&content(&common.join("packed-refs")));
    if let Some(reference) = head.strip_prefix("ref: ") {
        canonical.field(&content(&common.join(reference)));
    }
}

/// Reads a small file. What is none, or cannot be read, is empty: nobody waits at a named pipe.
fn content(path: &Path) -> Vec<u8> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let Ok(file) = fs::File::options().read(true).custom_flags(flags).open(path) else { return Vec::new() };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let read = file.take(CONTENT_MAX).read_to_end(&mut bytes);
    read.map(|_| bytes).unwrap_or_default()
}

/// Returns the first file or directory that changed since a moment; one that is gone changed its directory. Of `git`, the
/// repository's own directory, only the current commit counts.
fn changed_since(top: &Path, since: Time, git: &Path) -> Result<Option<PathBuf>, EngineError> {
    let mut open = vec![top.to_owned()];
    while let Some(path) = open.pop() {
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound && path != top => return Ok(Some(path)),
            Err(error) => return Err(EngineError::file("look at", &path)(error)),
        };
        let is_git = path == git && found.is_dir();
        if changed(&found) >= since && !is_git {
            return Ok(Some(path));
        }
        if is_git {
            let commit = COMMIT.iter().map(|name| path.join(name));
            open.extend(commit.filter(|path| path.symlink_metadata().is_ok()));
        } else if found.is_dir() {
            match inside(&path)? {
                Some(entries) => open.extend(entries),
                // Who cannot list it may still enter it, and so could the action.
                None => return Ok(Some(path)),
            }
        }
    }
    Ok(None)
}

fn changed(found: &Metadata) -> Time {
    Time { seconds: found.ctime(), nanos: u32::try_from(found.ctime_nsec()).unwrap_or(0) }
}

/// Lists a directory; nothing for one that we may not list.
fn inside(directory: &Path) -> Result<Option<Vec<PathBuf>>, EngineError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(None),
        Err(error) => return Err(EngineError::file("list", directory)(error)),
    };
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    paths.map(Some).map_err(EngineError::file("list", directory))
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
            let path = changed_since(&top, before, &top.join(".git")).expect("can be looked at");
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
        // A directory of that name elsewhere is an ordinary one.
        fs::create_dir(top.join("a/.git")).expect("makes a directory");
        fs::write(top.join("a/.git/r.sh"), "1").expect("writes");
        assert_eq!(
            told(&|| fs::write(top.join("a/.git/r.sh"), "2").expect("writes")),
            Some("a/.git/r.sh".to_owned())
        );
        // A time that is set back says nothing: the kernel notes the change all the same.
        let back = || {
            let file = fs::File::options().write(true).open(top.join("a/b/x")).expect("opens");
            file.set_modified(std::time::UNIX_EPOCH).expect("sets the time");
        };
        assert_eq!(told(&back), Some("a/b/x".to_owned()));
    }

    #[test]
    fn another_commit_or_another_input_of_the_same_name_is_another_ground() {
        let place = tempfile::tempdir().expect("a directory");
        let top = place.path().join("top");
        fs::create_dir_all(top.join(".git/refs/heads")).expect("makes directories");
        fs::create_dir_all(place.path().join("p/data")).expect("makes directories");
        let write = |name: &str, text: &str| fs::write(top.join(name), text).expect("writes");
        write(".git/HEAD", "ref: refs/heads/main\n");
        write(".git/refs/heads/main", "1\n");
        let source = place.path().join("p/data");
        let source = model::OsText::try_from(source.as_path()).expect("a path");
        let inputs = [Input { name: "data".to_owned(), source }];
        let first = ground(&top, &inputs);
        assert_eq!(ground(&top, &inputs), first);
        write(".git/refs/heads/main", "2\n");
        let second = ground(&top, &inputs);
        assert_ne!(second, first, "the branch moved");
        write(".git/index", "x");
        assert_eq!(ground(&top, &inputs), second, "somebody looked");
        fs::rename(place.path().join("p"), place.path().join("old")).expect("renames");
        fs::create_dir_all(place.path().join("p/data")).expect("makes directories");
        assert_ne!(ground(&top, &inputs), second, "another directory has the name of the input");
        // A linked worktree has its commit elsewhere.
        let linked = place.path().join("linked");
        fs::create_dir_all(top.join(".git/worktrees/w")).expect("makes directories");
        fs::create_dir(&linked).expect("makes a directory");
        fs::write(linked.join(".git"), format!("gitdir: {}\n", top.join(".git/worktrees/w").display()))
            .expect("writes");
        write(".git/worktrees/w/HEAD", "ref: refs/heads/w\n");
        write(".git/worktrees/w/commondir", "../..\n");
        write(".git/refs/heads/w", "1\n");
        let first = ground(&linked, &[]);
        write(".git/refs/heads/w", "2\n");
        assert_ne!(ground(&linked, &[]), first);
        // Nobody waits at a pipe.
        fs::remove_file(top.join(".git/HEAD")).expect("removes");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            top.join(".git/HEAD"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .expect("makes a pipe");
        ground(&top, &inputs);
    }
}
