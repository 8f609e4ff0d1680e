//! An agent whose calls need a person's yes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{Bench, answer};

pub(crate) fn cautious() -> Bench {
    under("cautious")
}

/// Returns a bench whose settings name this policy.
fn under(policy: &str) -> Bench {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("home/.config/fumehood")).expect("a directory");
    bench.file("home/.config/fumehood/fumehood.toml", &format!("policy = \"{policy}\"\n"));
    bench
}

#[test]
fn at_level_1_an_agent_reads_and_does_nothing_else() {
    let bench = under("level-1");
    let calls = [
        ("list_directory", json!({})),
        ("run_command", json!({ "command": "cat a.txt" })),
        ("write_file", json!({ "path": "b.txt", "content": "x" })),
        ("finish", json!({ "summary": "done" })),
    ];
    let transcript = bench.transcript(&calls).to_str().expect("text").to_owned();
    let (code, document) = bench.json(&["agent", "--json", "--replay", &transcript, "look"]);
    assert_eq!((code, &document["changes"]), (0, &json!([])), "{document:#}");
    let (_, log) = bench.json(&["log", &bench.task(), "--json"]);
    let rows = log["log"].as_array().cloned().unwrap_or_default();
    let reasons: Vec<Value> = rows.iter().map(|row| reason(&bench, row)).collect();
    assert_eq!(reasons, ["inside-the-sandbox", "level-runs-nothing", "level-writes-nothing"], "{log:#}");
}

fn reason(bench: &Bench, row: &Value) -> Value {
    let (_, shown) = bench.json(&["show", row["action"].as_str().expect("an id"), "--json"]);
    shown["decision"]["reason"].clone()
}

fn transcript(bench: &Bench) -> String {
    let calls = [
        ("run_command", json!({ "command": "echo made > made" })),
        ("run_command", json!({ "command": "cat made" })),
        ("finish", json!({ "summary": "done" })),
    ];
    bench.transcript(&calls).to_str().expect("text").to_owned()
}

fn waiting(bench: &Bench) -> Option<Value> {
    let (_, list) = bench.json(&["approvals", "list", "--json"]);
    list["approvals"].as_array().and_then(|rows| rows.first()).filter(|row| row["state"] == "open").cloned()
}

/// Returns how the actions of the only task ended.
fn endings(bench: &Bench) -> Vec<String> {
    let (_, log) = bench.json(&["log", &bench.task(), "--json"]);
    let rows = log["log"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| row["ending"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_agent_that_waits_goes_on_with_what_the_person_allowed() {
    let bench = cautious();
    let child =
        bench.start(&["agent", "--json", "--wait", "60s", "--replay", &transcript(&bench), "make it"]);
    let until = Instant::now() + Duration::from_secs(40);
    let asked = loop {
        if let Some(row) = waiting(&bench) {
            break row;
        }
        assert!(Instant::now() < until, "nobody was asked");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(asked["by"], "deepseek-flash", "{asked:#}");
    let id = asked["approval"].as_str().expect("an id");
    let (code, answered) = bench.json(&["approvals", "approve", id, "--yes", "--json"]);
    assert_eq!((code, &answered["state"]), (0, &json!("kept")), "{answered:#}");
    let output = child.wait_with_output().expect("it ends");
    let document = answer(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    let changes: Vec<&str> =
        document["changes"].as_array().expect("a list").iter().filter_map(|c| c["path"].as_str()).collect();
    assert_eq!(changes, ["made"], "{document:#}");
    assert_eq!(endings(&bench), ["exited with 0", "exited with 0"], "the second sees what the first made");
}

#[test]
fn an_agent_that_does_not_wait_is_told_and_nothing_is_kept() {
    let bench = cautious();
    let (code, document) = bench.json(&["agent", "--json", "--replay", &transcript(&bench), "make it"]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["changes"], json!([]), "{document:#}");
    assert_eq!(document["refused"][0]["code"], "needs-approval", "{document:#}");
    assert_eq!(endings(&bench)[0], "tried, waits for a yes");
    assert!(waiting(&bench).is_some());
}
