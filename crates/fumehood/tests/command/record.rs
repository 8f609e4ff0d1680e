//! The record in the hands of somebody who can write all of it and knows the format, against heads that were kept elsewhere.

use std::fs;
use std::process::Command;

use audit::Record;
use model::Digest;
use serde_json::Value;

use super::bench::{Answer, Bench, fits};

/// What was kept elsewhere: the public key from the first day, and signed heads.
struct Kept {
    key: String,
}

impl Kept {
    /// Runs a command twice, and keeps a head after each. Returns the export, too.
    fn over(bench: &Bench) -> (Self, String) {
        let key = bench.run(&["audit", "key"]).out.trim().to_owned();
        let mut heads = String::new();
        for _ in 0..2 {
            assert_eq!(bench.sh("echo x >> made").code, Some(0));
            heads += &bench.run(&["audit", "checkpoint"]).out;
        }
        fs::write(bench.path("heads"), heads).expect("writes");
        (Self { key }, bench.run(&["audit", "export"]).out)
    }

    /// Checks an export where there is no state directory, and none may come to be.
    fn check(&self, bench: &Bench, export: &str) -> Answer {
        fs::write(bench.path("export.jsonl"), export).expect("writes");
        let nowhere = bench.path("nowhere");
        let (export, heads) = (bench.path("export.jsonl"), bench.path("heads"));
        let mut command = bench.command(&["audit", "verify"]);
        command.env("FUMEHOOD_STATE_DIR", &nowhere).arg(export).arg("--checkpoint").arg(heads);
        let answer = Answer::of(command.args(["--key", &self.key]).output().expect("it starts"));
        assert!(!nowhere.exists(), "the check needs no state");
        answer
    }
}

fn records(export: &str) -> Vec<Record> {
    let lines: Vec<&str> = export.lines().collect();
    lines[1..lines.len() - 1].iter().map(|line| Record::from_line(line).expect("is a record")).collect()
}

/// Writes records as an export whose last line is right.
fn export(of: &str, records: &[Record]) -> String {
    let first: Value = serde_json::from_str(of.lines().next().expect("has lines")).expect("is JSON");
    let log: audit::LogId = first["log"].as_str().expect("names it").parse().expect("is one");
    let mut out = Vec::new();
    audit::export(records.iter().cloned().map(Ok), &log, &mut out).expect("writes");
    String::from_utf8(out).expect("is text")
}

/// Numbers and seals all records anew, as somebody would who wants no trace.
fn resealed(of: &str, records: Vec<Record>) -> Vec<Record> {
    let mut previous: Digest = self::records(of)[0].previous;
    let seal = |(mut record, seq): (Record, u64)| {
        (record.seq, record.previous) = (seq, previous);
        record.digest = record.computed_digest();
        previous = record.digest;
        record
    };
    records.into_iter().zip(1..).map(seal).collect()
}

#[test]
fn whatever_is_done_to_an_export_is_found_by_the_public_key_and_kept_heads_alone() {
    let bench = Bench::new();
    let (kept, right) = Kept::over(&bench);
    let fine = kept.check(&bench, &right);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.out.starts_with("consistent with all 2 signed heads: "), "{fine:?}");
    let all = records(&right);
    let edit = |record: &mut Record| record.event = record.event.replace("echo x", "echo y");
    let at = all.iter().position(|record| record.event.contains("echo x")).expect("is there");

    let mut ways: Vec<(&str, Vec<Record>)> = Vec::new();
    let mut way = |name, change: &dyn Fn(&mut Vec<Record>)| {
        let mut changed = all.clone();
        change(&mut changed);
        assert_ne!(changed, all, "{name}");
        ways.push((name, changed));
    };
    way("edited", &|all| edit(&mut all[at]));
    way("dropped", &|all| drop(all.remove(at)));
    way("swapped", &|all| all.swap(at, at + 1));
    way("doubled", &|all| all.insert(at + 1, all[at].clone()));
    way("cut", &|all| all.truncate(all.len() - 1));
    way("emptied", &|all| all.clear());
    way("all edited", &|all| all.iter_mut().for_each(edit));
    for (name, changed) in ways {
        for changed in [changed.clone(), resealed(&right, changed)] {
            let answer = kept.check(&bench, &export(&right, &changed));
            assert_eq!(answer.code, Some(1), "{name}: {answer:?}");
            assert!(answer.out.contains("record "), "{name}: {answer:?}");
        }
    }
    // Without heads there is nothing to tell a record that was written anew from a right one, and the answer says so.
    let mut anew = all.clone();
    edit(&mut anew[at]);
    fs::write(bench.path("anew"), export(&right, &resealed(&right, anew))).expect("writes");
    let answer = bench.run(&["audit", "verify", bench.path("anew").to_str().expect("is text")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.out.starts_with("internally consistent, not anchored: "), "{answer:?}");
}

