//! The committed table of requests, asked for by an agent: every second row, which is said here because each is a turn of a
//! model. `policy decide` and `run` are asked about all of them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::approvals::cautious;

#[test]
fn an_agent_gets_the_verdict_of_the_table() {
    let bench = cautious();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/decisions.jsonl");
    let text = fs::read_to_string(file).expect("the table is committed");
    let rows: Vec<Value> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("each line is a row"))
        // An agent's tool takes no variables.
        .filter(|row: &Value| row["env"].is_null() && row["cwd"].is_null())
        .step_by(2)
        .collect();
    assert!(rows.len() >= 20, "{}", rows.len());
    let asked =
        |row: &Value| if row["shell"].is_string() { row["shell"].clone() } else { row["argv"].clone() };
    let mut calls: Vec<(&str, Value)> =
        rows.iter().map(|row| ("run_command", json!({ "command": asked(row) }))).collect();
    calls.push(("finish", json!({ "summary": "done" })));
    let play = bench.transcript(&calls);
    let arguments =
        ["agent", "--json", "--max-turns", "99", "--replay", play.to_str().expect("text"), "look"];
    let (code, document) = bench.json(&arguments);
    assert_eq!(code, 0, "{document:#}");
    let (_, log) = bench.json(&["log", &bench.task(), "--json"]);
    let mut actions: Vec<Value> = log["log"].as_array().expect("a list").clone();
    actions.retain(|row| row["tool"] != "finish");
    assert_eq!(actions.len(), rows.len(), "{log:#}");
    let mut wrong = Vec::new();
    for (row, action) in rows.iter().zip(&actions) {
        let (_, shown) = bench.json(&["show", action["action"].as_str().expect("an id"), "--json"]);
        let verdict = shown["decision"]["verdict"].as_str().unwrap_or_default();
        let goes = ["allow", "narrow"].contains(&verdict);
        if goes != (row["expect"] == "allow") {
            wrong.push(format!("{}: {verdict}: {}", row["id"], shown["request"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
