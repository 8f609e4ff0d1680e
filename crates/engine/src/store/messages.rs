//! What was said between an agent and its model, and what its calls became, so that a task can go on after the agent
//! died.

use model::{ActionId, ContentClass, TaskId};
use rusqlite::{OptionalExtension as _, params};
use serde_json::value::RawValue;

use super::error::StoreError;
use super::row::{Unsigned, Value};
use super::{Reader, Store, Writer};

impl Store {
    /// Keeps the next message of a task without the secrets in it, sealed, and returns its place, from one.
    ///
    /// # Errors
    /// When there is no such task, its class has no key, or it cannot be written.
    pub fn add_message(&self, task: &TaskId, body: &RawValue) -> Result<u64, StoreError> {
        let body = self.redactor.clean_json(&self.key, body.get());
        self.write(|writer| {
            let ordinal = writer.next_message(task)?;
            let sealed = self.seal(CLASS, &of(task, ordinal), body.as_bytes())?;
            let sql = "INSERT INTO messages (task, ordinal, body, sealed) VALUES (?1, ?2, '', ?3)";
            let row = params![task.as_str(), ordinal.cast_signed(), sealed];
            writer.connection.prepare_cached(sql)?.execute(row)?;
            Ok(ordinal)
        })
    }

    /// Returns the messages of a task, oldest first, each as the JSON that was kept.
    ///
    /// # Errors
    /// When they cannot be read, or the key of their class is gone.
    pub fn messages(&self, task: &TaskId) -> Result<Vec<Box<RawValue>>, StoreError> {
        let unreadable = |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Value {
            what: "a message",
            source,
        };
        let open = |(ordinal, body, sealed): (u64, String, Option<Vec<u8>>)| {
            // Older builds kept them as they are.
            let body = match sealed {
                None => body,
                Some(sealed) => {
                    let opened = self.unseal(CLASS, &of(task, ordinal), &sealed)?;
                    String::from_utf8(opened).map_err(|error| unreadable(error.into()))?
                }
            };
            RawValue::from_string(body).map_err(|error| unreadable(error.into()))
        };
        self.read(|reader| reader.kept_messages(task))?.into_iter().map(open).collect()
    }
}

const CLASS: ContentClass = ContentClass::Transcript;

/// A message as it is kept: its place, what an older build kept, and what is sealed.
type KeptMessage = (u64, String, Option<Vec<u8>>);

/// Returns the name to which a message is bound.
fn of(task: &TaskId, ordinal: u64) -> String {
    format!("{task}.{ordinal}")
}

impl Reader<'_> {
    fn kept_messages(&self, task: &TaskId) -> Result<Vec<KeptMessage>, StoreError> {
        let sql = "SELECT ordinal, body, sealed FROM messages WHERE task = ?1 ORDER BY ordinal";
        let mut select = self.connection.prepare_cached(sql)?;
        let message = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Unsigned>(0)?.0, row.get(1)?, row.get(2)?));
        Ok(select.query_map([task.as_str()], message)?.collect::<Result<_, _>>()?)
    }

    fn next_message(&self, task: &TaskId) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(ordinal), 0) + 1 FROM messages WHERE task = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_one([task.as_str()], |row| row.get::<_, Unsigned>(0))?.0)
    }

    /// Returns the call that an action came of, when an agent of ours made it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn call_of(&self, action: &ActionId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT call FROM calls WHERE action = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row([action.as_str()], |row| row.get(0)).optional()?)
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
