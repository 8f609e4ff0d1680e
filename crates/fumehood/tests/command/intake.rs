//! `task new`: what is wanted is fixed before anything is done, and all that is done is held to it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bench::{Answer, Bench, fits};

impl Bench {
    /// Asks for a task, and returns the answer and the document.
    fn asked(&self, words: &[&str]) -> (Answer, Value) {
        let answer = self.run(&[&["task", "new", "--json"], words].concat());
        let document: Value =
            serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        fits("task-new", &document);
        (answer, document)
    }

    /// Opens a task, and returns its name.
    fn opened(&self, words: &[&str]) -> String {
        let (answer, document) = self.asked(words);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        document["task"]["task"].as_str().expect("an id").to_owned()
    }

    fn sensitive(&self, word: &str) {
        let here = self.file(".").canonicalize().expect("is there");
        self.settings(&format!("[repository.\"{}\"]\nsensitivity = \"{word}\"\n", here.display()));
    }

    fn in_task(&self, task: &str, line: &str) -> Answer {
        self.run(&["run", "--task", task, "--", "sh", "-c", line])
    }
}

const PLAIN: [&str; 6] = ["--outcome", "it works", "--path", "src", "--test", "make check"];

#[test]
fn what_is_wanted_is_on_the_record_and_shown_and_stays_as_it_was() {
    let bench = Bench::new();
    bench.sensitive("internal");
    let words = [
        "--agent",
        "m",
        "--deadline",
        "2h",
        "--memory",
        "64MiB",
        "--max-actions",
        "9",
        "--artifact",
        "report",
    ];
    let task = bench.opened(&[&PLAIN[..], &words].concat());
    let shown = bench.json(&["task", "show", &task, "--json"]);
    fits("task", &shown);
    let intake = &shown["intake"];
    for (key, is) in [
        ("agent", json!("m")),
        ("branch", json!("main")),
        ("sensitivity", json!("internal")),
        ("claimed_outcome", json!("it works")),
        ("level", json!(3)),
        ("max_actions", json!(9)),
        ("paths", json!(["src"])),
        ("tests", json!([["sh", "-c", "make check"]])),
        ("artifacts", json!(["report"])),
    ] {
        assert_eq!(intake[key], is, "{intake:#}");
    }
    assert!(shown["commit"].is_string() && intake["deadline"].is_string(), "{shown:#}");
    assert_eq!(intake["limits"]["memory"], 64 << 20);
    let text = bench.run(&["task", "show", &task]).out;
    assert!(
        text.contains("level 3, no network, on what is internal") && text.contains("make check"),
        "{text}"
    );
    let record = bench.run(&["audit", "show", "--task", &task]).out;
    assert!(record.contains("intake") && record.contains("level 3 on what is internal"), "{record}");

    bench.sensitive("public");
    assert_eq!(bench.in_task(&task, "true").code, Some(0));
    assert_eq!(bench.run(&["task", "stop", &task]).code, Some(0));
    assert_eq!(bench.run(&["task", "resume", &task]).code, Some(0));
    assert_eq!(bench.json(&["task", "show", &task, "--json"])["intake"], *intake, "nothing changes it");
}

#[test]
fn what_is_too_broad_or_unclear_for_its_level_is_refused_with_the_reasons() {
    let bench = Bench::new();
    let refused = |words: &[&str], why: &[&str]| {
        let (answer, document) = bench.asked(words);
        assert!(answer.code == Some(126) && document["task"].is_null(), "{answer:?}");
        let lacks = document["lacks"].to_string();
        assert!(why.iter().all(|why| lacks.contains(why)), "{lacks}");
        assert_eq!(document["lacks"].as_array().map(Vec::len), Some(why.len()), "{lacks}");
    };
    refused(&[], &["--outcome", "--path"]);
    refused(&["--level", "2"], &["--outcome"]);
    // Nobody said how sensitive the repository is, so it is as sensitive as can be.
    refused(&[&PLAIN[..], &["--level", "5", "--deadline", "1h"]].concat(), &["no further than level 4"]);
    refused(&[&PLAIN[..], &["--network"]].concat(), &["a network is for level 5"]);
    refused(&["--outcome", "x", "--path", "../x"], &["outside the workspace"]);
    bench.sensitive("public");
    refused(
        &["--outcome", "x", "--level", "6", "--path", "."],
        &["--deadline", "not all of them", "--test", "--max-actions"],
    );
    assert_eq!(bench.json(&["task", "list", "--all", "--json"])["tasks"], json!([]), "no task was opened");
    let record = bench.run(&["audit", "show"]).out;
    assert!(record.contains("intake-refused") && record.contains("no further than level 4"), "{record}");
    let budget = ["--level", "6", "--deadline", "1h", "--max-actions", "9", "--max-processor-time", "1h"];
    bench.opened(&[&PLAIN[..], &budget].concat());
}

