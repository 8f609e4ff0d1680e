//! Applying, and taking back, killed at every place between two steps: the host's directory is wholly as it was or wholly
//! as it was to become, and the record says which.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use engine::store::Store;

use crate::bench::Bench;
use crate::{KILLS, alone, rounds, say};

/// Something of each kind: a file that is replaced, one that goes, one that is made, and directories that come and go.
const COMMAND: &str = "echo more >> src/file; rm gone; echo new > made; mkdir fresh; echo in > fresh/in; rm -r old; \
                       chmod 755 tool";

type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

#[test]
fn killed_at_any_step_an_apply_is_wholly_there_or_not_at_all() {
    let _turn = alone();
    let bench = Bench::new();
    fs::create_dir(bench.path("ws/old")).expect("makes");
    for name in ["gone", "tool", "old/file"] {
        fs::write(bench.path("ws").join(name), name).expect("writes");
    }
    bench.run(&["run", "--quiet", "--", "sh", "-c", COMMAND]);
    let before = tree(&bench.path("ws"));
    let places = traced(&bench, &APPLY);
    let after = tree(&bench.path("ws"));
    assert_ne!(before, after);
    let back = traced(&bench, &UNDO);
    assert_eq!(tree(&bench.path("ws")), before);
    for place in &places {
        one_kill(&bench, place, &APPLY, (&before, &after));
        bench.run(&UNDO);
        assert_eq!(tree(&bench.path("ws")), before, "taken back after {place}");
    }
    for place in &back {
        bench.run(&APPLY);
        one_kill(&bench, place, &UNDO, (&after, &before));
    }
    bench.run(&["audit", "verify"]);
    let rounds = places.len() + back.len() + 1;
    assert_eq!(recorded(&bench), (rounds, rounds), "each apply and each taking back is on record once");
    kept_to_ourselves(&bench);
    say(&format!(
        "{} kills between two steps of an apply and {} of taking it back: wholly there or not at all, and once on record",
        places.len(),
        back.len()
    ));
}

const APPLY: [&str; 2] = ["apply", "--quiet"];
const UNDO: [&str; 3] = ["undo", "--applied", "--quiet"];

/// Does something to its end; returns the places on the way at which it is to be killed: each name, or in the long form
/// each time that it is reached.
fn traced(bench: &Bench, words: &[&str]) -> Vec<String> {
    let trace = bench.path("state/steps");
    assert!(bench.command(words).env("FUMEHOOD_TEST_STEPS", &trace).status().expect("it starts").success());
    let mut times = BTreeMap::<String, u32>::new();
    for step in fs::read_to_string(&trace).expect("steps are reached").lines() {
        *times.entry(step.to_owned()).or_default() += 1;
    }
    fs::remove_file(trace).expect("is removed");
    let all = rounds("FUMEHOOD_SOAK_KILLS", KILLS) > KILLS;
    let last_or_all = |(name, times): (String, u32)| {
        let first = if all { 1 } else { times };
        (first..=times).map(move |nth| format!("{name}#{nth}"))
    };
    let places: Vec<String> = times.into_iter().flat_map(last_or_all).collect();
    assert!(places.len() >= 12, "{places:?}");
    places
}

/// Kills it, lets any verb recover, and does it again when nothing had been done.
fn one_kill(bench: &Bench, place: &str, words: &[&str], (before, after): (&Tree, &Tree)) {
    let killed = bench.command(words).env("FUMEHOOD_TEST_DIE_AT", place).status().expect("it starts");
    assert_eq!(killed.signal(), Some(9), "it did not die at {place}: {killed:?}");
    let untouched = fs::read_dir(bench.path("state/intents")).map_or(true, |mut left| left.next().is_none());
    let verb = bench.command(&["task", "list"]).stderr(Stdio::piped()).output().expect("it starts");
    let said = String::from_utf8_lossy(&verb.stderr).into_owned();
    assert!(verb.status.success() && untouched != said.contains("had been cut off"), "{place}: {said}");
    let now = tree(&bench.path("ws"));
    if now == *before {
        bench.run(words);
        assert_eq!(tree(&bench.path("ws")), *after, "done again after {place}");
    } else {
        assert_eq!(now, *after, "{place}: {said}");
    }
}

/// Counts the events about what was applied, and taken back.
fn recorded(bench: &Bench) -> (usize, usize) {
    let store = Store::open(&bench.path("state")).expect("the state is opened");
    let tasks = store.read(|reader| reader.tasks()).expect("tasks are read");
    let records = tasks.iter().flat_map(|overview| {
        store.read(|reader| reader.records_of_task(&overview.task.id)).expect("records are read")
    });
    let events: Vec<String> = records.map(|record| record.event).collect();
    let count =
        |name: &str| events.iter().filter(|event| event.contains(&format!("\"event\":\"{name}\""))).count();
    (count("applied"), count("applied-undone"))
}

/// What was overwritten may be secret: nobody else can read it. And nothing is half done.
fn kept_to_ourselves(bench: &Bench) {
    for task in fs::read_dir(bench.path("state/tasks")).expect("is there").flatten() {
        let applied = task.path().join("applied");
        let inside = fs::read_dir(&applied).expect("is there").flatten().map(|entry| entry.path());
        for directory in inside.chain([applied.clone()]) {
            let mode = fs::metadata(&directory).expect("is there").permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", directory.display());
            assert!(fs::read_dir(&directory).expect("is there").next().is_some(), "{}", directory.display());
        }
    }
    assert_eq!(fs::read_dir(bench.path("state/intents")).expect("is there").count(), 0);
}

/// Returns everything in a directory: kind and rights, and what it holds.
fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("is there").flatten() {
            let file = entry.metadata().expect("is there");
            if file.is_dir() {
                open.push(entry.path());
            }
            let content = if file.is_file() { fs::read(entry.path()).expect("is read") } else { Vec::new() };
            found.insert(entry.path(), (file.mode(), content));
        }
    }
    found
}
