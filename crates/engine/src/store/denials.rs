//! What was denied in tasks, and in how many ways it was tried since.

use std::collections::BTreeSet;

use gate::Remembered;
use model::{ActionId, Digest, TaskId};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::row::{Json, Value, json};
use super::{Reader, Writer};

/// A denial of one effect in a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDenial {
    /// The action to which it was denied first.
    pub first: ActionId,
    /// The effect, and the answer.
    pub remembered: Remembered,
    /// What else was asked for with the same effect, by digests of tool and arguments. The first is that of the denial.
    pub ways: BTreeSet<Digest>,
}

impl Reader<'_> {
    /// Returns what was denied in a task, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn denials(&self, task: &TaskId) -> Result<Vec<StoredDenial>, StoreError> {
        let sql = "SELECT first, answer, ways FROM denials WHERE task = ?1 ORDER BY rowid";
        let mut select = self.connection.prepare_cached(sql)?;
        let denial = |row: &Row<'_>| {
            Ok(StoredDenial {
                first: row.get::<_, Value<_>>(0)?.0,
                remembered: row.get::<_, Json<_>>(1)?.0,
                ways: row.get::<_, Json<_>>(2)?.0,
            })
        };
        Ok(select.query_map([task.as_str()], denial)?.collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    /// Remembers what was denied, or in how many ways it was tried.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_denial(&self, task: &TaskId, denial: &StoredDenial) -> Result<(), StoreError> {
        let sql = "INSERT INTO denials (task, effect, first, answer, ways) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (task, effect) DO UPDATE SET ways = excluded.ways";
        self.connection.prepare_cached(sql)?.execute(params![
            task.as_str(),
            self.json("an effect", &denial.remembered.effect)?,
            denial.first.as_str(),
            self.json("an answer", &denial.remembered)?,
            json("ways", &denial.ways)?,
        ])?;
        Ok(())
    }

    /// Lets a fork remember what was denied in the task that it came from.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn share_denials(&self, from: &TaskId, to: &TaskId) -> Result<(), StoreError> {
        let sql = "INSERT INTO denials (task, effect, first, answer, ways) \
                   SELECT ?2, effect, first, answer, ways FROM denials WHERE task = ?1 ORDER BY rowid";
        self.connection.prepare_cached(sql)?.execute([from.as_str(), to.as_str()])?;
        Ok(())
    }

    /// Forgets in how many ways what was denied in a task was tried; that it was denied is kept.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget_ways(&self, task: &TaskId) -> Result<(), StoreError> {
        let sql = "UPDATE denials SET ways = '[]' WHERE task = ?1";
        self.connection.prepare_cached(sql)?.execute([task.as_str()])?;
        Ok(())
    }
}
