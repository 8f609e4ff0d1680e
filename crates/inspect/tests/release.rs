//! What may leave by itself, what waits for a person, and what never leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

mod common;

use std::collections::BTreeSet;

use common::{Bench, path};
use inspect::release::Consent;
use inspect::{Inspection, Rules, inspect};

fn bench(base: &str, action: &str) -> Bench {
    let mut bench = Bench::new();
    let status = std::process::Command::new("bash").args(["-ec", base]).current_dir(bench.base()).status();
    assert!(status.expect("bash starts").success());
    bench.run(action);
    bench
}

fn inspection(bench: &Bench) -> Inspection {
    inspect(bench.stack(1), &bench.read(), Rules::built_in()).expect("is inspected")
}

/// Returns what leaves by itself, and what is held with its first reason.
fn sorted(bench: &Bench) -> (Vec<String>, Vec<String>) {
    let (free, held) = inspection(bench).without_what_is_held();
    let free = free.items().iter().map(|item| item.change().path.to_string());
    (
        free.collect(),
        held.iter().map(|held| format!("{} {}", held.change.path, held.record().reason)).collect(),
    )
}

const REPOSITORY: &str =
    "mkdir -p .git/hooks src tests .github/workflows; echo x >.git/config; echo m >src/main.rs;
    echo t >tests/test_calc.py; echo r >run-tests.sh; echo c >.github/workflows/ci.yml; echo v >.venv";

#[test]
fn ordinary_changes_leave_by_themselves() {
    let bench = bench(
        REPOSITORY,
        "echo 2 >src/main.rs; echo new >src/lib.rs; mkdir -p docs/a; ln -s ../src docs/src; rm .venv",
    );
    assert!(matches!(inspection(&bench), Inspection::Clean(_)));
    assert_eq!(sorted(&bench).0, [".venv", "docs", "docs/a", "docs/src", "src/lib.rs", "src/main.rs"]);
}

#[test]
fn protected_paths_wait_for_a_person() {
    let action = "echo '#!/bin/sh' >.git/hooks/post-commit; git config -f .git/config core.fsmonitor x; echo 1 >run-tests.sh;
        rm tests/test_calc.py; echo ok >tests/test_ok.py; echo x >>.github/workflows/ci.yml; mkdir .vscode;
        echo {} >.vscode/settings.json; echo z >src/main.rs";
    let (free, held) = sorted(&bench(REPOSITORY, action));
    assert_eq!(free, ["src/main.rs", "tests/test_ok.py"]);
    assert_eq!(
        held,
        [
            ".git/config git-internals",
            ".git/hooks/post-commit git-internals",
            ".github/workflows/ci.yml ci-files",
            ".vscode editor-settings",
            ".vscode/settings.json editor-settings",
            "run-tests.sh test-runner",
            "tests/test_calc.py tests",
        ]
    );
}

#[test]
fn a_yes_lets_out_what_a_person_may_and_nothing_else() {
    let action =
        "echo h >.git/hooks/post-commit; echo 1 >run-tests.sh; mkdir .vscode; echo {} >.vscode/s.json;
        cp /bin/true suid; chmod 4755 suid";
    let bench = bench(REPOSITORY, action);
    let Inspection::Held(quarantine) = inspection(&bench) else { panic!("nothing was held") };
    let may: Vec<bool> = quarantine.held().iter().map(inspect::Held::person_may_release).collect();
    assert_eq!(may, [false, true, true, true, false]);
    let everything: BTreeSet<_> = quarantine.held().iter().map(|held| held.change.path.clone()).collect();
    let consent = Consent { person: "ada".to_owned(), paths: everything };
    let (free, held) = quarantine.released_by(&consent).expect("is sorted again");
    let free: Vec<_> = free.items().iter().map(|item| item.change().path.to_string()).collect();
    assert_eq!(free, [".vscode", ".vscode/s.json", "run-tests.sh"]);
    let held: Vec<_> = held.iter().map(|held| held.record().reason).collect();
    assert_eq!(held, ["git-internals", "set-id"]);
}

#[test]
fn a_yes_to_one_path_is_a_yes_to_no_other() {
    let bench = bench(REPOSITORY, "mkdir .vscode; echo {} >.vscode/s.json; echo 1 >run-tests.sh");
    let Inspection::Held(quarantine) = inspection(&bench) else { panic!("nothing was held") };
    let consent = Consent { person: "ada".to_owned(), paths: [path(b".vscode/s.json")].into() };
    let (free, held) = quarantine.released_by(&consent).expect("is sorted again");
    // The directory that should hold the file was not agreed to.
    assert!(free.is_empty());
    let held: Vec<_> =
        held.iter().map(|held| format!("{} {}", held.change.path, held.record().reason)).collect();
    let expected = [".vscode editor-settings", ".vscode/s.json within-held", "run-tests.sh test-runner"];
    assert_eq!(held, expected);
}

