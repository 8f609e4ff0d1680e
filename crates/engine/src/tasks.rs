//! Tasks: opening, finding and closing them.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use model::action::{Base, Principal};
use model::event::Event;
use model::task::{Task, TaskState};
use model::{Subject, TaskId};

use crate::clock::{now, random};
use crate::error::EngineError;
use crate::layers::Places;
use crate::store::Halt;
use crate::{Engine, Workspace};

/// Which task an action belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskChoice {
    /// The open task of the workspace; a new one when there is none.
    Current,
    /// A new one.
    New,
    /// This one.
    This(String),
}

impl Engine {
    /// Finds or opens the task that a choice means.
    ///
    /// # Errors
    /// When the task is not there or not open, or the state cannot be written.
    pub fn task_for(
        &self,
        workspace: &Workspace,
        choice: &TaskChoice,
        owner: &Principal,
        title: Option<&str>,
    ) -> Result<Task, EngineError> {
        if !matches!(choice, TaskChoice::This(_)) {
            self.refuse_frozen(workspace)?;
        }
        let found = match choice {
            TaskChoice::New => None,
            TaskChoice::This(given) => Some(self.store().read(|reader| reader.find_task(given))?),
            TaskChoice::Current => self.store().read(|reader| reader.open_task(&workspace.key))?,
        };
        match found {
            Some(task) if task.state == TaskState::Open => Ok(task),
            Some(task) if task.state == TaskState::Frozen => Err(self.frozen(&task)?),
            Some(task) => {
                Err(EngineError::TaskState { task: task.id.to_string(), state: task.state.to_string() })
            }
            None => self.open_task(workspace, owner, title, Base::Live),
        }
    }

    /// Opens a new task on a workspace.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn open_task(
        &self,
        workspace: &Workspace,
        owner: &Principal,
        title: Option<&str>,
        base: Base,
    ) -> Result<Task, EngineError> {
        self.open_task_as(workspace, owner, title, base, TaskState::Open)
    }

    /// Refuses to go on in a directory in which a task is frozen: another task would have forgotten why.
    pub(crate) fn refuse_frozen(&self, workspace: &Workspace) -> Result<(), EngineError> {
        let frozen = self.store().read(|reader| reader.tasks_in_state(TaskState::Frozen))?;
        // A part of the directory, or what it is a part of, is the same work.
        let touches = |task: &&Task| {
            let path = task.workspace.path.as_path();
            path.starts_with(&workspace.path) || workspace.path.starts_with(path)
        };
        match frozen.iter().find(touches) {
            Some(task) => Err(self.frozen(task)?),
            None => Ok(()),
        }
    }

    /// Says that a task is frozen, and for what.
    pub(crate) fn frozen(&self, task: &Task) -> Result<EngineError, EngineError> {
        let why = match self.store().read(|reader| reader.freeze(task))? {
            Some(freeze) => Halt::Frozen(freeze).why(),
            None => "what was denied in it was tried in too many other ways".to_owned(),
        };
        Ok(EngineError::Frozen { task: task.id.to_string(), why })
    }

    pub(crate) fn open_task_as(
        &self,
        workspace: &Workspace,
        owner: &Principal,
        title: Option<&str>,
        base: Base,
        state: TaskState,
    ) -> Result<Task, EngineError> {
        self.refuse_frozen(workspace)?;
        let task = Task {
            id: TaskId::from_random(random()?),
            workspace: workspace.key.clone(),
            base,
            owner: owner.clone(),
            title: title.map(str::to_owned),
            state,
            opened: now(),
        };
        let event = Event::TaskOpened {
            workspace: task.workspace.clone(),
            owner: owner.clone(),
            title: task.title.clone(),
        };
        self.record(&about(&task.id), &event, |writer, _| writer.insert_task(&task))?;
        self.make_task_directory(&task.id)?;
        Ok(task)
    }

    pub(crate) fn make_task_directory(&self, task: &TaskId) -> Result<(), EngineError> {
        let directory = self.places().task(task);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(EngineError::file("make", &directory))
    }

    /// Returns what is below the layers of a task on the host.
    pub(crate) fn base_of(&self, task: &Task) -> PathBuf {
        match &task.base {
            Base::Live => task.workspace.path.to_path_buf(),
            Base::Commit { commit } => self.places().base(&task.workspace, commit),
        }
    }

    /// Brings a task to another state, on the record.
    ///
    /// # Errors
    /// When it is not there or the state cannot be written.
    pub fn set_task_state(&self, task: &TaskId, state: TaskState) -> Result<(), EngineError> {
        let event = Event::TaskState { state, by: None };
        self.record(&about(task), &event, |writer, time| writer.set_task_state(task, state, time))
    }

    pub(crate) fn places(&self) -> Places {
        Places::new(self.store().directory())
    }
}

/// Returns the subject of events about a task.
pub(crate) fn about(task: &TaskId) -> Subject {
    Subject { task: Some(task.clone()), action: None }
}
