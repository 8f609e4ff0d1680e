//! `gc` and `hold`: what goes when its time is over, and what stays in any case.

use serde_json::Value;

use super::bench::{Bench, fits};
use super::redaction::nowhere;

fn gc(bench: &Bench, words: &[&str]) -> Value {
    let words: Vec<&str> = ["gc", "--json"].iter().chain(words).copied().collect();
    let document = bench.json(&words);
    fits("gc", &document);
    document
}

fn hold(bench: &Bench, words: &[&str]) -> Value {
    let words: Vec<&str> = ["hold", "--json"].iter().chain(words).copied().collect();
    let document = bench.json(&words);
    fits("legal-holds", &document);
    document
}

fn number_of(document: &Value, class: &str) -> u64 {
    let rows = document["classes"].as_array().expect("a list");
    rows.iter().find(|row| row["class"] == class).map_or(0, |row| row["number"].as_u64().expect("a number"))
}

const NOW: [&str; 2] = ["--older-than", "1ms"];

#[test]
fn gc_says_by_classes_what_goes_and_then_it_is_gone() {
    let bench = Bench::new();
    bench.sh("echo said; echo made > made; echo kept > $FUMEHOOD_ARTIFACTS/report");
    let action = bench.newest();
    assert_eq!(number_of(&gc(&bench, &NOW), "outputs"), 0, "the task is open");
    assert_eq!(bench.run(&["discard"]).code, Some(0));
    let would = gc(&bench, &["--dry-run", "--older-than", "1ms"]);
    for class in ["layers", "outputs", "artifacts"] {
        assert_eq!(number_of(&would, class), 1, "{would:#}");
    }
    assert_eq!(bench.run(&["show", &action, "--output"]).out, "said\n", "it was only looked at");
    let went = gc(&bench, &NOW);
    assert_eq!((&went["classes"], &went["freed"]), (&would["classes"], &would["freed"]));
    assert!(went["freed"].as_u64() > Some(0) && went["layers"] == serde_json::json!([action]), "{went:#}");
    assert!(!bench.run(&["show", &action, "--output"]).out.contains("said"));
    let record = bench.run(&["audit", "show"]).out;
    assert!(record.contains("removed") && record.contains("1 of outputs"), "{record}");
    assert_eq!(bench.run(&["audit", "verify"]).code, Some(0));
    assert_eq!(gc(&bench, &NOW)["classes"], serde_json::json!([]));
}

#[test]
fn what_failed_stays_for_a_time_of_its_own() {
    let bench = Bench::new();
    bench.sh("echo failed; exit 3");
    bench.run(&["discard"]);
    let kept = gc(&bench, &NOW);
    assert!(number_of(&kept, "outputs") == 0 && kept["incidents"].as_u64() > Some(0), "{kept:#}");
    let text = bench.run(&["gc", "--older-than", "1ms"]).out;
    assert!(text.contains("retention.incidents"), "{text}");
    assert_eq!(
        number_of(&gc(&bench, &["--older-than", "1ms", "--incidents-older-than", "1ms"]), "outputs"),
        1
    );
}

