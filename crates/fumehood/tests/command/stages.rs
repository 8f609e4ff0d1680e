//! The stages of a task with an intake: the verbs pass them in order, a crash leaves no gap, and anybody who has the record can
//! check that.

use std::os::unix::process::ExitStatusExt;

use audit::{ChainEnd, Chains, ExportReader};
use model::stage::Stage;
use serde_json::{Value, json};

use super::bench::{Answer, Bench, fits};

impl Bench {
    fn with_stages(&self) -> String {
        let words = ["task", "new", "--json", "--dirty", "--outcome", "x", "--path", "src"];
        self.json(&words)["task"]["task"].as_str().expect("an id").to_owned()
    }

    /// Returns the stage that the task passed last, with its round.
    fn stage(&self, task: &str) -> (String, u64) {
        let document = self.json(&["task", "show", task, "--json"]);
        fits("task", &document);
        let stage = &document["stage"];
        (stage["stage"].as_str().unwrap_or("none").to_owned(), stage["round"].as_u64().unwrap_or(0))
    }

    /// Checks the chains of an export, without an engine.
    fn chain(&self, task: &str) -> ChainEnd {
        let export = self.run(&["audit", "export"]).out;
        let reader = ExportReader::open(export.as_bytes()).expect("is an export");
        let chains = Chains::check(reader).expect("can be read").unwrap_or_else(|broken| panic!("{broken}"));
        chains.of(&task.parse().expect("an id")).cloned().expect("has a chain")
    }

    fn dies(&self, at: &str, words: &[&str]) {
        let mut command = self.command(words);
        let output = command.env("FUMEHOOD_TEST_DIE_AT", at).output().expect("it starts");
        assert_eq!(output.status.signal(), Some(9), "it did not die at `{at}`: {:?}", Answer::of(output));
    }
}

fn at(stage: &str, round: u64) -> (String, u64) {
    (stage.to_owned(), round)
}

#[test]
fn the_verbs_pass_the_stages_in_order_and_the_record_shows_it_to_anybody() {
    let bench = Bench::new();
    let task = bench.with_stages();
    assert_eq!(bench.stage(&task), at("workspace", 1));
    assert_eq!(bench.run(&["run", "--", "sh", "-c", "echo more >> src/code"]).code, Some(0));
    assert_eq!(bench.stage(&task), at("execution", 1));
    assert_eq!(bench.run(&["run", "--", "false"]).code, Some(1), "it ran, whatever it says");
    assert_eq!(bench.stage(&task), at("execution", 2));
    assert_eq!(
        bench.run(&["run", "--agent", "m", "--show-credential", ".env", "--", "true"]).code,
        Some(126)
    );
    assert_eq!(bench.stage(&task), at("execution", 2), "what is denied is no stage");
    assert_eq!(bench.run(&["diff"]).code, Some(0));
    assert_eq!(bench.run(&["diff"]).code, Some(0));
    assert_eq!(bench.stage(&task), at("review", 2), "looking twice is one review");
    assert_eq!(bench.run(&["apply", "--dry-run"]).code, Some(0));
    assert_eq!(bench.stage(&task), at("preview", 2));
    // What came after it makes the preview worth nothing.
    assert_eq!(bench.run(&["run", "--", "sh", "-c", "echo other >> src/code"]).code, Some(0));
    assert_eq!(bench.stage(&task), at("execution", 3));
    assert_eq!(bench.run(&["apply", "--yes"]).code, Some(0));
    assert_eq!(bench.stage(&task), at("release", 3));
    assert_eq!(bench.read("src/code"), "code\nmore\nother\n");
    assert_eq!(bench.run(&["diff", &task]).code, Some(0));
    assert_eq!(bench.stage(&task), at("release", 3), "a closed task passes no more");

    let end = bench.chain(&task);
    assert_eq!((end.stage(), end.round()), (Stage::Release, 3));
    assert_eq!(
        end.without_work(),
        [Stage::Verification, Stage::Preview],
        "nobody verified, and nothing was previewed"
    );
    assert!(bench.run(&["audit", "verify"]).code == Some(0));
}

#[test]
fn an_ordinary_run_has_no_stages() {
    let bench = Bench::new();
    bench.sh("echo more >> src/code");
    let document = bench.json(&["task", "show", "--json"]);
    assert_eq!((&document["stage"], &document["intake"]), (&Value::Null, &Value::Null));
    assert_eq!(bench.run(&["apply", "--yes"]).code, Some(0));
    let events = bench.run(&["audit", "show", "--json"]).out;
    assert!(!events.contains("\"event\":\"stage\""), "{events}");
}

#[test]
fn a_fork_has_a_chain_of_its_own_and_borrows_nothing() {
    let bench = Bench::new();
    let task = bench.with_stages();
    assert_eq!(bench.run(&["run", "--", "sh", "-c", "echo more >> src/code"]).code, Some(0));
    assert_eq!(bench.run(&["diff"]).code, Some(0));
    let fork = bench.run(&["fork", &task]).out.trim().to_owned();
    assert_eq!(bench.stage(&fork), at("none", 0), "what was reviewed there was not reviewed here");
    assert_eq!(bench.run(&["run", "--task", &fork, "--", "true"]).code, Some(0));
    assert_eq!((bench.stage(&fork), bench.stage(&task)), (at("execution", 1), at("review", 1)));
    assert_eq!(bench.chain(&fork).stage(), Stage::Execution);
}

#[test]
fn killed_at_every_step_the_chain_has_no_gap_and_the_task_gets_to_its_end() {
    let new: &[&str] = &["task", "new", "--dirty", "--outcome", "x", "--path", "src"];
    let run: &[&str] = &["run", "--", "sh", "-c", "echo more >> src/code"];
    let (diff, preview, apply): (&[&str], &[&str], &[&str]) =
        (&["diff"], &["apply", "--dry-run"], &["apply", "--yes"]);
    let way = [new, run, diff, preview, apply];
    let passed = "stages: one is on the record";
    let second = "stages: one is on the record#2";
    for (verb, step) in [
        (0, passed),
        (0, second),
        (1, passed),
        (1, "decision: it is about to be on the record"),
        (1, "decision: it is on the record"),
        (1, "run: the start is on the record"),
        (1, "inspection: the output is kept"),
        (1, "inspection: the end is on the record"),
        (2, passed),
        (2, second),
        (3, passed),
        (4, passed),
        (4, "the intent is there and nothing has begun"),
        (4, "all is written and not on the record"),
        (4, "it is on the record and the intent is there"),
    ] {
        let bench = Bench::new();
        way[..verb].iter().for_each(|words| assert_eq!(bench.run(words).code, Some(0), "{words:?}"));
        bench.dies(step, way[verb]);
        let tasks = bench.json(&["task", "list", "--all", "--json"])["tasks"].clone();
        let task = tasks[0]["task"].as_str().expect("it was opened").to_owned();
        bench.chain(&task);
        let rest = if verb == 0 { &way[1..] } else { &way[verb..] };
        if bench.stage(&task).0 != "release" {
            for words in rest {
                let answer = bench.run(words);
                assert_eq!(answer.code, Some(0), "{step}: {words:?}: {answer:?}");
            }
        }
        let end = bench.chain(&task);
        assert_eq!(end.stage(), Stage::Release, "{verb}: {step}");
        assert!(bench.read("src/code").starts_with("code\nmore\n"), "{step}");
        assert_eq!(bench.json(&["task", "list", "--json"])["tasks"], json!([]), "{step}: it is applied");
    }
}
