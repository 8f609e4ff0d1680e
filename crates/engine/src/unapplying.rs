//! Taking back what was applied: decided and recorded like applying, and done by `apply`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use gate::{ApplyMode, Gate};
use inspect::protected::classify;
use model::action::Principal;
use model::event::{Event, HeldBack};
use model::task::{Task, WorkspaceKey};
use model::{Change, TaskId};

use crate::apply::{self, Applied};
use crate::applying::{Asked, yes_of};
use crate::error::EngineError;
use crate::intent::Intent;
use crate::store::LayerState;
use crate::{AppliedTask, Engine};

/// The journals of an apply and of taking it back, in the directory of what it overwrote.
const APPLIED: &str = "apply.json";
const TAKEN_BACK: &str = "undo.json";

impl Engine {
    /// Returns the task of a workspace whose changes were applied last and not taken back.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn last_applied(&self, workspace: &WorkspaceKey) -> Result<Option<Task>, EngineError> {
        let tasks = self.store().read(|reader| reader.tasks())?;
        let here =
            tasks.into_iter().map(|overview| overview.task).filter(|task| task.workspace == *workspace);
        let applied = here.filter_map(|task| Some((self.newest_capture(&task.id)?.0, task)));
        Ok(applied.max_by_key(|(time, _)| *time).map(|(_, task)| task))
    }

    /// Puts back what the last apply of a task overwrote, where the host has not changed it since, and opens the task
    /// again. What has been changed is held back.
    ///
    /// # Errors
    /// When nothing was applied, the task is busy, or nothing could be taken back.
    pub fn undo_applied(&self, task: &Task, principal: &Principal) -> Result<AppliedTask, EngineError> {
        let gate = self.gate_of_task(task)?;
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let nothing =
            || EngineError::Nothing(format!("nothing of task {} is applied, or it was taken back", task.id));
        let (_, captured) = self.newest_capture(&task.id).ok_or_else(nothing)?;
        if let Err(held) = self.may_take_back(task, &gate, principal)? {
            return Ok(AppliedTask { applied: Applied::default(), held, state: task.state });
        }
        let layers = self.store().read(|reader| reader.layers(&task.id))?;
        let again = layers.into_iter().filter(|layer| layer.state == LayerState::Applied);
        let intent = Intent::to_take_back(task, &captured, again.map(|layer| layer.action).collect())?;
        self.carry_out(task, &intent, apply::undo)
    }

    /// Asks the policy, and records what it says. Whoever types this has said yes to it.
    fn may_take_back(
        &self,
        task: &Task,
        gate: &Gate,
        principal: &Principal,
    ) -> Result<Result<(), Vec<HeldBack>>, EngineError> {
        let changes = self.last_written(&task.id)?;
        let classes: BTreeSet<&'static str> =
            changes.iter().flat_map(|change| classify(&change.path)).map(|class| class.code()).collect();
        let classes: Vec<&'static str> = classes.into_iter().collect();
        let consent = yes_of(principal);
        let asked = Asked { gate, principal, mode: ApplyMode::Always, consent: consent.as_ref() };
        Ok(match self.permit_group(task, &asked, &[], &classes, &changes)? {
            Ok(permit) => {
                drop(permit.spend());
                Ok(())
            }
            Err((reason, why)) => {
                let held = changes.into_iter().map(|change| HeldBack {
                    path: change.path.into(),
                    reason: reason.clone(),
                    why: why.clone(),
                });
                Err(held.collect())
            }
        })
    }

    /// Returns what the last apply wrote, from the record.
    fn last_written(&self, task: &TaskId) -> Result<Vec<Change>, EngineError> {
        let events = self.events_of_task(task)?;
        let last = events.into_iter().rev().find_map(|event| match event {
            Event::Applied { changes, .. } if !changes.is_empty() => Some(changes),
            _ => None,
        });
        Ok(last.unwrap_or_default())
    }

    /// Returns the directories of what was overwritten and put back, in the order in which that was.
    pub(crate) fn taken_back(&self, task: &TaskId) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.places().applied(task)).into_iter().flatten().flatten();
        let dated = entries.filter_map(|entry| {
            let time = fs::metadata(entry.path().join(TAKEN_BACK)).and_then(|file| file.modified()).ok()?;
            Some((time, entry.path()))
        });
        let mut all: Vec<(SystemTime, PathBuf)> = dated.collect();
        all.sort();
        all.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the directory of what the last apply overwrote, when it was not taken back, and when that was.
    fn newest_capture(&self, task: &TaskId) -> Option<(SystemTime, PathBuf)> {
        let entries = fs::read_dir(self.places().applied(task)).ok()?;
        let captured = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let applied = fs::metadata(path.join(APPLIED)).and_then(|file| file.modified()).ok()?;
            (!path.join(TAKEN_BACK).exists()).then_some((applied, path))
        });
        captured.max()
    }
}
