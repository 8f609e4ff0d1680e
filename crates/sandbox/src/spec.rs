//! What a sandbox is made of: plain data that the engine puts together.

use std::ffi::OsString;
use std::path::PathBuf;

use model::egress::{Begin, ToGateway};
use model::grant::WorkspaceAccess;
use model::{ActionId, Grant, WorkspacePath};

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
    /// The git repository of a linked worktree.
    pub git_directory: Option<GitDirectory>,
    /// What the command may touch and use.
    pub grant: Grant,
    /// The action whose network it joins, when the grant names one.
    pub joined: Option<Joined>,
    /// Its gateway, when the grant lets it reach something through one.
    pub gateway: Option<GatewaySpec>,
    /// The bus on which the user's service manager can be asked for a control group, where none is delegated.
    pub service_manager: Option<PathBuf>,
    /// A directory of this run alone, empty and not readable by others. It is empty again at the end, and its owner removes
    /// it: until then it says to others that this run goes on.
    pub run_directory: PathBuf,
    /// Where what the command puts into `/artifacts` goes.
    pub artifacts: PathBuf,
    /// What `/cache` shows.
    pub cache: PathBuf,
    /// Where empty file systems are kept, of which each run gets a copy as its store. Only root can use them.
    pub images: PathBuf,
    /// The layer that a mutant of the builder leaves out; only builds with the feature `mutants` take it.
    pub mutant: Option<String>,
}

/// The gateway of a sandbox. The rules that it decides by are those of the grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySpec {
    /// The program: our own file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What holds for all rules.
    pub begin: Begin,
    /// What it is told beside the rules, before anything comes to it.
    pub also: Vec<ToGateway>,
}

/// Another action, whose network namespace is joined.
#[derive(Debug, Clone)]
pub struct Joined {
    /// Its name.
    pub action: ActionId,
    /// The directory of its run.
    pub run_directory: PathBuf,
}

/// The git repository of a linked worktree. It is shown with layers of its own above it, so that git can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirectory {
    /// Where it is, on the host and inside.
    pub path: PathBuf,
    /// What is mounted above it, newest first: what earlier actions wrote to it. What this one writes goes to `git` in the
    /// directory of the new layer, unless the workspace is read-only.
    pub layers: Vec<PathBuf>,
}

impl Spec {
    /// Returns the directory of what git writes to the repository of a linked worktree, with `upper` and `work` in it,
    /// when that is kept.
    pub(crate) fn git_layer(&self) -> Option<PathBuf> {
        let kept = self.git_directory.is_some() && self.grant.workspace == WorkspaceAccess::ReadWrite;
        kept.then(|| self.workspace.layer.join("git"))
    }
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
