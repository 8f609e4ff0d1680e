//! The stages of a task that was opened with what is wanted of it: what the verbs do passes them one after the other.
//!
//! Guarantees: a stage is recorded only on the receipt of the one before it, which is read from the record each time, so a
//! restart goes on where the chain ends; whoever tries to pass one twice at once is refused by the store. A stage that was
//! passed without its work says so.
//! Leaves to others: the work of verification, preview and release to brokers. A task without an intake has no stages.

use audit::{ChainEnd, Chains};
use gate::stages::{self, At, Execution, Pending, Proposal, StageType, Standing};
use model::action::Action;
use model::event::Event;
use model::intake::Ceiling;
use model::stage::{Stage, StageWork};
use model::task::{Task, TaskState};
use model::{Canonical, Change, TaskId, WorkspacePath};

use crate::Engine;
use crate::clock::now;
use crate::error::EngineError;
use crate::lock::Lock;
use crate::store::{StoreError, StoredLayer};

/// A stage that is about to be recorded together with what it is about.
pub(crate) struct Due<S> {
    pending: Pending<S>,
    ceiling: Ceiling,
}

impl<S: StageType> Due<S> {
    /// Returns the event that records it.
    pub(crate) fn event(&self) -> Event {
        self.pending.event(&self.ceiling)
    }

    /// Returns what it is about.
    pub(crate) fn about(&self) -> model::Subject {
        self.pending.about()
    }
}

impl Engine {
    /// Returns where the chain of a task ends; nothing when it has none.
    ///
    /// # Errors
    /// When the record cannot be read, or its chain is broken.
    pub fn stage_of(&self, task: &TaskId) -> Result<Option<ChainEnd>, EngineError> {
        let records = self.store().read(|reader| reader.stages(task))?;
        let chains = Chains::check(records.into_iter().map(Ok))?;
        let chains = chains.map_err(|broken| {
            EngineError::Nothing(format!(
                "the stages of {task} are not in order: {broken}; nothing goes on in it"
            ))
        })?;
        Ok(chains.of(task).cloned())
    }

    /// Passes what a task that was just opened, or forked, has behind it: what is wanted, and what it starts from.
    pub(crate) fn begin_stages(&self, task: &Task) -> Result<(), EngineError> {
        let Some(stored) = self.intake(&task.id)? else { return Ok(()) };
        let ceiling = &stored.intake.ceiling;
        loop {
            match self.standing(&task.id)? {
                None => {
                    let work = done("intake", &stored.intake);
                    self.pass(stages::begin(task.id.clone(), work), ceiling)?;
                }
                Some(Standing::Intake(at)) => {
                    self.pass(at.done(done("workspace", &(&task.workspace, &task.base))), ceiling)?;
                }
                Some(_) => return Ok(()),
            }
        }
    }

    /// Returns the stage that an action which policy allows is recorded with; nothing where the task has none. `covered` is what
    /// was found in the workspace that no action sees.
    pub(crate) fn proposal(
        &self,
        task: &Task,
        action: &Action,
        covered: &[WorkspacePath],
    ) -> Result<Option<Due<Proposal>>, EngineError> {
        let Some(stored) = self.intake(&task.id)? else { return Ok(None) };
        self.begin_stages(task)?;
        if let Some(Standing::Workspace(at)) = self.standing(&task.id)? {
            self.pass(at.done(done("inspection", &covered)), &stored.intake.ceiling)?;
        }
        let pending = self.propose(&task.id, StageWork::Done(action.digest()))?;
        Ok(Some(Due { pending, ceiling: stored.intake.ceiling }))
    }

    fn propose(&self, task: &TaskId, work: StageWork) -> Result<Pending<Proposal>, EngineError> {
        Ok(match self.standing(task)? {
            Some(Standing::Inspection(at)) => at.done(work),
            Some(Standing::Proposal(at)) => at.again(work),
            Some(Standing::Execution(at)) => at.again(work),
            Some(Standing::Verification(at)) => at.again(work),
            Some(Standing::Review(at)) => at.again(work),
            Some(Standing::Preview(at)) => at.again(work),
            Some(Standing::Approval(at)) => at.again(work),
            Some(Standing::Release(at)) => at.again(work),
            None | Some(Standing::Intake(_) | Standing::Workspace(_)) => return Err(not_begun(task)),
        })
    }

