//! Checked out bases that nobody needs any longer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use model::ActionId;
use model::action::Base;
use model::task::TaskState;

use crate::Engine;
use crate::error::EngineError;
use crate::lock::Lock;
use crate::store::{LayerState, Reader, StoreError, StoredLayer};

/// A checked out base that nobody needs, and the lock that keeps others from making it anew meanwhile.
#[derive(Debug)]
pub(crate) struct StaleBase {
    /// Its directory.
    pub(crate) place: PathBuf,
    _alone: Lock,
}

impl Engine {
    /// Returns the bases that were checked out longer ago than this and that no task needs: none that can go on, none
    /// whose layers stay to be looked at, and none that a legal hold covers. Those of `going` are about to be removed.
    pub(crate) fn stale_bases(
        &self,
        retention: Duration,
        going: &[ActionId],
    ) -> Result<Vec<StaleBase>, EngineError> {
        let bases = self.places().bases();
        let Ok(entries) = fs::read_dir(&bases) else { return Ok(Vec::new()) };
        let mut old = Vec::new();
        for place in entries.flatten().map(|entry| entry.path()).filter(|place| is_old(place, retention)) {
            if let Some(alone) = Lock::try_take(&place.with_extension("lock"))? {
                old.push(StaleBase { place, _alone: alone });
            }
        }
        // Who takes a base over holds its lock until the record says so: with the locks in hand, nobody is missed.
        let needed = self.store().read(|reader| self.needed_bases(reader, going))?;
        old.retain(|base| !needed.contains(&base.place));
        Ok(old)
    }

    /// Returns the bases that a task needs, or a legal hold covers.
    pub(crate) fn needed_bases(
        &self,
        reader: &Reader<'_>,
        going: &[ActionId],
    ) -> Result<BTreeSet<PathBuf>, StoreError> {
        let mut needed = BTreeSet::new();
        for overview in reader.tasks()? {
            let task = overview.task;
            let Base::Commit { commit } = &task.base else { continue };
            let goes_on = matches!(task.state, TaskState::Open | TaskState::Stopped | TaskState::Frozen);
            let held = reader.is_held(&task.id, None)?;
            let layers = reader.layers(&task.id)?;
            let stays =
                |layer: &StoredLayer| layer.state != LayerState::Removed && !going.contains(&layer.action);
            if goes_on || held || layers.iter().any(stays) {
                needed.insert(self.places().base(&task.workspace, commit));
            }
        }
        Ok(needed)
    }
}

fn is_old(place: &Path, retention: Duration) -> bool {
    fs::symlink_metadata(place).is_ok_and(|found| {
        let age = found.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        found.is_dir() && age.is_some_and(|age| age >= retention)
    })
}
