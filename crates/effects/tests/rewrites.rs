//! Rewrites: the same request in other words has the same answer, in both directions.

mod common;

use std::fs;

use serde_json::Value;

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

#[test]
fn twenty_rewrites_of_each_row_have_the_answer_of_the_row() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/decisions.jsonl");
    let rows = fs::read_to_string(file).expect("the table is there");
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for row in rows.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let variables: Vec<&str> =
            row["env"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let requests: Vec<Vec<String>> = match row["shell"].as_str() {
            Some(script) => {
                let script = format!("{script}\n");
                around(&script)
                    .into_iter()
                    .map(|script| vec!["sh".to_owned(), "-c".to_owned(), script])
                    .collect()
            }
            None => rewrites(&serde_json::from_value::<Vec<String>>(row["argv"].clone()).expect("words")),
        };
        assert!(requests.len() >= 20, "{}: {} ways", row["id"], requests.len());
        for request in requests {
            asked += 1;
            let request: Vec<&str> = request.iter().map(String::as_str).collect();
            let effects = common::described(&request, &variables);
            if common::only_reads(&effects) != (row["expect"] == "allow") {
                wrong.push(format!("{}: {request:?}: {:?}", row["id"], common::said(&effects)));
            }
        }
    }
    assert!(
        asked > 1000 && wrong.is_empty(),
        "{} of {asked}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(40)]
    );
}
