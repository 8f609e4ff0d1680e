//! Opening a task with what is wanted of it, and holding all that is done in it to that.
//!
//! Guarantees: what is wanted is on the record with the opening of the task and never changed; a fork has the same, and the
//! same budget; every action is decided on a grant that is no wider than the ceiling, and ends at the deadline.
//! Leaves to others: reading the request (`fumehood`), and checking what came out beyond its paths and kinds of change.

use std::fs;
use std::time::Duration;

use audit::Entry;
use inspect::Rules;
use model::action::{Base, Principal};
use model::event::Event;
use model::intake::{Ceiling, Intake};
use model::task::{Task, TaskState};
use model::{Action, Grant, Subject, TaskId};

use crate::Engine;
use crate::clock::random;
use crate::deadline::Moment;
use crate::error::EngineError;
use crate::git_dirs::git_directory;
use crate::store::{Halt, StoredIntake};
use crate::tasks::about;
use crate::workspace::Workspace;

/// The largest file that names a branch.
const HEAD_MAX: u64 = 4096;

/// What came of a request for a task.
#[derive(Debug)]
pub enum Taken {
    /// The task was opened.
    Opened(Box<Task>),
    /// It was not, because the request lacks this for its level.
    Refused(Vec<String>),
}

impl Engine {
    /// Opens a task with what is wanted of it, or says what the request lacks. `lasts` is how long it may take. A task that
    /// starts from a commit is `stopped` until [`Engine::make_base`] is done.
    ///
    /// # Errors
    /// When the workspace is held or has a frozen task, or the state cannot be written.
    pub fn open_with_intake(
        &self,
        workspace: &Workspace,
        mut intake: Intake,
        lasts: Option<Duration>,
        from_commit: bool,
    ) -> Result<Taken, EngineError> {
        let owner = intake.user.clone();
        self.refuse_held(workspace, &owner)?;
        self.refuse_frozen(workspace)?;
        let now = Moment::now()?;
        let deadline = lasts.map(|time| now.plus(time));
        intake.deadline = deadline.as_ref().map(|deadline| deadline.wall);
        let mut lacks = intake.lacks();
        if let Err(error) = intake.acceptance.accepts() {
            lacks.push(error.to_string());
        }
        let kept = self.store().as_kept("an intake", &intake)?;
        if kept.is_some_and(|kept| kept.acceptance != intake.acceptance) {
            // With a token in it, it would mean something else.
            lacks.push(
                "a path, a test or an artifact that it names holds a secret: say it without".to_owned(),
            );
        }
        if !lacks.is_empty() {
            let event = Event::IntakeRefused { intake: Box::new(intake), why: lacks.clone() };
            self.record(&Subject::default(), &event, |_, _| Ok(()))?;
            return Ok(Taken::Refused(lacks));
        }
        let id = TaskId::from_random(random()?);
        let state = if from_commit { TaskState::Stopped } else { TaskState::Open };
        let task = Task {
            id: id.clone(),
            workspace: workspace.key.clone(),
            base: Base::Live,
            owner: owner.clone(),
            title: intake.outcome.clone(),
            state,
            opened: now.wall,
        };
        let opened =
            Event::TaskOpened { workspace: task.workspace.clone(), owner, title: task.title.clone() };
        let wanted = Event::Intake { intake: Box::new(intake.clone()) };
        let (subject, time) = (about(&id), now.wall);
        let entries = [&opened, &wanted].map(|event| Entry { subject: &subject, event, time });
        let stored = StoredIntake { root: id.clone(), intake, opened: time, deadline };
        let _noted = self.log.append_all(&entries, |writer| {
            writer.insert_task(&task)?;
            writer.insert_intake(&id, &stored)
        })?;
        self.make_task_directory(&id)?;
        if !from_commit {
            self.begin_stages(&task)?;
        }
        Ok(Taken::Opened(Box::new(task)))
    }

    /// Returns what was wanted of a task, when somebody said that.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn intake(&self, task: &TaskId) -> Result<Option<StoredIntake>, EngineError> {
        Ok(self.store().read(|reader| reader.intake(task))?)
    }

    /// Says why work on a task cannot go on, when that is so: it is held, not open, over, or its budget is spent.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn halt_of(&self, task: &Task) -> Result<Option<Halt>, EngineError> {
        let task = self.store().read(|reader| reader.find_task(task.id.as_str()))?;
        self.halt(&task, &task.owner)
    }

    /// Returns the most that an action may touch, with the time that is left of its task.
    pub(crate) fn ceiling_of(&self, action: &Action) -> Result<Option<Ceiling>, EngineError> {
        if action.request().principal == Principal::Engine {
            return Ok(None);
        }
        let Some(stored) = self.intake(action.task())? else { return Ok(None) };
        let mut ceiling = stored.intake.ceiling;
        if let Some(deadline) = &stored.deadline {
            let left = deadline.left(stored.opened, &Moment::now()?).max(Duration::from_millis(1));
            ceiling.limits.wall_time = ceiling.limits.wall_time.min(left);
        }
        Ok(Some(ceiling))
    }

    /// Adds to the rules for what may leave what a task may change.
    pub(crate) fn accepting(&self, rules: Rules, task: &TaskId) -> Result<Rules, EngineError> {
        let Some(stored) = self.intake(task)? else { return Ok(rules) };
        let accepts = stored.intake.acceptance.accepts();
        // It was read when the task was opened.
        let accepts = accepts.map_err(|error| EngineError::Nothing(error.to_string()))?;
        Ok(rules.accepting(accepts))
    }

    /// Tells whether an action was given the same twice. How much time is left of its task is no difference.
    pub(crate) fn is_same_grant(
        &self,
        task: &TaskId,
        one: &Grant,
        other: &Grant,
    ) -> Result<bool, EngineError> {
        let mut one = one.clone();
        if self.intake(task)?.is_some_and(|stored| stored.deadline.is_some()) {
            one.profile.limits.wall_time = other.profile.limits.wall_time;
        }
        Ok(one == *other)
    }
}

/// Returns the branch that is checked out in a workspace, where one is.
pub fn branch_of(workspace: &Workspace) -> Option<String> {
    let head = git_directory(&workspace.path).join("HEAD");
    let small = fs::symlink_metadata(&head).is_ok_and(|found| found.is_file() && found.len() <= HEAD_MAX);
    let text = small.then(|| fs::read_to_string(&head).ok()).flatten()?;
    text.strip_prefix("ref: refs/heads/").map(|branch| branch.trim_end().to_owned())
}
