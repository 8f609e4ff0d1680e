//! Legal holds in the database, and the one question whether something has to stay.

use std::path::PathBuf;

use model::{LegalHold, LegalHoldId, TaskId, Timestamp};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::prefix::Named;
use super::row::{Json, Raw, Value, json, time};
use super::{Reader, Writer};

const COLUMNS: &str = "id, scope, tasks, reason, by, since";

const NAMED: Named =
    Named { kind: "legal hold", prefix: "legal-", table: "legal_holds", listing: "hold list" };

/// The legal holds that are in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LegalHolds(Vec<LegalHold>);

impl LegalHolds {
    /// Tells whether something of a task stays: what one of its actions left, or what belongs to it as a whole. `places`
    /// are the directories that the task is in.
    pub fn cover(&self, task: &TaskId, places: &[PathBuf], ordinal: Option<u64>) -> bool {
        self.0.iter().any(|hold| hold.covers(task, places.iter().map(PathBuf::as_path), ordinal))
    }

    /// Returns them, oldest first.
    pub fn all(&self) -> &[LegalHold] {
        &self.0
    }
}

impl Reader<'_> {
    /// Returns the legal holds that are in force, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn legal_holds(&self) -> Result<LegalHolds, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM legal_holds WHERE lifted IS NULL ORDER BY since, id");
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(LegalHolds(select.query_map([], hold)?.collect::<Result<_, _>>()?))
    }

    /// Returns the legal hold with this id, or with this start of it when only one has it.
    ///
    /// # Errors
    /// When there is none, or more than one, or it cannot be read.
    pub fn find_legal_hold(&self, given: &str) -> Result<LegalHold, StoreError> {
        let id = NAMED.find(self.connection, given)?;
        let sql = format!("SELECT {COLUMNS} FROM legal_holds WHERE id = ?1");
        Ok(self.connection.prepare_cached(&sql)?.query_one([id], hold)?)
    }
}

impl Writer<'_> {
    /// Adds a legal hold.
    ///
    /// # Errors
    /// When there is one of this name, or it cannot be written.
    pub fn insert_legal_hold(&self, hold: &LegalHold) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO legal_holds (id, scope, tasks, reason, by, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(sql)?.execute(params![
            hold.id.as_str(),
            // As it is: with a token in it, it would cover something else.
            json("what a legal hold covers", &hold.scope)?,
            json("the tasks of a legal hold", &hold.tasks)?,
            self.text(&hold.reason),
            self.json("a principal", &hold.by)?,
            time(hold.since),
        ])?;
        Ok(())
    }

    /// Lifts a legal hold.
    ///
    /// # Errors
    /// When it is not in force, or it cannot be written.
    pub fn lift_legal_hold(&self, hold: &LegalHoldId, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE legal_holds SET lifted = ?2 WHERE id = ?1 AND lifted IS NULL";
        let changed = self.connection.prepare_cached(sql)?.execute(params![hold.as_str(), time(now)])?;
        if changed == 0 { Err(StoreError::LegalLifted { hold: hold.clone() }) } else { Ok(()) }
    }
}

fn hold(row: &Row<'_>) -> rusqlite::Result<LegalHold> {
    Ok(LegalHold {
        id: row.get::<_, Value<_>>(0)?.0,
        scope: row.get::<_, Json<_>>(1)?.0,
        tasks: row.get::<_, Json<_>>(2)?.0,
        reason: row.get(3)?,
        by: row.get::<_, Json<_>>(4)?.0,
        since: row.get::<_, Raw<Timestamp>>(5)?.0,
    })
}
