//! Whether the host changed a file since the run began.

use std::collections::BTreeMap;

use inspect::tree::{Node, Stack, Time};
use inspect::{InspectError, Report};
use model::WorkspacePath;
use serde::{Deserialize, Serialize};

/// What a run saw below its layers at one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "below", rename_all = "kebab-case")]
pub enum Below {
    /// Nothing.
    Absent,
    /// This.
    There(Box<Node>),
    /// Nobody knows: the host changed it during the run, or nobody looked.
    Unknown,
}

/// What is known of the base of changes.
pub trait Base {
    /// Returns what the run saw below its layers at a path.
    fn below(&self, path: &WorkspacePath) -> Below;
    /// Returns the bytes that the run saw there, where somebody has them: a committed file, or a captured one.
    fn content(&self, path: &WorkspacePath) -> Option<Vec<u8>>;
}

/// What runs saw below their layers, at the paths that they changed. It is taken when a layer is read, and kept with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BaseStats {
    seen: Vec<(WorkspacePath, Below)>,
}

impl BaseStats {
    /// Looks at the base of each change of a run that began at `started`, by the clock that the kernel gives files.
    ///
    /// What changed after that was changed by the host during the run: [`BaseStats::edited`] lists it.
    ///
    /// # Errors
    /// When the base cannot be looked at.
    pub fn take(report: &Report, base: &Stack, started: Time) -> Result<Self, InspectError> {
        let mut finder = base.before();
        let mut seen = Vec::with_capacity(report.changes.len());
        for change in &report.changes {
            let below = match finder.find(&change.path)? {
                None => Below::Absent,
                Some(entry) if entry.node.changed <= started || is_directory(&entry.node) => {
                    Below::There(Box::new(entry.node))
                }
                Some(_) => Below::Unknown,
            };
            seen.push((change.path.clone(), below));
        }
        Ok(Self { seen })
    }

    /// Returns the paths that the host changed during the run.
    pub fn edited(&self) -> impl Iterator<Item = &WorkspacePath> {
        self.seen.iter().filter(|(_, below)| *below == Below::Unknown).map(|(path, _)| path)
    }

    /// Brings together what several runs of a task saw, oldest first: the first that changed a path saw its base.
    pub fn of_task(runs: impl IntoIterator<Item = Self>) -> BTreeMap<WorkspacePath, Below> {
        let mut all = BTreeMap::new();
        for (path, below) in runs.into_iter().flat_map(|run| run.seen) {
            all.entry(path).or_insert(below);
        }
        all
    }
}

/// A file of the host that was overwritten and put back: another inode perhaps, with another time of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    /// The path.
    pub(super) path: WorkspacePath,
    /// What was overwritten.
    pub(super) was: Node,
    /// What was put back.
    pub(super) is: Node,
}

impl PutBack {
    /// Makes it known that what was put back is what the runs saw, when that is what was overwritten. What the host had
    /// edited before it was overwritten stays an edit.
    pub fn note(self, seen: &mut BTreeMap<WorkspacePath, Below>) {
        if let Some(Below::There(below)) = seen.get_mut(&self.path)
            && below.is_unchanged(&self.was)
        {
            **below = self.is;
        }
    }
}

/// A base of which only this is known.
impl Base for BTreeMap<WorkspacePath, Below> {
    fn below(&self, path: &WorkspacePath) -> Below {
        self.get(path).cloned().unwrap_or(Below::Unknown)
    }

    fn content(&self, _: &WorkspacePath) -> Option<Vec<u8>> {
        None
    }
}

/// Tells whether the host still has at a path what the run saw there, as far as the kernel's facts tell.
///
/// A directory changes its times with every file in it, so that only its being one counts.
pub(super) fn is_as_seen(below: &Below, host: Option<&Node>) -> bool {
    match (below, host) {
        (Below::Absent, None) => true,
        (Below::There(seen), Some(host)) => {
            (is_directory(seen) && is_directory(host)) || seen.is_unchanged(host)
        }
        (Below::Absent | Below::There(_), _) | (Below::Unknown, _) => false,
    }
}

pub(super) fn is_directory(node: &Node) -> bool {
    node.kind == model::FileKind::Directory
}

/// Tells whether a file is still the one it was, although a rename changed the time of its last change.
pub(super) fn is_same_but_renamed(was: &Node, is: &Node) -> bool {
    was.is_same_file(is) && (was.st_mode, was.size, was.modified) == (is.st_mode, is.size, is.modified)
}
