//! Requests for a person's yes, from the question to what comes of the answer.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

impl Bench {
    /// Returns a bench where everything but reading needs a person's yes.
    pub(crate) fn cautious() -> Self {
        let bench = Self::new();
        bench.settings("policy = \"cautious\"\n");
        bench
    }

    /// Runs what needs a yes, and returns the request.
    pub(crate) fn asks(&self, words: &[&str]) -> String {
        let answer = self.run(words);
        assert_eq!(answer.code, Some(126), "{answer:?}");
        let part = self.json(&["show", "--json"])["approval"].clone();
        part["approval"].as_str().unwrap_or_else(|| panic!("nobody was asked: {answer:?}")).to_owned()
    }

    pub(crate) fn approve(&self, approval: &str) -> Answer {
        self.run(&["approvals", "approve", approval, "--yes", "--json"])
    }

    /// Returns where a request stands.
    pub(crate) fn standing(&self, approval: &str) -> String {
        let list = self.json(&["approvals", "list", "--all", "--json"]);
        fits("approval-list", &list);
        let rows = list["approvals"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["approval"] == approval).expect("is listed");
        row["state"].as_str().expect("a word").to_owned()
    }

    /// Returns what the layers of the open task show of a file.
    pub(crate) fn inside(&self, file: &str) -> String {
        self.run(&["run", "--quiet", "--", "cat", file]).out
    }

    pub(crate) fn dossier(&self, approval: &str) -> Value {
        let dossier = self.json(&["approvals", "show", approval, "--json"]);
        fits("approval", &dossier);
        dossier
    }

    /// Returns how often an event is on the record.
    pub(crate) fn events(&self, name: &str) -> usize {
        self.run(&["audit", "show"]).out.lines().filter(|line| line.contains(&format!(" {name} "))).count()
    }
}

pub(crate) fn state(answer: &Answer) -> String {
    let document: Value =
        serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    fits("approval-answer", &document);
    document["state"].as_str().expect("a word").to_owned()
}

#[test]
fn what_was_tried_and_shown_is_what_a_yes_keeps_and_it_is_not_run_again() {
    let bench = Bench::cautious();
    // It would write something else at each run.
    let approval = bench.asks(&["run", "--", "sh", "-c", "od -An -N8 -tx8 /dev/urandom > made"]);
    assert_eq!(bench.inside("made"), "", "nobody said yes, and it is there");
    let dossier = bench.dossier(&approval);
    let patch = dossier["measured"]["patch"].as_str().expect("a text").to_owned();
    assert!(patch.contains("+++ b/made"), "{patch}");
    assert_eq!(dossier["measured"]["end"]["ending"]["ended"], "exited", "{dossier:#}");
    assert_eq!(dossier["way_back"], "by-layer");
    assert!(dossier["effects"].to_string().contains("write-path"), "{dossier:#}");
    let answer = bench.approve(&approval);
    assert_eq!((answer.code, state(&answer).as_str()), (Some(0), "kept"));
    let made = bench.inside("made");
    assert!(!made.is_empty() && patch.contains(&format!("+{made}")), "shown {patch}, kept {made}");
    let document = bench.json(&["show", dossier["approval"]["action"].as_str().expect("an id"), "--json"]);
    assert_eq!((&document["state"], &document["ran"]), (&"ended".into(), &"yes".into()), "{document:#}");
    assert_eq!(document["decision"]["verdict"], "allow");
    assert!(bench.run(&["undo"]).code == Some(0) && bench.inside("made").is_empty());
}

#[test]
fn a_script_that_changed_between_the_question_and_the_yes_gets_none() {
    let bench = Bench::cautious();
    bench.write("s.sh", "touch harmless\n");
    let approval = bench.asks(&["run", "--", "sh", "s.sh"]);
    bench.write("s.sh", "touch other\n");
    let answer = bench.approve(&approval);
    assert_eq!((answer.code, state(&answer).as_str()), (Some(1), "void"), "{answer:?}");
    assert!(answer.out.contains("s.sh"), "it says what changed: {answer:?}");
    assert!(!bench.run(&["run", "--quiet", "--", "ls"]).out.contains("harmless"));
    let again = bench.asks(&["run", "--", "sh", "s.sh"]);
    assert_ne!(again, approval, "it is asked for again");
}

