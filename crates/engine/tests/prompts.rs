//! How often a person is asked, on tasks that were written down: `crates/agent/transcripts/work`.
//!
//! The other way is a mode that asks for each command: once for each that it has not seen. Ours is the bundle `level-4`, in
//! which work inside the sandbox is free and what reaches others asks. What must ask is a list beside the transcripts, so that a
//! bundle which asks less is no success here. That list is one command in twenty, which is our choice: the ratio is one of these
//! transcripts.

#[path = "common/deciding.rs"]
mod deciding;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use deciding::decide_tool;
use gate::{BUNDLES, Decision, Gate, Policy};
use model::{OsText, Tool, WorkspacePath, patch};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/transcripts/work")
}

fn gate(name: &str) -> Gate {
    let (_, rules) = BUNDLES.iter().find(|(known, _)| *known == name).expect("it ships");
    Gate::new(Policy::parse(rules).expect("can be used"))
}

/// Returns the calls of every transcript, in order.
fn calls() -> Vec<(String, Value)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("is there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    files.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).expect("can be read");
    let lines: Vec<Value> = files
        .iter()
        .flat_map(|path| {
            text(path)
                .lines()
                .map(|line| serde_json::from_str(line).expect("is JSON"))
                .collect::<Vec<Value>>()
        })
        .collect();
    let calls = lines.iter().flat_map(|line| line["tool_calls"].as_array().cloned().unwrap_or_default());
    calls.map(|call| (call["name"].as_str().expect("a name").to_owned(), call["arguments"].clone())).collect()
}

/// Returns what a call asks for, as the agent's tools do.
fn tool_of(name: &str, arguments: &Value) -> Option<Tool> {
    let text = |key: &str| arguments[key].as_str().expect("a text").to_owned();
    let path = |text: &str| WorkspacePath::parse(text).expect("inside");
    match name {
        "run_command" => {
            let argv = ["sh".to_owned(), "-c".to_owned(), text("command")];
            Some(Tool::Run {
                argv: argv.iter().map(|word| OsText::new(word.as_str()).expect("no NUL")).collect(),
            })
        }
        "write_file" => Some(Tool::Write { path: path(&text("path")), content: text("content") }),
        "apply_patch" => {
            let read = patch::parse(&text("patch")).expect("a patch");
            Some(Tool::Patch {
                paths: read.files().expect("names files").into_iter().collect(),
                diff: read.diff,
            })
        }
        _ => None,
    }
}

#[test]
fn people_are_asked_for_what_must_ask_and_for_one_in_twenty_of_the_commands() {
    let gate = gate("level-4");
    let (mut commands, mut asked, mut denied) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (name, arguments) in calls() {
        let Some(tool) = tool_of(&name, &arguments) else { continue };
        let words = arguments["command"].as_str().map(str::to_owned);
        commands.extend(words.clone());
        match decide_tool(&gate, tool, &[], &[]) {
            Decision::Allow(_) | Decision::Narrow(_) => {}
            Decision::RequireApproval(_) => {
                asked.insert(words.unwrap_or_else(|| arguments.to_string()));
            }
            Decision::Deny(denial) => denied.push(format!("{name} {arguments}: {}", denial.reason())),
        }
    }
    let must: BTreeSet<String> =
        fs::read_to_string(folder().join("asks.txt")).expect("is there").lines().map(str::to_owned).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    assert!(must.len() >= 30);
    assert_eq!(must.difference(&asked).collect::<Vec<_>>(), Vec::<&String>::new(), "these did not ask");
    assert_eq!(
        asked.difference(&must).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "these need not have asked"
    );
    let (baseline, ours) = (commands.len(), asked.len());
    assert!(ours * 100 <= baseline * 5, "{ours} of {baseline}");
    let fewer = 100.0
        - 100.0 * f64::from(u32::try_from(ours).expect("few"))
            / f64::from(u32::try_from(baseline).expect("few"));
    let figures = format!(
        "| one prompt for each distinct command | {baseline} |\n| ours, `level-4` | {ours} ({fewer:.1} % fewer) |"
    );
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md"));
    assert!(document.expect("is there").contains(&figures), "docs/benchmarks.md has to say:\n{figures}");
}
