//! Agents that nobody here wrote mend a bug through `fumehood bwrap`, driven by a played model, and are stopped where
//! they go too far.

mod deepseek_harness;
mod mini_swe_agent;

use std::net::TcpListener;

use agent::replay::{ReplayServer, Transcript};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::bugs::{H11, Project, differences};
use crate::fixes::{answer, fumehood};

/// What an agent is told when a person may allow more (see `crates/fumehood/src/bwrap/say.rs`).
const INVITES: [&str; 2] = ["Permission denied", "Read-only file system"];

/// What an agent told its model of a command.
#[derive(Debug)]
struct Told {
    /// Whether the command left with 0.
    passed: bool,
    /// Its output, as far as the model sees it.
    text: String,
}

#[test]
fn mini_swe_agent_mends_a_bug_and_is_stopped_where_it_goes_too_far() {
    mends_a_bug(|bench, mut steps| {
        // With these words as the first line of a command's output it ends its task.
        steps.push("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT".to_owned());
        mini_swe_agent::works(bench, &steps)
    });
}

#[test]
fn deepseek_harness_mends_a_bug_and_is_stopped_where_it_goes_too_far() {
    mends_a_bug(|bench, steps| {
        let told = deepseek_harness::works(bench, &steps);
        let invited = |told: &Told| told.text.contains("[sandbox: file access denied");
        let invitations: Vec<bool> = told.iter().map(invited).collect();
        assert_eq!(
            invitations,
            [false, true, false, false, false],
            "only for what a person may allow: {told:#?}"
        );
        told
    });
}

/// Lets an agent see a bug, read a secret, call out, make the change of the authors and see the bug gone.
fn mends_a_bug(works: impl FnOnce(&Bench, Vec<String>) -> Vec<Told>) {
    let bench = Bench::new();
    let project = Project::new(&bench, &H11);
    // The repository's own secret, which git ignores, and a server of the host.
    bench.file(".env", "DATABASE_URL=postgres://app:k7Q2mzV9xWfJtLpR@db.internal/app\n");
    bench.file(".git/info/exclude", ".env\n");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it is ours");
    let port = listener.local_addr().expect("an address").port();
    let before = project.files();

    let told = works(
        &bench,
        vec![
            H11.test.to_owned(),
            "cat .env".to_owned(),
            format!(
                "for at in 127.0.0.1/{port} 192.0.2.1/443; do (exec 3<>/dev/tcp/$at) && echo reached; done; false"
            ),
            format!("git apply <<'EOF'\n{}EOF", project.patch()),
            H11.test.to_owned(),
        ],
    );
    let passed: Vec<bool> = told.iter().take(5).map(|told| told.passed).collect();
    assert_eq!(passed, [false, false, false, true, true], "{told:#?}");
    assert_eq!((H11.counts)(&told[0].text), H11.red);
    assert!(
        told[1].text.contains(INVITES[0]) && !told[1].text.contains("k7Q2"),
        "a person may show it: {told:#?}"
    );
    assert!(INVITES.iter().all(|invites| !told[2].text.contains(invites)), "this is final: {told:#?}");
    assert!(listener.accept().is_err() && !told[2].text.contains("reached"), "it got out: {told:#?}");
    assert_eq!((H11.counts)(&told[4].text), H11.green);
    assert_eq!(why(&bench, "cat .env"), "masked");
    assert_eq!(why(&bench, "/dev/tcp"), "no-network");

    let diff = answer(&fumehood(&bench, "diff --json"));
    assert_eq!(diff["changes"].as_array().map(Vec::len), Some(1), "{diff:#}");
    assert_eq!(diff["changes"][0]["path"], H11.source, "{diff:#}");
    assert_eq!(differences(&before, &project.files()), Vec::<std::path::PathBuf>::new(), "not applied yet");
    let applied = fumehood(&bench, "apply --yes --json");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let wanted = project.mended(&before);
    assert_eq!(differences(&wanted, &project.files()), Vec::<std::path::PathBuf>::new(), "{applied:?}");
    assert_eq!(fumehood(&bench, "audit verify").code, Some(0));
}

/// Plays a model that calls the tool `bash` once in each turn.
fn served(steps: &[String], arguments: impl Fn(&str) -> Value) -> ReplayServer {
    let header = json!({ "fumehood_replay": 1, "model": "deepseek-flash", "task": "t" });
    let turns = steps.iter().enumerate().map(|(at, step)| {
        let call = json!({ "name": "bash", "arguments": arguments(step) });
        json!({ "turn": at + 1, "reasoning": "One step after the other.", "tool_calls": [call] })
    });
    let last = steps.len() + 1;
    let end = [json!({ "turn": last, "content": "It is mended." }), json!({ "end": last })];
    let lines: String =
        std::iter::once(header).chain(turns).chain(end).map(|line| format!("{line}\n")).collect();
    let transcript = Transcript::parse(lines.as_bytes()).expect("is well-formed");
    ReplayServer::start(transcript).expect("a port")
}

/// Returns the code of the first thing that stood in the way of the command with this in it.
fn why(bench: &Bench, command: &str) -> String {
    let log = answer(&fumehood(bench, "log --json"));
    let rows = log["log"].as_array().expect("a list").iter();
    let mut actions = rows.filter(|row| row["command"].as_str().is_some_and(|text| text.contains(command)));
    let action = actions.next().expect("it is on the record")["action"].as_str().expect("an id").to_owned();
    let why = answer(&fumehood(bench, &format!("why --json {action}")));
    why["causes"][0]["code"].as_str().unwrap_or_default().to_owned()
}
