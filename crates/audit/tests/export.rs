//! Exports: they are read back as they were written, and no change of one passes unnoticed.
#![allow(clippy::unwrap_used)]

mod common;

use audit::{
    Broken, ExportReader, Flaw, Head, MAX_LINE, Malformed, Record, Verification, export, verify_export,
};
use common::{anchors, log_id, records};
use proptest::prelude::*;
use proptest::sample::Index;

fn exported(seed: u8, length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    export(records(seed, length).into_iter().map(Ok), &log_id(seed), &mut out).unwrap();
    out
}

fn read(bytes: &[u8]) -> Vec<Record> {
    ExportReader::open(bytes).unwrap().collect::<Result<_, _>>().unwrap()
}

fn flaw(bytes: &[u8]) -> Option<Broken> {
    match verify_export(bytes, &anchors(None)).unwrap() {
        Verification::Broken(broken) => Some(broken),
        Verification::Consistent { .. } | Verification::Anchored { .. } | Verification::Extends { .. } => {
            None
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

#[test]
fn an_export_is_read_back_as_it_was_written() {
    for length in [0, 1, 7] {
        let bytes = exported(1, length);
        assert_eq!(lines(&bytes).len(), length + 2, "one record a line");
        assert_eq!(read(&bytes), records(1, length));
        assert_eq!(flaw(&bytes), None);
    }
}

#[test]
fn the_shape_of_a_line_is_as_documented() {
    let bytes = exported(1, 1);
    let line: serde_json::Value = serde_json::from_slice(&lines(&bytes)[1]).unwrap();
    let mut keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["action", "digest", "event", "format", "previous", "seq", "task", "time"]);
    assert_eq!(line["event"]["event"], "recovered");
}

#[test]
fn an_export_is_checked_against_a_head() {
    let bytes = exported(1, 4);
    let last = records(1, 4).pop().unwrap();
    let head = Head { log: log_id(1), seq: 4, digest: last.digest };
    assert!(matches!(
        verify_export(&bytes[..], &anchors(Some(&head))).unwrap(),
        Verification::Anchored { anchored: 4, .. }
    ));
    // Whoever cuts an export can write a last line that fits: only the head shows it.
    let shorter = exported(1, 3);
    assert_eq!(flaw(&shorter), None);
    let found = verify_export(&shorter[..], &anchors(Some(&head))).unwrap();
    assert_eq!(found, Verification::Broken(Broken { record: 4, flaw: Flaw::Cut { ends: 4 } }));
}

#[test]
fn an_export_that_was_cut_on_the_way_is_noticed() {
    let bytes = exported(1, 3);
    let mut parts = lines(&bytes);
    let last = parts.pop().unwrap();
    assert_eq!(flaw(&parts.concat()), Some(Broken { record: 3, flaw: Flaw::Unfinished }));
    parts.pop();
    parts.push(last);
    assert_eq!(flaw(&parts.concat()), Some(Broken { record: 3, flaw: Flaw::Cut { ends: 3 } }));
    let longer = [&bytes[..], b"\n"].concat();
    assert_eq!(flaw(&longer), Some(Broken { record: 3, flaw: Flaw::AfterLastLine }));
}

#[test]
fn what_is_no_export_is_a_finding_and_never_a_panic() {
    let empty_lines = [
        b"\n\n\n".as_slice(),
        b"{}",
        b"[]",
        b"",
        b"\xff\xfe",
        b"{\"format\":2,\"log\":\"log-aaaaaaaaaaaaaaaa\"}\n",
    ];
    for bytes in empty_lines {
        assert_eq!(flaw(bytes).map(|broken| broken.record), Some(0), "{bytes:?}");
    }
    let deep = [lines(&exported(1, 1))[0].clone(), vec![b'['; 1_000_000]].concat();
    assert!(matches!(flaw(&deep), Some(Broken { record: 1, flaw: Flaw::Malformed(_) })));
}

#[test]
fn a_line_without_an_end_takes_no_more_memory_than_a_record() {
    let start = lines(&exported(1, 1))[0].clone();
    let endless = std::io::BufReader::new(std::io::Read::chain(&start[..], std::io::repeat(b' ')));
    let found = verify_export(endless, &anchors(None)).unwrap();
    let too_long = Flaw::Malformed(Malformed::TooLong { limit: MAX_LINE });
    assert_eq!(found, Verification::Broken(Broken { record: 1, flaw: too_long }));
}

#[test]
fn a_record_that_would_break_the_lines_is_not_exported() {
    for event in ["{\n}", "{", "\"a\rb\""] {
        let mut record = records(1, 1).remove(0);
        record.event = event.to_owned();
        let refused = export([Ok(record)], &log_id(1), Vec::new());
        assert!(refused.unwrap_err().to_string().starts_with("record 1 cannot be exported"), "{event}");
    }
}

/// What somebody may do to an export once.
#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, u8),
    Delete(Index),
    DropLine(Index),
    DuplicateLine(Index, Index),
    SwapLines(Index, Index),
    Cut(Index),
    TakeLineOfAnotherLog(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        index().prop_map(Mutation::Delete),
        index().prop_map(Mutation::DropLine),
        (index(), index()).prop_map(|(from, to)| Mutation::DuplicateLine(from, to)),
        (index(), index()).prop_map(|(one, two)| Mutation::SwapLines(one, two)),
        index().prop_map(Mutation::Cut),
        index().prop_map(Mutation::TakeLineOfAnotherLog),
    ]
}

fn mutated(bytes: &[u8], mutation: &Mutation) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let mut parts = lines(bytes);
    let count = parts.len();
    match mutation {
        Mutation::Replace(at, byte) => changed[at.index(bytes.len())] = *byte,
        Mutation::Insert(at, byte) => changed.insert(at.index(bytes.len() + 1), *byte),
        Mutation::Delete(at) => drop(changed.remove(at.index(bytes.len()))),
        Mutation::Cut(at) => changed.truncate(at.index(bytes.len())),
        Mutation::DropLine(at) => drop(parts.remove(at.index(count))),
        Mutation::DuplicateLine(from, to) => {
            parts.insert(to.index(count + 1), parts[from.index(count)].clone())
        }
        Mutation::SwapLines(one, two) => parts.swap(one.index(count), two.index(count)),
        Mutation::TakeLineOfAnotherLog(at) => {
            let at = at.index(count);
            parts[at] = lines(&exported(2, count - 2))[at].clone();
        }
    }
    if parts == lines(bytes) { changed } else { parts.concat() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn one_change_is_noticed_or_leaves_the_same_records(length in 0usize..6, mutation in mutation()) {
        let bytes = exported(1, length);
        let changed = mutated(&bytes, &mutation);
        if flaw(&changed).is_none() {
            prop_assert_eq!(read(&changed), records(1, length));
            let reader = ExportReader::open(&changed[..]).unwrap();
            prop_assert_eq!(reader.log(), &log_id(1));
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, length in 0usize..3, at: Index) {
        let _ = verify_export(&bytes[..], &anchors(None)).unwrap();
        let mut inside = exported(1, length);
        let at = at.index(inside.len());
        inside.splice(at..at, bytes);
        let _ = verify_export(&inside[..], &anchors(None)).unwrap();
    }
}
