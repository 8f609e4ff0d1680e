//! An agent that is killed or interrupted goes on where it ended, and nothing runs twice.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::{Bench, answer, fits};
use crate::demo_file;

/// Waits until the program says a line that holds this.
fn wait_for(child: &mut Child, wanted: &str) {
    let stderr = child.stderr.take().expect("a pipe");
    for line in BufReader::new(stderr).lines() {
        if line.expect("text").contains(wanted) {
            return;
        }
    }
    panic!("it ended without saying `{wanted}`");
}

/// Returns the processes below one, by number.
fn below(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|child| child.parse().ok()).collect();
    let deeper: Vec<u32> = children.iter().flat_map(|child| below(*child)).collect();
    children.into_iter().chain(deeper).collect()
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}

#[test]
fn killed_anywhere_it_goes_on_and_nothing_runs_twice() {
    let bench = Bench::new();
    let demo = demo_file(&bench);
    // After these steps, each in the middle of what follows.
    let kills = ["gave up its rights", "read src/slug.sh", "sh tests/run.sh", "git push", "protected-paths"];
    let mut first = true;
    for step in kills {
        let task;
        let arguments: Vec<&str> = if first {
            vec!["agent", "--replay", &demo, "fix the slugs"]
        } else {
            task = bench.task();
            vec!["task", "resume", &task, "--replay", &demo]
        };
        first = false;
        let mut child = bench.start(&arguments);
        wait_for(&mut child, step);
        let beside = below(child.id());
        child.kill().expect("it is killed");
        child.wait().expect("it has ended");
        let deadline = Instant::now() + Duration::from_secs(10);
        while beside.iter().any(|pid| is_running(*pid)) {
            assert!(Instant::now() < deadline, "{beside:?} outlive it");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let (code, document) = bench.json(&["task", "resume", &bench.task(), "--json", "--replay", &demo]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(document["ended"], "finished");
    let log = document["log"].as_array().expect("a list");
    // The transcript makes ten calls before its last one. None of them ran twice, killed or not.
    assert_eq!(log.len(), 10, "{document:#}");
    let ended = |action: &serde_json::Value| action["ran"] != "unknown";
    let patch = log.iter().find(|action| action["command"] == "patch src/slug.sh").expect("it was made");
    assert!(ended(patch), "{document:#}");
    assert_eq!(document["changes"].as_array().map(Vec::len), Some(1), "{document:#}");
    assert!(bench.run(&["audit", "verify"]).status.success());
    // Done is done: asked once more, nothing is run and the model is not asked.
    let (code, again) = bench.json(&["task", "resume", &bench.task(), "--json", "--replay", &demo]);
    assert_eq!(
        (code, &again["turns"], again["log"].as_array().map(Vec::len)),
        (0, &document["turns"], Some(10))
    );
}

#[test]
fn an_interrupt_ends_what_runs_and_the_task_goes_on_later() {
    let bench = Bench::new();
    let calls = [
        ("run_command", json!({ "command": "echo first > made; sleep 60" })),
        ("run_command", json!({ "command": "echo second > made2" })),
        ("finish", json!({ "summary": "done" })),
    ];
    let play = bench.transcript(&calls);
    let play = play.to_str().expect("text");
    let mut child = bench.start(&["agent", "--json", "--replay", play, "wait"]);
    wait_for(&mut child, "gave up its rights");
    std::thread::sleep(Duration::from_millis(1500));
    let begin = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it lives");
    let output = child.wait_with_output().expect("it ends");
    assert!(begin.elapsed() < Duration::from_secs(20), "it took {:?}", begin.elapsed());
    let document = answer(&output);
    assert_eq!(output.status.code(), Some(130), "{document:#}");
    fits("agent", &document);
    assert_eq!(document["ended"], "stopped");
    let (code, document) = bench.json(&["task", "resume", &bench.task(), "--json", "--replay", play]);
    assert_eq!((code, &document["ended"]), (0, &json!("finished")), "{document:#}");
    let log = document["log"].as_array().expect("a list");
    assert_eq!(log.len(), 2, "{document:#}");
    assert_eq!(log[0]["ending"], "was stopped", "{document:#}");
}

#[test]
fn two_agents_do_not_work_on_one_task() {
    let bench = Bench::new();
    let play = bench.transcript(&[
        ("run_command", json!({ "command": "sleep 60" })),
        ("finish", json!({ "summary": "done" })),
    ]);
    let play = play.to_str().expect("text");
    let mut child = bench.start(&["agent", "--replay", play, "wait"]);
    wait_for(&mut child, "gave up its rights");
    let output = bench.run(&["task", "resume", &bench.task(), "--replay", play]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(125) && text.contains("an agent is at work"), "{text}");
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
}
