//! Legal holds: what a person orders to stay, whatever its retention says.
//!
//! Guarantees: once a hold is durable, nothing that it covers is removed by `gc`, pruned from the record, or removed as the
//! rest of a trial: each of them asks within the write that lets something go. Who gave and who lifted it, and why, is on
//! the record. Leaves to others: who may give and lift one (`fumehood`), and the state directory itself.

use model::action::Principal;
use model::event::Event;
use model::{LegalHold, LegalHoldId, LegalScope, Subject, TaskId};

use crate::Engine;
use crate::clock::{now, random};
use crate::error::EngineError;
use crate::gc::places_of;

impl Engine {
    /// Keeps what a scope covers, from when this returns. `doubt` says why it may have been no person who ordered it.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn hold_legally(
        &self,
        scope: LegalScope,
        by: &Principal,
        reason: &str,
        doubt: Option<&str>,
    ) -> Result<LegalHold, EngineError> {
        let id = LegalHoldId::from_random(random()?);
        let mut hold = LegalHold {
            id,
            scope,
            tasks: Vec::new(),
            reason: reason.to_owned(),
            by: by.clone(),
            since: now(),
        };
        hold.tasks = self.covered(&hold)?;
        let event = Event::LegalHoldGiven {
            hold: hold.id.clone(),
            scope: hold.scope.clone(),
            tasks: hold.tasks.clone(),
            by: hold.by.clone(),
            reason: hold.reason.clone(),
            doubt: doubt.map(str::to_owned),
        };
        self.record(&Subject::default(), &event, |writer, _| writer.insert_legal_hold(&hold))?;
        Ok(hold)
    }

    /// Lifts a legal hold.
    ///
    /// # Errors
    /// When it is not in force, or the state cannot be written.
    pub fn lift_legally(&self, hold: &LegalHoldId, by: &Principal, reason: &str) -> Result<(), EngineError> {
        let event = Event::LegalHoldLifted { hold: hold.clone(), by: by.clone(), reason: reason.to_owned() };
        self.record(&Subject::default(), &event, |writer, time| writer.lift_legal_hold(hold, time))
    }

    /// Returns the tasks that a legal hold covers now.
    fn covered(&self, hold: &LegalHold) -> Result<Vec<TaskId>, EngineError> {
        let tasks = self.store().read(|reader| reader.tasks())?.into_iter().map(|overview| overview.task);
        let is_covered = |task: &model::task::Task| {
            let places = places_of(task);
            hold.covers(&task.id, places.iter().map(std::path::PathBuf::as_path), None)
        };
        Ok(tasks.filter(is_covered).map(|task| task.id).collect())
    }
}
