//! Receipts: the proof that one event is on the record.

use model::event::{DecisionRecord, Event};
use model::{Digest, Subject};

use crate::record::Record;

/// Proof that one event is durably on the record. Only [`Log::append`] and its kin make one.
///
/// A receipt cannot be copied, made up or read from anywhere:
///
/// ```compile_fail
/// fn copied(receipt: audit::Receipt) -> (audit::Receipt, audit::Receipt) {
///     (receipt.clone(), receipt)
/// }
/// ```
/// ```compile_fail
/// let receipt = audit::Receipt::default();
/// ```
/// ```compile_fail
/// let receipt: audit::Receipt = serde_json::from_str("{}").unwrap();
/// ```
/// ```compile_fail
/// fn forged(digest: model::Digest) -> audit::Receipt {
///     audit::Receipt { seq: 1, digest, event: "decided", about: model::Subject::default(), decided: None, stage: None }
/// }
/// ```
///
/// [`Log::append`]: crate::Log::append
#[must_use = "a receipt is what turns a decision into a permit"]
#[derive(Debug)]
pub struct Receipt {
    seq: u64,
    digest: Digest,
    event: &'static str,
    about: Subject,
    decided: Option<(Digest, DecisionRecord)>,
    /// The digest of the event as it is written, when it is a stage.
    stage: Option<Digest>,
}

impl Receipt {
    /// INVARIANT: called only after the storage said that the record is durable.
    pub(crate) fn of(record: &Record, event: &Event) -> Self {
        let decided = match event {
            Event::Decided { digest, decision } | Event::TrialDecided { digest, decision } => {
                Some((*digest, decision.clone()))
            }
            _ => None,
        };
        let stage = matches!(event, Event::Stage { .. }).then(|| Digest::of(record.event.as_bytes()));
        Self {
            stage,
            seq: record.seq,
            digest: record.digest,
            event: event.name(),
            about: record.subject.clone(),
            decided,
        }
    }

    /// Returns the record's place.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the record's digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the name of the event.
    pub fn event_name(&self) -> &'static str {
        self.event
    }

    /// Tells whether this is the receipt of exactly this event, a stage that was passed, about exactly this subject.
    pub fn covers_stage(&self, about: &Subject, event: &Event) -> bool {
        let written = serde_json::to_vec(event).map(|bytes| Digest::of(&bytes)).ok();
        self.about == *about && self.stage.is_some() && self.stage == written
    }

    /// Tells whether this is the receipt of exactly this event, a decision, about exactly this subject: the same request
    /// made a second time is another action, and needs a record of its own.
    pub fn covers_decision(&self, about: &Subject, event: &Event) -> bool {
        let (Event::Decided { digest, decision } | Event::TrialDecided { digest, decision }) = event else {
            return false;
        };
        self.about == *about
            && self.event == event.name()
            && self.decided.as_ref().is_some_and(|(about, recorded)| about == digest && recorded == decision)
    }
}
