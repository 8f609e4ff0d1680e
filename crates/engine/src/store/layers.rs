//! The layers of tasks in the database. Their files lie under the task whose action wrote them.

use std::collections::BTreeSet;

use inspect::release::CREDENTIAL;
use model::event::HeldBack;
use model::{ActionId, TaskId, WorkspacePath};
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::row::{Json, Value, Word};
use super::{Reader, Writer};

/// Where a layer stands in a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerState {
    /// The task stands on it.
    Kept,
    /// It was taken off, and its files are still there.
    Undone,
    /// Its changes are in the host's directory, and its files are still there.
    Applied,
    /// Its files were removed.
    Removed,
}

impl LayerState {
    /// Returns the word that stands for it, in the database and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Undone => "undone",
            Self::Applied => "applied",
            Self::Removed => "removed",
        }
    }
}

/// A layer of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLayer {
    /// The action that wrote it, which gives it its name.
    pub action: ActionId,
    /// The task of that action, under which its files lie: another one when the task is a fork.
    pub home: TaskId,
    /// Where it stands.
    pub state: LayerState,
}

const SELECT: &str = "SELECT layers.action, actions.task, layers.state \
                      FROM layers JOIN actions ON actions.id = layers.action";

impl Reader<'_> {
    /// Returns all layers of a task, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn layers(&self, task: &TaskId) -> Result<Vec<StoredLayer>, StoreError> {
        self.layers_by(&format!("{SELECT} WHERE layers.task = ?1 ORDER BY position"), [task.as_str()])
    }

    /// Returns the layers that a task stands on, oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn kept_layers(&self, task: &TaskId) -> Result<Vec<StoredLayer>, StoreError> {
        let sql = format!("{SELECT} WHERE layers.task = ?1 AND layers.state = 'kept' ORDER BY position");
        self.layers_by(&sql, [task.as_str()])
    }

    /// Returns the paths that the layers of a task were found to hold a credential at, when each was read.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn made_credentials(&self, task: &TaskId) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let sql = "SELECT body FROM layers JOIN evidence ON evidence.action = layers.action \
                   WHERE layers.task = ?1 AND layers.state = 'kept' AND kind = 'held-back' \
                   AND instr(body, '\"credential\"') > 0";
        let mut select = self.connection.prepare_cached(sql)?;
        let held = select.query_map([task.as_str()], |row| Ok(row.get::<_, Json<Vec<HeldBack>>>(0)?.0))?;
        let held = held.collect::<Result<Vec<_>, _>>()?;
        let found = held.into_iter().flatten().filter(|held| held.reason == CREDENTIAL);
        Ok(found.filter_map(|held| WorkspacePath::parse(held.path.as_path()).ok()).collect())
    }

    fn layers_by(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<StoredLayer>, StoreError> {
        let mut select = self.connection.prepare_cached(sql)?;
        let layer = |row: &Row<'_>| {
            Ok(StoredLayer {
                action: row.get::<_, Value<_>>(0)?.0,
                home: row.get::<_, Value<_>>(1)?.0,
                state: row.get::<_, Word<_>>(2)?.0,
            })
        };
        Ok(select.query_map(parameters, layer)?.collect::<Result<_, _>>()?)
    }
}

const INSERT: &str = "INSERT INTO layers (task, position, action, state) VALUES \
                      (?1, (SELECT coalesce(max(position), 0) + 1 FROM layers WHERE task = ?1), ?2, 'kept')";

impl Writer<'_> {
    /// Puts a layer on top of a task.
    ///
    /// # Errors
    /// When the task has it already, its files were removed, task or action are not there, or it cannot be written.
    pub fn add_layer(&self, task: &TaskId, action: &ActionId) -> Result<(), StoreError> {
        let sql = "SELECT 1 FROM layers WHERE action = ?1 AND state = 'removed'";
        if self.connection.prepare_cached(sql)?.exists([action.as_str()])? {
            return Err(StoreError::Gone { layer: action.clone() });
        }
        self.connection.prepare_cached(INSERT)?.execute([task.as_str(), action.as_str()])?;
        Ok(())
    }

    /// Puts the layers that one task stands on under another one, up to and with the layer of `last` when it is
    /// given, and returns them, oldest first.
    ///
    /// # Errors
    /// When the task does not stand on the layer of `last`, or they cannot be written.
    pub fn share_layers(
        &self,
        from: &TaskId,
        to: &TaskId,
        last: Option<&ActionId>,
    ) -> Result<Vec<ActionId>, StoreError> {
        let mut shared: Vec<ActionId> =
            self.kept_layers(from)?.into_iter().map(|layer| layer.action).collect();
        if let Some(last) = last {
            let place = shared.iter().position(|action| action == last);
            let place = place.ok_or_else(|| StoreError::NotFound {
                kind: "layer",
                given: last.to_string(),
                listing: "log",
            })?;
            shared.truncate(place + 1);
        }
        shared.iter().try_for_each(|action| self.add_layer(to, action))?;
        Ok(shared)
    }

    /// Brings a layer of a task to a state.
    ///
    /// # Errors
    /// When the task has no such layer, or it cannot be written.
    pub fn set_layer_state(
        &self,
        task: &TaskId,
        action: &ActionId,
        state: LayerState,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE layers SET state = ?3 WHERE task = ?1 AND action = ?2";
        let changed =
            self.connection.prepare_cached(sql)?.execute([task.as_str(), action.as_str(), state.name()])?;
        if changed == 0 {
            let given = action.to_string();
            return Err(StoreError::NotFound { kind: "layer", given, listing: "log" });
        }
        Ok(())
    }

    /// Notes that the files of a layer are gone, for every task that had it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_layer_removed(&self, action: &ActionId) -> Result<(), StoreError> {
        let sql = "UPDATE layers SET state = ?2 WHERE action = ?1";
        self.connection.prepare_cached(sql)?.execute(params![action.as_str(), LayerState::Removed.name()])?;
        Ok(())
    }
}
