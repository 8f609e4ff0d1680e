//! Layers of real overlay mounts, merged into a checkpoint: random acts, held against a plain directory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;
#[path = "common/ops.rs"]
mod ops;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, naive_changes, short, snapshot};
use inspect::checkpoint::{Merged, merge, remove_tree};
use inspect::layer::{Bounds, read};
use inspect::tree::{Stack, Tree};
use ops::{Op, an_op, perform};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Tells this program, started again inside a mount, what to do there.
const JOB: &str = "FUMEHOOD_TEST_OPS";

#[test]
fn performs_acts_when_it_is_told_to() {
    let Some(job) = std::env::var_os(JOB) else { return };
    let ops: Vec<Op> = serde_json::from_slice(&fs::read(job).expect("is read")).expect("are acts");
    perform(Path::new("."), &ops);
}

/// What both sides came to.
struct Sides {
    bench: Bench,
    /// The plain directory after the base and after each action.
    plain: Vec<PathBuf>,
}

/// Does the acts of each action on a plain directory and on an overlay mount with a layer of its own.
fn both(base: &[Op], actions: &[Vec<Op>]) -> Sides {
    let mut bench = Bench::new();
    perform(&bench.base(), base);
    let mut plain = vec![copy(&bench, &bench.base(), "plain0")];
    for (number, ops) in actions.iter().enumerate() {
        let next = copy(&bench, &plain[number], &format!("plain{}", number + 1));
        perform(&next, ops);
        plain.push(next);
        let job = bench.dir.path().join("job");
        fs::write(&job, serde_json::to_vec(ops).expect("has a JSON form")).expect("written");
        let program = std::env::current_exe().expect("this program");
        let test = "performs_acts_when_it_is_told_to";
        bench.run(&format!("{JOB}={} {} --exact {test} -q >/dev/null", job.display(), program.display()));
    }
    Sides { bench, plain }
}

fn copy(bench: &Bench, from: &Path, name: &str) -> PathBuf {
    let to = bench.dir.path().join(name);
    assert!(Command::new("cp").arg("-a").arg(from).arg(&to).status().expect("cp starts").success());
    to
}

impl Sides {
    fn tree(&self, path: &Path) -> Tree {
        Tree::open(path).expect("a directory")
    }

    fn merge(&self, layer: usize) -> Merged {
        let [checkpoint, scratch] = ["checkpoint", "scratch"].map(|name| self.bench.dir.path().join(name));
        for directory in [&checkpoint, &scratch] {
            let _ = fs::create_dir(directory);
        }
        merge(&self.tree(&self.bench.upper(layer)), &self.tree(&checkpoint), &self.tree(&scratch))
            .expect("is merged")
    }

    /// Returns what a mount of the checkpoint over the base shows.
    fn mounted(&self, layer: usize) -> PathBuf {
        let shown = self.bench.dir.path().join(format!("shown{layer}"));
        let spare = self.bench.dir.path().join("spare");
        let _ = fs::create_dir(&spare);
        let checkpoint = self.bench.dir.path().join("checkpoint");
        let lowers = format!("{}:{}:{}", checkpoint.display(), self.bench.base().display(), spare.display());
        self.bench
            .in_namespace(&format!("lowerdir={lowers},userxattr"), &format!("cp -a . {}", shown.display()));
        shown
    }
}

