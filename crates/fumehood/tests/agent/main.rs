//! `agent`, `task resume` and `demo`, with the real program and a played model. Works as root and as an ordinary user;
//! needs git.
#![allow(clippy::disallowed_methods, reason = "the tests start the program")]

mod approvals;
mod bench;
mod contexts;
mod demo;
mod resume;
mod rows;

use std::fs;
use std::path::Path;

use agent::replay::{ReplayServer, Transcript};
use bench::{Bench, DEMO, answer, fits};
use serde_json::json;

/// Writes the demo's transcript to a file and returns its name.
fn demo_file(bench: &Bench) -> String {
    bench.file("demo.jsonl", DEMO).to_str().expect("text").to_owned()
}

#[test]
fn a_played_model_fixes_the_repository_and_the_host_is_not_touched() {
    let bench = Bench::new();
    let (code, document) = bench.json(&["agent", "--json", "--replay", &demo_file(&bench), "fix the slugs"]);
    assert_eq!(code, 0, "{document:#}");
    fits("agent", &document);
    assert_eq!(document["ended"], "finished");
    let changes: Vec<&str> =
        document["changes"].as_array().expect("a list").iter().filter_map(|c| c["path"].as_str()).collect();
    assert_eq!(changes, ["src/slug.sh"]);
    assert!(document["patch"].as_str().expect("a text").contains("+    slug_text="), "{}", document["patch"]);
    let codes: Vec<&str> =
        document["refused"].as_array().expect("a list").iter().filter_map(|r| r["code"].as_str()).collect();
    assert_eq!(codes, ["no-network", "no-network", "protected-path"]);
    let tried: Vec<bool> =
        document["confinement"].as_array().expect("a list").iter().map(|p| p["held"] == true).collect();
    assert!(tried.len() > 5 && tried.iter().all(|held| *held), "{}", document["confinement"]);
    assert!(document["prompt_cache_miss_tokens"].as_u64().expect("a number") > 0);
    let slug = fs::read_to_string(bench.repository().join("src/slug.sh")).expect("is there");
    assert!(!slug.contains("tr -cs"), "the host's directory was written to");
    assert!(!bench.repository().join(".git/hooks/pre-commit").exists());
    assert!(bench.run(&["audit", "verify"]).status.success());
}

#[test]
fn what_a_model_did_is_applied_when_that_was_said_beforehand() {
    let bench = Bench::new();
    let demo = demo_file(&bench);
    let (code, document) =
        bench.json(&["agent", "--json", "--apply", "clean", "--replay", &demo, "fix the slugs"]);
    assert_eq!(code, 0, "{document:#}");
    let slug = fs::read_to_string(bench.repository().join("src/slug.sh")).expect("is there");
    assert!(slug.contains("tr -cs"), "{slug}");
    let (_, tasks) = bench.json(&["task", "list", "--all", "--json"]);
    assert_eq!(tasks["tasks"][0]["state"], "applied", "{tasks:#}");
    let output =
        bench.run(&["task", "resume", tasks["tasks"][0]["task"].as_str().expect("an id"), "--replay", &demo]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && text.contains("it cannot go on"), "{text}");
}

#[test]
fn a_task_starts_from_the_commit_or_from_the_directory_as_it_stands() {
    let bench = Bench::new();
    fs::write(bench.repository().join("README.md"), "edited\n").expect("a file");
    let look = ("run_command", json!({ "command": "head -1 README.md > seen" }));
    let play = bench.transcript(&[look, ("finish", json!({ "summary": "done" }))]);
    let play = play.to_str().expect("text");
    for (more, seen) in [(None, "+# slug"), (Some("--dirty"), "+edited")] {
        let mut arguments = vec!["agent", "--json", "--replay", play, "look"];
        arguments.extend(more);
        let (code, document) = bench.json(&arguments);
        assert_eq!(code, 0, "{document:#}");
        assert_eq!(document["commit"].is_null(), more.is_some());
        assert!(document["patch"].as_str().expect("a text").contains(seen), "{}", document["patch"]);
    }
}