#[test]
fn the_heads_say_between_which_records_it_was_rewritten() {
    let bench = Bench::new();
    let (kept, right) = Kept::over(&bench);
    let heads = fs::read_to_string(bench.path("heads")).expect("is there");
    let first: u64 = heads.lines().nth(1).expect("has a size").parse().expect("is a number");
    let mut all = records(&right);
    let last = all.len() - 1;
    all[last].time = model::Timestamp::from_nanos(5);
    let answer = kept.check(&bench, &export(&right, &resealed(&right, all)));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let expected = format!("from record {} on, was rewritten", first + 1);
    assert!(answer.out.contains(&expected), "{expected}: {answer:?}");
}

#[test]
fn heads_that_were_changed_or_are_by_another_key_are_not_gone_by() {
    let bench = Bench::new();
    let (kept, right) = Kept::over(&bench);
    let other = Bench::new();
    let (theirs, export_of_other) = Kept::over(&other);
    let answer = theirs.check(&bench, &right);
    assert_eq!(answer.code, Some(125), "{answer:?}");
    assert!(answer.err.contains("not signed by the given key"), "{answer:?}");
    let answer = kept.check(&bench, &export_of_other);
    assert!(answer.code == Some(1) && answer.out.contains("another log"), "{answer:?}");

    let heads = fs::read_to_string(bench.path("heads")).expect("is there");
    fs::write(bench.path("heads"), heads.replacen("chain ", "chain 0", 1)).expect("writes");
    let answer = kept.check(&bench, &right);
    assert!(answer.code == Some(125) && answer.err.contains("its signature does not hold"), "{answer:?}");
    fs::write(bench.path("heads"), "").expect("writes");
    let answer = kept.check(&bench, &right);
    assert!(answer.code == Some(125) && answer.err.contains("no signed head"), "{answer:?}");
    let answer = bench.run(&["audit", "verify", "--checkpoint", "heads"]);
    assert!(
        answer.code == Some(125) && answer.err.contains("--key"),
        "heads without a key say nothing: {answer:?}"
    );
}

#[test]
fn a_state_directory_that_was_put_back_and_written_on_is_found() {
    let bench = Bench::new();
    let (kept, _) = Kept::over(&bench);
    let copy = Command::new("cp").arg("-a").arg(bench.path("state")).arg(bench.path("copy")).status();
    assert!(copy.expect("cp starts").success());
    bench.sh("echo what nobody is to see");
    let heads = fs::read_to_string(bench.path("heads")).expect("is there");
    fs::write(bench.path("heads"), heads + &bench.run(&["audit", "checkpoint"]).out).expect("writes");
    fs::remove_dir_all(bench.path("state")).expect("is ours");
    fs::rename(bench.path("copy"), bench.path("state")).expect("is ours");
    let cut = kept.check(&bench, &bench.run(&["audit", "export"]).out);
    assert!(cut.code == Some(1) && cut.out.contains("and what follows are missing"), "{cut:?}");
    for _ in 0..2 {
        bench.sh("echo something else");
    }
    let written_on = kept.check(&bench, &bench.run(&["audit", "export"]).out);
    assert!(written_on.code == Some(1) && written_on.out.contains("was rewritten"), "{written_on:?}");
}

