//! Legal holds: what has to stay as it is, whatever its retention says, until a person lifts that.
//!
//! They are other than a [`Hold`](crate::Hold), which stops work and keeps nothing.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::action::Principal;
use crate::id::{ActionId, LegalHoldId, TaskId};
use crate::os_text::OsText;
use crate::text::escape;
use crate::units::Timestamp;

/// One order of a person that something stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegalHold {
    /// Its name.
    pub id: LegalHoldId,
    /// What it covers.
    pub scope: LegalScope,
    /// The tasks that it covered when it was given: they stay covered wherever their directories go.
    pub tasks: Vec<TaskId>,
    /// Why, in the words of who gave it.
    pub reason: String,
    /// Who gave it.
    pub by: Principal,
    /// When.
    pub since: Timestamp,
}

/// What a legal hold covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LegalScope {
    /// Everything of a task.
    Task(TaskId),
    /// An action with what came before it in its task, and what belongs to the task as a whole.
    Action {
        /// Its task.
        task: TaskId,
        /// The action.
        action: ActionId,
        /// Its place among the actions of the task, from one.
        ordinal: u64,
    },
    /// Tasks in this directory, in a part of it or in what it is a part of, and in linked worktrees of its repository.
    Directory(OsText),
}

impl LegalHold {
    /// Tells whether something of a task stays: by the directories that the task is in, and by the action that left it, when
    /// it is not of the task as a whole.
    pub fn covers<'p>(
        &self,
        task: &TaskId,
        places: impl IntoIterator<Item = &'p Path>,
        ordinal: Option<u64>,
    ) -> bool {
        match &self.scope {
            LegalScope::Task(held) => held == task,
            LegalScope::Action { task: held, ordinal: last, .. } => {
                held == task && ordinal.is_none_or(|ordinal| ordinal <= *last)
            }
            LegalScope::Directory(held) => {
                let held = held.as_path();
                let touches = |place: &Path| place.starts_with(held) || held.starts_with(place);
                self.tasks.contains(task) || places.into_iter().any(touches)
            }
        }
    }
}

impl fmt::Display for LegalScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => write!(f, "{task}"),
            Self::Action { task, action, .. } => write!(f, "{action} of {task} and what came before it"),
            Self::Directory(path) => {
                write!(f, "all tasks in `{}`", escape(&path.as_path().to_string_lossy()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(scope: LegalScope, tasks: Vec<TaskId>) -> LegalHold {
        LegalHold {
            id: LegalHoldId::from_random([9; 10]),
            scope,
            tasks,
            reason: "a court wants it".to_owned(),
            by: Principal::User("ada".to_owned()),
            since: Timestamp::from_nanos(1),
        }
    }

    #[test]
    fn a_legal_hold_covers_what_it_names_and_nothing_beside_it() {
        let (one, two) = (TaskId::from_random([1; 10]), TaskId::from_random([2; 10]));
        let task = hold(LegalScope::Task(one.clone()), Vec::new());
        assert!(task.covers(&one, [], Some(7)) && task.covers(&one, [], None));
        assert!(!task.covers(&two, [], None));
        let action = ActionId::from_random([3; 10]);
        let action = hold(LegalScope::Action { task: one.clone(), action, ordinal: 4 }, Vec::new());
        assert!(action.covers(&one, [], Some(4)) && action.covers(&one, [], Some(1)));
        assert!(action.covers(&one, [], None), "what belongs to the whole task stays with it");
        assert!(!action.covers(&one, [], Some(5)) && !action.covers(&two, [], Some(1)));
        let directory = LegalScope::Directory(OsText::literal("/src/project"));
        let directory = hold(directory, vec![two.clone()]);
        for (place, is) in
            [("/src/project", true), ("/src/project/part", true), ("/src", true), ("/src/project-2", false)]
        {
            assert_eq!(directory.covers(&one, [Path::new(place)], None), is, "{place}");
        }
        assert!(directory.covers(&two, [Path::new("/elsewhere")], None), "it was covered when it was given");
    }
}
