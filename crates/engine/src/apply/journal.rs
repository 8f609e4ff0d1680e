//! The journal: what is to be done, and how far it came.
//!
//! It is written three times, each time as a whole: before anything is prepared, when everything is prepared and the
//! host is still untouched, and at the end. In between, what is on the disk tells how far the work came: each prepared
//! file is known by its inode.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use inspect::Node;
use model::{Change, WorkspacePath};
use serde::{Deserialize, Serialize};

use super::beneath::Workspace;
use super::error::ApplyError;
use super::report::Conflict;
use crate::fail_point;

/// How far the work came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    /// Files are being prepared; the host is untouched.
    Staging,
    /// Everything is prepared; the host is being changed.
    Committing,
    /// The end.
    Done,
}

/// What is done to one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub(super) enum Act {
    /// The prepared file takes the place of what is there.
    Replace {
        /// What is there.
        host: Box<Node>,
    },
    /// The prepared file takes a free name.
    Create,
    /// What is there goes.
    Delete {
        /// What is there.
        host: Box<Node>,
    },
    /// A directory is made, open to its owner until everything is in it.
    MakeDirectory {
        /// Its permissions in the end.
        mode: u32,
        /// Who owns it, where that can be chosen.
        owner: Option<(u32, u32)>,
    },
    /// An empty directory goes.
    RemoveDirectory {
        /// What is there.
        host: Box<Node>,
    },
    /// A directory gets its permissions, and its times when we made it.
    FinishDirectory {
        /// Its permissions in the end.
        mode: u32,
        /// What it was, when it was there before.
        host: Option<Box<Node>>,
        /// What to take the times of, when we made it.
        times: Option<Box<Node>>,
    },
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) path: WorkspacePath,
    pub(super) act: Act,
    /// The prepared file, by its number among the steps.
    pub(super) staged: Option<Box<Node>>,
    /// Whether what goes was copied before; else it is moved out of the way, which costs nothing.
    pub(super) copied: bool,
    pub(super) state: StepState,
}

/// How far one step came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub(super) enum StepState {
    /// Nobody knows yet.
    Planned,
    /// It is done; what it left, when nobody else has touched that.
    Done {
        /// What is there now.
        left: Option<Box<Node>>,
    },
    /// It could not be done.
    Failed {
        /// A stable code.
        reason: String,
        /// A sentence for people.
        why: String,
    },
}

/// The journal of one apply, or of taking one back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) format: u32,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// The directory at the top of the workspace in which files are prepared.
    pub(super) staging: String,
    pub(super) phase: Phase,
    pub(super) steps: Vec<Step>,
    /// What the steps amount to.
    pub(super) changes: Vec<Change>,
    /// Changes that the host had made already.
    pub(super) already: Vec<Change>,
    pub(super) merged: Vec<WorkspacePath>,
    pub(super) conflicts: Vec<Conflict>,
    #[serde(skip)]
    pub(super) place: PathBuf,
    #[serde(skip)]
    pub(super) name: &'static str,
}

pub(super) const FORMAT: u32 = 1;

impl Journal {
    /// Reads a journal, when there is one.
    pub(super) fn load(place: &Path, name: &'static str) -> Result<Option<Self>, ApplyError> {
        let bytes = match fs::read(place.join(name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ApplyError::Capture { step: "read the journal of", source }),
        };
        let journal: Self = serde_json::from_slice(&bytes).map_err(ApplyError::Journal)?;
        Ok(Some(Self { place: place.to_owned(), name, ..journal }))
    }

    /// Writes the journal so that after a crash there is the old one or the new one.
    pub(super) fn save(&self) -> Result<(), ApplyError> {
        let fail = |source| ApplyError::Capture { step: "keep a journal of", source };
        let bytes = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        let new = self.place.join(format!("{}.new", self.name));
        let written =
            File::create(&new).and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        written.map_err(fail)?;
        fail_point::reached("the journal is written and not yet in its place");
        fs::rename(&new, self.place.join(self.name)).map_err(fail)?;
        File::open(&self.place).and_then(|directory| directory.sync_all()).map_err(fail)?;
        fail_point::reached("the journal is in its place");
        Ok(())
    }

    pub(super) fn remove(&self) -> Result<(), ApplyError> {
        fs::remove_file(self.place.join(self.name))
            .map_err(|source| ApplyError::Capture { step: "remove the journal of", source })
    }

    pub(super) fn check_workspace(&self, workspace: &Workspace) -> Result<(), ApplyError> {
        let same = (self.device, self.inode) == (workspace.node.device, workspace.node.inode);
        if same { Ok(()) } else { Err(ApplyError::OtherWorkspace) }
    }
}
