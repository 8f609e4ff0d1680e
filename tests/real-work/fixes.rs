//! A played model mends the bugs: red before, green after, and only the wanted file is changed.

use serde_json::{Value, json};

use crate::bench::{Bench, Ran};
use crate::bugs::{Bug, H11, Project, SHELL_QUOTE, SHLEX, differences};

#[test]
fn a_bug_in_rust_is_mended() {
    is_mended(&SHLEX);
}

#[test]
fn a_bug_in_python_is_mended() {
    is_mended(&H11);
}

#[test]
fn a_bug_in_node_is_mended() {
    is_mended(&SHELL_QUOTE);
}

fn is_mended(bug: &Bug) {
    let bench = Bench::new();
    let project = Project::new(&bench, bug);
    let before = project.files();
    let transcript = bench.beside("transcript.jsonl");
    std::fs::write(&transcript, play(&project)).expect("a file");
    let mut line = format!("agent --json --apply never --replay '{}'", transcript.display());
    if bug.tools_in_directory {
        line.push_str(" --dirty");
    }
    let document = answer(&fumehood(&bench, &format!("{line} 'Mend {}'", bug.source)));
    assert_eq!(document["ended"], "finished", "{document:#}");
    assert_eq!(document["refused"], json!([]), "{document:#}");
    assert_eq!(exit_codes(&document, bug), [false, true], "red, then green: {document:#}");

    let diff = answer(&fumehood(&bench, "diff --json"));
    let paths: Vec<&str> = diff["changes"].as_array().expect("a list").iter().filter_map(path).collect();
    assert_eq!(paths, [bug.source], "{diff:#}");
    let inside = fumehood(&bench, &format!("run --apply never -- {}", bug.test));
    assert_eq!((bug.counts)(&inside.stdout), bug.green, "{inside:?}");
    assert_eq!(differences(&before, &project.files()), Vec::<std::path::PathBuf>::new(), "not applied yet");

    let applied = fumehood(&bench, "apply --yes --json");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let wanted = project.mended(&before);
    assert_eq!(differences(&wanted, &project.files()), Vec::<std::path::PathBuf>::new(), "{applied:?}");
    let outside = bench.outside(bug.test);
    assert_eq!((outside.code, (bug.counts)(&outside.stdout)), (Some(0), texts(bug.green)), "{outside:?}");
    assert_eq!(fumehood(&bench, "audit verify").code, Some(0));
}

/// Writes what the model says: it looks, sees the tests fail, makes the change of the authors and sees them pass.
fn play(project: &Project<'_>) -> String {
    let bug = project.bug;
    let test = ("run_command", json!({ "command": bug.test }));
    let mut calls = vec![("list_directory", json!({})), ("read_file", json!({ "path": bug.source }))];
    calls.extend(bug.tests.iter().map(|name| ("read_file", json!({ "path": name }))));
    calls.extend([test.clone(), ("apply_patch", json!({ "patch": project.patch() })), test]);
    calls.push(("finish", json!({ "summary": format!("{} is mended, and its tests pass.", bug.source) })));
    let header = json!({ "fumehood_replay": 1, "model": "deepseek-flash", "task": "t" });
    let turns = calls.iter().enumerate().map(|(at, (name, arguments))| {
        let call = json!({ "name": name, "arguments": arguments });
        json!({ "turn": at + 1, "reasoning": "One step after the other.", "tool_calls": [call] })
    });
    let lines = std::iter::once(header).chain(turns).chain([json!({ "end": calls.len() })]);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Tells of each run of the tests whether they passed.
fn exit_codes(document: &Value, bug: &Bug) -> Vec<bool> {
    let log = document["log"].as_array().expect("a list").iter();
    let tests = log.filter(|row| row["command"].as_str().is_some_and(|command| command.contains(bug.test)));
    tests.map(|row| row["exit_code"] == 0).collect()
}

fn path(change: &Value) -> Option<&str> {
    change["path"].as_str()
}

fn texts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Runs the program in the project with its arguments as a shell takes them.
pub(crate) fn fumehood(bench: &Bench, arguments: &str) -> Ran {
    let state = bench.beside("state");
    bench.outside(&format!(
        "FUMEHOOD_STATE_DIR='{}' exec '{}' {arguments}",
        state.display(),
        env!("CARGO_BIN_EXE_fumehood")
    ))
}

/// Reads what the program answered in JSON.
pub(crate) fn answer(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}
