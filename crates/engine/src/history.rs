//! Going back and branching off: undo, fork and discard. They move layers in the store; the host is not touched.

use model::event::Event;
use model::task::{Task, TaskState};
use model::{ActionId, TaskId};

use crate::Engine;
use crate::clock::{now, random};
use crate::error::EngineError;
use crate::lock::Lock;
use crate::store::{LayerState, StoreError};
use crate::tasks::about;

impl Engine {
    /// Takes the newest layers off a task: down to and with the layer of `to`, or only the newest. The files stay
    /// until their retention ends.
    ///
    /// # Errors
    /// When the task has no such layer, is busy, or the state cannot be written.
    pub fn undo(&self, task: &Task, to: Option<&ActionId>) -> Result<Vec<ActionId>, EngineError> {
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let kept = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let from = match to {
            None => kept.len().saturating_sub(1),
            Some(wanted) => kept.iter().position(|layer| layer.action == *wanted).unwrap_or(kept.len()),
        };
        let taken: Vec<ActionId> = kept[from..].iter().map(|layer| layer.action.clone()).collect();
        if taken.is_empty() {
            let what = to.map_or_else(
                || format!("task {} stands on no layer: there is nothing to undo", task.id),
                |id| {
                    format!(
                        "task {} does not stand on a layer of {id}: `fumehood log` lists what it stands on",
                        task.id
                    )
                },
            );
            return Err(EngineError::Nothing(what));
        }
        self.record(&about(&task.id), &Event::Undone { layers: taken.clone() }, |writer, _| {
            taken.iter().try_for_each(|layer| writer.set_layer_state(&task.id, layer, LayerState::Undone))
        })?;
        Ok(taken)
    }

    /// Opens a new task that stands on the same layers, up to and with the layer of `at` when it is given. Nothing is
    /// copied, whatever the size of the workspace.
    ///
    /// # Errors
    /// When the task has no such layer, or the state cannot be written.
    pub fn fork(&self, task: &Task, at: Option<&ActionId>) -> Result<Task, EngineError> {
        if task.state == TaskState::Frozen {
            return Err(self.frozen(task)?);
        }
        let fork = Task {
            id: TaskId::from_random(random()?),
            state: TaskState::Open,
            opened: now(),
            ..task.clone()
        };
        let kept = self.store().read(|reader| reader.kept_layers(&task.id))?;
        let shared = match at {
            None => kept.len(),
            Some(wanted) => {
                kept.iter().position(|layer| layer.action == *wanted).map_or(kept.len(), |at| at + 1)
            }
        };
        let layers: Vec<ActionId> = kept[..shared].iter().map(|layer| layer.action.clone()).collect();
        let event = Event::Forked { from: task.id.clone(), layers: layers.clone() };
        self.record(&about(&fork.id), &event, |writer, _| {
            writer.insert_task(&fork)?;
            let shared = writer.share_layers(&task.id, &fork.id, at)?;
            // What `gc` removed meanwhile is not shared.
            if let Some(layer) = layers.into_iter().find(|layer| !shared.contains(layer)) {
                return Err(StoreError::Gone { layer });
            }
            writer.share_denials(&task.id, &fork.id)?;
            writer.share_intake(&task.id, &fork.id)
        })?;
        self.make_task_directory(&fork.id)?;
        Ok(fork)
    }

    /// Throws a task away. Its layers, outputs and record stay until their retention ends; what it asked a person is void.
    ///
    /// # Errors
    /// When the task is busy, or the state cannot be written.
    pub fn discard(&self, task: &Task) -> Result<(), EngineError> {
        let _one_at_a_time = self.lock_idle(&task.id)?;
        let _room = self.store().make_room();
        self.set_task_state(&task.id, TaskState::Discarded)?;
        self.end_requests(&task.id, "its task was thrown away")
    }

    /// Takes the lock of a task in which nothing runs.
    pub(crate) fn lock_idle(&self, task: &TaskId) -> Result<Lock, EngineError> {
        self.make_task_directory(task)?;
        let lock = Lock::try_take(&self.places().task(task).join("lock"))?;
        lock.ok_or_else(|| {
            EngineError::Nothing(format!(
                "an action of task {task} is running: wait for it, or stop it with Ctrl-C"
            ))
        })
    }
}