#[test]
fn the_key_reaches_the_model_and_no_file_and_no_command() {
    let bench = Bench::new();
    let key = "sk-0123456789abcdef0123456789abcdef";
    let probe = (
        "run_command",
        json!({ "command": "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'" }),
    );
    // A model that has learned it says it, and is asked about it.
    let says = ("run_command", json!({ "command": format!("echo {key}") }));
    let play = bench.transcript(&[probe, says, ("finish", json!({ "summary": format!("it is {key}") }))]);
    let transcript = Transcript::parse(&fs::read(play).expect("is there")).expect("is well-formed");
    let server = ReplayServer::start(transcript).expect("a port");
    let asked = format!("look around for {key}");
    let mut command = bench.command(&["agent", "--json", "--base-url", &server.base_url(), &asked]);
    let output = command.env("DEEPSEEK_API_KEY", key).output().expect("it starts");
    let document = answer(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    assert!(server.requests() >= 3);
    let said = bench.json(&["show", "--json"]).1["request"]["argv"].to_string();
    assert!(said.contains("echo [secret:DEEPSEEK_API_KEY:"), "{said}");
    let files = files_below(&bench.path("state"));
    assert!(files.len() > 3);
    for file in files {
        let bytes = fs::read(&file).unwrap_or_default();
        assert!(
            !bytes.windows(key.len()).any(|window| window == key.as_bytes()),
            "{} holds the key",
            file.display()
        );
    }
}

#[test]
fn the_key_can_come_from_a_file_and_others_must_not_read_it() {
    let bench = Bench::new();
    let play = bench.transcript(&[("finish", json!({ "summary": "done" }))]);
    let transcript = Transcript::parse(&fs::read(play).expect("is there")).expect("is well-formed");
    let server = ReplayServer::start(transcript).expect("a port");
    let key = bench.file("key", "sk-0123456789abcdef0123456789abcdef\n");
    for (mode, warned) in [(0o600, false), (0o644, true)] {
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("a mode");
        let key = key.to_str().expect("text");
        let output = bench.run(&["agent", "-q", "--key-file", key, "--base-url", &server.base_url(), "look"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(said.contains("others can read the key"), warned, "{said}");
    }
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).expect("can be read").flatten() {
            match entry.file_type().expect("has a kind") {
                kind if kind.is_dir() => left.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    files
}

#[test]
fn what_is_missing_is_said_before_anything_is_opened() {
    let bench = Bench::new();
    let demo = demo_file(&bench);
    let cut = bench.file("cut.jsonl", &DEMO[..DEMO.len() / 2]);
    let plain = bench.path("plain");
    fs::create_dir(&plain).expect("a directory");
    let cases: &[(&[&str], &str)] = &[
        (&["agent", "do it"], "there is no key for the model"),
        (&["agent", "--replay", cut.to_str().expect("text"), "do it"], "it was cut"),
        (&["agent", "--replay", "/nonexistent", "do it"], "cannot read `/nonexistent`"),
        (&["agent", "--replay", &demo, "--profile", "strikt", "do it"], "did you mean `strict`?"),
        (&["agent", "--replay", &demo, "--repo", "/nonexistent", "do it"], "does not exist"),
        (&["task", "resume", "task-aaaaaaaaaaaaaaaa"], "no task"),
    ];
    for (arguments, said) in cases {
        let output = bench.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
    let (_, tasks) = bench.json(&["task", "list", "--all", "--json"]);
    assert_eq!(tasks["tasks"], json!([]));
    let output = bench.run(&["agent", "--replay", &demo, "--repo", plain.to_str().expect("text"), "do it"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && text.contains("it is not a git repository"), "{text}");
}

#[test]
fn a_repository_may_tighten_what_an_agent_gets_and_never_widen_it() {
    let bench = Bench::new();
    fs::write(bench.repository().join(".fumehood.toml"), "[ceiling]\nwall_time = \"1s\"\n").expect("a file");
    bench.git(&["add", ".fumehood.toml"]);
    bench.git(&["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "tighter"]);
    // What the working tree says does not count.
    fs::write(bench.repository().join(".fumehood.toml"), "nonsense").expect("a file");
    let slow = ("run_command", json!({ "command": "sleep 20" }));
    let play = bench.transcript(&[slow, ("finish", json!({ "summary": "done" }))]);
    let (code, document) = bench.json(&["agent", "--json", "--replay", play.to_str().expect("text"), "wait"]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["log"][0]["ending"], "passed its wall-time limit and was ended", "{document:#}");
}

#[test]
fn an_agent_that_cannot_go_on_says_why_and_what_to_do() {
    let bench = Bench::new();
    let list = ("list_directory", json!({}));
    let play = bench.transcript(&[list.clone(), list.clone(), list]);
    let play = play.to_str().expect("text");
    let (code, document) = bench.json(&["agent", "--json", "--max-turns", "2", "--replay", play, "look"]);
    assert_eq!((code, &document["ended"]), (1, &json!("failed")), "{document:#}");
    fits("agent", &document);
    assert_eq!(document["failure"]["code"], "turns");
    // Nobody listens there.
    let mut command = bench.command(&["agent", "--json", "--base-url", "http://192.0.2.1", "look"]);
    let output = command.env("DEEPSEEK_API_KEY", "sk-0123456789abcdef0123").output().expect("it starts");
    let document = answer(&output);
    assert_eq!(output.status.code(), Some(125), "{document:#}");
    assert_eq!(document["failure"]["code"], "address");
}
