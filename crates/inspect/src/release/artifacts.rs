//! What may leave.

use model::{Change, ChangeKind, FileKind, OsText};

use crate::error::InspectError;
use crate::tree::{Entry, Finder, Node, Stack};

/// Changes that may leave, with the layers that hold them. Only [`crate::inspect`] and a person's consent to what it
/// held make one.
#[derive(Debug)]
pub struct Artifacts {
    stack: Stack,
    items: Vec<Artifact>,
}

/// One change that may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    change: Change,
    now: Option<Node>,
    target: Option<OsText>,
}

impl Artifacts {
    /// Returns the changes, sorted by path.
    pub fn items(&self) -> &[Artifact] {
        &self.items
    }

    /// Tells whether nothing is to leave.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Keeps fewer of them.
    #[must_use]
    pub fn narrowed(mut self, keep: impl Fn(&Change) -> bool) -> Self {
        self.items.retain(|item| keep(&item.change));
        self
    }

    /// Starts to read the files; they must still be the ones that were looked at.
    pub fn reader(&self) -> Reader {
        Reader { after: self.stack.after() }
    }
}

impl Artifact {
    /// Returns the change.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// Returns what the kernel said about it when it was looked at; nothing when it is gone.
    pub fn node(&self) -> Option<&Node> {
        self.now.as_ref()
    }

    /// Returns where it points, when it is a link.
    pub fn link_target(&self) -> Option<&OsText> {
        self.target.as_ref()
    }
}

/// Reads the files of artifacts.
#[derive(Debug)]
pub struct Reader {
    after: Finder,
}

impl Reader {
    /// Finds the file of an artifact.
    ///
    /// # Errors
    /// When it is not the file that was looked at, or has changed since.
    pub fn find(&mut self, artifact: &Artifact) -> Result<Entry, InspectError> {
        let path = artifact.change.path.as_bytes();
        let moved = || InspectError::Moved { path: crate::error::shown(path) };
        let entry = self.after.find(&artifact.change.path)?.ok_or_else(moved)?;
        let same = artifact.now.as_ref().is_some_and(|node| node.is_unchanged(&entry.node));
        if same { Ok(entry) } else { Err(moved()) }
    }
}

/// Remembers for each change what it is now, so that what leaves is what was looked at.
pub(super) fn collect(stack: &Stack, changes: Vec<Change>) -> Result<Artifacts, InspectError> {
    let mut after = stack.after();
    let mut items = Vec::with_capacity(changes.len());
    for change in changes {
        items.push(artifact(&mut after, change)?);
    }
    Ok(Artifacts { stack: stack.clone(), items })
}

fn artifact(after: &mut Finder, change: Change) -> Result<Artifact, InspectError> {
    if change.kind == ChangeKind::Deleted {
        return Ok(Artifact { change, now: None, target: None });
    }
    let moved = || InspectError::Moved { path: crate::error::shown(change.path.as_bytes()) };
    let entry = after.find(&change.path)?.ok_or_else(moved)?;
    if (entry.node.kind, entry.node.mode()) != (change.file, change.mode) && change.file != FileKind::Symlink
    {
        return Err(moved());
    }
    let target = if change.file == FileKind::Symlink { Some(entry.link_target()?) } else { None };
    Ok(Artifact { now: Some(entry.node), target, change })
}
