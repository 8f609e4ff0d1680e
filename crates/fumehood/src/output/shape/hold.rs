//! The document of `hold`.

use model::{ActionId, LegalHold, LegalHoldId, LegalScope, OsText, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, Name, moment, who};

/// `hold add`, `hold list` and `hold lift` with `--json`: what is kept now whatever its retention.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LegalHoldsDocument {
    /// The legal holds that are in force, oldest first.
    pub holds: Vec<LegalHoldRow>,
    /// What was lifted.
    #[schemars(with = "Option<String>")]
    pub lifted: Option<LegalHoldId>,
}

/// One order of a person that something stays.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LegalHoldRow {
    /// Its name, which lifts it.
    #[schemars(with = "String")]
    pub hold: LegalHoldId,
    /// `task`, `action` or `repo`.
    pub scope: &'static str,
    /// The task, also of an action.
    #[schemars(with = "Option<String>")]
    pub task: Option<TaskId>,
    /// The action; what came before it in its task stays with it.
    #[schemars(with = "Option<String>")]
    pub action: Option<ActionId>,
    /// The directory whose tasks stay.
    #[schemars(with = "Option<Name>")]
    pub directory: Option<OsText>,
    /// The tasks that it covered when it was given.
    #[schemars(with = "Vec<String>")]
    pub tasks: Vec<TaskId>,
    /// Why.
    pub reason: String,
    /// Who gave it.
    pub by: String,
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub since: Timestamp,
}

impl LegalHoldRow {
    /// Makes the row of a legal hold.
    pub fn of(hold: LegalHold) -> Self {
        let (scope, task, action, directory) = match hold.scope {
            LegalScope::Task(task) => ("task", Some(task), None, None),
            LegalScope::Action { task, action, .. } => ("action", Some(task), Some(action), None),
            LegalScope::Directory(path) => ("repo", None, None, Some(path)),
        };
        let by = who(&hold.by);
        let (tasks, reason, since) = (hold.tasks, hold.reason, hold.since);
        Self { hold: hold.id, scope, task, action, directory, tasks, reason, by, since }
    }
}
