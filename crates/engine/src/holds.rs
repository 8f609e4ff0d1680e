//! Stopping more than one task at once, and what keeps anything from starting there.
//!
//! Guarantees: once a hold is durable nothing starts that it covers, whoever asks and by whichever verb: the question is
//! put again within the write that lets an action start, so one of the two comes first. Who holds and why is on the record,
//! and told to whoever is refused. Helpers of our own, which read a repository for a diff, start all the same.
//! Leaves to others: who may hold and lift (`fumehood`).

use model::action::Principal;
use model::event::Event;
use model::task::{Task, TaskState};
use model::text::escape;
use model::{Hold, HoldId, HoldScope, Subject, TaskId};

use crate::Engine;
use crate::clock::{now, random};
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::git_dirs::repository_of_worktree;
use crate::store::{Freeze, Halt, Revocation, Starter, StoreError};
use crate::tasks::about;
use crate::workspace::Workspace;

impl Halt {
    /// Returns the stable code of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Frozen(_) => "task-frozen",
            Self::State(_) => "task-not-open",
            Self::Over(_) => "deadline-passed",
            Self::Spent(_) => "budget-spent",
            Self::Revoked(_) => "credential-revoked",
        }
    }

    /// Says why nothing may start, and what a person can do, as one sentence.
    pub fn why(&self) -> String {
        match self {
            Self::Held(Hold { id, scope, reason, by, .. }) => format!(
                "{} stopped {scope}: {}; nothing starts until a person lifts that with `fumehood stop --lift {id}`",
                named(by),
                escape(reason)
            ),
            Self::Frozen(Freeze { by, reason }) => format!(
                "{} froze this task: {}; nothing runs in it until a person resumes it with `fumehood task resume`",
                named(by),
                escape(reason)
            ),
            Self::State(TaskState::Stopped | TaskState::Frozen) => {
                "this task was stopped: a person goes on with it by `fumehood task resume`".to_owned()
            }
            Self::Over(at) => {
                format!(
                    "the deadline of this task passed ({}): a person opens another one",
                    audit::rfc3339(*at)
                )
            }
            Self::Spent(what) => format!(
                "the budget of this task is spent ({}): a person looks at what came of it, or opens another one",
                escape(what)
            ),
            Self::Revoked(Revocation { credential, by, reason, .. }) => format!(
                "{} took the credential `{1}` back: {2}; a person goes on with a new value by `fumehood credential rotate {1}`",
                named(by),
                escape(credential),
                escape(reason)
            ),
            Self::State(state) => format!("this task is {state}: start another one"),
        }
    }
}

/// Returns the name of who did something.
fn named(principal: &Principal) -> String {
    match principal {
        Principal::User(name) | Principal::Agent(name) => escape(name).into_owned(),
        Principal::Engine => "the engine".to_owned(),
    }
}

