//! What a model was sent is kept, sealed, and shown for each action that it asked for.

use std::fs;

use model::Digest;
use serde_json::{Value, json};

use super::bench::Bench;
use super::files_below;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_context_of_an_action_is_what_the_model_was_sent_before_it() {
    let bench = Bench::new();
    let call = |words: &str| ("run_command", json!({ "command": format!("echo {words}") }));
    let play = bench.transcript(&[
        call("first words"),
        call("second words"),
        ("finish", json!({ "summary": "done" })),
    ]);
    let (code, document) =
        bench.json(&["agent", "--json", "--replay", play.to_str().expect("text"), "say some words"]);
    assert_eq!(code, 0, "{document:#}");
    let (_, log) = bench.json(&["log", &bench.task(), "--json"]);
    let actions: Vec<&str> =
        log["log"].as_array().expect("a list").iter().filter_map(|row| row["action"].as_str()).collect();
    let [first, second] = actions[..] else { panic!("{log:#}") };
    let context = |action: &str| {
        let output = bench.run(&["show", action, "--context"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    };
    let (before, after) = (context(first), context(second));
    let sent: Value = serde_json::from_slice(&after).expect("is JSON");
    assert!(!text(&before).contains("first words") && text(&before).contains("say some words"));
    let messages = sent["messages"].as_array().expect("a list");
    assert!(
        messages
            .iter()
            .any(|message| message["role"] == "tool" && message.to_string().contains("first words"))
    );
    assert!(!text(&after).contains("second words"));
    // It is byte for byte what the record speaks of.
    let record = text(&bench.run(&["audit", "export"]).stdout);
    for context in [&before, &after] {
        let digest = Digest::of(context.strip_suffix(b"\n").expect("a line")).to_string();
        assert!(record.contains(&digest), "{digest} is on the record");
    }
    // No file has it, or what was printed, in the clear.
    let outputs = files_below(&bench.path("state"))
        .into_iter()
        .filter(|file| file.to_string_lossy().ends_with(".stdout"));
    let kept: Vec<Vec<u8>> = outputs.map(|file| fs::read(file).expect("can be read")).collect();
    assert!(kept.len() >= 2 && kept.iter().all(|bytes| !text(bytes).contains("words")), "{kept:?}");
    assert_eq!(text(&bench.run(&["show", first, "--output"]).stdout), "first words\n");
}

#[test]
fn the_response_to_an_action_is_what_the_model_answered_and_its_reading_is_on_the_record() {
    let bench = Bench::new();
    let call = |words: &str| ("run_command", json!({ "command": format!("echo {words}") }));
    let play = bench.transcript(&[
        call("first-words"),
        call("second-words"),
        ("finish", json!({ "summary": "done" })),
    ]);
    let (code, _) = bench.json(&["agent", "--json", "--replay", play.to_str().expect("text"), "say"]);
    assert_eq!(code, 0);
    let (_, log) = bench.json(&["log", &bench.task(), "--json"]);
    for (at, words) in ["first-words", "second-words"].iter().enumerate() {
        let action = log["log"][at]["action"].as_str().expect("an id");
        let output = bench.run(&["show", action, "--response"]);
        let answer: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        let calls = answer["tool_calls"].as_array().expect("a list");
        assert!(calls.len() == 1 && calls[0].to_string().contains(words), "{answer:#}");
    }
    let record = text(&bench.run(&["audit", "show"]).stdout);
    assert_eq!(record.matches("transcript by user").count(), 2, "{record}");
    // Neither what was asked nor what was answered is in a file in the clear, but for the arguments of what ran.
    for file in files_below(&bench.path("state")) {
        let bytes = fs::read(&file).expect("can be read");
        assert!(!text(&bytes).contains("tool_calls"), "{}", file.display());
    }
}

#[test]
fn what_no_model_asked_for_has_no_context_and_a_dropped_key_takes_all_of_them() {
    let bench = Bench::new();
    let play = bench.transcript(&[
        ("run_command", json!({ "command": "echo words" })),
        ("finish", json!({ "summary": "done" })),
    ]);
    let (code, _) = bench.json(&["agent", "--json", "--replay", play.to_str().expect("text"), "say"]);
    assert_eq!(code, 0);
    let task = bench.task();
    let (_, log) = bench.json(&["log", &task, "--json"]);
    let action = log["log"][0]["action"].as_str().expect("an id").to_owned();
    assert!(bench.run(&["run", "-q", "--task", &task, "--", "true"]).status.success());
    let (_, log) = bench.json(&["log", &task, "--json"]);
    let own = log["log"][1]["action"].as_str().expect("an id").to_owned();
    let refused = |action: &str, flag: &str| {
        let output = bench.run(&["show", action, flag]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]));
        text(&output.stderr)
    };
    assert!(refused(&own, "--context").contains("no agent asked for it"));
    assert!(refused(&own, "--response").contains("no agent asked for it"));
    for (class, flag) in [("context", "--context"), ("output", "--output"), ("transcript", "--response")] {
        fs::remove_file(bench.path("state/keys").join(class)).expect("is there");
        let said = refused(&action, flag);
        assert!(
            said.contains(&format!("what is kept as `{class}`")) && said.contains("key was removed"),
            "{said}"
        );
    }
    assert!(bench.run(&["audit", "verify"]).status.success());
}
