//! What signed heads that were kept elsewhere show, when the whole log is in the hands of somebody who knows the format.
#![allow(clippy::unwrap_used)]

mod common;

use audit::merkle::Tree;
use audit::{
    Anchors, Broken, Checkpoint, Flaw, Head, Proof, ProofError, PublicKey, Record, SigningKey, Verification,
    verify,
};
use common::{log_id, records};
use model::Timestamp;
use proptest::prelude::*;
use proptest::sample::Index;

fn key() -> SigningKey {
    SigningKey::new(&log_id(1), &[7; 32])
}

/// Signs the head of the first so many records.
fn signed(records: &[Record]) -> Checkpoint {
    let mut tree = Tree::default();
    records.iter().for_each(|record| tree.push(&record.digest));
    let head = records.last().map_or_else(
        || Head::genesis(log_id(1)),
        |last| Head { log: log_id(1), seq: last.seq, digest: last.digest },
    );
    Checkpoint::sign(head, &tree, Timestamp::from_nanos(5_000), &key())
}

fn check(records: &[Record], heads: &[Checkpoint]) -> Verification {
    let anchors = Anchors::default().and_signed(heads.iter().cloned());
    verify(records.iter().cloned().map(Ok), &log_id(1), &anchors).unwrap()
}

fn broken(record: u64, flaw: Flaw) -> Verification {
    Verification::Broken(Broken { record, flaw })
}

/// Numbers and seals records anew from the first one on, as somebody would who wants no trace of what was changed.
fn resealed(records: Vec<Record>) -> Vec<Record> {
    let mut end = Head::genesis(log_id(1));
    let seal = |mut record: Record| {
        record.seq = end.seq + 1;
        record.previous = end.digest;
        record.digest = record.computed_digest();
        end = Head { seq: record.seq, digest: record.digest, ..end.clone() };
        record
    };
    records.into_iter().map(seal).collect()
}

#[test]
fn a_log_that_holds_every_signed_head_is_anchored_up_to_the_last() {
    let all = records(1, 9);
    let heads = [signed(&all[..7]), signed(&all[..3]), signed(&[])];
    let found = check(&all, &heads);
    let expected = "consistent with all 3 signed heads: 7 records; 2 records after it internally consistent, not anchored";
    assert_eq!(found.to_string(), expected);
    assert_eq!(check(&all[..3], &heads[1..2]).to_string(), "consistent with the signed head: 3 records");
}

#[test]
fn a_rewritten_log_is_found_and_the_heads_say_from_where_on() {
    let mut all = records(1, 12);
    let heads = [signed(&all[..4]), signed(&all[..8]), signed(&all[..12])];
    all[5].event = all[5].event.replace("mount", "mound");
    let all = resealed(all);
    assert!(matches!(check(&all, &[]), Verification::Consistent { .. }), "nothing inside shows it");
    let found = check(&all, &heads);
    assert_eq!(found, broken(8, Flaw::Rewritten { from: 5 }));
    assert!(found.to_string().contains("from record 5 on"), "{found}");
}

#[test]
fn two_histories_that_were_signed_are_a_fork_whichever_is_shown() {
    let one = records(1, 8);
    let mut other = one.clone();
    other[6].event = other[6].event.replace("mount", "mound");
    let other = resealed(other);
    let heads = [signed(&one[..5]), signed(&one), signed(&other)];
    for shown in [&one[..], &other, &one[..6], &[]] {
        assert_eq!(check(shown, &heads), broken(8, Flaw::Forked));
    }
    let later = check(&one, &[signed(&one[..7]), signed(&other)]);
    assert_eq!(later, broken(8, Flaw::Rewritten { from: 8 }), "at other places one of them does not fit");
}

#[test]
fn the_signed_head_of_another_log_is_refused() {
    let key = SigningKey::new(&log_id(2), &[7; 32]);
    let head = Checkpoint::sign(Head::genesis(log_id(2)), &Tree::default(), Timestamp::from_nanos(5), &key);
    assert_eq!(check(&records(1, 2), &[head]), broken(0, Flaw::OtherHead { log: log_id(2) }));
}

fn proof(old: &[Record], new: &[Record]) -> Result<Proof, ProofError> {
    Proof::new(&signed(old), signed(new), new.iter().map(|record| record.digest))
}

