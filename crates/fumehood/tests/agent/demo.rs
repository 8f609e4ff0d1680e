//! `demo`: it shows what it promises, leaves nothing behind, and fails when a control is missing.

use std::fs;

use crate::bench::{Bench, answer, fits};

#[test]
fn the_demo_shows_all_of_it_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let scratch = bench.path("scratch");
    fs::create_dir(&scratch).expect("a directory");
    let mut command = bench.command(&["demo", "--json"]);
    let output =
        command.env_remove("FUMEHOOD_STATE_DIR").env("TMPDIR", &scratch).output().expect("it starts");
    let document = answer(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}");
    fits("demo", &document);
    let checks = document["checks"].as_array().expect("a list");
    assert_eq!(checks.len(), 14);
    assert_eq!(document["probes"], document["probes_held"]);
    assert!(document["agent"]["patch"].as_str().expect("a text").contains("tr -cs"));
    assert_eq!(fs::read_dir(&scratch).expect("is there").count(), 0, "something was left in TMPDIR");
    assert!(!bench.path("state").exists(), "the state directory of the user was used");
}

#[test]
fn the_demo_speaks_to_people_too() {
    let bench = Bench::new();
    let mut command = bench.command(&["demo"]);
    let output = command.env_remove("FUMEHOOD_STATE_DIR").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in
        ["layer `root`", "layer `network-namespace`", "rule `protected-paths`", "tr -cs", "14 of 14 are so"]
    {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
}

#[test]
fn what_is_kept_can_be_looked_at_and_a_directory_that_is_there_is_not_used() {
    let bench = Bench::new();
    let kept = bench.path("kept");
    let kept = kept.to_str().expect("text");
    let output = bench.run(&["demo", "--keep", kept]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let state = format!("{kept}/state");
    assert!(bench.run(&["--state-dir", &state, "audit", "verify"]).status.success());
    let output = bench.run(&["demo", "--keep", kept]);
    assert_eq!(output.status.code(), Some(125));
}

/// Each of the walls that the four forbidden acts run into, and some that they do not.
#[cfg(feature = "mutants")]
#[test]
fn the_demo_fails_when_a_control_is_switched_off() {
    let bench = Bench::new();
    for mutant in
        ["root", "network-namespace", "seccomp", "landlock", "masks", "pid-namespace", "capabilities"]
    {
        let mut command = bench.command(&["demo", "--json"]);
        let command = command.env_remove("FUMEHOOD_STATE_DIR").env("FUMEHOOD_TEST_MUTANT", mutant);
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{mutant}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
