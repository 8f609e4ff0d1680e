//! The six levels: what each answers, cell by cell, and that each leaves at least as much to agents as the one below.

#[path = "../common/mod.rs"]
mod common;
mod table;

use std::fs;
use std::path::Path;

use gate::Gate;
use table::{document, gate, rows};

/// The answers, from level 1 to 6: `y` yes, `w` without it, `p` asks a person, `r` asks a release manager, `n` no.
const EXPECTED: [(&str, &str); 36] = [
    ("read, list and search with the tools for that", "yyyyyy"),
    ("write a file with the tool for that", "nyyyyy"),
    ("write a protected file with the tool for that", "nnnnnn"),
    ("run a program", "nyyyyy"),
    ("read a path", "nyyyyy"),
    ("write a path", "nyyyyy"),
    ("delete a path", "nyyyyy"),
    ("something that the request does not tell", "nyyyyy"),
    ("install what the manifests name", "nnyyyy"),
    ("install a package by its name", "nnppyy"),
    ("change a lock file", "npppyy"),
    ("change another control: a hook, a check, a setting of a tool", "nppppp"),
    ("change what is in `.git`", "nyyyyy"),
    ("commit, or move a branch inside", "nyyyyy"),
    ("push", "nnnppp"),
    ("push with force", "nnnrrr"),
    ("connect to another machine", "nnppyy"),
    ("use a credential", "nnnppp"),
    ("publish", "nnnrrr"),
    ("deploy", "nnnrrr"),
    ("migrate", "nnnrrr"),
    ("send a message", "nnnppp"),
    ("show a dataset", "nnnppp"),
    ("read a database", "nyyyyy"),
    ("change rows of a database", "nnpppy"),
    ("change the form of a database", "nnpppp"),
    ("destroy what is in a database", "nnpppp"),
    ("the host's network", "nwwwww"),
    ("the loopback of an action of its own task", "nyyyyy"),
    ("wider limits than the profile's", "nwwwww"),
    ("a credential of the workspace", "nnnnnn"),
    ("a terminal", "nwwwww"),
    ("apply ordinary files when nothing was said beforehand", "nppppp"),
    ("apply ordinary files, as was said beforehand", "nppppy"),
    ("apply protected files", "nppppp"),
    ("apply git's own files", "nnnnnn"),
];

fn letter(answer: &str) -> char {
    match answer {
        "yes" => 'y',
        "without it" => 'w',
        "no" => 'n',
        "asks `person`" => 'p',
        asks if asks.contains("release-manager") => 'r',
        other => panic!("unexpected: {other}"),
    }
}

#[test]
fn every_cell_of_the_table_is_as_it_was_meant() {
    let gates: Vec<Gate> = (1..=6).map(gate).collect();
    let found: Vec<(&str, String)> = rows()
        .iter()
        .map(|row| (row.class, gates.iter().map(|gate| letter(&row.ask(gate))).collect()))
        .collect();
    let wrong: Vec<_> = found.iter().zip(EXPECTED).filter(|((a, b), (c, d))| a != c || b != d).collect();
    assert!(wrong.is_empty() && found.len() == EXPECTED.len(), "{wrong:#?}");
}

#[test]
fn each_level_leaves_at_least_as_much_as_the_one_below() {
    let rank = |letter| "nrpwy".find(letter).expect("a letter of the table");
    for (class, answers) in EXPECTED {
        assert!(answers.chars().map(rank).is_sorted(), "{class}: {answers}");
    }
}

#[test]
fn the_document_has_the_table_as_the_gate_answers_it() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/levels.md");
    let text = fs::read_to_string(file).expect("docs/levels.md");
    assert!(
        text.contains(&document()),
        "docs/levels.md: put this there, from `cargo run -p fumehood-gate --example levels`:\n{}",
        document()
    );
}
