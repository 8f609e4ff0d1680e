//! What policy would decide, what a person is shown, and that `run` decides the same: the committed tables, row by row.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::bench::{Answer, Bench, fits};

/// Returns the rows of a table, each with what is asked for in it.
fn rows(table: &str) -> Vec<(Value, Value)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(table);
    let text = fs::read_to_string(file).expect("the table is committed");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("each line is a row");
        let asked = ["argv", "shell", "env", "cwd"].into_iter().filter(|key| row.get(key).is_some());
        let asked = asked.map(|key| (key.to_owned(), row[key].clone())).collect();
        (row, asked)
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(row).collect()
}

impl Bench {
    /// Asks with a request on standard input.
    pub(crate) fn ask(&self, words: &[&str], request: &str) -> Answer {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("is a pipe").write_all(request.as_bytes()).expect("is read");
        Answer::of(child.wait_with_output().expect("it ends"))
    }
}

#[test]
fn the_cautious_bundle_decides_as_the_table_says() {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    let decisions = rows("decisions.jsonl");
    for (row, asked) in &decisions {
        let words = ["policy", "decide", "--bundle", "cautious", "--stdin"];
        let answer = bench.ask(&words, &asked.to_string());
        let word = answer.out.split_whitespace().next().unwrap_or("nothing").to_owned();
        let right =
            if row["expect"] == "allow" { word == "allow" } else { ["ask", "deny"].contains(&word.as_str()) };
        if !right || answer.code != Some(i32::from(word != "allow")) {
            wrong.push(format!("{} ({}): {answer:?}", row["id"], row["why"]));
        }
    }
    assert!(decisions.len() >= 58 && wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn run_decides_the_same_rows_in_the_same_way() {
    let bench = Bench::new();
    bench.settings("policy = \"cautious\"\n");
    let mut wrong = Vec::new();
    for (row, asked) in rows("decisions.jsonl") {
        let argv: Vec<String> = match asked["shell"].as_str() {
            Some(script) => ["sh", "-c", script].map(str::to_owned).into(),
            None => serde_json::from_value(asked["argv"].clone()).expect("a list of words"),
        };
        let mut words = vec!["run".to_owned()];
        for (name, value) in asked["env"].as_object().into_iter().flatten() {
            words.extend(["--env".to_owned(), format!("{name}={}", value.as_str().unwrap_or_default())]);
        }
        words.push("--".to_owned());
        words.extend(argv);
        let answer = bench.run(&words);
        let document = bench.json(&["show", "--json"]);
        let verdict = document["decision"]["verdict"].as_str().unwrap_or_default().to_owned();
        let right = match row["expect"].as_str() {
            // Not every program of the table is on every machine.
            Some("allow") => ["allow", "narrow"].contains(&verdict.as_str()) && answer.code != Some(126),
            _ => ["require-approval", "deny"].contains(&verdict.as_str()) && document["ran"] == "no",
        };
        if !right {
            wrong.push(format!("{}: {verdict}, ran {}: {answer:?}", row["id"], document["ran"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_command_that_only_reads_is_held_to_reading() {
    let bench = Bench::new();
    bench.settings("policy = \"cautious\"\n");
    let answer = bench.run(&["run", "--", "cat", "README"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let document = bench.json(&["show", "--json"]);
    assert_eq!(document["decision"]["verdict"], "narrow");
    assert_eq!(document["decision"]["grant"]["workspace"], "read-only", "{document:#}");
    let stopped = bench.run(&["run", "--", "touch", "made"]);
    assert_eq!(stopped.code, Some(126), "{stopped:?}");
    assert_eq!(bench.json(&["show", "--json"])["decision"]["reason"], "needs-approval");
    let listed = bench.run(&["run", "--", "ls"]);
    assert!(!listed.out.contains("made"), "{listed:?}");
}

/// A repository can make git run programs of its own, which no word of `git status` tells.
#[test]
fn a_command_that_was_misread_still_cannot_write() {
    use std::os::unix::fs::PermissionsExt;

    let bench = Bench::new();
    bench.write("watch", "#!/bin/sh\ntouch \"$PWD/made\" 2>/dev/null && echo wrote >&2 || echo tried >&2\n");
    fs::set_permissions(bench.file("watch"), fs::Permissions::from_mode(0o755)).expect("is ours");
    bench.commit();
    bench.git(&["config", "core.fsmonitor", "./watch"]);
    let free = bench.run(&["run", "--new-task", "--", "git", "status"]);
    assert!(free.err.contains("wrote"), "with the default bundle it writes into its layer: {free:?}");
    bench.settings("policy = \"cautious\"\n");
    let held = bench.run(&["run", "--new-task", "--", "git", "status"]);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.err.contains("tried") && !held.err.contains("wrote"), "{held:?}");
    assert_eq!(bench.json(&["show", "--json"])["inspection"]["changes"], json!([]));
}

#[test]
fn a_person_sees_every_hostile_request_whole_and_harmless() {
    let bench = Bench::new();
    for (row, asked) in rows("screens.jsonl") {
        let answer = bench.ask(&["approvals", "render", "--stdin"], &asked.to_string());
        assert_eq!(answer.code, Some(0), "{}: {answer:?}", row["id"]);
        for hidden in row["hide"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(!answer.out.contains(hidden), "{}: shows {hidden:?}", row["id"]);
        }
        for shown in row["show"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(answer.out.contains(shown), "{}: does not show {shown:?}\n{}", row["id"], answer.out);
        }
        let longest = answer.out.lines().map(str::len).max().unwrap_or(0);
        assert!(answer.out.lines().count() < 60, "{}: is longer than a screen\n{}", row["id"], answer.out);
        assert!(row["id"] != "S-07" || longest < 200, "{}: goes beyond the edge\n{}", row["id"], answer.out);
    }
}

#[test]
fn the_answer_as_json_fits_its_schema() {
    let bench = Bench::new();
    for verb in [&["policy", "decide"], &["approvals", "render"]] {
        let words =
            [verb.as_slice(), &["--json", "--bundle", "cautious", "--", "git", "push", "x\u{202e}"]].concat();
        let document = bench.json(&words);
        fits("policy-decide", &document);
        assert_eq!(document["answer"], "ask");
        assert_eq!(document["way_back"], "irreversible");
        assert_eq!(document["roles"], json!(["person"]));
    }
}

#[test]
fn rules_that_cannot_be_used_let_nothing_run() {
    let bench = Bench::new();
    let rules = bench.path("rules.cedar");
    bench.settings(&format!("policy = \"{}\"\n", rules.display()));
    let missing = bench.sh("true");
    assert_eq!(missing.code, Some(126), "{missing:?}");
    assert!(missing.err.contains("cannot read") && missing.err.contains("rules.cedar"), "{missing:?}");
    assert_eq!(bench.run(&["log"]).code, Some(0), "what was recorded can be looked at");
    assert_eq!(bench.run(&["config", "check"]).code, Some(1), "and the check says so");
    for (text, why) in [
        ("", "holds no rule"),
        ("permit (principal, action", "cannot be read"),
        ("permit (principal, action, resource);", "has no `@id`"),
        (
            r#"@id("x") @reason("x") permit (principal, action == Action::"fly", resource);"#,
            "does not fit the schema",
        ),
    ] {
        fs::write(&rules, text).expect("writes");
        let answer = bench.sh("true");
        assert_eq!(answer.code, Some(126), "{text}: {answer:?}");
        assert!(answer.err.contains(why), "{text}: {answer:?}");
        assert_eq!(bench.json(&["show", "--json"])["decision"]["reason"], "no-usable-policy", "{text}");
        let checked = bench.run(&["policy", "check", &rules.to_string_lossy()]);
        assert_eq!(checked.code, Some(1), "{text}: {checked:?}");
        assert!(checked.out.contains(why), "{text}: {checked:?}");
    }
    let shipped = bench.run(&["policy", "show", "cautious"]);
    fs::write(&rules, shipped.out).expect("writes");
    assert_eq!(bench.run(&["policy", "check", &rules.to_string_lossy()]).code, Some(0));
    assert_eq!(bench.run(&["run", "--", "cat", "README"]).out, "one\ntwo\nthree\n");
}

#[test]
fn a_request_that_is_none_is_refused_with_what_is_wrong() {
    let bench = Bench::new();
    for (request, why) in [
        ("", "no JSON object"),
        ("[]", "no JSON object"),
        (r#"[["ls"]]"#, "no JSON object"),
        (r#"{"argv": ["ls"], "argv": ["rm", "x"]}"#, "duplicate field"),
        ("{}", "either `argv` or `shell`"),
        (r#"{"argv": ["a"], "shell": "b"}"#, "either `argv` or `shell`"),
        (r#"{"argv": []}"#, "no program is named"),
        (r#"{"argv": ["a\u0000"]}"#, "NUL"),
        (r#"{"shell": "a\u0000"}"#, "NUL"),
        (r#"{"argv": ["a"], "cwd": "../x"}"#, "climbs"),
        (r#"{"argv": ["a"], "cwd": "/elsewhere"}"#, "outside the workspace"),
        (r#"{"argv": ["a"], "env": {"A B": "1"}}"#, "environment variable"),
        (r#"{"argv": ["a"], "evn": {}}"#, "unknown field"),
    ] {
        let answer = bench.ask(&["policy", "decide", "--bundle", "cautious", "--stdin"], request);
        assert_eq!(answer.code, Some(125), "{request}: {answer:?}");
        assert!(answer.err.contains(why), "{request}: {answer:?}");
    }
    let bundle = bench.run(&["policy", "decide", "--bundle", "cautius", "--", "ls"]);
    assert!(bundle.err.contains("did you mean `cautious`?"), "{bundle:?}");
}
