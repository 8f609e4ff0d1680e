//! Removing what nobody needs any longer. Nothing else in the product removes what is kept, but for what it was never on the
//! record that anybody needs it.
//!
//! Guarantees: nothing goes that a task which can go on stands on, that a person can still say yes to, or that a legal hold
//! covers, also when that came to be while we looked: the question is put again within the write that lets it go. What goes
//! is on the record before its first file does; what a killed one left of it goes with the next. Two at once go one after
//! the other. What failed, was denied or tried what is not allowed has a retention of its own.
//! Leaves to others: how long what stays (`fumehood`), and the record itself (`prune`).

mod files;
mod retention;
mod rows;

#[cfg(test)]
pub(crate) mod bench;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::event::Event;
use model::task::Task;
use model::{ActionId, ApprovalState, KeptClass, RemovedOf, Subject, TaskId};

use crate::Engine;
use crate::clock::now;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::fail_point::reached;
use crate::git_dirs::repository_of_worktree;
use crate::lock::Lock;
use crate::store::{LegalHolds, Reader, StoreError, Writer};

pub(crate) use files::is_needed;
pub use retention::Retention;

/// Names that one event lists at most, so that it has a place on the record.
const NAMED_AT_ONCE: usize = 5000;

/// What is, or would be, removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Garbage {
    /// The actions whose layers go.
    pub actions: Vec<ActionId>,
    /// Bytes that come free.
    pub bytes: u64,
    /// What goes, by classes.
    pub classes: BTreeMap<KeptClass, Removed>,
    /// Things that stay for a legal hold alone.
    pub held: u64,
    /// Things that stay for a while because they failed, were denied or tried what is not allowed.
    pub incidents: u64,
}

/// What goes of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// How many things.
    pub number: u64,
    /// Bytes that they hold.
    pub bytes: u64,
}

impl Garbage {
    fn add(&mut self, class: KeptClass, number: usize, bytes: u64) {
        let of = self.classes.entry(class).or_default();
        of.number += number as u64;
        of.bytes += bytes;
        self.bytes += bytes;
    }
}

/// How a collection is done.
struct Collection<'c> {
    retention: &'c Retention,
    dry_run: bool,
    progress: &'c dyn Fn(u64, u64),
    garbage: Garbage,
}