#[test]
fn a_request_with_a_secret_in_what_must_hold_is_refused_and_keeps_none() {
    let bench = Bench::new();
    let secret = "ghp_q8Zr2LxP0vN5tYc7Wd1Kq8Zr2LxP0vN5tYc7";
    let (answer, _) =
        bench.asked(&["--outcome", secret, "--path", "src", "--test", &format!("deploy {secret}")]);
    assert_eq!(answer.code, Some(126), "{answer:?}");
    let task = bench.opened(&["--outcome", secret, "--path", "src"]);
    let shown = bench.run(&["task", "show", &task]).out;
    let record = bench.run(&["audit", "show", "--json"]).out;
    assert!(!shown.contains(secret) && !record.contains(secret), "{shown}");
}

#[test]
fn a_file_says_what_is_wanted_and_the_repository_has_no_say_in_how_sensitive_it_is() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("task.toml"),
        "outcome = \"it works\"\nlevel = 2\n[acceptance]\npaths = [\"src\"]\n[limits]\nmemory = \"64MiB\"\n",
    )
    .expect("writes");
    let task = bench.opened(&["--intake", "../task.toml", "--level", "3"]);
    let intake = bench.json(&["task", "show", &task, "--json"])["intake"].clone();
    assert_eq!((&intake["level"], &intake["paths"]), (&json!(3), &json!(["src"])));
    let path = bench.file(".").canonicalize().expect("is there");
    let claim = format!("[repository.\"{}\"]\nsensitivity = \"public\"\n", path.display());
    bench.write(".fumehood.toml", &claim);
    let answer = bench.run(&["run", "--task", &task, "--", "true"]);
    assert_eq!(answer.code, Some(0), "the task starts from a commit without it: {answer:?}");
    bench.commit();
    let (_, document) = bench.asked(&PLAIN);
    assert_eq!(document["intake"]["sensitivity"], "restricted");
    for wrong in ["--level=7", "--kind=renamed", "--deadline=soon", "--outcome= ", "--intake=nowhere.toml"] {
        let answer = bench.run(&["task", "new", wrong]);
        assert!(answer.code == Some(125) && !answer.err.contains("panicked"), "{wrong}: {answer:?}");
    }
}

#[test]
fn nothing_raises_the_ceiling_of_a_task_nor_that_of_a_fork() {
    let bench = Bench::new();
    let task = bench.opened(&[&PLAIN[..], &["--timeout", "20s"]].concat());
    let granted = |task: &str| {
        let answer = bench.in_task(task, "true");
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let action =
            bench.json(&["log", task, "--json"])["log"][0]["action"].as_str().expect("an id").to_owned();
        let shown = bench.json(&["show", &action, "--json"]);
        (shown["decision"]["verdict"].clone(), shown["decision"]["grant"]["limits"]["wall_time_ms"].clone())
    };
    assert_eq!(granted(&task), (json!("narrow"), json!(20_000.0)));
    let fork = bench.run(&["fork", &task]).out.trim().to_owned();
    let fork_shown = bench.json(&["task", "show", &fork, "--json"]);
    assert_eq!(fork_shown["intake"]["limits"]["wall_time_ms"], json!(20_000.0));
    assert_eq!(granted(&fork), (json!("narrow"), json!(20_000.0)));
}

#[test]
fn in_a_task_that_only_reads_no_program_runs() {
    let bench = Bench::new();
    let task = bench.opened(&["--level", "1", "--outcome", "say where the time goes"]);
    let answer = bench.in_task(&task, "echo x > made");
    assert!(answer.code == Some(126) && answer.err.contains("at level 1 to read only"), "{answer:?}");
    assert_eq!(bench.json(&["show", "--json"])["decision"]["reason"], "task-ceiling");
    assert_eq!(bench.run(&["diff", &task]).out, "no changes\n");
}