#[test]
fn a_yes_that_is_used_later_covers_the_very_same_request_once() {
    let bench = Bench::cautious();
    let asked = ["run", "--env", "A=1", "--", "touch", "made"];
    // Values are not kept, so it cannot be tried and put together again.
    let approval = bench.asks(&asked);
    assert!(bench.dossier(&approval)["measured"].is_null());
    assert_eq!(state(&bench.approve(&approval)), "given");
    for other in [
        &["run", "--env", "A=2", "--", "touch", "made"][..],
        &["run", "--env", "A=1", "--", "touch", "other"],
        &["run", "--env", "A=1", "--", "touch made"],
        &["run", "--env", "A=1", "--cwd", "src", "--", "touch", "made"],
        &["run", "--env", "A=1", "--memory", "64MiB", "--", "touch", "made"],
        &["run", "--env", "A=1", "--agent", "other", "--", "touch", "made"],
        &["run", "--env", "A=1", "--hide", "README", "--", "touch", "made"],
    ] {
        assert_ne!(bench.asks(other), approval, "{other:?}");
    }
    // Input is not part of what was asked.
    let mut with_input = bench.command(&["run", "-i", "--env", "A=1", "--", "touch", "made"]);
    let mut child = with_input.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(126));
    assert_eq!(bench.standing(&approval), "given");
    assert_eq!(bench.run(&asked).code, Some(0), "the very same thing runs");
    assert_eq!(bench.standing(&approval), "used");
    assert_ne!(bench.asks(&asked), approval, "and only once");
}

#[test]
fn a_yes_is_for_one_task_and_can_be_taken_back() {
    let bench = Bench::cautious();
    let asked = ["run", "--env", "A=1", "--", "touch", "made"];
    let approval = bench.asks(&asked);
    assert_eq!(state(&bench.approve(&approval)), "given");
    let elsewhere = bench.asks(&["run", "--new-task", "--env", "A=1", "--", "touch", "made"]);
    assert_ne!(elsewhere, approval);
    let task = bench.dossier(&approval)["approval"]["task"].as_str().expect("an id").to_owned();
    let revoked = bench.run(&["approvals", "revoke", &approval, "--reason", "too early", "--json"]);
    assert_eq!(state(&revoked), "revoked");
    let late = bench.asks(&["run", "--task", &task, "--env", "A=1", "--", "touch", "made"]);
    assert_ne!(late, approval);
}

