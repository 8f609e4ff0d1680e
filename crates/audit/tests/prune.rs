//! Pruning: stubs hold the chain and every head together, each is accounted for, and nothing else passes for one.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::BufReader;

use audit::{
    Anchors, AuditError, Broken, Checkpoint, Flaw, Head, Log, MemoryStorage, Proof, Pruned, Record,
    SigningKey, Verification, WHOLE, merkle::Tree, ocsf, verify, verify_export, view,
};
use common::{decided, log_id, subject};
use model::action::Principal;
use model::evidence::Teardown;
use model::{Digest, Event, EventClass, RecordRange, Timestamp};
use proptest::prelude::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

fn torn_down() -> Event {
    Event::TornDown { teardown: Teardown::default() }
}

fn gateway_ended(why: &str) -> Event {
    Event::GatewayEnded { why: why.to_owned(), again: false }
}

fn pruned_event(class: EventClass, before: Timestamp, records: &[(u64, u64)]) -> Event {
    let records = records.iter().map(|(first, last)| RecordRange { first: *first, last: *last }).collect();
    let by = Principal::User("ada".to_owned());
    Event::RecordPruned { class, before, records, by, reason: "a year is over".to_owned() }
}

/// Records 1, 3 and 5 can be pruned by `runs`, 4 by `network`; 2 is a decision.
fn written() -> Vec<Record> {
    append(Vec::new(), &[torn_down(), decided("build"), torn_down(), gateway_ended("it died"), torn_down()])
}

/// Puts events on top of records, a second apart.
fn append(records: Vec<Record>, events: &[Event]) -> Vec<Record> {
    let first = records.len() as u64 + 1;
    let log = Log::open(MemoryStorage::holding(log_id(1), records)).unwrap();
    for (event, seconds) in events.iter().zip(first..) {
        let _receipt = log.append(&subject(seconds as u8), event, at(seconds)).unwrap();
    }
    log.records(0).map(Result::unwrap).collect()
}

/// Prunes records, in the way that the product does.
fn pruned(class: EventClass, numbers: &[u64]) -> Vec<Record> {
    let mut records = written();
    for number in numbers {
        let record = &mut records[*number as usize - 1];
        *record = record.pruned().unwrap();
    }
    let ranges: Vec<(u64, u64)> = numbers.iter().map(|number| (*number, *number)).collect();
    append(records, &[pruned_event(class, at(100), &ranges)])
}

fn check(records: &[Record], anchors: &Anchors) -> Verification {
    verify(records.iter().cloned().map(Ok), &log_id(1), anchors).unwrap()
}

fn alone(records: &[Record]) -> Verification {
    check(records, &Anchors::default())
}

fn found(verification: &Verification) -> &Pruned {
    match verification {
        Verification::Consistent { pruned, .. } | Verification::Anchored { pruned, .. } => pruned,
        other => panic!("{other}"),
    }
}

fn broken(record: u64, flaw: Flaw) -> Verification {
    Verification::Broken(Broken { record, flaw })
}

/// Signs the head of a log as it is.
fn signed(records: &[Record]) -> Checkpoint {
    let mut tree = Tree::default();
    records.iter().for_each(|record| tree.push(&record.digest));
    let last = records.last().unwrap();
    let head = Head { log: log_id(1), seq: last.seq, digest: last.digest };
    Checkpoint::sign(head, &tree, at(50), &key())
}

fn key() -> SigningKey {
    SigningKey::new(&log_id(1), &[7; 32])
}

fn exported(records: &[Record]) -> Vec<u8> {
    let mut text = Vec::new();
    audit::export(records.iter().cloned().map(Ok), &log_id(1), &mut text).unwrap();
    text
}

#[test]
fn a_pruned_log_verifies_and_says_which_records_are_stubs() {
    let records = pruned(EventClass::Runs, &[1, 3, 5]);
    let verification = alone(&records);
    assert_eq!(found(&verification).number, 3);
    assert_eq!(
        verification.to_string(),
        "internally consistent, not anchored: 6 records; of 3 only stubs are left (1, 3, 5)"
    );
    let of_a_file =
        verify_export(BufReader::new(exported(&records).as_slice()), &Anchors::default()).unwrap();
    assert_eq!(of_a_file, verification, "a file says the same");
    assert_eq!(found(&alone(&written())), &Pruned::default());
}