#[test]
fn the_rules_of_its_level_decide_in_a_task_beside_those_of_the_settings() {
    let bench = Bench::new();
    let at = |level: &str| bench.opened(&["--level", level, "--outcome", "x", "--test", "true"]);
    for (level, code, reason, rule) in [
        ("2", 126, "level-installs-nothing", "task/installs-nothing"),
        ("3", 126, "package-nobody-chose", "task/new-packages-ask"),
    ] {
        let task = at(level);
        let answer = bench.run(&["run", "--task", &task, "--", "pip", "install", "requests"]);
        assert_eq!(answer.code, Some(code), "{level}: {answer:?}");
        let decision = bench.json(&["show", "--json"])["decision"].clone();
        assert!(decision["rules"].to_string().contains(rule), "{level}: {decision:#}");
        assert_eq!(decision["reason"], reason, "{level}: {decision:#}");
        // Nothing of that holds where no task was taken in for it.
        assert_eq!(bench.run(&["discard", &task]).code, Some(0));
    }
    let answer = bench.run(&["run", "--", "pip", "install", "requests"]);
    assert_ne!(answer.code, Some(126), "{answer:?}");
}

#[test]
fn changes_outside_of_what_was_wanted_wait_for_a_person() {
    let bench = Bench::new();
    let task = bench.opened(&["--outcome", "x", "--path", "src", "--kind", "created", "--kind", "modified"]);
    let line = "echo more >> src/code; echo x > src/new; mkdir -p lib; echo x > lib/a; rm README";
    assert_eq!(bench.in_task(&task, line).code, Some(0));
    let shown = bench.json(&["show", "--json"]);
    let held = shown["inspection"]["held_back"].to_string();
    assert!(held.contains("lib/a") && held.contains("README") && held.contains("not-accepted"), "{held}");
    let applied = bench.json(&["apply", &task, "--yes", "--json"]);
    fits("apply", &applied);
    assert_eq!(bench.read("src/code"), "code\nmore\n");
    assert!(bench.file("README").exists() && !bench.file("lib/a").exists(), "{applied:#}");
    let answer = bench.run(&["apply", &task, "--yes", "--protected", "lib/a"]);
    assert!(bench.file("lib/a").exists() && bench.file("README").exists(), "{answer:?}");
}

#[test]
fn a_deadline_ends_what_runs_and_refuses_new_starts() {
    let bench = Bench::new();
    let task = bench.opened(&[&PLAIN[..], &["--deadline", "8s", "--dirty"]].concat());
    let since = Instant::now();
    let answer = bench.in_task(&task, "sleep 60");
    assert!(since.elapsed() < Duration::from_secs(50), "{answer:?}");
    assert_eq!(answer.code, Some(124), "{answer:?}");
    let answer = bench.in_task(&task, "true");
    assert!(
        answer.code == Some(126) && answer.err.contains("the deadline of this task passed"),
        "{answer:?}"
    );
    assert_eq!(bench.json(&["show", "--json"])["decision"]["reason"], "deadline-passed");
    let fork = bench.run(&["fork", &task]).out.trim().to_owned();
    assert_eq!(bench.in_task(&fork, "true").code, Some(126), "a fork gets no more time");
    let played = concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/transcripts/demo.jsonl");
    let agent = bench.run(&["agent", "--task", &task, "--replay", played]);
    assert!(agent.code == Some(125) && agent.err.contains("the deadline of this task passed"), "{agent:?}");
}

#[test]
fn a_budget_is_shared_with_forks_and_ends_the_work() {
    let bench = Bench::new();
    let task = bench.opened(&[&PLAIN[..], &["--max-actions", "2", "--dirty"]].concat());
    assert_eq!(bench.in_task(&task, "true").code, Some(0));
    let fork = bench.run(&["fork", &task]).out.trim().to_owned();
    assert_eq!(bench.in_task(&fork, "true").code, Some(0));
    for task in [&task, &fork] {
        let answer = bench.in_task(task, "true");
        assert!(
            answer.code == Some(126) && answer.err.contains("budget of this task is spent"),
            "{answer:?}"
        );
        let shown = bench.json(&["log", task, "--json"]);
        assert_eq!(shown["log"][1]["ending"], "denied (budget-spent)", "{shown:#}");
    }
}
