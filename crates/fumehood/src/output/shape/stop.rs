//! The document of `stop`.

use model::{Hold, HoldId, HoldScope, OsText, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, Name, moment, who};

/// `stop --json`: what is stopped now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StopDocument {
    /// What is stopped, oldest first.
    pub holds: Vec<HoldRow>,
    /// The tasks in which something ran that was ended.
    #[schemars(with = "Vec<String>")]
    pub ended: Vec<TaskId>,
    /// What was lifted.
    #[schemars(with = "Option<String>")]
    pub lifted: Option<HoldId>,
}

/// One order of a person that nothing starts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HoldRow {
    /// Its name, which lifts it.
    #[schemars(with = "String")]
    pub hold: HoldId,
    /// `all`, `user` or `repo`.
    pub scope: &'static str,
    /// The user whose work is stopped.
    pub user: Option<String>,
    /// The directory in which work is stopped.
    #[schemars(with = "Option<Name>")]
    pub directory: Option<OsText>,
    /// Why.
    pub reason: String,
    /// Who stopped it.
    pub by: String,
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub since: Timestamp,
}

impl HoldRow {
    /// Makes the row of a hold.
    pub fn of(hold: Hold) -> Self {
        let (scope, user, directory) = match hold.scope {
            HoldScope::All => ("all", None, None),
            HoldScope::User(name) => ("user", Some(name), None),
            HoldScope::Directory(path) => ("repo", None, Some(path)),
        };
        let (by, since) = (who(&hold.by), hold.since);
        Self { hold: hold.id, scope, user, directory, reason: hold.reason, by, since }
    }
}