    /// Returns the stage that the end of an action is recorded with; nothing where the task has none.
    pub(crate) fn execution(
        &self,
        task: &TaskId,
        work: &impl serde::Serialize,
    ) -> Result<Option<Due<Execution>>, EngineError> {
        let Some(stored) = self.intake(task)? else { return Ok(None) };
        let Some(Standing::Proposal(at)) = self.standing(task)? else { return Ok(None) };
        Ok(Some(Due { pending: at.done(done("execution", work)), ceiling: stored.intake.ceiling }))
    }

    /// Passes the stages of an action that was tried before a person said yes to it: it is the task's now.
    pub(crate) fn execution_of_trial(&self, task: &Task, action: &Action) -> Result<(), EngineError> {
        let Some(due) = self.proposal(task, action, &[])? else { return Ok(()) };
        self.pass(due.pending, &due.ceiling)?;
        match self.execution(&task.id, action.id())? {
            Some(due) => self.pass(due.pending, &due.ceiling),
            None => Ok(()),
        }
    }

    /// Notes that the changes of a task were shown to whoever decides. While something else is done in the task, nothing is
    /// noted: what was shown is not what will be there.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn shown(&self, task: &Task, changes: &[Change]) -> Result<(), EngineError> {
        match self.alone_with_stages(task)? {
            Some(_alone) => self.to_review(task, changes),
            None => Ok(()),
        }
    }

    /// Notes that what applying a task would write was shown.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn previewed(&self, task: &Task, changes: &[Change]) -> Result<(), EngineError> {
        let Some(_alone) = self.alone_with_stages(task)? else { return Ok(()) };
        self.to_review(task, changes)?;
        let Some(stored) = self.intake(&task.id)? else { return Ok(()) };
        match self.standing(&task.id)? {
            Some(Standing::Review(at)) => self.pass(at.done(work_of(changes)), &stored.intake.ceiling),
            _ => Ok(()),
        }
    }

    /// Takes the lock of a task that has stages and is not closed; nothing when somebody else works on it.
    fn alone_with_stages(&self, task: &Task) -> Result<Option<Lock>, EngineError> {
        let goes_on = matches!(task.state, TaskState::Open | TaskState::Stopped | TaskState::Frozen);
        if !goes_on || self.intake(&task.id)?.is_none() {
            return Ok(None);
        }
        Lock::try_take(&self.places().task(&task.id).join("lock"))
    }

    /// Brings the chain to a review of exactly these changes, or beyond it. Other changes than those of an earlier review are a
    /// new round.
    fn to_review(&self, task: &Task, changes: &[Change]) -> Result<(), EngineError> {
        let Some(stored) = self.intake(&task.id)? else { return Ok(()) };
        let (ceiling, work) = (&stored.intake.ceiling, work_of(changes));
        self.begin_stages(task)?;
        let end = self.stage_of(&task.id)?;
        let of_others =
            |end: &ChainEnd| end.stage() == Stage::Release || end.work(Stage::Review) != Some(work);
        let is_reviewed = end.as_ref().is_some_and(|end| end.stage() >= Stage::Review);
        if end.is_some_and(|end| end.stage() >= Stage::Review && of_others(&end)) {
            self.pass(self.propose(&task.id, StageWork::Nothing)?, ceiling)?;
        } else if is_reviewed {
            return Ok(());
        }
        let layers = self.store().read(|reader| reader.kept_layers(&task.id))?;
        loop {
            match self.standing(&task.id)? {
                Some(Standing::Workspace(at)) => self.pass(at.done(StageWork::Nothing), ceiling)?,
                Some(Standing::Inspection(at)) => self.pass(at.done(StageWork::Nothing), ceiling)?,
                Some(Standing::Proposal(at)) => self.pass(at.done(of_layers(&layers)), ceiling)?,
                Some(Standing::Execution(at)) => self.pass(at.done(StageWork::Nothing), ceiling)?,
                Some(Standing::Verification(at)) => return self.pass(at.done(work), ceiling),
                _ => return Err(not_begun(&task.id)),
            }
        }
    }

    /// Brings the chain to the yes to exactly these changes, which policy has given.
    pub(crate) fn to_approval(
        &self,
        task: &Task,
        shown: &[Change],
        permitted: &[Change],
    ) -> Result<(), EngineError> {
        let Some(stored) = self.intake(&task.id)? else { return Ok(()) };
        let ceiling = &stored.intake.ceiling;
        self.to_review(task, shown)?;
        if let Some(Standing::Review(at)) = self.standing(&task.id)? {
            self.pass(at.done(StageWork::Nothing), ceiling)?;
        }
        let end = self.stage_of(&task.id)?;
        let is_other = |end: &ChainEnd| end.work(Stage::Approval) != Some(work_of(permitted));
        if end.is_some_and(|end| end.stage() == Stage::Approval && is_other(&end)) {
            // A yes to something else was never used.
            self.pass(self.propose(&task.id, StageWork::Nothing)?, ceiling)?;
            return self.to_approval(task, shown, permitted);
        }
        match self.standing(&task.id)? {
            Some(Standing::Preview(at)) => self.pass(at.done(work_of(permitted)), ceiling),
            _ => Ok(()),
        }
    }

    /// Returns the stage that what was written outside is recorded with; nothing where the task has none.
    pub(crate) fn release(
        &self,
        task: &Task,
        written: &[Change],
    ) -> Result<Option<(model::Subject, Event)>, EngineError> {
        let Some(stored) = self.intake(&task.id)? else { return Ok(None) };
        let Some(Standing::Approval(at)) = self.standing(&task.id)? else { return Ok(None) };
        let pending = at.done(work_of(written));
        Ok(Some((pending.about(), pending.event(&stored.intake.ceiling))))
    }

    fn standing(&self, task: &TaskId) -> Result<Option<Standing>, EngineError> {
        Ok(self.stage_of(task)?.as_ref().map(Standing::of))
    }

    /// Records a stage.
    fn pass<S: StageType>(&self, pending: Pending<S>, ceiling: &Ceiling) -> Result<(), EngineError> {
        let (about, event) = (pending.about(), pending.event(ceiling));
        let task = about.task.clone();
        let receipt = self.log.append_with(&about, &event, now(), |writer| {
            task.as_ref().map_or(Ok(()), |task| writer.check_stages(task))
        })?;
        let at: At<S> = pending
            .recorded(&receipt, ceiling)
            .map_err(|mismatch| EngineError::Nothing(mismatch.to_string()))?;
        // Whoever goes on reads the record again, as after a restart.
        drop(at);
        sandbox::fail_point::reached("stages: one is on the record");
        Ok(())
    }
}

/// Returns the stages of a task in order, or refuses what is about to be written.
pub(crate) fn in_order(records: Vec<audit::Record>) -> Result<(), StoreError> {
    match Chains::check(records.into_iter().map(Ok)) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(broken)) => Err(StoreError::Stages(broken.to_string())),
        Err(error) => Err(StoreError::Value { what: "a stage", source: error.into() }),
    }
}

fn not_begun(task: &TaskId) -> EngineError {
    EngineError::Nothing(format!("{task} has not come to a proposal yet: nothing can follow on it"))
}

fn done(what: &str, work: &impl serde::Serialize) -> StageWork {
    let mut canonical = Canonical::new("fumehood stage 1");
    StageWork::Done(canonical.field(what.as_bytes()).value(work).digest())
}

fn work_of(changes: &[Change]) -> StageWork {
    done("changes", &changes)
}

fn of_layers(layers: &[StoredLayer]) -> StageWork {
    let names: Vec<&model::ActionId> = layers.iter().map(|layer| &layer.action).collect();
    if names.is_empty() { StageWork::Nothing } else { done("layers", &names) }
}