#[test]
fn a_proof_compares_two_heads_for_somebody_who_never_sees_the_record() {
    let bench = Bench::new();
    let (kept, _) = Kept::over(&bench);
    bench.sh("echo more");
    let path = |name: &str| bench.path(name).to_str().expect("is text").to_owned();
    let (heads, proof) = (path("heads"), path("proof"));
    let made = bench.run(&["audit", "checkpoint", "--since", &heads, "--file", &proof]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{made:?}");
    let words = ["audit", "verify", "--proof", &proof, "--checkpoint", &heads, "--key", &kept.key];
    let answer = bench.run(&words);
    assert!(answer.code == Some(0) && answer.out.contains("stands in it unchanged"), "{answer:?}");
    fits("audit-verify", &bench.json(&[&words[..], &["--json"]].concat()));

    let text = fs::read_to_string(&proof).expect("is there");
    let second = text.lines().nth(1).expect("has hashes").to_owned();
    fs::write(&proof, text.replacen(&second, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1))
        .expect("writes");
    let answer = bench.run(&words);
    assert!(answer.code == Some(1) && answer.out.contains("not proved"), "{answer:?}");
}

#[test]
fn the_private_key_is_not_shown_and_not_seen_inside() {
    let bench = Bench::new();
    let (_, export) = Kept::over(&bench);
    let secret = bench.path("state/signing-key");
    let bytes = fs::read(&secret).expect("is there");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let inside = bench.run(&["run", "--", "cat", secret.to_str().expect("is text")]);
    assert!(inside.code == Some(1) && inside.out.is_empty(), "{inside:?}");
    let shown = [&["audit", "key"][..], &["audit", "key", "--json"], &["audit", "checkpoint", "--json"]];
    for said in shown.map(|words| bench.run(words)).iter().map(|answer| answer.out.clone()).chain([export]) {
        assert!(!said.contains(&hex) && !said.as_bytes().windows(32).any(|part| part == bytes), "{said}");
    }
}

#[test]
fn heads_reach_the_anchor_file_by_themselves_and_a_failure_is_loud_and_recorded() {
    let bench = Bench::new();
    let heads = bench.path("elsewhere/heads");
    bench.settings(&format!("[audit]\nanchor_file = \"{}\"\n", heads.display()));
    let run = bench.run(&["--quiet", "run", "--", "true"]);
    assert_eq!(run.code, Some(0), "the command is not to blame: {run:?}");
    assert!(run.err.contains("NOT kept in"), "{run:?}");
    assert!(bench.run(&["audit", "show"]).out.contains(" anchor-failed "), "it is on the record");
    let by_hand = bench.run(&["audit", "checkpoint", "--json"]);
    assert_eq!(by_hand.code, Some(1), "{by_hand:?}");
    let document: Value = serde_json::from_str(&by_hand.out).expect("is JSON");
    fits("audit-checkpoint", &document);
    assert!(document["not_anchored"].is_string(), "{document:#}");

    fs::create_dir(bench.path("elsewhere")).expect("makes it");
    let run = bench.run(&["run", "--", "true"]);
    assert!(run.code == Some(0) && !run.err.contains("NOT kept"), "{run:?}");
    let key: Value = bench.json(&["audit", "key", "--json"]);
    fits("audit-key", &key);
    let (key, heads) = (key["key"].as_str().expect("is text"), heads.to_str().expect("is text"));
    let checked = bench.json(&["audit", "verify", "--checkpoint", heads, "--key", key, "--json"]);
    fits("audit-verify", &checked);
    assert_eq!(checked["result"], "anchored", "{checked:#}");
}

#[test]
fn heads_are_not_kept_beside_what_they_vouch_for() {
    let bench = Bench::new();
    bench.settings(&format!("[audit]\nanchor_file = \"{}\"\n", bench.path("state/heads").display()));
    let run = bench.run(&["run", "--", "true"]);
    assert!(run.code == Some(125) && run.err.contains("is in the state directory"), "{run:?}");
}

#[test]
fn the_record_is_exported_as_ocsf_events() {
    let bench = Bench::new();
    bench.sh("echo x > made");
    let events = bench.run(&["audit", "export", "--format", "ocsf"]).out;
    let names: Vec<String> = events
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).expect("is JSON");
            assert_eq!(event["metadata"]["version"], "1.8.0");
            assert_eq!(event["category_uid"].as_u64(), event["class_uid"].as_u64().map(|class| class / 1000));
            event["metadata"]["event_code"].as_str().expect("is text").to_owned()
        })
        .collect();
    let shown = bench.run(&["audit", "show", "--json"]).out;
    let of_record: Vec<String> = shown
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).expect("is JSON");
            record["event"]["event"].as_str().expect("is text").to_owned()
        })
        .collect();
    assert_eq!(names, of_record, "an event each, in order");
}
