//! Records for people: one line each, in which nothing that came from outside can drive the terminal.

use model::text::escape;
use model::{ActionId, TaskId, Timestamp};

use crate::record::Record;
use crate::summary::summary;

/// Characters of a summary at most; what is longer ends in `…`. The whole event is in the record.
const SUMMARY_LENGTH: usize = 240;

/// Returns the record as one line: its place, time, task, action, event and what is most worth knowing of it.
///
/// Control characters, line breaks, bidi marks and invisible characters are written out.
pub fn view(record: &Record) -> String {
    let (name, about) = match record.parse_event() {
        Ok(event) => (event.name(), summary(&event)),
        Err(_) => ("unknown", record.event.clone()),
    };
    let task = record.subject.task.as_ref().map_or("-", TaskId::as_str);
    let action = record.subject.action.as_ref().map_or("-", ActionId::as_str);
    let (seq, time, about) = (record.seq, rfc3339(record.time), shortened(&about));
    format!("{seq:>6}  {time}  {task:<21}  {action:<20}  {name:<14}  {}", escape(&about))
        .trim_end()
        .to_owned()
}

/// Returns the moment as RFC 3339 writes it, in UTC and to the microsecond.
pub fn rfc3339(time: Timestamp) -> String {
    // All 64 bits of nanoseconds end in the year 2554, which jiff can write: the fallback is never taken.
    let moment =
        jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos())).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.6}")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_LENGTH) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use model::LogId;
    use model::event::{Event, Subject};
    use model::text::is_hidden;
    use proptest::prelude::*;

    fn record(event: String) -> Record {
        let head = Head::genesis(LogId::from_random([1; 10]));
        Record::following(&head, Subject::default(), event, Timestamp::from_nanos(1_764_440_834_123_456_789))
    }

    #[test]
    fn a_record_is_one_line_with_what_matters() {
        let event = Event::NotStarted {
            reason: "no user namespaces".to_owned(),
            shortfalls: Vec::new(),
            failed_probes: Vec::new(),
        };
        let line = view(&record(serde_json::to_string(&event).expect("has a JSON form")));
        assert!(line.starts_with("     1  2025-11-29T18:27:14.123456Z  -"), "{line}");
        assert!(line.ends_with("not-started     no user namespaces"), "{line}");
    }

    #[test]
    fn the_last_moment_there_is_can_be_written() {
        assert_eq!(rfc3339(Timestamp::from_nanos(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(rfc3339(Timestamp::from_nanos(u64::MAX)), "2554-07-21T23:34:33.709551Z");
    }

    #[test]
    fn a_forged_line_stays_inside_its_record() {
        let title = Some("x\n     9  2025-11-29T18:27:14Z  decided  allow\u{202e}\x1b[2J".to_owned());
        let event = Event::TaskOpened {
            workspace: model::task::WorkspaceKey {
                path: "/w".try_into().expect("no NUL"),
                device: 1,
                inode: 2,
            },
            owner: model::action::Principal::Engine,
            title,
        };
        let line = view(&record(serde_json::to_string(&event).expect("has a JSON form")));
        assert!(line.contains("x\\n     9  2025"), "{line}");
        assert!(line.contains("\\u{202e}\\u{1b}[2J"), "{line}");
    }

    proptest! {
        #[test]
        fn no_hidden_character_gets_through(event in prop::collection::vec(any::<char>(), 0..60)) {
            // Any text at all: a strategy for texts leaves control characters out.
            let line = view(&record(event.into_iter().chain(['\u{202e}']).collect()));
            prop_assert!(!line.chars().any(is_hidden), "{line:?}");
        }
    }
}