#[test]
fn links_that_lead_out_never_leave() {
    let base = "mkdir -p a/b/c src .git/hooks; ln -s /usr outside; ln -s a/b inside; echo 1 >src/x";
    let action = "ln -s /etc/hostname absolute; ln -s ../x climbs; ln -s ../../../x a/b/up3; ln -s ../../src/x a/b/up2;
        ln -s b/../../.. a/late; ln -s outside/lib via; ln -s inside/c ok; ln -s nowhere dangling; ln -s loop loop;
        ln -s ../.git/hooks src/hooks; ln -s .. a/b/top1; ln -s ../.. a/b/top; ln -s '' empty 2>/dev/null || true;
        ln -s ../src src/self; ln -s ./src/./x dots; ln -s inside/../x late2";
    let (free, held) = sorted(&bench(base, action));
    assert_eq!(free, ["a/b/top", "a/b/top1", "a/b/up2", "dangling", "dots", "ok", "src/self"]);
    assert_eq!(
        held,
        [
            "a/b/up3 link-out",
            "a/late link-out",
            "absolute link-out",
            "climbs link-out",
            "late2 link-out",
            "loop link-out",
            "src/hooks link-to-protected",
            "via link-out",
        ]
    );
}

#[test]
fn only_files_directories_and_links_leave() {
    let action = "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")';
        cp /bin/true suid; chmod 4755 suid; cp /bin/true sgid; chmod 2755 sgid; echo 1 >sticky; chmod 1644 sticky;
        mkdir sd; chmod 2775 sd; echo 1 >plain; chmod 755 plain";
    let (free, held) = sorted(&bench("true", action));
    assert_eq!(free, ["plain"]);
    let special = ["pipe special-file", "sd set-id", "sgid set-id", "sock special-file"];
    assert_eq!(held, [&special[..], &["sticky set-id", "suid set-id"]].concat());
}

#[test]
fn a_new_directory_may_have_the_group_of_the_one_around_it() {
    let (free, held) = sorted(&bench("chmod 2775 .; mkdir a; chmod 2775 a", "mkdir sd a/sd"));
    assert_eq!((free, held), (vec!["a/sd".to_owned(), "sd".to_owned()], Vec::new()));
}

#[test]
fn a_directory_keeps_what_may_not_go() {
    let base = "mkdir -p old/tests old/src; echo 1 >old/tests/test_a.py; echo 2 >old/src/b; echo 3 >old/c";
    let (free, held) = sorted(&bench(base, "rm -r old"));
    assert_eq!(free, ["old/c", "old/src", "old/src/b"]);
    assert_eq!(held, ["old contains-held", "old/tests tests", "old/tests/test_a.py tests"]);
}

#[test]
fn what_a_held_link_should_replace_stays_whole() {
    let base = "mkdir -p dir/sub; echo 1 >dir/a; echo 2 >dir/sub/b; echo 3 >dir-x";
    let (free, held) = sorted(&bench(base, "rm -r dir; ln -s /tmp dir; echo 4 >dir-x"));
    assert_eq!(free, ["dir-x"]);
    assert_eq!(held, ["dir link-out", "dir/a within-held", "dir/sub within-held", "dir/sub/b within-held"]);
}

#[test]
fn a_repository_under_another_name_waits_for_a_person() {
    let action = "mkdir -p data/x/objects data/x/refs data/y/refs; echo 'ref: refs/heads/main' >data/x/HEAD; echo [core] >data/x/config;
        echo 1 >data/x/other; echo 1 >data/y/config";
    let (free, held) = sorted(&bench("true", action));
    assert_eq!(free, ["data", "data/x", "data/x/other", "data/y", "data/y/config", "data/y/refs"]);
    let all = ["data/x/HEAD", "data/x/config", "data/x/objects", "data/x/refs"];
    assert_eq!(held, all.map(|path| format!("{path} nested-repository")));
}

#[test]
fn nothing_leaves_when_not_everything_could_be_listed() {
    let bench = bench("true", "echo 1 >a; mkdir -p b/c/d/e/f/g");
    let bounds = inspect::layer::Bounds { path: 5, ..Default::default() };
    let report = inspect::layer::read(&bench.stack(1), bounds).expect("is read");
    let inspection = inspect(bench.stack(1), &report, Rules::built_in()).expect("is inspected");
    assert!(inspection.without_what_is_held().0.is_empty());
}

#[test]
fn what_leaves_is_what_was_looked_at() {
    let bench = bench("true", "echo 1 >a; echo 1 >b");
    let Inspection::Clean(artifacts) = inspection(&bench) else { panic!("something was held") };
    std::fs::write(bench.upper(1).join("b"), "other").expect("written");
    let mut reader = artifacts.reader();
    let [a, b] = artifacts.items() else { panic!("two changes") };
    assert_eq!(reader.find(a).expect("unchanged").read(10).expect("is read"), b"1\n");
    assert!(reader.find(b).is_err());
}

/// Prints what a layer of 50,000 files costs: `cargo test --release -p fumehood-inspect --test release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a test"]
fn measure_a_layer_of_fifty_thousand_files() {
    let mut bench = Bench::new();
    let upper = bench.empty_layer();
    for directory in 0..500 {
        let directory = upper.join(format!("node_modules/package{directory}/lib"));
        std::fs::create_dir_all(&directory).expect("made");
        for file in 0..100 {
            std::fs::write(directory.join(format!("module_{file}.js")), "x").expect("written");
        }
    }
    let start = std::time::Instant::now();
    let report = bench.read();
    let read = start.elapsed();
    inspect(bench.stack(1), &report, Rules::built_in()).expect("is inspected");
    eprintln!("{} changes: read in {read:?}, sorted in {:?}", report.changes.len(), start.elapsed() - read);
}
