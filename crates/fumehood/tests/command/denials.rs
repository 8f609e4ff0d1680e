//! The memory of denials: one answer to every way to the same effect, and none to its neighbours.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::bench::{Answer, Bench, fits};

impl Bench {
    /// Returns a bench whose rules forbid this beside what the shipped ones do.
    pub(crate) fn forbidding(rule: &str) -> Self {
        let bench = Self::new();
        let shipped = bench.run(&["policy", "show", "default"]).out;
        let annotations =
            r#"@id("not-that") @reason("not-that") @advice("leave it") @person_may_allow("true")"#;
        let file = bench.path("rules.cedar");
        fs::write(&file, format!("{shipped}\n{annotations}\n{rule}\n")).expect("writes");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("is ours");
        bench.settings(&format!("policy = \"{}\"\n", file.display()));
        bench
    }

    /// Returns what the record says of the newest action.
    fn last(&self) -> Value {
        let document = self.json(&["show", "--json"]);
        fits("action", &document);
        document
    }

    fn task_state(&self) -> String {
        self.json(&["task", "list", "--all", "--json"])["tasks"][0]["state"]
            .as_str()
            .expect("a word")
            .to_owned()
    }
}

const NO_PUSH: &str = r#"forbid (principal, action == Action::"change-ref", resource)
    when { resource.repository != "." && resource.name == "main" };"#;
pub(crate) const KEEP_DOCS: &str = r#"forbid (principal, action == Action::"delete-path", resource)
    when { resource is Path && resource in Path::"docs" };"#;

fn is_denied(answer: &Answer, document: &Value) {
    assert_eq!(answer.code, Some(126), "{answer:?}");
    assert_eq!(document["decision"]["reason"], "not-that", "{document:#}");
}

#[test]
fn a_denied_push_in_three_disguises_gets_one_reason_and_a_frozen_task() {
    let bench = Bench::forbidding(NO_PUSH);
    bench.write("build.sh", "git push -q origin main\ntrue\n");
    for push in [
        &["git", "push", "origin", "main"][..],
        // The very same again is no other way.
        &["git", "push", "origin", "main"],
        &["sh", "-c", "cd . && git 'push' \"origin\" HEAD:main"],
        &["env", "-u", "X", "git", "push", "https://example.org/r.git", "+main:main"],
    ] {
        let answer = bench.run(&[&["run", "--"], push].concat());
        is_denied(&answer, &bench.last());
    }
    assert_eq!(bench.task_state(), "open");
    // Nothing in these words tells of a push: it is seen while it runs.
    let answer = bench.run(&["run", "--", "sh", "build.sh"]);
    assert!(answer.err.contains("it did what was denied before"), "{answer:?}");
    let last = bench.last();
    let met = &last["denied_before"][0];
    assert_eq!(
        (&met["reason"], &met["observed"], &met["ways"]),
        (&"not-that".into(), &true.into(), &3.into()),
        "{last:#}"
    );
    let why = bench.json(&["why", "--json"]);
    assert_eq!(why["causes"][0]["code"], "not-that", "{why:#}");
    assert_eq!(bench.task_state(), "frozen");

    for words in [
        &["run", "--", "true"][..],
        &["run", "-w", "docs", "--", "true"],
        &["run", "--new-task", "--", "true"],
        &["shell", "--", "true"],
    ] {
        let answer = bench.run(words);
        assert!(answer.code == Some(125) && answer.err.contains("is frozen"), "{words:?}: {answer:?}");
    }
    let task = bench.json(&["task", "list", "--all", "--json"])["tasks"][0]["task"]
        .as_str()
        .expect("an id")
        .to_owned();
    let answer = bench.run(&["run", "--task", &task, "--", "true"]);
    assert!(answer.code == Some(125) && answer.err.contains("is frozen"), "{answer:?}");
    assert_eq!(bench.run(&["fork", &task]).code, Some(125), "a fork would have forgotten it");

    assert_eq!(bench.run(&["task", "resume", &task]).code, Some(0));
    assert_eq!(bench.run(&["run", "--", "true"]).code, Some(0));
    let answer = bench.run(&["run", "--", "git", "push", "origin", "main"]);
    is_denied(&answer, &bench.last());
    assert_eq!(bench.task_state(), "open", "it is counted anew");
    assert!(bench.run(&["audit", "verify"]).code == Some(0));
}

