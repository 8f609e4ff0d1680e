//! Standing where an earlier action stood, to run it again.

use model::TaskId;
use model::event::Event;
use model::task::{Task, TaskState};

use crate::Engine;
use crate::clock::{now, random};
use crate::error::EngineError;
use crate::store::{LayerState, StoredAction};
use crate::tasks::about;

impl Engine {
    /// Opens a new task that stands on the layers that an action started from, undone ones too, over the same base.
    ///
    /// # Errors
    /// When one of the layers was removed, or the state cannot be written.
    pub fn task_before(&self, action: &StoredAction) -> Result<Task, EngineError> {
        let task = self.store().read(|reader| reader.find_task(action.task.as_str()))?;
        let layers = action.start.layers.clone();
        for layer in &layers {
            let stored = self.store().read(|reader| reader.action(layer))?;
            if stored.is_none_or(|stored| stored.layer == Some(LayerState::Removed)) {
                let (id, why) = (&action.id, "its retention was over");
                return Err(EngineError::Nothing(format!(
                    "{id} started from the layer of {layer}, which is gone: {why}"
                )));
            }
        }
        let base = action.start.base.clone();
        let (id, state, opened) = (TaskId::from_random(random()?), TaskState::Open, now());
        let again = Task { id, base, state, opened, ..task.clone() };
        let event = Event::Forked { from: task.id.clone(), layers: layers.clone() };
        self.record(&about(&again.id), &event, |writer, _| {
            writer.insert_task(&again)?;
            writer.share_intake(&task.id, &again.id)?;
            layers.iter().try_for_each(|layer| writer.add_layer(&again.id, layer))
        })?;
        self.make_task_directory(&again.id)?;
        Ok(again)
    }
}