fn public() -> PublicKey {
    key().public().clone()
}

#[test]
fn a_proof_shows_without_the_log_that_a_head_adds_to_an_older_one() {
    let all = records(1, 21);
    for old in [0, 1, 4, 13, 20, 21] {
        let text = proof(&all[..old], &all).unwrap().to_string();
        let again = Proof::open(&text, &public()).unwrap();
        assert_eq!(again.to_string(), text);
        let found = again.check(&signed(&all[..old]));
        assert!(matches!(found, Verification::Extends { from, .. } if from == old as u64), "{old}: {found}");
        if old > 0 {
            let mut other = all[..old].to_vec();
            other[old - 1].event = other[old - 1].event.replace("mount", "mound");
            let found = again.check(&signed(&resealed(other)));
            assert_eq!(found, broken(old as u64, Flaw::Unproved { end: 21 }));
        }
        let shorter = again.check(&signed(&all[..old.saturating_sub(1)]));
        assert!(old == 0 || matches!(shorter, Verification::Broken(_)), "it is for this head and no other");
    }
}

#[test]
fn there_is_no_proof_over_a_log_that_does_not_go_on_from_there() {
    let all = records(1, 9);
    let mut other = all.clone();
    other[2].event = other[2].event.replace("mount", "mound");
    let other = resealed(other);
    assert!(matches!(proof(&all[..5], &other), Err(ProofError::NoneThere { old: 5 })));
    assert!(matches!(proof(&all, &all[..5]), Err(ProofError::NoneThere { old: 9 })));
}

#[test]
fn what_is_no_proof_is_refused() {
    let all = records(1, 9);
    let text = proof(&all[..5], &all).unwrap().to_string();
    let other = SigningKey::new(&log_id(1), &[8; 32]);
    assert!(matches!(Proof::open(&text, other.public()), Err(ProofError::Head(_))));
    for (from, to) in [("old 5", "old -5"), ("old ", ""), ("\n\n", "\n"), ("=\n", "\n")] {
        let wrong = text.replacen(from, to, 1);
        assert!(Proof::open(&wrong, &public()).is_err(), "{wrong}");
    }
    let long = text.replacen('\n', &"\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".repeat(70), 1);
    assert!(matches!(Proof::open(&long, &public()), Err(ProofError::Form(_))));
}

/// One way to change a log; `seal` says whether everything after it is numbered and sealed anew.
fn changed(mut all: Vec<Record>, way: u8, one: usize, two: usize) -> Vec<Record> {
    match way {
        0 => all[one].event = all[one].event.replace("mount", "mound"),
        1 => drop(all.remove(one)),
        2 => all.swap(one, two),
        3 => all.insert(two, all[one].clone()),
        4 => all.truncate(one),
        _ => all.iter_mut().for_each(|record| record.event = record.event.replace("mount", "mound")),
    }
    all
}

proptest! {
    #[test]
    fn whatever_is_changed_before_a_signed_head_is_found(
        length in 2usize..24, way in 0u8..6, one in any::<Index>(), two in any::<Index>(), seal: bool,
    ) {
        let all = records(1, length);
        let head = signed(&all);
        let right = check(&all, std::slice::from_ref(&head));
        prop_assert!(matches!(right, Verification::Anchored { .. }), "{}", right);
        let other = changed(all.clone(), way, one.index(length), two.index(length));
        let other = if seal { resealed(other) } else { other };
        // Sealed anew, the last record doubled is a record that was added after the head.
        prop_assume!(other.get(..length) != Some(&all[..]));
        let found = check(&other, &[head]);
        prop_assert!(matches!(found, Verification::Broken(_)), "{}", found);
    }

    #[test]
    fn no_bytes_make_the_reader_of_proofs_panic(text in "(.|\n){0,300}", place in any::<Index>()) {
        let _ = Proof::open(&text, &public());
        let all = records(1, 9);
        let mut proof = proof(&all[..5], &all).unwrap().to_string();
        let at = (0..=place.index(proof.len())).rev().find(|at| proof.is_char_boundary(*at)).unwrap_or(0);
        proof.insert_str(at, &text);
        if let Ok(proof) = Proof::open(&proof, &public()) {
            let _ = proof.check(&signed(&all[..5]));
        }
    }
}
