//! The copy of the sandbox cases, and the two lists beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use xtask::cases::{lists, table};
use xtask::repo::Repo;

fn repo() -> Repo {
    Repo::find().expect("cargo reads the manifests")
}

/// Returns each file's content and whether it can be executed.
fn folder(path: &Path) -> BTreeMap<PathBuf, (bool, Vec<u8>)> {
    let entries =
        fs::read_dir(path).expect("the folder is there").map(|entry| entry.expect("it can be listed"));
    let content = |entry: fs::DirEntry| {
        let mode = entry.metadata().expect("it is there").permissions().mode();
        (
            PathBuf::from(entry.file_name()),
            (mode & 0o100 != 0, fs::read(entry.path()).expect("it can be read")),
        )
    };
    entries.map(content).collect()
}

#[test]
fn the_copy_equals_the_original_where_that_is_there() {
    let repo = repo();
    let original = repo.root.join("../shared/cases");
    if !original.is_dir() {
        return;
    }
    let (copy, original) = (folder(&repo.root.join("tests/cases")), folder(&original));
    let names = |of: &BTreeMap<PathBuf, _>| of.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&copy), names(&original));
    for (name, content) in &original {
        assert!(copy.get(name) == Some(content), "`tests/cases/{}` is not the original", name.display());
    }
}

#[test]
fn both_lists_are_understood_and_name_only_cases_that_exist() {
    let repo = repo();
    let (allowed, holders) = lists::read(&repo.root.join("tests")).expect("both lists are understood");
    let cases = table::cases_in(&repo.root.join("tests/cases")).expect("the cases are there");
    for named in allowed.cases().into_iter().chain(holders.cases()) {
        assert!(cases.iter().any(|case| case == named), "there is no case `{named}`");
    }
}

#[test]
fn every_case_that_is_no_ordinary_work_has_a_holder_or_a_reason() {
    let repo = repo();
    let (allowed, holders) = lists::read(&repo.root.join("tests")).expect("both lists are understood");
    for case in table::cases_in(&repo.root.join("tests/cases")).expect("the cases are there") {
        let ordinary = case.starts_with("WK-") || case.starts_with("TS-");
        let named = !holders.of(&case).is_empty() || allowed.cases().contains(case.as_str());
        assert!(ordinary || named, "`{case}` has no line in `tests/cases-layers.txt`");
    }
}
