//! What a sandbox is made of: plain data that the engine puts together.

use std::path::PathBuf;

use model::{Grant, WorkspacePath};

use crate::view::{Identity, View};

/// What one sandbox is made of.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Who the command will be.
    pub identity: Identity,
    /// What of the host is shown.
    pub view: View,
    /// The workspace and its layers.
    pub workspace: Workspace,
    /// Credential files and hidden paths of the workspace; each is covered.
    pub masks: Vec<WorkspacePath>,
    /// Files that are shown with other contents than they have, by their path inside: git configuration without the
    /// credentials in it.
    pub covers: Vec<(PathBuf, Vec<u8>)>,
    /// Where the git repository of a linked worktree is. It is shown with a private layer above it, so git can write;
    /// what it writes there is gone after the action.
    pub git_directory: Option<PathBuf>,
    /// What the command may touch and use.
    pub grant: Grant,
    /// A directory of this run alone, empty and not readable by others; it is removed at the end.
    pub run_directory: PathBuf,
    /// Where what the command puts into `/artifacts` goes.
    pub artifacts: PathBuf,
    /// What `/cache` shows.
    pub cache: PathBuf,
    /// The layer that a mutant of the builder leaves out; only builds with the feature `mutants` take it.
    pub mutant: Option<String>,
}

/// The workspace of a sandbox.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Where it appears inside; on the host the same, or the directory of a checked out base.
    pub path: PathBuf,
    /// What is below all layers.
    pub base: PathBuf,
    /// The ids whose files the base holds, when they are not the command's: they are shown as the command's.
    pub base_owner: Identity,
    /// The directories that are mounted above the base, newest first: `upper` directories of layers, or one that stands
    /// for several of them.
    pub layers: Vec<PathBuf>,
    /// The directory of the new layer, with `upper` and `work` in it.
    pub layer: PathBuf,
}
