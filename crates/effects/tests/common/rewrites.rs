//! The committed table of requests, and each of them in other words.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;

use serde_json::Value;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) id: String,
    /// Whether it only reads the project.
    pub(crate) reads: bool,
    /// The names of the variables that it sets.
    pub(crate) variables: Vec<String>,
    /// It, in other words.
    pub(crate) rewrites: Vec<Vec<String>>,
    /// What is asked for, as one text.
    pub(crate) text: String,
}

/// Returns the rows.
pub(crate) fn rows() -> Vec<Row> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/decisions.jsonl");
    let text = fs::read_to_string(file).expect("the table is there");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| row(&serde_json::from_str(line).expect("each line is a request"))).collect()
}

fn row(row: &Value) -> Row {
    let (rewrites, text) = match row["shell"].as_str() {
        Some(script) => {
            let shell = |script| vec!["sh".to_owned(), "-c".to_owned(), script];
            (around(&format!("{script}\n")).into_iter().map(shell).collect(), script.to_owned())
        }
        None => {
            let argv: Vec<String> = serde_json::from_value(row["argv"].clone()).expect("words");
            (rewrites(&argv), argv.join(" "))
        }
    };
    Row {
        id: row["id"].as_str().expect("a name").to_owned(),
        reads: row["expect"] == "allow",
        variables: row["env"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        rewrites,
        text,
    }
}

/// Writes a word so that a shell takes every character for itself.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn doubly_quoted(word: &str) -> String {
    let escaped: String =
        word.chars().map(|c| if "\"\\$`".contains(c) { format!("\\{c}") } else { c.to_string() }).collect();
    format!("\"{escaped}\"")
}

fn with_backslashes(word: &str) -> String {
    word.chars().map(|c| if c == '\n' { "'\n'".to_owned() } else { format!("\\{c}") }).collect()
}

fn in_pieces(word: &str) -> String {
    word.chars().map(|c| quoted(&c.to_string())).collect()
}

fn joined(argv: &[String], word: fn(&str) -> String) -> String {
    argv.iter().map(|arg| word(arg)).collect::<Vec<_>>().join(" ")
}

/// Returns ways to write a command that a shell is to carry out.
fn around(command: &str) -> Vec<String> {
    [
        "C",
        "(C\n)",
        "{ C\n}",
        "if true; then C\nfi",
        "if C\nthen :; fi",
        "while C\ndo break; done",
        "for i in 1; do C\ndone",
        "case x in x) C\n;; esac",
        "true; C",
        "C\ntrue",
        "true && C",
        "false || C",
        "true | C",
        "! C",
        "echo \"$(C\n)\"",
        "cat <(C\n)",
        "C\n# a comment",
        "until C\ndo break; done",
        "true &\nC",
        "cd . && C",
        "{ true; { C\n}; }",
        "cat <<E\n$(C\n)\nE\n",
        "time C",
        "[ -n \"$(C\n)\" ]",
    ]
    .iter()
    .map(|form| form.replace('C', command))
    .collect()
}

/// Returns other ways to ask for a program with arguments.
fn rewrites(argv: &[String]) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let shell = |shell: &str, script: String| words(&[shell, "-c", &script]);
    let mut all: Vec<Vec<String>> = vec![argv.to_vec()];
    for prefix in [
        &["env"][..],
        &["nice", "-n", "5"],
        &["timeout", "5"],
        &["stdbuf", "-oL"],
        &["setsid"],
        &["env", "LC_ALL=C"],
    ] {
        all.push([words(prefix), argv.to_vec()].concat());
    }
    if argv.first().is_some_and(|program| !program.contains('/')) {
        all.push([words(&[&format!("/usr/bin/{}", argv[0])]), argv[1..].to_vec()].concat());
    }
    let plain = joined(argv, quoted);
    for word in [quoted, doubly_quoted, with_backslashes, in_pieces] {
        all.push(shell("sh", joined(argv, word)));
    }
    all.extend(around(&plain).into_iter().map(|script| shell("sh", script)));
    all.push(shell("bash", plain.clone()));
    all.push(shell("sh", format!("sh -c {}", quoted(&plain))));
    all.push(shell("sh", format!("eval {}", quoted(&plain))));
    all.push(shell("sh", format!("command {plain}")));
    all.push(shell("sh", format!("LC_ALL=C {plain}")));
    all.push(shell("sh", format!("{plain} 2>/dev/null")));
    all.push(shell("bash", format!("bash -c {}", quoted(&format!("sh -c {}", quoted(&plain))))));
    all
}
