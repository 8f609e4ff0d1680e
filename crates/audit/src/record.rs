//! Records: one event with its place in the chain.

use model::digest::Canonical;
use model::event::{Event, Subject};
use model::{ActionId, Digest, TaskId, Timestamp};

use crate::head::Head;

/// The format of the records that this build writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

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
        let mut canonical = Canonical::new("fumehood record");
        canonical.number(u64::from(self.format)).number(self.seq).number(self.time.as_nanos());
        canonical.optional(self.subject.task.as_ref().map(TaskId::as_str).map(str::as_bytes));
        canonical.optional(self.subject.action.as_ref().map(ActionId::as_str).map(str::as_bytes));
        canonical.field(self.event.as_bytes()).field(self.previous.as_bytes()).digest()
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
            Record { format: 2, ..record.clone() },
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
    fn the_digest_of_format_one_stays_what_it_is() {
        assert_eq!(
            first().digest.to_string(),
            "49bd1751e553956d268c49ac990bded6bd3d8a85c98b74a057064ca447f2bb75"
        );
    }
}
