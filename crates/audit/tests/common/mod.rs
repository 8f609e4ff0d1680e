//! Logs to test with.

#![allow(dead_code)]

use audit::{Anchors, Entry, Head, Log, LogId, MemoryStorage, Record};
use model::event::{DecisionRecord, Event, Subject, Verdict};
use model::{ActionId, Digest, TaskId, Timestamp};

pub(crate) fn log_id(seed: u8) -> LogId {
    LogId::from_random([seed; 10])
}

/// A head that was kept elsewhere, or nothing.
pub(crate) fn anchors(head: Option<&Head>) -> Anchors {
    head.map_or_else(Anchors::default, |head| Anchors::default().and_head(head.clone()))
}

pub(crate) fn subject(seed: u8) -> Subject {
    Subject { task: Some(TaskId::from_random([seed; 10])), action: Some(ActionId::from_random([seed; 10])) }
}

pub(crate) fn decision(reason: &str) -> DecisionRecord {
    DecisionRecord {
        verdict: Verdict::Allow,
        rules: vec!["default/build".to_owned()],
        reason: reason.to_owned(),
        advice: String::new(),
        person_may_allow: false,
        grant: None,
        policy: Digest::of(b"policy"),
    }
}

pub(crate) fn decided(reason: &str) -> Event {
    Event::Decided { digest: Digest::of(reason.as_bytes()), decision: decision(reason) }
}

/// An event whose text has everything that is awkward in a line.
pub(crate) fn awkward(number: u64) -> Event {
    Event::Recovered {
        removed: vec![format!("mount {number}"), "a\nb\u{202e}\u{2028}\"\\\u{1b}".to_owned()],
        unknown: vec![ActionId::from_random([number as u8; 10])],
    }
}

/// A log of `length` events.
pub(crate) fn log(seed: u8, length: usize) -> Log<MemoryStorage> {
    let log = Log::open(MemoryStorage::new(log_id(seed))).expect("opens");
    let events: Vec<(Subject, Event)> =
        (0..length).map(|n| (subject(n as u8 ^ seed), awkward(n as u64))).collect();
    let entries: Vec<Entry<'_>> = events
        .iter()
        .zip(0..)
        .map(|((subject, event), n)| Entry { subject, event, time: Timestamp::from_nanos(n * 1_000) })
        .collect();
    assert_eq!(log.append_all(&entries, |()| Ok(())).expect("appends").len(), length);
    log
}

/// The records of such a log.
pub(crate) fn records(seed: u8, length: usize) -> Vec<Record> {
    log(seed, length).records(0).collect::<Result<_, _>>().expect("is read")
}
