//! Removing what nobody needs any longer. Nothing else in the product removes layers, outputs or artifacts.

use std::path::PathBuf;
use std::time::Duration;

use model::event::Event;
use model::{ActionId, ApprovalState, Subject, TaskId, Timestamp};

use crate::Engine;
use crate::clock::now;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::store::StoredLayer;

/// What is, or would be, removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Garbage {
    /// The actions whose layers, outputs and artifacts go.
    pub actions: Vec<ActionId>,
    /// Bytes on disk that come free.
    pub bytes: u64,
}

impl Engine {
    /// Removes layers whose retention is over, with their outputs and artifacts, and checked out commits that no task
    /// needs; with `dry_run` only says what would go.
    ///
    /// # Errors
    /// When something cannot be removed, or the state cannot be written.
    pub fn collect_garbage(&self, retention: Duration, dry_run: bool) -> Result<Garbage, EngineError> {
        let _room = (!dry_run).then(|| self.store().make_room());
        let nanos = u64::try_from(retention.as_nanos()).unwrap_or(u64::MAX);
        let before = Timestamp::from_nanos(now().as_nanos().saturating_sub(nanos));
        let stale = self.store().read(|reader| reader.stale_layers(before))?;
        let mut garbage =
            Garbage { actions: stale.iter().map(|layer| layer.action.clone()).collect(), bytes: 0 };
        if !dry_run {
            // The files of a layer come free only when no checkpoint shares them.
            self.task_directories()?
                .iter()
                .try_for_each(|task| self.remove_checkpoints(task, &garbage.actions))?;
        }
        for layer in &stale {
            let places = self.places_of(layer);
            garbage.bytes += places.iter().map(|place| disk_use(place)).sum::<u64>();
            if !dry_run {
                for place in places {
                    sandbox::remove_tree(&place).map_err(EngineError::file("remove", &place))?;
                }
            }
        }
        garbage.bytes += self.collect_trials(dry_run)?;
        let mut bases = Vec::new();
        for base in self.stale_bases(retention, &garbage.actions)? {
            garbage.bytes += disk_use(&base.place);
            bases.extend(base.place.file_name().map(|name| name.to_string_lossy().into_owned()));
            if !dry_run {
                sandbox::remove_tree(&base.place).map_err(EngineError::file("remove", &base.place))?;
            }
        }
        let found = !garbage.actions.is_empty() || !bases.is_empty();
        if !dry_run && found {
            let event = Event::Removed { layers: garbage.actions.clone(), bases };
            self.record(&Subject::default(), &event, |writer, _| {
                garbage.actions.iter().try_for_each(|action| writer.set_layer_removed(action))
            })?;
        }
        Ok(garbage)
    }

    /// Closes the requests for a person's yes that nobody answered in time, and removes what was tried and became
    /// nobody's. Returns the bytes that come free.
    fn collect_trials(&self, dry_run: bool) -> Result<u64, EngineError> {
        let now = Moment::now()?;
        let mut bytes = 0;
        for approval in self.store().read(|reader| reader.approvals(false))? {
            let state = approval.state_at(&now);
            if !state.is_final() || state == ApprovalState::Kept {
                continue;
            }
            bytes += self.places_of_trial(&approval).iter().map(|place| disk_use(place)).sum::<u64>();
            match (dry_run, approval.state.is_final()) {
                (true, _) => {}
                (false, true) => self.remove_trial(&approval)?,
                (false, false) => self.expire(&approval, &now)?,
            }
        }
        Ok(bytes)
    }

    /// Returns the tasks that have a directory.
    fn task_directories(&self) -> Result<Vec<TaskId>, EngineError> {
        let tasks = self.places().tasks();
        match std::fs::read_dir(&tasks) {
            Ok(entries) => {
                let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                Ok(names.filter_map(|name| name.parse().ok()).collect())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(EngineError::file("list", &tasks)(error)),
        }
    }

    fn places_of(&self, layer: &StoredLayer) -> [PathBuf; 2] {
        let places = self.places();
        [places.layer(&layer.home, &layer.action), places.artifacts(&layer.home, &layer.action)]
    }
}

/// Adds up the blocks below a directory; what cannot be read does not count.
fn disk_use(directory: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                left.push(entry.path());
            }
        }
    }
    bytes
}
