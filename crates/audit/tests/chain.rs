//! What the check finds: for every way to change a log, the first bad record and what is wrong with it.
#![allow(clippy::unwrap_used)]

mod common;

use audit::{Anchors, Broken, Flaw, Head, Malformed, ReadError, Record, Verification, verify};
use common::{anchors, log_id, records};
use model::Digest;
use proptest::prelude::*;
use proptest::sample::Index;

fn check(records: &[Record], anchor: Option<&Head>) -> Verification {
    verify(records.iter().cloned().map(Ok), &log_id(1), &anchors(anchor)).unwrap()
}

fn head_of(records: &[Record]) -> Head {
    match records.last() {
        None => Head::genesis(log_id(1)),
        Some(last) => Head { log: log_id(1), seq: last.seq, digest: last.digest },
    }
}

fn broken(record: u64, flaw: Flaw) -> Verification {
    Verification::Broken(Broken { record, flaw })
}

/// Gives a record the digest that its content has, as someone would who knows the format.
fn resealed(mut record: Record) -> Record {
    record.digest = record.computed_digest();
    record
}

#[test]
fn a_log_as_it_was_written_is_consistent_and_says_that_it_is_not_anchored() {
    let found = check(&records(1, 5), None);
    assert_eq!(found.to_string(), "internally consistent, not anchored: 5 records");
    assert_eq!(check(&[], None).end(), Some(&Head::genesis(log_id(1))));
}

#[test]
fn a_head_kept_elsewhere_anchors_what_came_before_it() {
    let all = records(1, 5);
    let found = check(&all, Some(&head_of(&all)));
    assert_eq!(found.to_string(), "consistent with the given head: 5 records");
    let earlier = check(&all, Some(&head_of(&all[..3])));
    assert!(matches!(earlier, Verification::Anchored { anchored: 3, .. }));
    assert!(
        earlier.to_string().ends_with("2 records after it internally consistent, not anchored"),
        "{earlier}"
    );
    assert!(matches!(check(&all, Some(&head_of(&[]))), Verification::Anchored { anchored: 0, .. }));
}

#[test]
fn a_cut_tail_is_found_only_against_a_head() {
    let all = records(1, 5);
    let head = head_of(&all);
    assert!(matches!(check(&all[..3], None), Verification::Consistent { .. }));
    assert_eq!(check(&all[..3], Some(&head)), broken(4, Flaw::Cut { ends: 5 }));
    assert_eq!(check(&[], Some(&head)), broken(1, Flaw::Cut { ends: 5 }));
}

#[test]
fn a_log_written_anew_is_found_only_against_a_head() {
    let all = records(1, 5);
    let mut anew = Vec::new();
    for mut record in all.clone() {
        record.event = record.event.replace("mount", "mound");
        record.previous = head_of(&anew).digest;
        anew.push(resealed(record));
    }
    assert!(matches!(check(&anew, None), Verification::Consistent { .. }));
    assert_eq!(check(&anew, Some(&head_of(&all))), broken(5, Flaw::Rewritten { from: 1 }));
    let other_start = Head { digest: Digest::of(b"x"), ..head_of(&[]) };
    assert_eq!(check(&all, Some(&other_start)), broken(0, Flaw::Rewritten { from: 0 }));
}

#[test]
fn the_head_of_another_log_is_refused() {
    let other = Head::genesis(log_id(2));
    assert_eq!(check(&records(1, 2), Some(&other)), broken(0, Flaw::OtherHead { log: log_id(2) }));
}

#[test]
fn records_of_another_log_never_fit() {
    let (one, two) = (records(1, 5), records(2, 5));
    assert_eq!(check(&two, None), broken(1, Flaw::OtherLog));
    let spliced: Vec<Record> = one[..3].iter().chain(&two[3..]).cloned().collect();
    assert_eq!(check(&spliced, None), broken(3, Flaw::Replaced));
    let mut replaced = one.clone();
    replaced[2] = two[2].clone();
    assert_eq!(check(&replaced, None), broken(3, Flaw::Replaced));
}

#[test]
fn a_format_from_the_future_is_named() {
    let mut all = records(1, 3);
    all[1].format = 9;
    assert_eq!(check(&all, None), broken(2, Flaw::Format { format: 9 }));
}

