//! Applying: writing what a task changed to the directory on the host. It is no action, but it is decided,
//! recorded and permitted in the same way.

use std::collections::BTreeSet;
use std::fmt;

use model::action::Principal;
use model::{ActionId, Canonical, Change, Digest, FileKind, OsText, TaskId};

use crate::decision::Subject;
use crate::facts::Classes;

/// Changes that somebody wants on the host, all of the same classes.
///
/// Changes of different classes are asked about one group at a time, so that what may go is not held back by
/// what must wait.
#[derive(Debug)]
pub struct Apply {
    principal: Principal,
    task: TaskId,
    workspace: OsText,
    mode: ApplyMode,
    classes: Classes,
    kinds: BTreeSet<&'static str>,
    changes: usize,
    digest: Digest,
}

/// Where changes come from and where they would go.
#[derive(Debug, Clone, Copy)]
pub struct ApplySource<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// The directory on the host that would be written.
    pub workspace: &'a OsText,
    /// The layers that hold the changes, oldest first. A layer never changes once it is written, so their names
    /// stand for the contents of the files.
    pub layers: &'a [ActionId],
}

/// How much a person said about applying beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplyMode {
    /// Ask about everything.
    Ask,
    /// Apply ordinary files outside protected paths, and hold the rest.
    Clean,
    /// Like `Clean`, and do not ask about what that would apply.
    Always,
}

impl ApplyMode {
    /// Returns the name by which policy knows the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Clean => "clean",
            Self::Always => "always",
        }
    }
}

impl Apply {
    /// Takes the changes of a task that all belong to `classes`, to be written by `principal`.
    pub fn new(
        principal: Principal,
        mode: ApplyMode,
        source: ApplySource<'_>,
        changes: &[Change],
        classes: Classes,
    ) -> Self {
        let ApplySource { task, workspace, layers } = source;
        let mut canonical = Canonical::new("fumehood apply 1");
        canonical.value(&principal).field(task.as_str().as_bytes()).field(workspace.as_bytes());
        canonical.list(layers.iter().map(|layer| layer.as_str().as_bytes()));
        canonical.value(&changes).value(&classes);
        let kinds = changes.iter().map(|change| kind_name(change.file)).collect();
        let (workspace, digest) = (workspace.clone(), canonical.digest());
        Self {
            principal,
            task: task.clone(),
            workspace,
            mode,
            classes,
            kinds,
            changes: changes.len(),
            digest,
        }
    }

    /// Returns who wants it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the directory on the host that would be written.
    pub fn workspace(&self) -> &OsText {
        &self.workspace
    }

    /// Returns how much was said beforehand.
    pub fn mode(&self) -> ApplyMode {
        self.mode
    }

    /// Returns the classes that the changes belong to; none for ordinary paths.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Returns the kinds of file among the changes.
    pub(crate) fn kinds(&self) -> &BTreeSet<&'static str> {
        &self.kinds
    }
}

impl Subject for Apply {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn about(&self) -> model::Subject {
        model::Subject { task: Some(self.task.clone()), action: None }
    }
}

impl fmt::Display for Apply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "apply {} change{}", self.changes, if self.changes == 1 { "" } else { "s" })?;
        if self.classes.is_empty() {
            return Ok(());
        }
        let classes: Vec<&str> = self.classes.iter().map(String::as_str).collect();
        write!(f, " to protected paths ({})", classes.join(", "))
    }
}

/// Returns the name by which policy knows a kind of file.
fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::Device => "device",
    }
}