#[test]
fn what_policy_denies_is_not_kept_however_it_was_hidden() {
    let bench = Bench::forbidding(KEEP_DOCS);
    // No word of this tells what it does.
    bench.write("hide.c", "#include <stdio.h>\nint main(void) { fclose(fopen(\"made\", \"w\")); return remove(\"docs/page\"); }\n");
    assert_eq!(bench.sh("cc -o hide hide.c").code, Some(0));
    let answer = bench.run(&["run", "--", "./hide"]);
    assert!(answer.err.contains("it did what policy denies"), "{answer:?}");
    let met = bench.last()["denied_before"][0].clone();
    assert_eq!((&met["is_first"], &met["reason"]), (&true.into(), &"not-that".into()), "{met:#}");
    let listed = bench.run(&["run", "--quiet", "--", "ls", "docs", "."]).out;
    assert!(listed.contains("page") && !listed.contains("made"), "{listed}");
    // It is remembered like what was denied beforehand.
    bench.write("tidy.sh", "rm docs/page\n");
    let answer = bench.run(&["run", "--", "sh", "tidy.sh"]);
    assert!(answer.err.contains("it did what was denied before"), "{answer:?}");
}

#[test]
fn a_program_that_policy_denies_leaves_nothing_whoever_starts_it() {
    let bench = Bench::forbidding(
        r#"forbid (principal, action == Action::"run-program", resource) when { resource.name == "sort" };"#,
    );
    bench.write(
        "hide.py",
        "import subprocess\nopen('made', 'w')\nsubprocess.run([chr(115) + 'ort', '/dev/null'])\n",
    );
    let answer = bench.run(&["run", "--", "python3", "hide.py"]);
    assert!(answer.err.contains("it did what policy denies"), "{answer:?}");
    assert!(!bench.run(&["run", "--quiet", "--", "ls"]).out.contains("made"));
    bench.write("free.py", "import subprocess\nopen('free', 'w')\nsubprocess.run(['uniq', '/dev/null'])\n");
    let answer = bench.run(&["run", "--", "python3", "free.py"]);
    assert!(!answer.err.contains("denies"), "{answer:?}");
    assert!(bench.run(&["run", "--quiet", "--", "ls"]).out.contains("free"));
}

#[test]
fn what_was_denied_and_done_all_the_same_is_not_kept() {
    let bench = Bench::forbidding(KEEP_DOCS);
    bench.write("tidy.sh", "rm docs/page; echo made > made\n");
    bench.write("other.sh", "rm src/code; echo other > other\n");
    let answer = bench.run(&["run", "--", "rm", "docs/page"]);
    is_denied(&answer, &bench.last());
    let answer = bench.run(&["run", "--", "sh", "tidy.sh"]);
    assert!(answer.err.contains("nothing of it was kept"), "{answer:?}");
    let listed = bench.run(&["run", "--quiet", "--", "ls", "docs", "."]).out;
    assert!(listed.contains("page") && !listed.contains("made"), "{listed}");
    // What is beside it is free.
    let answer = bench.run(&["run", "--", "sh", "other.sh"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let listed = bench.run(&["run", "--quiet", "--", "ls", "src", "."]).out;
    assert!(!listed.contains("code") && listed.contains("other"), "{listed}");
}

#[test]
fn neighbours_of_what_was_denied_are_not_caught() {
    let bench = Bench::forbidding(NO_PUSH);
    let answer = bench.run(&["run", "--", "git", "push", "origin", "main"]);
    is_denied(&answer, &bench.last());
    let neighbours = [
        "git log --oneline main",
        "git branch copy main",
        "git push --dry-run origin topic",
        "git push origin main2",
        "git checkout -q -b topic",
        "git tag v1",
        "echo git push origin main",
        "git fetch origin main",
        "grep -r 'git push origin main' .",
        "git config remote.origin.url x",
    ];
    for line in neighbours {
        bench.run(&["run", "--", "sh", "-c", line]);
        let last = bench.last();
        assert_eq!(last["ran"], "yes", "{line}: {last:#}");
        assert_eq!(last["denied_before"], serde_json::json!([]), "{line}");
    }
    assert_eq!(bench.task_state(), "open");
}