#[test]
fn an_event_that_nobody_knows_is_named() {
    let mut all = records(1, 3);
    for (at, event) in [(1, "not json"), (2, r#"{"event":"invented"}"#)] {
        let mut record = all[at].clone();
        record.event = event.to_owned();
        record.previous = all[at - 1].digest;
        all[at] = resealed(record);
    }
    let found = check(&all, None);
    assert!(
        matches!(&found, Verification::Broken(Broken { record: 2, flaw: Flaw::Event { .. } })),
        "{found}"
    );
    let found = check(&[all[0].clone()], None);
    assert!(matches!(found, Verification::Consistent { .. }));
}

#[test]
fn what_cannot_be_read_is_named_by_its_place() {
    let all = records(1, 3);
    let source = [Ok(all[0].clone()), Err(ReadError::Malformed(Malformed::NotUtf8)), Ok(all[2].clone())];
    let found = verify(source, &log_id(1), &Anchors::default()).unwrap();
    assert_eq!(found, broken(2, Flaw::Malformed(Malformed::NotUtf8)));
}

#[test]
fn a_place_that_cannot_be_read_says_nothing_about_the_log() {
    let failing = [Err(ReadError::source(std::io::Error::other("no disk")))];
    assert!(verify(failing, &log_id(1), &Anchors::default()).is_err());
}

#[test]
fn a_finding_has_a_json_form() {
    let found = check(&records(1, 5)[1..], None);
    let json = serde_json::to_value(&found).unwrap();
    let expected =
        serde_json::json!({"result": "broken", "record": 1, "flaw": {"flaw": "dropped", "next": 2}});
    assert_eq!(json, expected);
}

proptest! {
    #[test]
    fn an_edited_record_is_named(length in 1usize..20, at: Index, place: Index) {
        let mut all = records(1, length);
        let at = at.index(length);
        let mut bytes = all[at].event.clone().into_bytes();
        let place = place.index(bytes.len());
        bytes[place] = if bytes[place] == b'x' { b'y' } else { b'x' };
        if let Ok(event) = String::from_utf8(bytes) {
            all[at].event = event;
            prop_assert_eq!(check(&all, None), broken(at as u64 + 1, Flaw::Edited));
        }
    }

    #[test]
    fn an_edited_record_with_a_new_digest_is_named(length in 2usize..20, at: Index) {
        let mut all = records(1, length);
        let at = at.index(length - 1);
        all[at].time = model::Timestamp::from_nanos(1);
        all[at] = resealed(all[at].clone());
        prop_assert_eq!(check(&all, None), broken(at as u64 + 1, Flaw::Replaced));
    }

    #[test]
    fn dropped_records_are_named(length in 2usize..20, from: Index, count in 1usize..5) {
        let mut all = records(1, length);
        let from = from.index(length - 1);
        let end = (from + count).min(length - 1);
        all.drain(from..end);
        let next = end as u64 + 1;
        prop_assert_eq!(check(&all, None), broken(from as u64 + 1, Flaw::Dropped { next }));
    }

    #[test]
    fn swapped_records_are_named(length in 2usize..20, one: Index, two: Index) {
        let mut all = records(1, length);
        let (one, two) = (one.index(length), two.index(length));
        prop_assume!(one != two);
        all.swap(one, two);
        let (first, second) = (one.min(two) as u64 + 1, one.max(two) as u64 + 1);
        prop_assert_eq!(check(&all, None), broken(first, Flaw::Swapped { found: second }));
    }

    #[test]
    fn a_duplicated_record_is_named(length in 1usize..20, which: Index, to: Index) {
        let mut all = records(1, length);
        let which = which.index(length);
        let to = which + 1 + to.index(length - which);
        let copy = all[which].clone();
        all.insert(to, copy);
        let found = broken(which as u64 + 1, Flaw::Duplicated { after: to as u64 });
        prop_assert_eq!(check(&all, None), found);
    }

    #[test]
    fn a_cut_tail_is_named_against_a_head(length in 1usize..20, keep: Index) {
        let all = records(1, length);
        let keep = keep.index(length);
        let found = check(&all[..keep], Some(&head_of(&all)));
        prop_assert_eq!(found, broken(keep as u64 + 1, Flaw::Cut { ends: length as u64 }));
    }

    #[test]
    fn no_other_order_passes(order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle()) {
        let all = records(1, 8);
        let shuffled: Vec<Record> = order.iter().map(|at| all[*at].clone()).collect();
        let intact = matches!(check(&shuffled, None), Verification::Consistent { .. });
        prop_assert_eq!(intact, order.is_sorted());
    }
}
