//! The committed table of requests: what only reads is told from what does more, in both directions.

mod common;

use std::fs;

use serde_json::Value;

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

#[test]
fn what_only_reads_is_told_from_what_does_more() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/decisions.jsonl");
    let rows = fs::read_to_string(file).expect("the table is there");
    let mut wrong = Vec::new();
    for line in rows.lines().filter(|line| !line.trim().is_empty()) {
        let row: Value = serde_json::from_str(line).expect("each line is a request");
        let effects = match row["shell"].as_str() {
            Some(script) => common::shell(script),
            None => {
                let argv = texts(&row["argv"]);
                let variables: Vec<&str> =
                    row["env"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                common::described(&argv.iter().map(String::as_str).collect::<Vec<_>>(), &variables)
            }
        };
        if common::only_reads(&effects) != (row["expect"] == "allow") {
            wrong.push(format!("{} ({}): {:?}", row["id"], row["why"], common::said(&effects)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