/// Holds everything that can be said of two sides against a plain comparison.
fn check(base: &[Op], actions: &[Vec<Op>]) {
    let sides = both(base, actions);
    let bench = &sides.bench;
    for layer in 1..=actions.len() {
        let uppers = vec![sides.tree(&bench.upper(layer))];
        let below = (1..layer).rev().map(|below| bench.upper(below)).chain([bench.base()]);
        let stack = Stack::new(uppers, below.map(|path| sides.tree(&path)).collect());
        let report = read(&stack, Bounds::default()).expect("is read");
        assert_eq!(
            report.changes,
            naive_changes(&sides.plain[layer - 1], &sides.plain[layer]),
            "layer {layer}"
        );
        assert_eq!(report.unlisted, 0);
    }
    let all = read(&bench.stack(actions.len()), Bounds::default()).expect("is read");
    assert_eq!(all.changes, naive_changes(&sides.plain[0], &sides.plain[actions.len()]), "all layers as one");
    for layer in 1..=actions.len() {
        sides.merge(layer);
        assert_eq!(sides.merge(layer).copied, 0, "merging again changes nothing");
        assert_eq!(
            snapshot(&sides.mounted(layer)),
            snapshot(&sides.plain[layer]),
            "the checkpoint after {layer}"
        );
    }
    let checkpoint = sides.tree(&bench.dir.path().join("checkpoint"));
    let merged = read(&Stack::new(vec![checkpoint], vec![sides.tree(&bench.base())]), Bounds::default());
    assert_eq!(merged.expect("is read").changes, all.changes, "the checkpoint as one layer");
}

#[test]
fn random_layers_are_read_and_merged_as_a_plain_directory_would_change() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let ops = |most| prop::collection::vec(an_op(), 1..most);
    let actions = prop::collection::vec(ops(16), 1..5);
    runner
        .run(&(ops(30), actions), |(base, actions)| {
            check(&base, &actions);
            Ok(())
        })
        .expect("every case holds");
}

fn make(paths: &[&str]) -> Vec<Op> {
    paths
        .iter()
        .map(|path| match path.strip_suffix('/') {
            Some(directory) => Op::MakeDirectory(directory.to_owned()),
            None => Op::Write((*path).to_owned(), b'x'),
        })
        .collect()
}

fn remove(path: &str) -> Op {
    Op::Remove(path.to_owned())
}

#[test]
fn a_directory_over_a_mark_hides_what_is_below() {
    check(&make(&["a/", "a/b"]), &[vec![remove("a")], make(&["a/", "a/c"]), vec![remove("a/c")]]);
    check(&make(&["a"]), &[vec![remove("a")], make(&["a/", "a/c"]), vec![remove("a")], make(&["a"])]);
}

#[test]
fn a_mark_in_a_new_directory_does_not_show_as_a_name() {
    check(&make(&["z"]), &[make(&["a/", "a/b", "a/c"]), vec![remove("a/b")], vec![remove("a/c")]]);
}

#[test]
fn an_opaque_directory_replaces_the_whole_of_the_checkpoint() {
    let recreate = vec![Op::Recreate("a".to_owned()), Op::Write("a/c".to_owned(), b'2')];
    check(
        &make(&["a/", "a/a", "a/b/", "a/b/c"]),
        &[make(&["a/b/a", "a/c"]), recreate, make(&["a/b/", "a/b/b"])],
    );
}

#[test]
fn files_are_shared_and_only_changed_paths_are_touched() {
    let sides = both(&make(&["a/", "a/a"]), &[make(&["a/b", "c"]), make(&["a/c"])]);
    assert_eq!(sides.merge(1), Merged { linked: 2, copied: 0, removed: 0 });
    assert_eq!(sides.merge(2), Merged { linked: 1, copied: 0, removed: 0 });
    assert_eq!(sides.merge(2), Merged::default());
}

#[test]
fn nothing_is_marked_where_nothing_below_shows() {
    let recreate = vec![Op::Recreate("a".to_owned()), Op::Write("a/b".to_owned(), b'2')];
    let sides = both(&make(&["a/", "a/a"]), &[recreate, vec![remove("a/b")]]);
    sides.merge(1);
    sides.merge(2);
    assert_eq!(fs::read_dir(sides.bench.dir.path().join("checkpoint/a")).expect("is listed").count(), 0);
}

#[test]
fn a_file_shared_with_a_checkpoint_is_no_split_link() {
    let sides = both(&make(&["a"]), &[make(&["b"]), vec![Op::Append("b".to_owned(), b'2')]]);
    sides.merge(1);
    let report = sides.bench.read();
    assert_eq!((short(&report.changes), report.findings), (vec!["~b".to_owned()], Vec::new()));
}

