//! The committed table of requests: what only reads is told from what does more, in both directions.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

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

/// Texts that are not the words of somebody else's request: too short to be told from any other.
fn is_a_text_of_its_own(text: &str) -> bool {
    text.contains(' ') && text.len() >= 6
}

#[test]
fn no_row_stands_in_product_code() {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates");
    let mut files = Vec::new();
    sources(Path::new(top), &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let rows: Vec<_> =
        common::rewrites::rows().into_iter().filter(|row| is_a_text_of_its_own(&row.text)).collect();
    assert!(rows.len() > 50, "{} rows", rows.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        // What a file holds for its own tests stands at its end.
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let rows = rows.iter().filter(|row| product.contains(&row.text));
        found.extend(rows.map(|row| format!("{}: {}", row.id, file.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Collects the files that a program is made of.
fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("can be read").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            if !["tests", "examples", "transcripts", "demo", "target"].contains(&name.as_ref()) {
                sources(&path, files);
            }
        } else if !name.ends_with("tests.rs") && !name.ends_with(".proptest-regressions") {
            files.push(path);
        }
    }
}
