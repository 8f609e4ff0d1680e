//! What came of it.

use std::collections::BTreeMap;

use model::event::HeldBack;
use model::{Change, OsText, WorkspacePath};
use serde::{Deserialize, Serialize};

use super::journal::{Journal, StepState};

/// A change that met an edit of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The path. The host's file is as it was.
    pub path: WorkspacePath,
    /// Where the layer's file lies now, when it has one.
    pub beside: Option<WorkspacePath>,
    /// What the host did.
    pub why: String,
}

/// What was written, and what was not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Applied {
    /// Changes that are on the host now.
    pub changes: Vec<Change>,
    /// Paths where an edit of the host and one of the layers were brought together.
    pub merged: Vec<WorkspacePath>,
    /// Changes that met an edit of the host; both are kept.
    pub conflicts: Vec<Conflict>,
    /// Changes that could not be written, with the reason.
    pub failed: Vec<HeldBack>,
}

impl Applied {
    /// Tells whether every change is on the host.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty() && self.failed.is_empty()
    }

    /// Returns what was not written, in the form that the record holds.
    pub fn held_back(&self) -> Vec<HeldBack> {
        let conflicts = self.conflicts.iter().map(|conflict| HeldBack {
            path: conflict.path.clone().into(),
            reason: "conflict".to_owned(),
            why: match &conflict.beside {
                Some(beside) => format!("{}; the other one is in `{beside}`", conflict.why),
                None => conflict.why.clone(),
            },
        });
        conflicts.chain(self.failed.iter().cloned()).collect()
    }
}

/// Sums up a journal.
pub(super) fn report(journal: &Journal) -> Applied {
    let mut failed: BTreeMap<&WorkspacePath, HeldBack> = BTreeMap::new();
    let mut beside_failed = Vec::new();
    for step in &journal.steps {
        if let StepState::Failed { reason, why } = &step.state {
            let path = OsText::from(step.path.clone());
            let held = HeldBack { path, reason: reason.clone(), why: why.clone() };
            failed.entry(&step.path).or_insert(held);
            beside_failed.push(&step.path);
        }
    }
    let written = |change: &&Change| !failed.contains_key(&change.path);
    let mut changes: Vec<Change> =
        journal.changes.iter().filter(written).chain(&journal.already).cloned().collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    let conflicts = journal.conflicts.iter().map(|conflict| {
        let beside = conflict.beside.clone().filter(|beside| !beside_failed.contains(&beside));
        Conflict { beside, ..conflict.clone() }
    });
    Applied {
        changes,
        merged: journal.merged.iter().filter(|path| !failed.contains_key(path)).cloned().collect(),
        conflicts: conflicts.collect(),
        failed: failed.into_values().collect(),
    }
}
