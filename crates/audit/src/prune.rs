//! Pruning: the content of older events goes, and what is left shows what stood there and that nothing else was done.
//!
//! The digest of a record is over the name and the digest of its event's text, not over the text. So a stub, which holds these
//! two, has the digest of what it stands for: chain, tree and signed heads hold as before, and nothing of place, time, subject
//! or name can be changed. That the content is missing has to be accounted for: an event further on that names the record,
//! its class, and a time that it is older than. A stub that no such event names is a finding, and so is one of an
//! event whose content always stays.
//!
//! Leaves to others: what is pruned when (`engine`), and taking the text out of every place that has a copy.

use std::collections::BTreeMap;

use model::event::Event;
use model::{Digest, EventClass, RecordRange, Timestamp};
use serde::Serialize;

use crate::record::{Record, WHOLE};
use crate::verify::{Broken, Flaw};

/// Stubs that are listed in the text of a verdict; all of them stand in its JSON.
const SHOWN: usize = 8;

/// What stands in place of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// The name of the event.
    pub was: String,
    /// The digest of its text.
    pub content: Digest,
}

/// The records of a log whose content was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// How many.
    pub number: u64,
    /// Which.
    pub records: Vec<RecordRange>,
    /// How many of them are accounted for only by events that no head vouches for.
    pub not_anchored: u64,
}

impl Record {
    /// Returns the stub that stands in place of its event, when there is one: to the last byte as [`Record::pruned`] writes it.
    pub fn stub(&self) -> Option<Stub> {
        if !self.is_event("pruned") {
            return None;
        }
        let event = self.parse_event().ok()?;
        let is_exact = serde_json::to_string(&event).is_ok_and(|text| text == self.event);
        match event {
            Event::Pruned { was, content } if is_exact => Some(Stub { was, content }),
            _ => None,
        }
    }

    /// Returns the class by which its content may be taken out; nothing when it always stays, has gone already, or belongs
    /// to a record whose digest is over its text.
    pub fn prunable(&self) -> Option<EventClass> {
        (self.format != WHOLE).then(|| EventClass::of(self.name())).flatten()
    }

    /// Returns the record with a stub in place of its event; nothing when it may not be pruned, or is not as it was written.
    pub fn pruned(&self) -> Option<Self> {
        self.prunable()?;
        let (was, content) = (self.name().to_owned(), Digest::of(self.event.as_bytes()));
        let event = serde_json::to_string(&Event::Pruned { was, content }).ok()?;
        let stub = Self { event, ..self.clone() };
        (self.computed_digest() == self.digest && stub.computed_digest() == self.digest).then_some(stub)
    }
}

/// Holds stubs against the events that account for them, while a log is read.
#[derive(Debug, Default)]
pub(crate) struct Prunes {
    /// Stubs that nothing accounted for yet.
    open: BTreeMap<u64, (EventClass, Timestamp)>,
    stubs: Vec<RecordRange>,
    number: u64,
    /// How many stubs an event accounted for, by its number.
    accounts: Vec<(u64, u64)>,
}

impl Prunes {
    /// Takes the next record, which is as it was written.
    pub(crate) fn saw(&mut self, record: &Record) -> Option<Broken> {
        if let Some(stub) = record.stub() {
            let Some(class) = EventClass::of(&stub.was) else {
                return Some(Broken { record: record.seq, flaw: Flaw::NeverPruned { was: stub.was } });
            };
            self.open.insert(record.seq, (class, record.time));
            self.number += 1;
            match self.stubs.last_mut() {
                Some(range) if range.last + 1 == record.seq => range.last = record.seq,
                _ => self.stubs.push(RecordRange { first: record.seq, last: record.seq }),
            }
        } else if record.is_event("record-pruned")
            && let Ok(Event::RecordPruned { class, before, records, .. }) = record.parse_event()
        {
            self.account(record.seq, class, before, &records);
        }
        None
    }

    fn account(&mut self, by: u64, class: EventClass, before: Timestamp, records: &[RecordRange]) {
        let mut named = Vec::new();
        for range in records.iter().filter(|range| range.first <= range.last) {
            let within = self.open.range(range.first..=range.last);
            let fits = |(of, time): &(EventClass, Timestamp)| *of == class && *time < before;
            named.extend(within.filter(|(_, stub)| fits(stub)).map(|(seq, _)| *seq));
        }
        self.open.retain(|seq, _| named.binary_search(seq).is_err());
        self.accounts.push((by, named.len() as u64));
    }

    /// Returns what was pruned, or the first stub that nothing accounts for. `anchored` is the last record that a head
    /// vouches for.
    pub(crate) fn finish(self, anchored: u64) -> Result<Pruned, Broken> {
        if let Some(record) = self.open.keys().next() {
            return Err(Broken { record: *record, flaw: Flaw::Unaccounted });
        }
        let beyond = self.accounts.iter().filter(|(by, _)| *by > anchored);
        let not_anchored = beyond.map(|(_, number)| number).sum();
        Ok(Pruned { number: self.number, records: self.stubs, not_anchored })
    }
}

impl Pruned {
    /// Says how many there are and which, for the end of a sentence; nothing when there is none.
    pub(crate) fn text(&self, is_anchored: bool) -> String {
        if self.number == 0 {
            return String::new();
        }
        let shown: Vec<String> = self.records.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = if self.records.len() > shown.len() { " …" } else { "" };
        let not_anchored = match self.not_anchored {
            number if is_anchored && number > 0 => {
                format!("; {number} of these by events that no head vouches for")
            }
            _ => String::new(),
        };
        format!("; of {} only stubs are left ({}{more}){not_anchored}", self.number, shown.join(", "))
    }
}
