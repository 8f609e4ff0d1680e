//! One small file as the current commit of a workspace has it, for what must not come from the working tree.

use std::fs;
use std::path::{Path, PathBuf};

use model::task::Task;
use model::{Ending, Profile};

use super::Git;
use crate::error::EngineError;
use crate::{Engine, Workspace};

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// The commit.
    pub commit: String,
    /// What the file holds.
    pub text: String,
}

/// Prints the current commit and a file of it. Ends with 3 where there is no commit, and with 4 where it has no such file.
const PRINT: &str = r#"set -eu
commit=$(git rev-parse --quiet --verify 'HEAD^{commit}') || exit 3
printf '%s\n' "$commit"
git cat-file -e "$commit:$1" 2>/dev/null || exit 4
git cat-file blob "$commit:$1"
"#;

/// More than any such file needs.
const LARGEST: u64 = 1 << 20;

impl Engine {
    /// Reads a file at the top of a workspace as its current commit has it. Git is asked, in a sandbox, only where the
    /// working tree or the index have such a file: whoever took it out of both did so on the host, by hand. What git said
    /// is kept for the task, as long as the commit is the same.
    ///
    /// # Errors
    /// When git fails, or what was kept cannot be read or written.
    pub fn committed_file(
        &self,
        task: &Task,
        workspace: &Workspace,
        profile: &Profile,
        name: &str,
    ) -> Result<Option<CommittedFile>, EngineError> {
        let git_directory = workspace.path.join(".git");
        if fs::symlink_metadata(&git_directory).is_err() || !may_be_there(&workspace.path, name) {
            return Ok(None);
        }
        let current = current_commit(&git_directory);
        let kept = current.as_ref().map(|commit| self.place_of_committed(task, commit, name));
        if let (Some(commit), Some(text)) =
            (&current, kept.as_ref().and_then(|kept| fs::read_to_string(kept).ok()))
        {
            return Ok((!text.is_empty()).then(|| CommittedFile { commit: commit.clone(), text }));
        }
        let found = Git { engine: self, task, workspace, profile }.committed(name)?;
        if let (Some(kept), Some(commit)) = (kept, current)
            && found.as_ref().is_none_or(|found| found.commit == commit)
        {
            let text = found.as_ref().map_or("", |found| found.text.as_str());
            self.make_task_directory(&task.id)?;
            fs::write(&kept, text).map_err(EngineError::file("write", &kept))?;
        }
        Ok(found)
    }

    fn place_of_committed(&self, task: &Task, commit: &str, name: &str) -> PathBuf {
        self.places().task(&task.id).join(format!("committed-{commit}-{}", name.replace('/', "-")))
    }
}

impl Git<'_> {
    fn committed(&self, name: &str) -> Result<Option<CommittedFile>, EngineError> {
        let finished = self.run(&["sh", "-c", PRINT, "committed-file", name])?;
        if matches!(finished.ending, Ending::Exited { status: 3 | 4 }) {
            return Ok(None);
        }
        let printed = self.succeeded(&finished)?;
        let (commit, text) = printed.split_once('\n').unwrap_or_default();
        let too_large =
            text.len() as u64 > LARGEST || finished.printed.iter().any(|(_, printed)| printed.dropped > 0);
        match (is_commit(commit), too_large) {
            (false, _) => Err(self.failed("git did not name a commit")),
            (true, true) => Err(self.failed(format!("`{name}` of the commit is larger than 1 MiB"))),
            (true, false) => Ok(Some(CommittedFile { commit: commit.to_owned(), text: text.to_owned() })),
        }
    }
}

/// Tells whether the working tree or the index have a file. In an index of a form that cannot be searched, it may be.
fn may_be_there(workspace: &Path, name: &str) -> bool {
    if fs::symlink_metadata(workspace.join(name)).is_ok() {
        return true;
    }
    match fs::read(workspace.join(".git/index")) {
        Ok(index) => {
            // Version 4 cuts what a name shares with the one before it.
            let plain = index.starts_with(b"DIRC\0\0\0\x02") || index.starts_with(b"DIRC\0\0\0\x03");
            !plain || index.windows(name.len()).any(|window| window == name.as_bytes())
        }
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns the current commit where it can be read without git: a branch in a file of its own, or no branch at all.
fn current_commit(git_directory: &Path) -> Option<String> {
    let head = small(&git_directory.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        Some(branch) if branch.starts_with("refs/") && !branch.contains("..") => {
            small(&git_directory.join(branch))?
        }
        Some(_) => return None,
        None => head,
    };
    Some(commit.trim().to_owned()).filter(|commit| is_commit(commit))
}

fn small(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    (metadata.is_file() && metadata.len() < 4096).then(|| fs::read_to_string(path).ok())?
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_commit_is_read_where_that_is_safe() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = directory.path();
        fs::create_dir_all(git.join("refs/heads")).expect("makes a directory");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("writes");
        assert_eq!(current_commit(git), None, "a branch that is packed, or not born");
        fs::write(git.join("refs/heads/main"), format!("{commit}\n")).expect("writes");
        assert_eq!(current_commit(git).as_deref(), Some(commit));
        fs::write(git.join("HEAD"), format!("{commit}\n")).expect("writes");
        assert_eq!(current_commit(git).as_deref(), Some(commit));
        fs::write(git.join("HEAD"), "ref: ../../elsewhere\n").expect("writes");
        assert_eq!(current_commit(git), None);
    }

    #[test]
    fn git_is_not_asked_for_what_is_nowhere() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path();
        fs::create_dir(top.join(".git")).expect("makes a directory");
        assert!(!may_be_there(top, ".fumehood.toml"));
        fs::write(top.join(".git/index"), b"DIRC\0\0\0\x02....src/main.rs...").expect("writes");
        assert!(!may_be_there(top, ".fumehood.toml"));
        fs::write(top.join(".git/index"), b"DIRC\0\0\0\x02....\x00.fumehood.toml\0").expect("writes");
        assert!(may_be_there(top, ".fumehood.toml"));
        fs::write(top.join(".git/index"), b"DIRC\0\0\0\x04....").expect("writes");
        assert!(may_be_there(top, ".fumehood.toml"), "it could be there in a form that is cut");
    }
}
