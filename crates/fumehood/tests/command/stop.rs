//! `stop` and `task freeze`: what runs is ended, nothing new starts, and everybody is told who wants that and why.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

impl Bench {
    /// Starts a command that does not end by itself, and waits until it runs.
    fn start_long(&self) -> std::process::Child {
        let child = self.start(&["run", "--", "sleep", "120"]);
        let since = Instant::now();
        while self.json(&["log", "--json"])["log"][0]["ending"] != "runs" {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        child
    }

    fn stop(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = ["--json", "stop"].iter().chain(words).copied().collect();
        let document = self.json(&words);
        fits("stop", &document);
        document
    }

    fn task(&self) -> String {
        self.json(&["task", "list", "--json"])["tasks"][0]["task"].as_str().expect("an id").to_owned()
    }
}

fn is_refused(answer: &Answer, why: &str) {
    assert!(answer.code == Some(126) && answer.err.contains(why), "{answer:?}");
}

#[test]
fn stop_ends_what_runs_and_lets_nothing_start_until_it_is_lifted() {
    let bench = Bench::new();
    let child = bench.start_long();
    let task = bench.task();
    let document = bench.stop(&["--all", "--reason", "a key has leaked"]);
    assert_eq!(document["ended"], serde_json::json!([task]), "{document:#}");
    let ended = Answer::of(child.wait_with_output().expect("it ended"));
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(bench.json(&["log", "--json"])["log"][0]["ran"], "yes", "its end is on the record");
    let hold = document["holds"][0]["hold"].as_str().expect("an id").to_owned();

    let earlier = bench.newest();
    for words in [
        &["run", "--", "true"][..],
        &["run", "--new-task", "--", "true"],
        &["run", "--agent", "m", "--", "true"],
        &["run", "--fork", "--", "true"],
        &["shell", "--", "true"],
        &["bwrap", "--ro-bind", "/", "/", "--", "true"],
    ] {
        let answer = bench.run(words);
        is_refused(&answer, "a key has leaked");
    }
    let again = bench.run(&["reproduce", &earlier]);
    assert!(again.code == Some(125) && again.err.contains("deny (held) now"), "{again:?}");
    let shown = bench.json(&["show", "--json"]);
    assert_eq!((&shown["state"], &shown["decision"]["reason"]), (&"denied".into(), &"held".into()));
    let played = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/transcripts/demo.jsonl");
    let agent = bench.run(&["agent", "--replay", played, "x"]);
    assert!(agent.code == Some(125) && agent.err.contains("a key has leaked"), "{agent:?}");
    // What exists can be looked at.
    for words in [&["diff"][..], &["task", "list"], &["why"], &["audit", "verify"]] {
        assert_eq!(bench.run(words).code, Some(0), "{words:?}");
    }

    let lifted = bench.run(&["stop", "--lift", &hold, "--reason", "the key was changed"]);
    // Agents came in this session: whether a person lifts cannot be told here.
    assert!(lifted.code == Some(125) && lifted.err.contains("only a person"), "{lifted:?}");
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(126));
    let record = bench.run(&["audit", "show"]).out;
    assert!(record.contains("holds everything: a key has leaked"), "{record}");
}

#[test]
fn a_hold_is_for_what_it_names_and_a_person_lifts_it() {
    let bench = Bench::new();
    let here = bench.file(".").to_string_lossy().into_owned();
    let elsewhere = bench.path("home").to_string_lossy().into_owned();
    let one = bench.stop(&["--repo", &elsewhere, "--reason", "other"]);
    assert_eq!(one["holds"][0]["scope"], "repo");
    bench.stop(&["--user", "nobody-of-that-name", "--reason", "gone"]);
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(0), "nothing of that is here");
    let three = bench.stop(&["--repo", &here, "--reason", "look at this first"]);
    let hold = three["holds"][2]["hold"].as_str().expect("an id").to_owned();
    is_refused(&bench.run(&["run", "--", "true"]), "look at this first");
    is_refused(&bench.run(&["run", "-w", "src", "--", "true"]), "look at this first");
    let lifted = bench.stop(&["--lift", &hold, "--reason", "looked at"]);
    assert_eq!(
        (&lifted["lifted"], lifted["holds"].as_array().map(Vec::len)),
        (&hold.as_str().into(), Some(2))
    );
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(0));
    let again = bench.run(&["stop", "--lift", &hold, "--reason", "again"]);
    assert!(again.code == Some(125) && again.err.contains("was lifted already"), "{again:?}");
    let listed = bench.run(&["stop", "--list"]).out;
    assert!(listed.contains("gone") && !listed.contains("look at this first"), "{listed}");
}

#[test]
fn a_stop_without_a_reason_or_with_a_hostile_one_is_refused() {
    let bench = Bench::new();
    for words in [
        &["stop"][..],
        &["stop", "--all"],
        &["stop", "--all", "--list"],
        &["stop", "--all", "--reason", " "],
        &["stop", "--all", "--reason", "two\nlines"],
        &["stop", "--user", "a b", "--reason", "x"],
        &["stop", "--repo", "nowhere", "--reason", "x"],
        &["stop", "--lift", "hold-../x", "--reason", "x"],
        &["stop", "--lift", "hold-aaaaaaaaaaaaaaaa", "--reason", "x"],
        &["task", "freeze"],
    ] {
        let answer = bench.run(words);
        assert!(answer.code == Some(125) && !answer.err.contains("panicked"), "{words:?}: {answer:?}");
    }
    assert!(bench.run(&["stop", "--list"]).out.contains("nothing is stopped"));
}

#[test]
fn a_frozen_task_says_who_froze_it_and_goes_on_when_a_person_resumes_it() {
    let bench = Bench::new();
    let child = bench.start_long();
    let task = bench.task();
    let frozen = bench.json(&["task", "freeze", "--reason", "it reads too much", "--json"]);
    fits("task-row", &frozen);
    assert_eq!(frozen["state"], "frozen");
    assert_ne!(Answer::of(child.wait_with_output().expect("it ended")).code, Some(0));
    for words in [&["run", "--", "true"][..], &["run", "--new-task", "--", "true"], &["fork", &task]] {
        let answer = bench.run(words);
        assert!(
            answer.code == Some(125) && answer.err.contains("it reads too much"),
            "{words:?}: {answer:?}"
        );
    }
    assert_eq!(bench.run(&["task", "resume", &task]).code, Some(0));
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(0));
    let record = bench.run(&["audit", "show", "--task", &task]).out;
    assert!(record.contains("it reads too much") && record.contains("open by user"), "{record}");
    let answer = bench.run(&["discard", "--yes"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let answer = bench.run(&["task", "freeze", &task, "--reason", "x"]);
    assert!(answer.code == Some(125) && answer.err.contains("nothing to freeze"), "{answer:?}");
}