impl Engine {
    /// Removes what is kept and whose retention is over, by classes; with `dry_run` only says what would go. `progress` is
    /// told how many tasks of how many were looked at.
    ///
    /// # Errors
    /// When something cannot be removed, or the state cannot be written.
    pub fn collect_garbage(
        &self,
        retention: &Retention,
        dry_run: bool,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Garbage, EngineError> {
        let _room = (!dry_run).then(|| self.store().make_room());
        let place = self.store().directory().join("gc.lock");
        let _one_at_a_time = (!dry_run).then(|| Lock::take(&place, || {})).transpose()?;
        let mut collection = Collection { retention, dry_run, progress, garbage: Garbage::default() };
        self.collect_trials(&mut collection)?;
        self.collect_files(&mut collection)?;
        self.collect_bases(&mut collection)?;
        self.collect_rows(&mut collection)?;
        Ok(collection.garbage)
    }

    /// Closes the requests for a person's yes that nobody answered in time, and removes what was tried and became
    /// nobody's.
    fn collect_trials(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        let now = Moment::now()?;
        for approval in self.store().read(|reader| reader.approvals(false))? {
            let state = approval.state_at(&now);
            if !state.is_final() || state == ApprovalState::Kept {
                continue;
            }
            let bytes: u64 = self.places_of_trial(&approval).iter().map(|place| files::disk_use(place)).sum();
            let held = bytes > 0 && self.is_held(&approval.task, Some(&approval.action))?;
            if !collection.dry_run && !approval.state.is_final() {
                self.expire(&approval, &now)?;
            }
            if bytes == 0 || held {
                collection.garbage.held += u64::from(held);
                continue;
            }
            if !collection.dry_run {
                let names = vec![approval.action.to_string()];
                let removed = RemovedOf { class: KeptClass::Trials, names, bytes };
                reached("gc: it is known which trial goes");
                let goes = self.record_removed(&approval.subject(), removed, |writer| {
                    match writer.is_held(&approval.task, Some(&approval.action))? {
                        true => Err(StoreError::Needed { place: approval.action.as_str().into() }),
                        false => Ok(()),
                    }
                })?;
                if !goes {
                    collection.garbage.held += 1;
                    continue;
                }
                self.remove_trial(&approval)?;
            }
            collection.garbage.add(KeptClass::Trials, 1, bytes);
        }
        Ok(())
    }

    fn collect_bases(&self, collection: &mut Collection<'_>) -> Result<(), EngineError> {
        let age = collection.retention.age(KeptClass::Bases);
        let going = collection.garbage.actions.clone();
        for base in self.stale_bases(age, &going)? {
            let bytes = files::disk_use(&base.place);
            if !collection.dry_run {
                let name = base.place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let removed = RemovedOf { class: KeptClass::Bases, names: vec![name], bytes };
                reached("gc: it is known which base goes");
                let goes = self.record_removed(&Subject::default(), removed, |writer| {
                    match self.needed_bases(writer, &going)?.contains(&base.place) {
                        true => Err(StoreError::Needed { place: base.place.clone() }),
                        false => Ok(()),
                    }
                })?;
                if !goes {
                    collection.garbage.held += 1;
                    continue;
                }
                reached("gc: a base is about to go");
                sandbox::remove_tree(&base.place).map_err(EngineError::file("remove", &base.place))?;
            }
            collection.garbage.add(KeptClass::Bases, 1, bytes);
        }
        Ok(())
    }

    /// Records what is about to go, and tells whether it does: not when it is needed by now.
    fn record_removed(
        &self,
        about: &Subject,
        removed: RemovedOf,
        may: impl FnOnce(&Writer<'_>) -> Result<(), StoreError>,
    ) -> Result<bool, EngineError> {
        let event = Event::Removed { layers: Vec::new(), bases: Vec::new(), classes: vec![removed] };
        match self.record(about, &event, |writer, _| may(writer)) {
            Ok(()) => Ok(true),
            Err(error) if is_needed(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tells whether a legal hold covers a task, or what one of its actions left.
    pub(crate) fn is_held(&self, task: &TaskId, action: Option<&ActionId>) -> Result<bool, EngineError> {
        Ok(self.store().read(|reader| reader.is_held(task, action))?)
    }
}

impl Reader<'_> {
    /// Tells whether a legal hold covers a task, or what one of its actions left.
    pub(crate) fn is_held(&self, task: &TaskId, action: Option<&ActionId>) -> Result<bool, StoreError> {
        let action = action.map(|action| self.action(action)).transpose()?.flatten();
        let Some(task) = self.task(task)? else { return Ok(false) };
        Ok(covers(&self.legal_holds()?, &task, action.map(|action| action.ordinal)))
    }
}

/// Tells whether a legal hold covers something of a task.
pub(crate) fn covers(holds: &LegalHolds, task: &Task, ordinal: Option<u64>) -> bool {
    !holds.all().is_empty() && holds.cover(&task.id, &places_of(task), ordinal)
}

/// Returns the directories that a task is in.
pub(crate) fn places_of(task: &Task) -> Vec<PathBuf> {
    let workspace = task.workspace.path.to_path_buf();
    let repository = repository_of_worktree(&workspace);
    [workspace].into_iter().chain(repository).collect()
}

/// Returns the moment before which something has to have been left, to be over.
pub(crate) fn cutoff(age: std::time::Duration) -> model::Timestamp {
    let nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    model::Timestamp::from_nanos(now().as_nanos().saturating_sub(nanos))
}