impl Engine {
    /// Stops all that a scope covers: from when this returns nothing starts there. What runs is ended by
    /// [`Engine::end_held`]. `doubt` says why it may have been no person who stopped it.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn hold(
        &self,
        scope: HoldScope,
        by: &Principal,
        reason: &str,
        doubt: Option<&str>,
    ) -> Result<Hold, EngineError> {
        let id = HoldId::from_random(random()?);
        let hold = Hold { id, scope, reason: reason.to_owned(), by: by.clone(), since: now() };
        let event = Event::Held {
            hold: hold.id.clone(),
            scope: hold.scope.clone(),
            by: hold.by.clone(),
            reason: hold.reason.clone(),
            doubt: doubt.map(str::to_owned),
        };
        self.record(&Subject::default(), &event, |writer, _| writer.insert_hold(&hold))?;
        Ok(hold)
    }

    /// Ends what runs in the tasks that a hold covers, and waits until it has ended. Returns the tasks in which something
    /// did.
    ///
    /// # Errors
    /// When the state cannot be read, or something does not end; the others are ended all the same.
    pub fn end_held(&self, hold: &Hold) -> Result<Vec<TaskId>, EngineError> {
        let tasks = self.store().read(|reader| reader.tasks())?;
        let mut busy = Vec::new();
        for task in tasks.into_iter().map(|overview| overview.task) {
            let starter = self.starter(&task, &task.owner)?;
            let places = starter.places.iter().map(std::path::PathBuf::as_path);
            if hold.scope.covers(&task.owner, &task.owner, places) && self.is_busy(&task)? {
                busy.push(task);
            }
        }
        // All are asked before the first is waited for.
        busy.iter().try_for_each(|task| self.ask_to_end(task))?;
        let ended: Vec<Result<(), EngineError>> = busy.iter().map(|task| self.end_what_runs(task)).collect();
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(busy.into_iter().map(|task| task.id).collect())
    }

    /// Lifts a hold.
    ///
    /// # Errors
    /// When it was lifted already, or the state cannot be written.
    pub fn lift(&self, hold: &Hold, by: &Principal, reason: &str) -> Result<(), EngineError> {
        let event = Event::HoldLifted { hold: hold.id.clone(), by: by.clone(), reason: reason.to_owned() };
        let lifted = self.record(&Subject::default(), &event, |writer, time| writer.lift_hold(hold, time));
        lifted.map_err(|error| match stored(&error) {
            Some(StoreError::Lifted { hold }) => StoreError::Lifted { hold: hold.clone() }.into(),
            _ => error,
        })
    }

    /// Freezes a task for a person, and ends what runs in it.
    ///
    /// # Errors
    /// When the task is closed, the state cannot be written, or what runs does not end.
    pub fn freeze(&self, task: &Task, by: &Principal, reason: &str) -> Result<(), EngineError> {
        if !matches!(task.state, TaskState::Open | TaskState::Stopped | TaskState::Frozen) {
            let why = format!("task {} is {}: there is nothing to freeze", task.id, task.state);
            return Err(EngineError::Nothing(why));
        }
        let freeze = Freeze { by: by.clone(), reason: reason.to_owned() };
        let event = Event::TaskFrozen { why: reason.to_owned(), by: Some(by.clone()) };
        self.record(&about(&task.id), &event, |writer, time| writer.freeze_task(&task.id, &freeze, time))?;
        self.end_what_runs(task)
    }

    /// Refuses to begin work in a workspace that is held, before there is a task.
    ///
    /// # Errors
    /// When it is, or the state cannot be read.
    pub fn refuse_held(&self, workspace: &Workspace, owner: &Principal) -> Result<(), EngineError> {
        let repository = repository_of_worktree(&workspace.path);
        let places: Vec<_> = [workspace.path.clone()].into_iter().chain(repository).collect();
        match self.store().read(|reader| reader.hold_over(owner, owner, &places))? {
            Some(hold) => Err(EngineError::Halted(Box::new(Halt::Held(hold)))),
            None => Ok(()),
        }
    }

    /// Says why nothing may start in a task, when that is so.
    pub(crate) fn halt(&self, task: &Task, asker: &Principal) -> Result<Option<Halt>, EngineError> {
        let starter = self.starter(task, asker)?;
        Ok(self.store().read(|reader| reader.halt(&starter))?)
    }

    pub(crate) fn starter(&self, task: &Task, asker: &Principal) -> Result<Starter, EngineError> {
        let repository = repository_of_worktree(task.workspace.path.as_path());
        Ok(Starter::new(task, asker, repository.as_deref(), Moment::now()?))
    }
}

/// Returns why nothing may start, when a write was refused for that.
pub(crate) fn halted(error: &EngineError) -> Option<&Halt> {
    match stored(error) {
        Some(StoreError::Halted(halt)) => Some(halt),
        _ => None,
    }
}

/// Returns what the store said, also through the log.
fn stored(error: &EngineError) -> Option<&StoreError> {
    match error {
        EngineError::Store(error) => Some(error),
        EngineError::Audit(audit::AuditError::Storage(source)) => source.downcast_ref(),
        _ => None,
    }
}
