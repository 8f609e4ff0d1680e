//! Reading: looking later at content that the record names by digest. It is no action, but it is decided, recorded and
//! permitted in the same way.

use std::fmt;

use model::action::Principal;
use model::task::Task;
use model::{ActionId, Canonical, ContentClass, Digest, OsText, TaskId};

use crate::decision::Subject;

/// Content of one class about one action, which somebody wants to read.
#[derive(Debug)]
pub struct Reading {
    principal: Principal,
    task: TaskId,
    workspace: OsText,
    action: ActionId,
    class: ContentClass,
    is_own: bool,
}

impl Reading {
    /// Takes content about an action of a task, to be read by `principal`.
    pub fn new(principal: Principal, task: &Task, action: &ActionId, class: ContentClass) -> Self {
        // What an agent opened, it opened for whoever has this state directory.
        let is_own = match &task.owner {
            Principal::User(_) => task.owner == principal,
            Principal::Agent(_) | Principal::Engine => true,
        };
        let (workspace, action) = (task.workspace.path.clone(), action.clone());
        Self { principal, task: task.id.clone(), workspace, action, class, is_own }
    }

    /// Returns who wants to read.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the task of the action.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// Returns the action that it is about.
    pub fn action(&self) -> &ActionId {
        &self.action
    }

    /// Returns the class.
    pub fn class(&self) -> ContentClass {
        self.class
    }

    pub(crate) fn workspace(&self) -> &OsText {
        &self.workspace
    }

    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }
}

impl Subject for Reading {
    fn digest(&self) -> Digest {
        let mut canonical = Canonical::new("fumehood reading 1");
        canonical.value(&self.principal).field(self.task.as_str().as_bytes());
        canonical.field(self.action.as_str().as_bytes()).field(self.class.name().as_bytes());
        canonical.digest()
    }

    fn about(&self) -> model::Subject {
        model::Subject { task: Some(self.task.clone()), action: Some(self.action.clone()) }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read the {} of {}", self.class, self.action)
    }
}
