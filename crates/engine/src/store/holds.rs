//! Holds in the database, and the one question whether something may start.

use std::path::{Path, PathBuf};

use model::action::Principal;
use model::intake::Budget;
use model::task::{Task, TaskState};
use model::{Hold, Timestamp};
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::leases::Revocation;
use super::prefix::Named;
use super::row::{Json, Raw, Value, json, time};
use super::{Reader, Writer};
use crate::deadline::Moment;

const COLUMNS: &str = "id, scope, reason, by, since";

const NAMED: Named = Named { kind: "hold", prefix: "hold-", table: "holds", listing: "stop --list" };

/// Who wants to start something, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starter {
    /// The task.
    pub task: model::TaskId,
    /// Who asks.
    pub asker: Principal,
    /// The directories that the work is in: the workspace, and the repository of a linked worktree.
    pub places: Vec<PathBuf>,
    /// When.
    pub now: Moment,
}

/// Why nothing may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// A person stopped all that this belongs to.
    Held(Hold),
    /// A person froze the task.
    Frozen(Freeze),
    /// The task is not open.
    State(TaskState),
    /// The deadline of the task has passed.
    Over(Timestamp),
    /// The budget of the task is spent: this much of it.
    Spent(String),
    /// A person took a credential back that it would have.
    Revoked(Revocation),
}

/// Who froze a task, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// The person.
    pub by: Principal,
    /// Why, in their words.
    pub reason: String,
}

impl Reader<'_> {
    /// Returns the holds that are in force, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn holds(&self) -> Result<Vec<Hold>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM holds WHERE lifted IS NULL ORDER BY since, id");
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_map([], hold)?.collect::<Result<_, _>>()?)
    }

    /// Returns the hold with this id, or with this start of it when only one has it, and whether it was lifted.
    ///
    /// # Errors
    /// When there is none, or more than one, or it cannot be read.
    pub fn find_hold(&self, given: &str) -> Result<(Hold, bool), StoreError> {
        let id = NAMED.find(self.connection, given)?;
        let sql = format!("SELECT {COLUMNS}, lifted IS NOT NULL FROM holds WHERE id = ?1");
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_one([id], |row| Ok((hold(row)?, row.get(5)?)))?)
    }

    /// Returns the first hold that covers this.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn hold_over(
        &self,
        owner: &Principal,
        asker: &Principal,
        places: &[PathBuf],
    ) -> Result<Option<Hold>, StoreError> {
        let covers = |hold: &Hold| hold.scope.covers(owner, asker, places.iter().map(PathBuf::as_path));
        Ok(self.holds()?.into_iter().find(covers))
    }

    /// Says why nothing may start, when that is so. Asked within the write that lets it start, the answer holds: whoever
    /// stops something comes before that write or after it.
    ///
    /// # Errors
    /// When the state cannot be read, or there is no such task.
    pub fn halt(&self, starter: &Starter) -> Result<Option<Halt>, StoreError> {
        let task = self.find_task(starter.task.as_str())?;
        if let Some(hold) = self.hold_over(&task.owner, &starter.asker, &starter.places)? {
            return Ok(Some(Halt::Held(hold)));
        }
        Ok(match (task.state, self.freeze(&task)?) {
            (TaskState::Open, _) => self.over(&task.id, &starter.now)?,
            (TaskState::Frozen, Some(freeze)) => Some(Halt::Frozen(freeze)),
            (state, _) => Some(Halt::State(state)),
        })
    }

    /// Says whether the time or the budget of a task is over.
    fn over(&self, task: &model::TaskId, now: &Moment) -> Result<Option<Halt>, StoreError> {
        let Some(stored) = self.intake(task)? else { return Ok(None) };
        if let Some(deadline) = stored.deadline.filter(|deadline| deadline.has_passed(stored.opened, now)) {
            return Ok(Some(Halt::Over(deadline.wall)));
        }
        if stored.intake.budget == Budget::default() {
            return Ok(None);
        }
        Ok(stored.intake.budget.spent(&self.used(&stored.root)?).map(Halt::Spent))
    }

    /// Returns who froze a task, when a person did and it is frozen.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn freeze(&self, task: &Task) -> Result<Option<Freeze>, StoreError> {
        if task.state != TaskState::Frozen {
            return Ok(None);
        }
        let mut select = self.connection.prepare_cached("SELECT frozen FROM tasks WHERE id = ?1")?;
        let freeze = select.query_one([task.id.as_str()], |row| row.get::<_, Option<Json<_>>>(0))?;
        Ok(freeze.map(|freeze| freeze.0))
    }
}

impl Writer<'_> {
    /// Refuses to go on where nothing may start.
    ///
    /// # Errors
    /// When that is so, or the state cannot be read.
    pub fn refuse_halted(&self, starter: &Starter) -> Result<(), StoreError> {
        self.halt(starter)?.map_or(Ok(()), |halt| Err(StoreError::Halted(Box::new(halt))))
    }

    /// Adds a hold.
    ///
    /// # Errors
    /// When there is one of this name, or it cannot be written.
    pub fn insert_hold(&self, hold: &Hold) -> Result<(), StoreError> {
        let sql = "INSERT INTO holds (id, scope, reason, by, since) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.connection.prepare_cached(sql)?.execute(params![
            hold.id.as_str(),
            // As it is: with a token in it, it would cover something else.
            json("what a hold covers", &hold.scope)?,
            self.text(&hold.reason),
            self.json("a principal", &hold.by)?,
            time(hold.since),
        ])?;
        Ok(())
    }

    /// Lifts a hold.
    ///
    /// # Errors
    /// When it is not in force, or it cannot be written.
    pub fn lift_hold(&self, hold: &Hold, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE holds SET lifted = ?2 WHERE id = ?1 AND lifted IS NULL";
        let changed = self.connection.prepare_cached(sql)?.execute(params![hold.id.as_str(), time(now)])?;
        if changed == 0 { Err(StoreError::Lifted { hold: hold.id.clone() }) } else { Ok(()) }
    }

    /// Freezes a task for a person.
    ///
    /// # Errors
    /// When there is no such task, or it cannot be written.
    pub fn freeze_task(&self, id: &model::TaskId, freeze: &Freeze, now: Timestamp) -> Result<(), StoreError> {
        self.set_task_state(id, TaskState::Frozen, now)?;
        let sql = "UPDATE tasks SET frozen = ?2 WHERE id = ?1";
        self.connection.prepare_cached(sql)?.execute(params![id.as_str(), self.json("a freeze", freeze)?])?;
        Ok(())
    }
}

impl Starter {
    /// Names who wants to start something in a task, and where that is.
    pub fn new(task: &Task, asker: &Principal, repository: Option<&Path>, now: Moment) -> Self {
        let workspace = task.workspace.path.to_path_buf();
        let places = [workspace].into_iter().chain(repository.map(Path::to_owned)).collect();
        Self { task: task.id.clone(), asker: asker.clone(), places, now }
    }
}

fn hold(row: &Row<'_>) -> rusqlite::Result<Hold> {
    Ok(Hold {
        id: row.get::<_, Value<_>>(0)?.0,
        scope: row.get::<_, Json<_>>(1)?.0,
        reason: row.get(2)?,
        by: row.get::<_, Json<_>>(3)?.0,
        since: row.get::<_, Raw<Timestamp>>(4)?.0,
    })
}