#[test]
fn a_second_yes_is_worth_nothing_and_on_the_record() {
    let bench = Bench::cautious();
    let approval = bench.asks(&["run", "--", "touch", "made"]);
    let racing: Vec<_> = (0..4).map(|_| bench.start(&["approvals", "approve", &approval, "--yes"])).collect();
    let racing = racing.into_iter().map(|child| Answer::of(child.wait_with_output().expect("it ends")));
    let racing: Vec<Answer> = racing.collect();
    let taken = racing.iter().filter(|answer| answer.code == Some(0)).count();
    assert_eq!(taken, 1, "{racing:?}");
    assert_eq!(bench.events("approval-closed"), 1);
    let late = bench.approve(&approval);
    assert!(late.code == Some(125) && late.out.contains("is kept already"), "{late:?}");
    assert!(bench.events("approval-refused") >= 1);
    assert_eq!(bench.json(&["log", "--json"])["log"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_no_stays_a_no_and_its_reason_reaches_whoever_asked() {
    let bench = Bench::cautious();
    let approval = bench.asks(&["run", "--", "touch", "made"]);
    let denied = bench.run(&["approvals", "deny", &approval, "--reason", "use the\u{1b}[31m tool", "--json"]);
    assert_eq!(state(&denied), "refused");
    let again = bench.run(&["run", "--", "touch", "made"]);
    assert_eq!(again.code, Some(126), "{again:?}");
    assert!(again.err.contains("is refused: use the\\u{1b}[31m tool"), "{again:?}");
    let list = bench.json(&["approvals", "list", "--all", "--json"]);
    assert_eq!(list["approvals"].as_array().map(Vec::len), Some(1), "nobody is asked again: {list:#}");
    assert_eq!(list["approvals"][0]["repeats"], 1);
    let late = bench.approve(&approval);
    assert!(late.code == Some(125) && late.out.contains("is refused already"), "{late:?}");
}

#[test]
fn a_flood_is_grouped_and_stopped_and_nothing_of_it_runs() {
    let bench = Bench::cautious();
    for number in 0..24 {
        let name = format!("made{number}");
        // Asked twice in a row: the second is no other request.
        for _ in 0..2 {
            let answer = bench.run(&["run", "--env", "A=1", "--", "touch", &name]);
            assert_eq!(answer.code, Some(126), "{answer:?}");
        }
    }
    let stats = bench.json(&["approvals", "stats", "--json"]);
    fits("approval-stats", &stats);
    let number = |key: &str| stats[key].as_u64().expect("a number");
    assert_eq!((number("asked"), number("repeats"), number("waiting")), (20, 20, 20), "{stats:#}");
    assert_eq!(number("approved"), 0);
    let last = bench.run(&["run", "--env", "A=1", "--", "touch", "made23"]);
    assert!(last.err.contains("nobody is asked: 20 requests"), "{last:?}");
    assert!(!bench.run(&["run", "--quiet", "--", "ls"]).out.contains("made"));
}

#[test]
fn nothing_that_an_agent_started_answers_for_a_person() {
    let bench = Bench::cautious();
    let approval = bench.asks(&["run", "--agent", "harness", "--", "touch", "made"]);
    // The test is what the agent came through, and it starts every one of these.
    let program = env!("CARGO_BIN_EXE_fumehood");
    let yes = format!("exec {program} approvals approve {approval} --yes");
    let starts = |how: &[&str]| {
        let mut command = bench.command_of(std::path::Path::new("/usr/bin/env"), how);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts").success()
    };
    let namespace = ["unshare", "--user", "--map-current-user", "--pid", "--fork"];
    // Not every host lets users make namespaces of their own.
    let has_namespaces = starts(&[&namespace[..], &["true"]].concat());
    starts(&["sh", "-c", &yes]);
    starts(&["setsid", "--wait", "sh", "-c", &yes]);
    starts(&["setsid", "--fork", "sh", "-c", &yes]);
    starts(&[&namespace[..], &["sh", "-c", &yes]].concat());
    let refused = 3 + usize::from(has_namespaces);
    // What was cut off from us goes on by itself.
    let until = Instant::now() + Duration::from_secs(20);
    while bench.events("approval-refused") < refused && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(bench.events("approval-refused"), refused);
    assert_eq!(bench.standing(&approval), "open");
    let answer = bench.run(&["approvals", "deny", &approval]);
    assert!(answer.code == Some(125) && answer.err.contains("not taken"), "{answer:?}");
}

#[test]
fn a_trial_that_was_cut_off_is_nothing_to_say_yes_to() {
    let bench = Bench::cautious();
    let mut child = bench.start(&["run", "--", "sh", "-c", "touch made; sleep 60"]);
    let until = Instant::now() + Duration::from_secs(30);
    while bench.events("started") == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    let listed = bench.json(&["approvals", "list", "--json"]);
    let approval = listed["approvals"][0]["approval"].as_str().expect("is listed").to_owned();
    let early = bench.approve(&approval);
    assert!(early.code == Some(125), "its task is busy, or it is being tried: {early:?}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(bench.standing(&approval), "void");
    let late = bench.approve(&approval);
    assert!(late.code == Some(125) && late.out.contains("is void already"), "{late:?}");
    assert!(!bench.run(&["run", "--quiet", "--", "ls"]).out.contains("made"));
}

#[test]
fn whoever_waits_gets_what_became_of_the_request() {
    let bench = Bench::cautious();
    let child = bench.start(&["run", "--wait", "60s", "--json", "--", "sh", "-c", "touch made; exit 3"]);
    let waits = || bench.json(&["approvals", "list", "--json"])["approvals"][0].clone();
    let until = Instant::now() + Duration::from_secs(30);
    while waits()["state"] != "open" && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(state(&bench.approve(waits()["approval"].as_str().expect("an id"))), "kept");
    let answer = Answer::of(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    let document: Value =
        serde_json::from_str(answer.err.lines().last().unwrap_or_default()).expect("the document");
    fits("action", &document);
    assert_eq!(document["state"], "ended");
    let timed = bench.run(&["run", "--wait", "1s", "--", "touch", "other"]);
    assert_eq!(timed.code, Some(126), "no answer is a no: {timed:?}");
}

#[test]
fn a_person_is_shown_all_of_it_and_harmless() {
    let bench = Bench::cautious();
    let approval = bench.asks(&[
        "run",
        "--",
        "sh",
        "-c",
        "printf 'a\\033[2Jb\\n' > 'x\u{202e}y'; true     \t\t           hidden",
    ]);
    let shown = bench.run(&["approvals", "show", &approval]).out;
    for harmful in ["\u{1b}", "\u{202e}"] {
        assert!(!shown.contains(harmful), "{shown}");
    }
    for wanted in ["a\\u{1b}[2Jb", "x\\u{202e}y", "hidden", "way back", "not measured", "approvals deny"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

#[test]
fn what_a_trial_left_anywhere_is_shown_and_given_to_nobody_before_the_yes() {
    let bench = Bench::cautious();
    let leaves = "echo out > \"$FUMEHOOD_ARTIFACTS/report\"";
    let approval = bench.asks(&["run", "--", "sh", "-c", leaves]);
    let shown = bench.run(&["approvals", "show", &approval]).out;
    assert!(shown.contains("report as an artifact") && !shown.contains("changed nothing"), "{shown}");
    assert_eq!(bench.json(&["artifacts", "list", "--json"])["artifacts"], serde_json::json!([]));
    let action = bench.newest();
    let got = bench.run(&["artifacts", "get", "--from", &action, "report"]);
    assert!(got.code == Some(125) && !got.out.contains("out"), "{got:?}");
    assert_eq!(state(&bench.approve(&approval)), "kept");
    assert_eq!(bench.run(&["artifacts", "get", "--from", &action, "report"]).out, "out\n");
}

#[test]
fn what_a_trial_wrote_to_the_repository_behind_a_worktree_is_shown() {
    let bench = Bench::cautious();
    bench.git(&["worktree", "add", "--quiet", "../linked", "-b", "linked"]);
    let linked = bench.path("linked").display().to_string();
    let plants = "echo x > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"";
    let answer = bench.run(&["run", "-w", &linked, "--", "sh", "-c", plants]);
    assert_eq!(answer.code, Some(126), "{answer:?}");
    let list = bench.json(&["approvals", "list", "--json"]);
    let approval = list["approvals"][0]["approval"].as_str().expect("is asked").to_owned();
    let shown = bench.run(&["approvals", "show", &approval]).out;
    assert!(shown.contains("hooks/pre-commit in the git repository"), "{shown}");
    assert_eq!(bench.dossier(&approval)["way_back"], "by-layer");
}

#[test]
fn a_yes_shows_all_that_it_gives() {
    let bench = Bench::cautious();
    let input = bench.path("home").display().to_string();
    let data = format!("data={input}");
    let words = ["run", "--input", &data, "--hide", "docs", "--timeout", "7s", "--", "touch", "made"];
    let shown = bench.run(&["approvals", "show", &bench.asks(&words)]).out;
    for wanted in [&format!("/inputs/data shows {input}"), "docs is hidden", "7.0 s"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}

#[test]
fn what_no_yes_could_let_run_is_not_asked() {
    let bench = Bench::cautious();
    let words = ["run", "-i", "--env", "A=1", "--", "sh", "-s"];
    let mut child =
        bench.command(&words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdin.take());
    let answer = Answer::of(child.wait_with_output().expect("it ends"));
    assert_eq!(answer.code, Some(126), "{answer:?}");
    assert!(answer.err.contains("nobody is asked") && answer.err.contains("--input"), "{answer:?}");
    assert_eq!(bench.json(&["approvals", "list", "--all", "--json"])["approvals"], serde_json::json!([]));
}
