//! Records: one event with its place in the chain.

use std::borrow::Cow;

use model::digest::Canonical;
use model::event::{Event, Subject};
use model::{ActionId, Digest, TaskId, Timestamp};

use crate::head::Head;

/// The format of the records that this build writes.
pub const FORMAT: u32 = 2;

/// The format of records whose digest is over the text of their event itself: they are read, and cannot be pruned.
pub const WHOLE: u32 = 1;

/// Bytes of one event, written as JSON, at most.
pub const MAX_EVENT: usize = 16 << 20;

/// One event with its place in the chain. A record is plain data: it proves nothing before [`verify`] has seen it.
///
/// [`verify`]: crate::verify()
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// How the record is written and its digest is made.
    pub format: u32,
    /// Its place, counted from one without a gap.
    pub seq: u64,
    /// When it was appended, by the wall clock of who appended it.
    pub time: Timestamp,
    /// What it is about.
    pub subject: Subject,
    /// The event as JSON, byte for byte as the digest covers it.
    pub event: String,
    /// The digest of the record before it; for the first one the value that names the log.
    pub previous: Digest,
    /// The digest over all of the above.
    pub digest: Digest,
}

impl Record {
    /// Makes the record that follows on `head`.
    pub(crate) fn following(head: &Head, subject: Subject, event: String, time: Timestamp) -> Self {
        let mut record = Self {
            format: FORMAT,
            // A store that claims the last number there is gets no more records; it will refuse this one.
            seq: head.seq.saturating_add(1),
            time,
            subject,
            event,
            previous: head.digest,
            digest: head.digest,
        };
        record.digest = record.computed_digest();
        record
    }

    /// Returns the digest that the record's content has, which is not always the one that it carries.
    pub fn computed_digest(&self) -> Digest {
        if self.format != WHOLE {
            return self.digest_by_content();
        }
        let mut canonical = Canonical::new("fumehood record");
        canonical.number(u64::from(self.format)).number(self.seq).number(self.time.as_nanos());
        canonical.optional(self.subject.task.as_ref().map(TaskId::as_str).map(str::as_bytes));
        canonical.optional(self.subject.action.as_ref().map(ActionId::as_str).map(str::as_bytes));
        canonical.field(self.event.as_bytes()).field(self.previous.as_bytes()).digest()
    }

    /// The event is in it by its name and the digest of its text, so that a stub has the digest of what it stands for.
    fn digest_by_content(&self) -> Digest {
        let (name, content) = match self.stub() {
            Some(stub) => (Cow::Owned(stub.was), stub.content),
            None => (Cow::Borrowed(self.name()), Digest::of(self.event.as_bytes())),
        };
        let mut canonical = Canonical::new("fumehood record");
        canonical.number(u64::from(self.format)).number(self.seq).number(self.time.as_nanos());
        canonical.optional(self.subject.task.as_ref().map(TaskId::as_str).map(str::as_bytes));
        canonical.optional(self.subject.action.as_ref().map(ActionId::as_str).map(str::as_bytes));
        canonical.field(name.as_bytes()).field(content.as_bytes()).field(self.previous.as_bytes()).digest()
    }

    /// Returns the name that the text of the event begins with; nothing when it begins otherwise than a log of ours writes.
    pub fn name(&self) -> &str {
        let rest = self.event.strip_prefix("{\"event\":\"").and_then(|rest| rest.split_once('"'));
        rest.map_or("", |(name, _)| name)
    }

    /// Tells whether the text is that of the event with this name, without reading it. The name comes first in what a log of
    /// ours wrote.
    pub fn is_event(&self, name: &str) -> bool {
        let rest = self.event.strip_prefix("{\"event\":\"").and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('"'))
    }

    /// Reads the event.
    ///
    /// # Errors
    /// When the text is not an event that this build knows.
    pub fn parse_event(&self) -> Result<Event, serde_json::Error> {
        serde_json::from_str(&self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::LogId;

    fn first() -> Record {
        let head = Head::genesis(LogId::from_random([1; 10]));
        Record::following(&head, Subject::default(), "{}".to_owned(), Timestamp::from_nanos(5))
    }

    #[test]
    fn the_digest_covers_every_field() {
        let record = first();
        let task = Some(TaskId::from_random([2; 10]));
        let action = Some(ActionId::from_random([2; 10]));
        let others = [
            Record { format: WHOLE, ..record.clone() },
            Record { format: 3, ..record.clone() },
            Record { seq: 2, ..record.clone() },
            Record { time: Timestamp::from_nanos(6), ..record.clone() },
            Record { subject: Subject { task, action: None }, ..record.clone() },
            Record { subject: Subject { task: None, action }, ..record.clone() },
            Record { event: "{} ".to_owned(), ..record.clone() },
            Record { previous: Digest::of(b"x"), ..record.clone() },
        ];
        for other in others {
            assert_ne!(other.computed_digest(), record.digest, "{other:?}");
        }
    }

    /// The first line of the format's promise: this value may only change together with [`FORMAT`].
    #[test]
    fn the_digest_of_each_format_stays_what_it_is() {
        let whole = Record { format: WHOLE, ..first() };
        assert_eq!(
            whole.computed_digest().to_string(),
            "49bd1751e553956d268c49ac990bded6bd3d8a85c98b74a057064ca447f2bb75"
        );
        assert_eq!(
            first().digest.to_string(),
            "fc9ddd49f4b2ae83e3570d732fb16a5c0da8789da5201961ec3956d8f2399f5a"
        );
    }
}
