//! What retention has to know of a task before anything of it goes.

use std::collections::BTreeMap;

use model::task::{Task, TaskState};
use model::{ActionId, Ending, TaskId, Timestamp};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::row::{Json, Raw, Unsigned, Value, Word};
use super::{ActionState, LayerState, Reader};

/// A task, as retention looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedTask {
    /// The task.
    pub task: Task,
    /// When something happened in it last.
    pub touched: Timestamp,
    /// Its actions.
    pub actions: BTreeMap<ActionId, RetainedAction>,
}

/// An action, as retention looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedAction {
    /// Its place among the actions of its task, from one.
    pub ordinal: u64,
    /// How far it came.
    pub state: ActionState,
    /// Where its layer stands in its own task, when it has one.
    pub layer: Option<LayerState>,
    /// When nothing more could happen to it; nothing while something can.
    pub finished: Option<Timestamp>,
    /// Whether it failed, was denied, or tried what is not allowed.
    pub is_incident: bool,
    /// Whether a task that can go on stands on its layer, or a person can still say yes to it.
    pub is_needed: bool,
    /// The other tasks that have its layer.
    pub shared_with: Vec<TaskId>,
}

impl RetainedTask {
    /// Tells whether it can go on.
    pub fn goes_on(&self) -> bool {
        matches!(self.task.state, TaskState::Open | TaskState::Stopped | TaskState::Frozen)
    }

    /// Tells whether one of its actions failed, was denied, or tried what is not allowed.
    pub fn has_incident(&self) -> bool {
        self.actions.values().any(|action| action.is_incident)
    }

    /// Returns the action, when it is over and nothing that can go on needs what it left.
    pub fn spent(&self, action: &ActionId) -> Option<&RetainedAction> {
        let found = self.actions.get(action)?;
        let is_off =
            matches!(found.layer, Some(LayerState::Undone | LayerState::Applied | LayerState::Removed));
        (found.finished.is_some() && !found.is_needed && (is_off || !self.goes_on())).then_some(found)
    }
}

const ACTIONS: &str = "\
    SELECT a.id, a.ordinal, a.state, l.state, a.finished, a.ending, \
    EXISTS (SELECT 1 FROM approvals WHERE action = a.id AND state = 'refused') \
    OR EXISTS (SELECT 1 FROM records WHERE task = a.task AND action = a.id \
               AND (event LIKE '{\"event\":\"denial-met\",%' OR event LIKE '{\"event\":\"credential-alert\",%' OR (event LIKE '{\"event\":\"network-attempts\",%' \
                    AND instr(event, '\"verdict\":\"refused\"') > 0))), \
    EXISTS (SELECT 1 FROM layers AS other JOIN tasks ON tasks.id = other.task \
            WHERE other.action = a.id AND other.state = 'kept' AND tasks.state IN ('open', 'stopped', 'frozen')) \
    OR EXISTS (SELECT 1 FROM approvals WHERE action = a.id AND closed IS NULL), \
    (SELECT group_concat(task) FROM layers AS other WHERE other.action = a.id AND other.task <> a.task) \
    FROM actions AS a LEFT JOIN layers AS l ON l.action = a.id AND l.task = a.task WHERE a.task = ?1";

impl Reader<'_> {
    /// Returns what retention has to know of a task; nothing when there is none of this name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn retained(&self, task: &TaskId) -> Result<Option<RetainedTask>, StoreError> {
        let Some(task) = self.task(task)? else { return Ok(None) };
        let mut select = self.connection.prepare_cached(ACTIONS)?;
        let actions = select.query_map([task.id.as_str()], action)?.collect::<Result<_, _>>()?;
        // What was removed of it, or read, is nothing that happened in it.
        let sql = "SELECT max(?2, coalesce((SELECT max(time) FROM records WHERE task = ?1 AND action IS NULL \
                                            AND event NOT LIKE '{\"event\":\"removed\",%'), ?2), \
                              coalesce((SELECT max(finished) FROM actions WHERE task = ?1), ?2))";
        let mut select = self.connection.prepare_cached(sql)?;
        let opened = super::row::time(task.opened);
        let touched = select.query_one(params![task.id.as_str(), opened], |row| row.get::<_, Raw<_>>(0))?.0;
        Ok(Some(RetainedTask { task, touched, actions }))
    }
}

fn action(row: &Row<'_>) -> rusqlite::Result<(ActionId, RetainedAction)> {
    let state = row.get::<_, Word<ActionState>>(2)?.0;
    let ending = row.get::<_, Option<Json<Ending>>>(5)?.map(|ending| ending.0);
    let failed = matches!(state, ActionState::Denied | ActionState::NotStarted | ActionState::Unknown)
        || ending.is_some_and(|ending| ending != Ending::Exited { status: 0 });
    let shared: Option<String> = row.get(8)?;
    let action = RetainedAction {
        ordinal: row.get::<_, Unsigned>(1)?.0,
        state,
        layer: row.get::<_, Option<Word<_>>>(3)?.map(|state| state.0),
        finished: row.get::<_, Option<Raw<_>>>(4)?.map(|time| time.0),
        is_incident: failed || row.get(6)?,
        is_needed: row.get(7)?,
        shared_with: shared.iter().flat_map(|all| all.split(',')).filter_map(|id| id.parse().ok()).collect(),
    };
    Ok((row.get::<_, Value<_>>(0)?.0, action))
}