#[test]
fn a_very_deep_tree_is_removed() {
    let bench = Bench::new();
    let script = "import os\nfor i in range(5000): os.mkdir('d'); os.chdir('d')\nopen('f','w')";
    let made = Command::new("python3").args(["-c", script]).current_dir(bench.base()).status();
    assert!(made.expect("python3 starts").success());
    fs::set_permissions(bench.base().join("d"), std::os::unix::fs::PermissionsExt::from_mode(0o0))
        .expect("set");
    let base = Tree::open(&bench.base()).expect("a directory");
    assert!(remove_tree(&base, c"d").expect("is removed"));
    assert!(!remove_tree(&base, c"d").expect("is gone"));
}

#[test]
fn reading_and_merging_leave_the_layer_as_it_is() {
    let sides = both(&make(&["a/", "a/a"]), &[make(&["a/b", "b/", "b/c"])]);
    let before = snapshot(&sides.bench.upper(1));
    sides.merge(1);
    assert_eq!(snapshot(&sides.bench.upper(1)), before);
    assert_eq!(short(&sides.bench.read().changes), ["+a/b", "+b", "+b/c"]);
}

#[test]
fn a_merge_that_was_killed_is_made_good_by_merging_again() {
    let paths: Vec<String> = (0..400).map(|number| format!("d{}/f{number}", number % 20)).collect();
    let directories: Vec<String> = (0..20).map(|number| format!("d{number}/")).collect();
    let all = |from: usize| -> Vec<&str> {
        let files = paths.iter().skip(from).map(String::as_str);
        directories.iter().map(String::as_str).chain(files).collect()
    };
    let mut second = make(&all(200));
    second.extend((0..10).map(|number| Op::Recreate(format!("d{number}"))));
    second.extend(paths[..50].iter().map(|path| remove(path)));
    let sides = both(&make(&["z"]), &[make(&all(0)), second]);
    sides.merge(1);
    let program = std::env::current_exe().expect("this program");
    for wait in 0..12 {
        let mut merging = Command::new(&program)
            .args(["--exact", "merges_when_it_is_told_to", "-q"])
            .env(MERGE, sides.bench.dir.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(2 * wait));
        merging.kill().expect("is killed");
        merging.wait().expect("is gone");
    }
    sides.merge(2);
    assert_eq!(snapshot(&sides.mounted(2)), snapshot(&sides.plain[2]));
}

/// Tells this program, started again, where to merge.
const MERGE: &str = "FUMEHOOD_TEST_MERGE";

#[test]
fn merges_when_it_is_told_to() {
    let Some(directory) = std::env::var_os(MERGE).map(PathBuf::from) else { return };
    let open = |name: &str| Tree::open(&directory.join(name)).expect("a directory");
    for _ in 0..1000 {
        merge(&open("upper2"), &open("checkpoint"), &open("scratch")).expect("is merged");
    }
}

#[test]
fn a_directory_that_is_closed_to_its_owner_is_merged_and_stays_closed() {
    let sides = both(&make(&["z"]), &[make(&["a/", "a/b/", "a/b/c", "d/", "d/e"])]);
    let closed = [sides.bench.upper(1).join("a/b"), sides.bench.upper(1).join("d"), sides.bench.upper(1)];
    let modes = [0o0, 0o200, 0o500];
    for (directory, mode) in closed.iter().zip(modes) {
        fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
    }
    assert_eq!((sides.merge(1).linked, sides.merge(1).linked), (2, 0));
    for (directory, mode) in closed.iter().zip(modes) {
        let name = directory.strip_prefix(sides.bench.upper(1)).expect("is in it");
        for place in [directory, &sides.bench.dir.path().join("checkpoint").join(name)] {
            let found = fs::metadata(place).expect("is there").permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&found) & 0o777, mode, "{}", place.display());
        }
    }
}