#[test]
fn what_a_legal_hold_covers_stays_until_a_person_lifts_it() {
    let bench = Bench::new();
    bench.sh("echo said; echo made > made");
    let action = bench.newest();
    let task =
        bench.json(&["task", "list", "--json"])["tasks"][0]["task"].as_str().expect("an id").to_owned();
    let here = bench.file(".").to_string_lossy().into_owned();
    for words in [&["add", &task, "--reason", "case 1"][..], &["add", &action, "--reason", "case 2"]] {
        hold(&bench, words);
    }
    let all = hold(&bench, &["add", "--repo", &here, "--reason", "case 3"]);
    let names: Vec<String> = all["holds"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|hold| hold["hold"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(
        (&all["holds"][1]["scope"], &all["holds"][2]["tasks"][0]),
        (&"action".into(), &task.as_str().into())
    );
    assert_eq!(bench.run(&["discard"]).code, Some(0));
    for name in &names {
        let kept = gc(&bench, &NOW);
        assert!(number_of(&kept, "layers") == 0 && kept["held"].as_u64() > Some(1), "{name}: {kept:#}");
        hold(&bench, &["lift", name, "--reason", "it is over"]);
    }
    assert_eq!(number_of(&gc(&bench, &NOW), "layers"), 1);
    let again = bench.run(&["hold", "lift", &names[0], "--reason", "again"]);
    assert!(again.code == Some(125) && again.err.contains("was lifted already"), "{again:?}");
    let record = bench.run(&["audit", "show"]).out;
    assert!(record.contains("case 2") && record.matches("it is over").count() == 3, "{record}");
    assert!(bench.run(&["hold", "list"]).out.contains("no legal hold"));
}

#[test]
fn an_agent_lifts_no_legal_hold() {
    let bench = Bench::new();
    bench.run(&["run", "--agent", "m", "--", "true"]);
    let action = bench.newest();
    let held = hold(&bench, &["add", &action, "--reason", "case 1"]);
    let name = held["holds"][0]["hold"].as_str().expect("an id");
    // Agents came in this session: whether a person lifts cannot be told here.
    let lifted = bench.run(&["hold", "lift", name, "--reason", "x"]);
    assert!(lifted.code == Some(125) && lifted.err.contains("only a person"), "{lifted:?}");
    assert_eq!(hold(&bench, &["list"])["holds"].as_array().map(Vec::len), Some(1));
    let record = bench.run(&["audit", "show"]).out;
    assert!(record.contains("perhaps no person"), "{record}");
}

#[test]
fn a_legal_hold_that_names_nothing_or_says_no_reason_is_refused() {
    let bench = Bench::new();
    for words in [
        &["hold", "add", "--reason", "x"][..],
        &["hold", "add", "task-aaaaaaaaaaaaaaaa", "--reason", "x"],
        &["hold", "add", "act-aaaaaaaaaaaaaaaa", "--reason", "x"],
        &["hold", "add", "--repo", "nowhere", "--reason", "x"],
        &["hold", "add", "--repo", "."],
        &["hold", "add", "--repo", ".", "--reason", "two\nlines"],
        &["hold", "lift", "legal-aaaaaaaaaaaaaaaa", "--reason", "x"],
        &["hold", "lift", "hold-aaaaaaaaaaaaaaaa", "--reason", "x"],
        &["hold", "lift", "legal-aaaaaaaaaaaaaaaa"],
    ] {
        let answer = bench.run(words);
        assert!(answer.code == Some(125) && !answer.err.contains("panicked"), "{words:?}: {answer:?}");
    }
}

fn prune(bench: &Bench, words: &[&str]) -> Value {
    let words: Vec<&str> =
        ["audit", "prune", "--json", "--older-than", "1ms"].iter().chain(words).copied().collect();
    let document = bench.json(&words);
    fits("audit-prune", &document);
    document
}

#[test]
fn what_is_pruned_is_gone_everywhere_and_the_record_verifies_with_heads_from_before() {
    let bench = Bench::new();
    bench.sh("echo a-word-of-the-request; echo x > a-name-of-a-file");
    let action = bench.newest();
    bench.sh("exit 3");
    let failed = bench.newest();
    let key = bench.run(&["audit", "key"]).out;
    assert_eq!(bench.run(&["audit", "checkpoint", "--file", "heads"]).code, Some(0));
    assert_eq!(prune(&bench, &["--dry-run"])["classes"], serde_json::json!([]), "the task is open");
    assert_eq!(bench.run(&["discard"]).code, Some(0));
    let would = prune(&bench, &["--dry-run"]);
    assert!(would["incidents"].as_u64() > Some(0), "what failed stays: {would:#}");
    let went = prune(&bench, &["--reason", "its time is over"]);
    assert_eq!((&went["classes"], &went["records"]), (&would["classes"], &would["records"]));
    let number: u64 = went["classes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row["number"].as_u64().expect("a number"))
        .sum();
    assert!(number >= 5, "{went:#}");

    let heads = ["audit", "verify", "--json", "--checkpoint", "heads", "--key", key.trim()];
    let verified = bench.json(&heads);
    fits("audit-verify", &verified);
    assert_eq!((&verified["result"], &verified["pruned"]["number"]), (&"anchored".into(), &number.into()));
    assert_eq!(verified["pruned"]["not_anchored"], number, "the head is from before");
    bench.run(&["audit", "export", "--file", "record.jsonl"]);
    let of_file = bench.json(&[&heads[..], &["record.jsonl"]].concat());
    assert_eq!(of_file["pruned"], verified["pruned"]);
    let ocsf = bench.run(&["audit", "export", "--format", "ocsf"]).out;
    assert!(ocsf.contains("record-pruned") && ocsf.contains("\"was\":\"requested\""), "{ocsf}");

    let shown = bench.json(&["show", &action, "--json"]);
    fits("action", &shown);
    assert_eq!(
        (&shown["state"], &shown["ran"], &shown["exit_code"]),
        (&"ended".into(), &"yes".into(), &0.into())
    );
    assert!(bench.run(&["show", &action]).out.contains("was taken out of the record"));
    let task = shown["task"].as_str().expect("an id");
    let log = bench.run(&["log", task]).out;
    assert!(log.contains("[pruned]"), "{log}");
    for words in [&["diff", action.as_str()][..], &["reproduce", &action]] {
        let refused = bench.run(words);
        assert!(refused.code == Some(125) && refused.err.contains("pruned"), "{words:?}: {refused:?}");
    }
    assert!(bench.run(&["show", &failed]).out.contains("exit 3"), "its events stay");
    let replayed = bench.run(&["policy", "replay", "default"]);
    assert!(!replayed.err.contains("panicked"), "{replayed:?}");

    // The layer stays until its own time is over; it has the name of the file.
    gc(&bench, &["--older-than", "1ms", "--incidents-older-than", "1ms"]);
    nowhere(&bench.path("state"), &["a-word-of-the-request", "a-name-of-a-file"].map(str::to_owned));
}

#[test]
fn a_legal_hold_keeps_the_record_whole_and_nobody_prunes_without_a_reason_or_an_age() {
    let bench = Bench::new();
    bench.sh("echo said");
    let action = bench.newest();
    hold(&bench, &["add", &action, "--reason", "case 1"]);
    bench.run(&["discard"]);
    let kept = prune(&bench, &["--reason", "over"]);
    assert!(kept["held"].as_u64() > Some(3) && kept["records"] == serde_json::json!([]), "{kept:#}");
    let unset = bench.run(&["audit", "prune", "--reason", "x"]);
    assert!(unset.code == Some(125) && unset.err.contains("record_requests"), "{unset:?}");
    for words in [
        &["--older-than", "1d"][..],
        &["--dry-run", "--class", "decided"],
        &["--older-than", "1d", "--reason", " "],
    ] {
        let refused = bench.run(&[&["audit", "prune"], words].concat());
        assert_eq!(refused.code, Some(125), "{words:?}: {refused:?}");
    }
    bench.run(&["run", "--agent", "m", "--", "true"]);
    let refused = bench.run(&["audit", "prune", "--older-than", "1d", "--reason", "x"]);
    assert!(refused.code == Some(125) && refused.err.contains("only a person"), "{refused:?}");
}