#[test]
fn nothing_of_the_content_is_left_and_all_around_it_is() {
    let (before, after) = (written(), pruned(EventClass::Network, &[4]));
    let (was, stub) = (&before[3], &after[3]);
    assert!(was.event.contains("it died") && !String::from_utf8_lossy(&exported(&after)).contains("it died"));
    assert_eq!((stub.seq, stub.time, &stub.subject), (was.seq, was.time, &was.subject));
    assert_eq!((stub.previous, stub.digest), (was.previous, was.digest));
    let named = stub.stub().unwrap();
    assert_eq!((named.was.as_str(), named.content), ("gateway-ended", Digest::of(was.event.as_bytes())));
    assert!(view(stub).contains("pruned") && view(stub).contains("gateway-ended"));
    let event = ocsf::event(stub, &log_id(1)).unwrap();
    assert_eq!(
        (&event["class_uid"], &event["unmapped"]["event"]["was"]),
        (&1008.into(), &"gateway-ended".into())
    );
}

#[test]
fn heads_and_proofs_from_before_hold_after_a_prune() {
    let before = written();
    let (early, late) = (signed(&before[..3]), signed(&before));
    let after = pruned(EventClass::Runs, &[1, 3]);
    let verification = check(&after, &Anchors::default().and_signed([early.clone(), late]));
    assert!(
        matches!(verification, Verification::Anchored { anchored: 5, signed_heads: 2, .. }),
        "{verification}"
    );
    let newer = signed(&after);
    let digests = after.iter().map(|record| record.digest);
    let proof = Proof::new(&early, newer, digests).unwrap();
    assert!(matches!(proof.check(&early), Verification::Extends { from: 3, .. }));
}

#[test]
fn a_prune_that_no_head_vouches_for_is_told() {
    let after = pruned(EventClass::Runs, &[1, 3]);
    let before = check(&after, &Anchors::default().and_signed([signed(&written())]));
    assert_eq!(found(&before).not_anchored, 2);
    assert!(before.to_string().ends_with("2 of these by events that no head vouches for"), "{before}");
    let vouched = check(&after, &Anchors::default().and_signed([signed(&after)]));
    assert_eq!(found(&vouched).not_anchored, 0);
}

#[test]
fn a_stub_that_no_event_names_is_found() {
    let mut records = pruned(EventClass::Runs, &[1, 3]);
    records[4] = records[4].pruned().unwrap();
    assert_eq!(alone(&records), broken(5, Flaw::Unaccounted));
    assert!(alone(&records).to_string().contains("no event of a prune names it"));
    let mut without = written();
    without[0] = without[0].pruned().unwrap();
    assert_eq!(alone(&without), broken(1, Flaw::Unaccounted));
}

#[test]
fn an_event_accounts_only_for_what_it_names_of_its_class_and_time_before_it() {
    let stubs = |numbers: &[u64]| {
        let mut records = written();
        numbers.iter().for_each(|number| {
            let record = &mut records[*number as usize - 1];
            *record = record.pruned().unwrap();
        });
        records
    };
    let with = |records: Vec<Record>, event: Event| alone(&append(records, &[event]));
    let all = with(stubs(&[1, 3, 5]), pruned_event(EventClass::Runs, at(100), &[(1, 5)]));
    assert_eq!(found(&all).number, 3, "a range holds what was not pruned, too");
    let other_class = with(stubs(&[4]), pruned_event(EventClass::Runs, at(100), &[(4, 4)]));
    assert_eq!(other_class, broken(4, Flaw::Unaccounted));
    let too_young = with(stubs(&[1, 3]), pruned_event(EventClass::Runs, at(3), &[(1, 3)]));
    assert_eq!(too_young, broken(3, Flaw::Unaccounted));
    let turned = with(stubs(&[1]), pruned_event(EventClass::Runs, at(100), &[(3, 1)]));
    assert_eq!(turned, broken(1, Flaw::Unaccounted));
    // An event cannot name what comes after it.
    let early = append(Vec::new(), &[pruned_event(EventClass::Runs, at(100), &[(1, 9)]), torn_down()]);
    let late = vec![early[0].clone(), early[1].pruned().unwrap()];
    assert_eq!(alone(&late), broken(2, Flaw::Unaccounted));
}

#[test]
fn a_stub_of_what_always_stays_is_found_whatever_event_names_it() {
    let records = append(written(), &[pruned_event(EventClass::Runs, at(100), &[(2, 2)])]);
    assert_eq!(records[1].pruned(), None, "the product makes none");
    let mut forged = records.clone();
    let content = Digest::of(records[1].event.as_bytes());
    let stub = Event::Pruned { was: "decided".to_owned(), content };
    forged[1].event = serde_json::to_string(&stub).unwrap();
    assert_eq!(forged[1].computed_digest(), forged[1].digest, "its digest holds");
    assert_eq!(alone(&forged), broken(2, Flaw::NeverPruned { was: "decided".to_owned() }));
}

