//! The case runner and our judgement of its table, with a stand-in for the program that confines nothing: what a
//! broken control looks like must count as a failure.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use xtask::cases::judge::Judgement;
use xtask::cases::lists::Who;
use xtask::cases::{Pass, Pick, Runner, own_command};
use xtask::repo::Repo;

/// Runs what it is given without any sandbox, and has a record that claims the opposite.
const STAND_IN: &str = r#"#!/bin/sh
case "$*" in
  run*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
  *audit*) cat "$0.record" ;;
  *show*) echo '{"held": []}' ;;
esac
"#;

fn repo_with_stand_in(target: &Path, record: &str) -> Repo {
    let repo =
        Repo { root: Repo::find().expect("cargo reads the manifests").root, target: target.to_owned() };
    fs::create_dir_all(target.join("release")).expect("the scratch directory is ours");
    fs::write(repo.fumehood(), STAND_IN).expect("the scratch directory is ours");
    fs::write(target.join("release/fumehood.record"), record).expect("the scratch directory is ours");
    fs::set_permissions(repo.fumehood(), fs::Permissions::from_mode(0o755)).expect("the file is ours");
    repo
}

fn judged(cases: &'static [&'static str]) -> Vec<(String, Judgement)> {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let repo = repo_with_stand_in(scratch.path(), "");
    let program = repo.fumehood();
    let runner = Runner::new(&repo, &program, Who::User, &own_command).expect("the lists are understood");
    let pass = Pass { profile: "strict", network: false, pick: Pick::Only(cases) };
    runner.pass(pass, scratch.path()).expect("the runner ran")
}

#[test]
fn a_control_that_does_not_hold_fails() {
    let judged = judged(&["FS-01"]);
    let [(case, Judgement::Failed(why))] = judged.as_slice() else { panic!("{judged:?}") };
    assert_eq!(case, "FS-01");
    assert!(why.starts_with("broke: read a file outside"), "{why}");
}

#[test]
fn ordinary_work_passes() {
    let work = judged(&["WK-10"]);
    assert!(matches!(work.as_slice(), [(_, Judgement::Passed)]), "{work:?}");
}
