//! What an agent says, kept so that its task can go on after it died: messages, calls and their outcomes, turns.
//!
//! Guarantees: a call is run at most once, whatever happens in between. Which action a call became is durable before
//! that action starts, so a call that is made again gets the same outcome, or the answer that nobody saw its end.

use std::path::PathBuf;

use gate::Reading;
use model::event::{Event, TokenUsage};
use model::evidence::Probe;
use model::task::Task;
use model::{ActionId, ContentClass, Digest, TaskId};
use sandbox::Io;
use serde_json::value::RawValue;

use crate::error::EngineError;
use crate::handle::Manner;
use crate::lock::Lock;
use crate::outcome::Outcome;
use crate::store::{Reader, StoredAction};
use crate::tasks::about;
use crate::{Engine, Order};

/// Says, as long as it lives, that an agent is at work on a task.
#[derive(Debug)]
pub struct AtWork(#[expect(dead_code, reason = "held until it is dropped")] Lock);

/// One question to a model and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'t> {
    /// The model that the server says answered.
    pub model: &'t str,
    /// The request's body.
    pub sent: &'t str,
    /// Digest of the response's body.
    pub response: Digest,
    /// Tokens, as the server counted them.
    pub tokens: TokenUsage,
}

/// What a model was sent, as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The number of the event that records it.
    pub turn: u64,
    /// Whether it is byte for byte what was sent; else tokens stand in it where secrets were.
    pub is_whole: bool,
    /// The request's body.
    pub content: Vec<u8>,
}

impl Engine {
    /// Takes the place of the one agent that may work on a task.
    ///
    /// # Errors
    /// When another one has it, or the state cannot be written.
    pub fn at_work(&self, task: &TaskId) -> Result<AtWork, EngineError> {
        self.make_task_directory(task)?;
        self.refuse_halted_agent(task)?;
        let lock = Lock::try_take(&self.places().task(task).join("agent.lock"))?;
        lock.map(AtWork).ok_or_else(|| {
            EngineError::Nothing(format!(
                "an agent is at work on {task} already: wait for it, or stop it with Ctrl-C"
            ))
        })
    }

    /// Refuses to let an agent begin where its first action would be refused: a model would be asked for nothing.
    fn refuse_halted_agent(&self, task: &TaskId) -> Result<(), EngineError> {
        let task = self.store().read(|reader| reader.find_task(task.as_str()))?;
        match self.halt(&task, &task.owner)? {
            Some(halt) => Err(EngineError::Halted(Box::new(halt))),
            None => Ok(()),
        }
    }

    /// Returns what is below the layers of a task on the host. Nothing in it is to be trusted.
    pub fn base_directory(&self, task: &Task) -> PathBuf {
        self.base_of(task)
    }

    /// Returns the directory of what an action left as artifacts.
    pub fn artifacts_directory(&self, task: &TaskId, action: &ActionId) -> PathBuf {
        self.places().artifacts(task, action)
    }

    /// Returns the action that a call of the task became, when it was made before.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub fn action_of_call(&self, task: &TaskId, call: &str) -> Result<Option<StoredAction>, EngineError> {
        let found = self.store().read(|reader| match reader.call(task, call)? {
            Some(action) => reader.action(&action),
            None => Ok(None),
        })?;
        Ok(found)
    }

    /// Takes the order that a call means, as [`Engine::handle`] does.
    ///
    /// # Errors
    /// As there, and when the call was made before.
    pub fn handle_call(
        &self,
        task: &Task,
        call: &str,
        order: Order,
        io: Io,
        waiting: impl FnOnce(),
    ) -> Result<Outcome, EngineError> {
        self.take(task, order, Manner { call: Some(call), ..Manner::default() }, io, waiting)
    }

    /// Keeps the next message of a conversation.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn keep_message(&self, task: &TaskId, message: &RawValue) -> Result<(), EngineError> {
        self.store().add_message(task, message)?;
        Ok(())
    }

    /// Records that a model was asked and answered, and keeps what it was sent.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn model_turn(&self, task: &TaskId, turn: &Turn<'_>) -> Result<(), EngineError> {
        let sealed = self.store().sealed(ContentClass::Context, turn.sent.as_bytes())?;
        let event = Event::ModelTurn {
            model: turn.model.to_owned(),
            request: Digest::of(turn.sent.as_bytes()),
            response: turn.response,
            context: Some(sealed.digest()),
            tokens: turn.tokens,
        };
        self.record(&about(task), &event, |writer, time| {
            writer.keep_content(&sealed, time)?;
            writer.own_content(ContentClass::Context, &sealed.digest(), task)
        })
    }

    /// Returns what the model had been sent when it asked for an action; nothing when no model did, or when it was not
    /// kept.
    ///
    /// # Errors
    /// When the state cannot be read, or the key of contexts is gone.
    pub(crate) fn context_of(&self, reading: &Reading) -> Result<Option<Context>, EngineError> {
        let read = |reader: &Reader<'_>| {
            let own = reader.is_of_a_call(reading.action())?;
            Ok(if own { reader.records_of_task(reading.task())? } else { Vec::new() })
        };
        let records = self.store().read(read)?;
        let asked =
            records.iter().position(|record| record.subject.action.as_ref() == Some(reading.action()));
        // An agent proposes after one turn and before the next.
        let before = records.iter().take(asked.unwrap_or(0)).rev();
        let mut turns = before.filter_map(|record| match record.parse_event() {
            Ok(Event::ModelTurn { request, context, .. }) => Some((record.seq, request, context)),
            _ => None,
        });
        let Some((turn, sent, Some(kept))) = turns.next() else { return Ok(None) };
        let content = self.store().content(ContentClass::Context, &kept)?;
        Ok(content.map(|content| Context { turn, is_whole: sent == kept, content }))
    }

    /// Records what the process that holds the model key tried and saw.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn agent_confined(&self, task: &TaskId, probes: &[Probe]) -> Result<(), EngineError> {
        self.note(task, &Event::AgentConfined { probes: probes.to_vec() })
    }

    /// Records an event about a task that changes no rows: that an agent was started, or ended.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn note(&self, task: &TaskId, event: &Event) -> Result<(), EngineError> {
        self.record(&about(task), event, |_, _| Ok(()))
    }

    /// Returns the events about a task itself, oldest first.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn events_of_task(&self, task: &TaskId) -> Result<Vec<Event>, EngineError> {
        let records = self.store().read(|reader| reader.records_of_task(task))?;
        let own = records.iter().filter(|record| record.subject.action.is_none());
        Ok(own.filter_map(|record| record.parse_event().ok()).collect())
    }
}
