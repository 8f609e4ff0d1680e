//! What was said between an agent and its model, and what its calls became, so that a task can go on after the agent
//! died.

use model::{ActionId, TaskId};
use rusqlite::{OptionalExtension as _, params};
use serde_json::value::RawValue;

use super::error::StoreError;
use super::row::{Unsigned, Value};
use super::{Reader, Writer};

impl Reader<'_> {
    /// Returns the messages of a task, oldest first, each as the JSON that was kept.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn messages(&self, task: &TaskId) -> Result<Vec<Box<RawValue>>, StoreError> {
        let sql = "SELECT body FROM messages WHERE task = ?1 ORDER BY ordinal";
        let mut select = self.connection.prepare_cached(sql)?;
        let bodies = select.query_map([task.as_str()], |row| row.get::<_, String>(0))?;
        let parse = |body| {
            RawValue::from_string(body)
                .map_err(|source| StoreError::Value { what: "a message", source: source.into() })
        };
        bodies.map(|body| parse(body?)).collect()
    }

    /// Returns the action that a call of a task became, when it was seen before.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn call(&self, task: &TaskId, call: &str) -> Result<Option<ActionId>, StoreError> {
        let sql = "SELECT action FROM calls WHERE task = ?1 AND call = ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let found = select.query_row([task.as_str(), call], |row| row.get::<_, Value<ActionId>>(0));
        Ok(found.optional()?.map(|value| value.0))
    }
}

impl Reader<'_> {
    /// Tells whether an action came of a call of an agent of ours.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_of_a_call(&self, action: &ActionId) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM calls JOIN actions ON actions.id = calls.action AND actions.task = calls.task \
                   WHERE actions.id = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row([action.as_str()], |_| Ok(())).optional()?.is_some())
    }
}

impl Writer<'_> {
    /// Keeps the next message of a task without the secrets in it, and returns its place, from one.
    ///
    /// # Errors
    /// When there is no such task, or it cannot be written.
    pub fn add_message(&self, task: &TaskId, body: &RawValue) -> Result<u64, StoreError> {
        let body = self.redactor.clean_json(self.key, body.get());
        let sql = "INSERT INTO messages (task, ordinal, body) VALUES \
                   (?1, (SELECT coalesce(max(ordinal), 0) + 1 FROM messages WHERE task = ?1), ?2) \
                   RETURNING ordinal";
        let ordinal: Unsigned =
            self.connection.prepare_cached(sql)?.query_row(params![task.as_str(), body], |row| row.get(0))?;
        Ok(ordinal.0)
    }

    /// Notes which action a call of a task became.
    ///
    /// # Errors
    /// When the call became another one, task or action are not there, or it cannot be written.
    pub fn add_call(&self, task: &TaskId, call: &str, action: &ActionId) -> Result<(), StoreError> {
        let sql = "INSERT INTO calls (task, call, action) VALUES (?1, ?2, ?3)";
        self.connection.prepare_cached(sql)?.execute([task.as_str(), call, action.as_str()])?;
        Ok(())
    }
}
