//! The log through its public face: receipts, and what is refused.
#![allow(clippy::unwrap_used)]

mod common;

use audit::{Anchors, AuditError, Entry, Flaw, Log, MAX_EVENT, MemoryStorage, Verification};
use common::{awkward, decided, decision, log_id, records, subject};
use model::event::Event;
use model::{Digest, Timestamp};

const NOW: Timestamp = Timestamp::from_nanos(7);

#[test]
fn a_receipt_covers_exactly_the_decision_that_was_recorded() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let receipt = log.append(&subject(1), &decided("build"), NOW).unwrap();
    let event = |digest, reason| Event::Decided { digest: Digest::of(digest), decision: decision(reason) };
    assert_eq!((receipt.seq(), receipt.event_name()), (1, "decided"));
    assert!(receipt.covers_decision(&subject(1), &event(b"build", "build")));
    assert!(!receipt.covers_decision(&subject(2), &event(b"build", "build")));
    assert!(!receipt.covers_decision(&subject(1), &event(b"build", "other")));
    assert!(!receipt.covers_decision(&subject(1), &event(b"other", "build")));
    let trial = Event::TrialDecided { digest: Digest::of(b"build"), decision: decision("build") };
    assert!(!receipt.covers_decision(&subject(1), &trial), "a yes to an action is none to its trial");
    let receipt = log.append(&subject(1), &trial, NOW).unwrap();
    assert!(receipt.covers_decision(&subject(1), &trial));
    assert!(!receipt.covers_decision(&subject(1), &event(b"build", "build")), "nor the other way round");
}

#[test]
fn the_receipt_of_another_event_covers_no_decision() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let receipt = log.append(&subject(1), &awkward(1), NOW).unwrap();
    assert!(!receipt.covers_decision(&subject(1), &awkward(1)));
    assert!(!receipt.covers_decision(&subject(1), &decided("build")));
}

#[test]
fn a_receipt_names_the_record_that_was_kept() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let receipt = log.append(&subject(1), &decided("build"), NOW).unwrap();
    let kept = log.records(receipt.seq()).next().unwrap().unwrap();
    assert_eq!((kept.seq, kept.digest), (receipt.seq(), receipt.digest()));
    assert_eq!(kept.parse_event().unwrap(), decided("build"));
    assert_eq!((kept.subject, kept.time), (subject(1), NOW));
}

#[test]
fn an_event_that_is_too_large_is_not_recorded_and_neither_is_its_batch() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let large = Event::Recovered { removed: vec!["x".repeat(MAX_EVENT)], unknown: Vec::new() };
    let small = awkward(1);
    let subject = subject(1);
    let entries = [&small, &large].map(|event| Entry { subject: &subject, event, time: NOW });
    let refused = log.append_all(&entries, |()| Ok(()));
    assert!(matches!(refused, Err(AuditError::TooLarge { name: "recovered", .. })), "{refused:?}");
    assert_eq!(log.head().unwrap().seq, 0);
}

#[test]
fn nothing_is_put_on_top_of_a_record_that_was_edited() {
    let mut edited = records(1, 3);
    edited[2].event = edited[2].event.replace("mount", "mound");
    let refused = Log::open(MemoryStorage::holding(log_id(1), edited));
    let Err(AuditError::Damaged(broken)) = refused else { panic!("{refused:?}") };
    assert_eq!((broken.record, broken.flaw), (3, Flaw::Edited));
}

#[test]
fn a_log_that_is_opened_again_goes_on() {
    let log = Log::open(MemoryStorage::holding(log_id(1), records(1, 3))).unwrap();
    assert_eq!(log.append(&subject(9), &decided("next"), NOW).unwrap().seq(), 4);
    assert!(matches!(log.verify(&Anchors::default()).unwrap(), Verification::Consistent { .. }));
}

#[test]
fn several_threads_write_one_chain() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..50 {
                    let _receipt = log.append(&subject(thread), &awkward(1), NOW).unwrap();
                }
            });
        }
    });
    assert_eq!(log.verify(&Anchors::default()).unwrap().end().unwrap().seq, 200);
}