#[test]
fn a_prune_itself_and_a_stub_cannot_be_pruned() {
    let records = pruned(EventClass::Runs, &[1]);
    assert_eq!(records[5].pruned(), None);
    assert_eq!(records[0].pruned(), None);
    let mut forged = records;
    let content = Digest::of(forged[5].event.as_bytes());
    forged[5].event =
        serde_json::to_string(&Event::Pruned { was: "record-pruned".to_owned(), content }).unwrap();
    assert_eq!(alone(&forged), broken(6, Flaw::NeverPruned { was: "record-pruned".to_owned() }));
}

#[test]
fn an_edit_is_never_taken_for_a_prune() {
    let good = pruned(EventClass::Runs, &[1, 3]);
    let stub = |was: &str, content: Digest| {
        serde_json::to_string(&Event::Pruned { was: was.to_owned(), content }).unwrap()
    };
    let content = Digest::of(written()[0].event.as_bytes());
    for event in [
        stub("torn-down", Digest::of(b"something else")),
        stub("gateway-ended", content),
        stub("ended", content),
        written()[3].event.clone(),
        format!("{} ", good[0].event),
        good[0].event.replace("torn-down", "torn-down\",\"more\":\"hidden"),
        good[0].event.replacen('{', "{\"event\":\"pruned\",", 1),
    ] {
        let mut edited = good.clone();
        edited[0].event = event.clone();
        assert_eq!(alone(&edited), broken(1, Flaw::Edited), "{event}");
    }
    let mut moved = good.clone();
    moved[0].time = at(99);
    assert_eq!(alone(&moved), broken(1, Flaw::Edited));
    let mut dropped = good.clone();
    dropped.remove(2);
    assert_eq!(alone(&dropped), broken(3, Flaw::Dropped { next: 4 }));
    let mut swapped = good.clone();
    swapped.swap(0, 2);
    assert!(matches!(alone(&swapped), Verification::Broken(Broken { record: 1, .. })));
    let mut put_in = good;
    let other = written()[4].pruned().unwrap();
    put_in[2] = Record { seq: 3, ..other };
    assert_eq!(alone(&put_in), broken(3, Flaw::Edited));
}

#[test]
fn records_whose_digest_is_over_their_text_verify_and_are_never_pruned() {
    let mut records = written();
    let mut previous = Head::genesis(log_id(1)).digest;
    for record in &mut records {
        (record.format, record.previous) = (WHOLE, previous);
        record.digest = record.computed_digest();
        previous = record.digest;
    }
    assert!(records.iter().all(|record| record.pruned().is_none()));
    let mixed = append(records, &[torn_down()]);
    assert_eq!(found(&alone(&mixed)).number, 0);
    let mut forged = mixed;
    let content = Digest::of(forged[0].event.as_bytes());
    forged[0].event = serde_json::to_string(&Event::Pruned { was: "torn-down".to_owned(), content }).unwrap();
    assert_eq!(alone(&forged), broken(1, Flaw::Edited));
}

#[test]
fn a_name_that_stands_further_on_is_found() {
    let mut records = written();
    records[0].event = records[0].event.replacen('{', "{\"event\":\"ended\",", 1);
    records[0].digest = records[0].computed_digest();
    assert!(matches!(
        alone(&records[..1]),
        Verification::Broken(Broken { record: 1, flaw: Flaw::Event { .. } })
    ));
}

#[test]
fn a_stub_is_never_appended_and_what_was_edited_is_never_pruned() {
    let log = Log::open(MemoryStorage::new(log_id(1))).unwrap();
    let stub = Event::Pruned { was: "torn-down".to_owned(), content: Digest::of(b"x") };
    assert!(matches!(log.append(&subject(1), &stub, at(1)), Err(AuditError::Stub)));
    let mut edited = written()[3].clone();
    edited.event = edited.event.replace("died", "lived");
    assert_eq!(edited.pruned(), None);
}

proptest! {
    #[test]
    fn whatever_is_pruned_the_digests_stay_and_one_more_stub_is_found(
        which in proptest::collection::btree_set(prop::sample::select(vec![1_u64, 3, 5]), 0..3),
    ) {
        let which: Vec<u64> = which.into_iter().collect();
        let records = pruned(EventClass::Runs, &which);
        let digests = |records: &[Record]| records.iter().map(|record| record.digest).collect::<Vec<_>>();
        prop_assert_eq!(digests(&records[..5]), digests(&written()));
        prop_assert_eq!(found(&alone(&records)).number, which.len() as u64);
        let more = [1_usize, 3, 5].into_iter().find(|number| !which.contains(&(*number as u64)));
        if let Some(more) = more {
            let mut records = records;
            records[more - 1] = records[more - 1].pruned().unwrap();
            prop_assert_eq!(alone(&records), broken(more as u64, Flaw::Unaccounted));
        }
    }
}
