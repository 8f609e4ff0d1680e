//! Reading what is kept about an action: policy decides, and that is on the record before anything is read.

use audit::Entry;
use gate::{Decision, Permit, Reading};
use model::action::Principal;
use model::{ContentClass, Event};
use serde_json::value::RawValue;

use crate::clock::now;
use crate::error::EngineError;
use crate::store::StoredAction;
use crate::{Context, Engine, KeptOutput};

/// A conversation between an agent and its model, as it was kept, and a call in it.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// The call, by its place.
    pub call: String,
    /// The messages, oldest first, as JSON.
    pub messages: Vec<Box<RawValue>>,
}

/// Why somebody may not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// A stable code.
    pub reason: String,
    /// What may be done instead.
    pub advice: String,
}

impl Engine {
    /// Returns what a command printed, for somebody who may read it.
    ///
    /// # Errors
    /// When the state cannot be read or written, or the key of the class is gone.
    pub fn read_output(
        &self,
        by: &Principal,
        action: &StoredAction,
    ) -> Result<Result<Vec<KeptOutput>, Unread>, EngineError> {
        Ok(match self.permit_reading(by, action, ContentClass::Output)? {
            Ok(permit) => {
                let reading = permit.spend();
                Ok(self.output(reading.task(), reading.action())?)
            }
            Err(unread) => Err(unread),
        })
    }

    /// Returns what the model had been sent when it asked for an action, for somebody who may read it; nothing when it is
    /// not kept.
    ///
    /// # Errors
    /// When the state cannot be read or written, or the key of the class is gone.
    pub fn read_context(
        &self,
        by: &Principal,
        action: &StoredAction,
    ) -> Result<Result<Option<Context>, Unread>, EngineError> {
        Ok(match self.permit_reading(by, action, ContentClass::Context)? {
            Ok(permit) => Ok(self.context_of(&permit.spend())?),
            Err(unread) => Err(unread),
        })
    }

    /// Returns the call that an action came of, and the conversation that it is in, for somebody who may read it; nothing
    /// when no agent of ours asked for it.
    ///
    /// # Errors
    /// When the state cannot be read or written, or the key of the class is gone.
    pub fn read_conversation(
        &self,
        by: &Principal,
        action: &StoredAction,
    ) -> Result<Result<Option<Conversation>, Unread>, EngineError> {
        Ok(match self.permit_reading(by, action, ContentClass::Transcript)? {
            Ok(permit) => {
                let reading = permit.spend();
                let call = self.store().read(|reader| reader.call_of(reading.action()))?;
                let messages = self.store().messages(reading.task())?;
                Ok(call.map(|call| Conversation { call, messages }))
            }
            Err(unread) => Err(unread),
        })
    }

    /// Decides whether somebody may read content, and records that.
    fn permit_reading(
        &self,
        by: &Principal,
        action: &StoredAction,
        class: ContentClass,
    ) -> Result<Result<Permit<Reading>, Unread>, EngineError> {
        let task = self.store().read(|reader| reader.find_task(action.task.as_str()))?;
        let decision = self.gate.decide_reading(Reading::new(by.clone(), &task, &action.id, class));
        let is_allowed = matches!(decision, Decision::Allow(_) | Decision::Narrow(_));
        let read = is_allowed.then(|| Event::RecordRead { class, by: by.clone() });
        let subject = model::Subject { task: Some(task.id), action: Some(action.id.clone()) };
        let (decided, time) = (decision.event(), now());
        let events = std::iter::once(&decided).chain(&read);
        let entries: Vec<Entry<'_>> = events.map(|event| Entry { subject: &subject, event, time }).collect();
        let mut receipts = self.log.append_all(&entries, |_| Ok(()))?.into_iter();
        let lost = || EngineError::Nothing("the record gave no receipt".into());
        let receipt = receipts.next().ok_or_else(lost)?;
        Ok(match decision {
            Decision::Allow(yes) | Decision::Narrow(yes) => {
                Ok(yes.recorded(&receipt).map_err(|mismatch| EngineError::Nothing(mismatch.to_string()))?)
            }
            other => {
                Err(Unread { reason: other.record().reason.clone(), advice: other.record().advice.clone() })
            }
        })
    }
}
