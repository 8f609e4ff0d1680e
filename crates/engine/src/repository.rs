//! Where the repository of a workspace lies on the host: in it, or behind it when it is a linked worktree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use inspect::{Report, Stack, Tree};
use model::{Change, OsText, WorkspacePath};

use crate::apply::BaseStats;
use crate::error::EngineError;
use crate::execute::file_time;
use crate::git_dirs;
use crate::layers::GIT_UPPER;

/// The repository of a workspace on the host.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The directory below which it is read and written.
    pub(crate) top: PathBuf,
    /// Where git's own files lie below that.
    pub(crate) git: &'static str,
}

impl Repository {
    /// Finds the repository that takes commits of a workspace: its own, or the one that it is a linked worktree of.
    pub(crate) fn of(workspace: &Path) -> Option<Self> {
        if workspace.join(".git").is_dir() {
            return Some(Self { top: workspace.to_owned(), git: ".git/" });
        }
        git_dirs::repository_of_worktree(workspace).map(|top| Self { top, git: "" })
    }

    /// Returns the repository when it lies elsewhere than in the workspace.
    pub(crate) fn elsewhere(&self) -> Result<Option<OsText>, EngineError> {
        let path = self.git.is_empty().then(|| OsText::try_from(self.top.as_path()));
        path.transpose().map_err(|error| EngineError::Nothing(error.to_string()))
    }

    /// Returns the part of a layer that lies over it.
    pub(crate) fn upper_in(&self, layer: &Path) -> PathBuf {
        layer.join(if self.git.is_empty() { GIT_UPPER } else { "upper" })
    }

    /// Returns the path of one of git's own files.
    pub(crate) fn file(&self, name: &str) -> Result<WorkspacePath, EngineError> {
        let path = WorkspacePath::parse(format!("{}{name}", self.git));
        path.map_err(|error| EngineError::Nothing(error.to_string()))
    }

    /// Returns a change as policy is told of it: git's own files are below `.git`, wherever that leads.
    pub(crate) fn told(&self, change: &Change) -> Change {
        let shown = [b".git/", change.path.as_bytes()].concat();
        match WorkspacePath::parse(Path::new(OsStr::from_bytes(&shown))) {
            Ok(path) if self.git.is_empty() => Change { path, ..change.clone() },
            _ => change.clone(),
        }
    }

    /// Tells whether a branch names this commit on the host, in a file of its own or among the packed ones.
    pub(crate) fn has(&self, branch: &str, commit: &str) -> bool {
        let git = self.top.join(self.git);
        match fs::read_to_string(git.join("refs/heads").join(branch)) {
            Ok(names) => names.trim_end() == commit,
            Err(_) => {
                let packed = fs::read_to_string(git.join("packed-refs")).unwrap_or_default();
                let line = format!("{commit} refs/heads/{branch}");
                packed.lines().any(|packed| packed == line)
            }
        }
    }

    /// Returns what a helper that began at this time saw below its layer, where it lies elsewhere; what it saw of the
    /// workspace is kept with the layer.
    pub(crate) fn seen(&self, report: &Report, began: model::Timestamp) -> Result<BaseStats, EngineError> {
        let below = Stack::new(Vec::new(), vec![Tree::open(&self.top)?]);
        Ok(BaseStats::take(report, &below, file_time(began))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_found_in_its_own_file_before_the_packed_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let git = directory.path().join(".git");
        fs::create_dir_all(git.join("refs/heads/fumehood")).expect("directories");
        let repository = Repository::of(directory.path()).expect("it is one");
        let (old, new) = ("a".repeat(40), "b".repeat(40));
        assert!(!repository.has("fumehood/t", &old));
        fs::write(git.join("packed-refs"), format!("# pack-refs\n{old} refs/heads/fumehood/t\n"))
            .expect("packed");
        assert!(repository.has("fumehood/t", &old) && !repository.has("fumehood/x", &old));
        fs::write(git.join("refs/heads/fumehood/t"), format!("{new}\n")).expect("loose");
        assert!(repository.has("fumehood/t", &new) && !repository.has("fumehood/t", &old));
    }
}
