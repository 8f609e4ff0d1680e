//! The log: the only place where events become records, and the only source of receipts.

use model::Timestamp;
use model::event::{Event, Subject};

use crate::anchors::Anchors;
use crate::error::AuditError;
use crate::head::Head;
use crate::receipt::Receipt;
use crate::record::{MAX_EVENT, Record};
use crate::storage::{ReadError, Storage};
use crate::verify::{self, Broken, Flaw, Verification};

/// An append-only log over some storage.
#[derive(Debug)]
pub struct Log<S> {
    storage: S,
}

/// One event to be appended.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'e> {
    /// What it is about.
    pub subject: &'e Subject,
    /// The event.
    pub event: &'e Event,
    /// When it happened.
    pub time: Timestamp,
}

impl<S: Storage> Log<S> {
    /// Opens the log that the storage holds. The last record is checked, so that nothing is put on top of one
    /// that was edited; checking them all is [`Log::verify`]'s work.
    ///
    /// # Errors
    /// When the storage cannot be read, or its last record is not as it was written.
    pub fn open(storage: S) -> Result<Self, AuditError> {
        let log = Self { storage };
        let head = log.head()?;
        if head.seq > 0 {
            log.check_last(&head)?;
        }
        Ok(log)
    }

    fn check_last(&self, head: &Head) -> Result<(), AuditError> {
        let flaw = match self.storage.records(head.seq).next() {
            Some(Ok(record)) => verify::own_flaw(&record),
            Some(Err(ReadError::Malformed(malformed))) => Some(Flaw::Malformed(malformed)),
            Some(Err(ReadError::Source(source))) => return Err(AuditError::Unreadable(source)),
            None => Some(Flaw::Cut { ends: head.seq }),
        };
        flaw.map_or(Ok(()), |flaw| Err(AuditError::Damaged(Broken { record: head.seq, flaw })))
    }

    /// Appends one event. It is durable when this returns.
    ///
    /// # Errors
    /// When the event is too large or the storage fails; then nothing was recorded.
    pub fn append(&self, subject: &Subject, event: &Event, time: Timestamp) -> Result<Receipt, AuditError> {
        self.append_with(subject, event, time, |_| Ok(()))
    }

    /// Appends one event, and changes what else the storage keeps in the same step: both happen, or neither.
    ///
    /// # Errors
    /// When the event is too large, the storage fails, or `also` does; then nothing was recorded or changed.
    pub fn append_with(
        &self,
        subject: &Subject,
        event: &Event,
        time: Timestamp,
        also: impl FnOnce(&S::Rows<'_>) -> Result<(), S::Error>,
    ) -> Result<Receipt, AuditError> {
        let entry = Entry { subject, event, time };
        self.append_all(&[entry], also)?.pop().ok_or_else(lost)
    }

    /// Appends several events one after the other: all of them, or none. One wait for the disk covers them all.
    ///
    /// # Errors
    /// When one of the events is too large, the storage fails, or `also` does; then nothing was recorded or changed.
    pub fn append_all(
        &self,
        entries: &[Entry<'_>],
        also: impl FnOnce(&S::Rows<'_>) -> Result<(), S::Error>,
    ) -> Result<Vec<Receipt>, AuditError> {
        let written: Vec<String> =
            entries.iter().map(|entry| self.written(entry.event)).collect::<Result<_, _>>()?;
        let records = self
            .storage
            .append(|head| sealed(head, entries, written), also)
            .map_err(|error| AuditError::Storage(Box::new(error)))?;
        if records.len() != entries.len() {
            return Err(lost());
        }
        Ok(records.iter().zip(entries).map(|(record, entry)| Receipt::of(record, entry.event)).collect())
    }

    /// Returns the text of an event as it is kept.
    fn written(&self, event: &Event) -> Result<String, AuditError> {
        let name = event.name();
        if matches!(event, Event::Pruned { .. }) {
            return Err(AuditError::Stub);
        }
        let text = serde_json::to_string(event).map_err(|source| AuditError::Unwritable { name, source })?;
        let text = self.storage.cleaned(text).map_err(|error| AuditError::Storage(Box::new(error)))?;
        if text.len() > MAX_EVENT {
            return Err(AuditError::TooLarge { name, bytes: text.len() });
        }
        Ok(text)
    }

    /// Returns the place and digest of the last record.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub fn head(&self) -> Result<Head, AuditError> {
        self.storage.head().map_err(AuditError::unreadable)
    }

    /// Returns the records from a place on, in order.
    pub fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
        self.storage.records(from)
    }

    /// Checks every record, against the heads that were kept elsewhere.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub fn verify(&self, anchors: &Anchors) -> Result<Verification, AuditError> {
        verify::verify(self.storage.records(0), &self.head()?.log, anchors)
    }

    /// Returns the storage.
    pub fn storage(&self) -> &S {
        &self.storage
    }
}

fn sealed(mut head: Head, entries: &[Entry<'_>], written: Vec<String>) -> Vec<Record> {
    let seal = |(entry, text): (&Entry<'_>, String)| {
        let record = Record::following(&head, entry.subject.clone(), text, entry.time);
        head.seq = record.seq;
        head.digest = record.digest;
        record
    };
    entries.iter().zip(written).map(seal).collect()
}

/// The storage returned other records than it was given: it broke its promise, so there is no receipt.
fn lost() -> AuditError {
    AuditError::Storage("the storage did not return the records that it was given".into())
}
