//! Where the files of tasks and layers lie in the state directory.

use std::path::{Path, PathBuf};

use model::task::WorkspaceKey;
use model::{ActionId, Canonical, TaskId};

use crate::store::StoredLayer;

/// Where what the applies of a task overwrote is kept, in its directory.
pub(crate) const APPLIED: &str = "applied";

/// Where a layer has what was written to the git repository of a linked worktree, when something was.
pub(crate) const GIT_UPPER: &str = "git/upper";

/// The places of one state directory.
#[derive(Debug, Clone)]
pub(crate) struct Places(PathBuf);

impl Places {
    pub(crate) fn new(state: &Path) -> Self {
        Self(state.to_owned())
    }

    /// Returns the directory of all tasks.
    pub(crate) fn tasks(&self) -> PathBuf {
        self.0.join("tasks")
    }

    /// Returns the directory of a task.
    pub(crate) fn task(&self, task: &TaskId) -> PathBuf {
        self.tasks().join(task.as_str())
    }

    /// Returns the directory of a layer, with `upper` in it.
    pub(crate) fn layer(&self, task: &TaskId, action: &ActionId) -> PathBuf {
        self.task(task).join("layers").join(action.as_str())
    }

    /// Returns where what the applies of a task overwrote is kept.
    pub(crate) fn applied(&self, task: &TaskId) -> PathBuf {
        self.task(task).join(APPLIED)
    }

    /// Returns the directory that says what is about to be written to the host.
    pub(crate) fn intents(&self) -> PathBuf {
        self.0.join("intents")
    }

    /// Returns the directory of kept output.
    pub(crate) fn outputs(&self, task: &TaskId) -> PathBuf {
        self.task(task).join("outputs")
    }

    /// Returns where the artifacts of an action lie.
    pub(crate) fn artifacts(&self, task: &TaskId, action: &ActionId) -> PathBuf {
        self.task(task).join("artifacts").join(action.as_str())
    }

    /// Returns the cache that the actions of a task share.
    pub(crate) fn cache(&self, task: &TaskId) -> PathBuf {
        self.task(task).join("cache")
    }

    /// Returns the directory of empty file systems, of which each run gets a copy.
    pub(crate) fn images(&self) -> PathBuf {
        self.0.join("images")
    }

    /// Returns the directory of checked out bases.
    pub(crate) fn bases(&self) -> PathBuf {
        self.0.join("bases")
    }

    /// Returns where a commit of a workspace lies checked out: for all tasks that start from it, and their forks.
    pub(crate) fn base(&self, workspace: &WorkspaceKey, commit: &str) -> PathBuf {
        let mut name = Canonical::new("fumehood base 1");
        name.field(workspace.path.as_bytes()).number(workspace.device).number(workspace.inode);
        let digest = name.field(commit.as_bytes()).digest().to_string();
        self.bases().join(&digest[..32])
    }

    /// Returns the directory of runs that are going on.
    pub(crate) fn runs(&self) -> PathBuf {
        self.0.join("run")
    }

    /// Returns what layers wrote to the git repository of a linked worktree, newest first.
    pub(crate) fn git_uppers(&self, layers: &[StoredLayer]) -> Vec<PathBuf> {
        let uppers = layers.iter().rev().map(|layer| self.layer(&layer.home, &layer.action).join(GIT_UPPER));
        uppers.filter(|upper| upper.is_dir()).collect()
    }

    /// Returns the `upper` directories of layers, newest first.
    pub(crate) fn uppers(&self, layers: &[StoredLayer]) -> Vec<PathBuf> {
        layers.iter().rev().map(|layer| self.layer(&layer.home, &layer.action).join("upper")).collect()
    }
}
