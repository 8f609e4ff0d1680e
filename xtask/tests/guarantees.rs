//! Every promise in `docs/guarantees.md` has tests, and the tests exist.

use std::fs;

use xtask::repo::Repo;
use xtask::{guarantees, switches};

#[test]
fn every_promise_names_tests_that_exist() {
    let repo = Repo::find().expect("cargo reads the manifests");
    let document = fs::read_to_string(repo.root.join("docs/guarantees.md")).expect("the document is there");
    let guarantees = guarantees::parse(&document).expect("its table is understood");
    assert!(!guarantees.is_empty(), "the table is empty");
    assert_eq!(guarantees::missing(&repo.root, &guarantees).expect("the cases are there"), [""; 0]);
}

#[test]
fn every_promise_can_be_taken_away_or_says_why_not() {
    let repo = Repo::find().expect("cargo reads the manifests");
    let document = fs::read_to_string(repo.root.join("docs/guarantees.md")).expect("the document is there");
    let guarantees = guarantees::parse(&document).expect("its table is understood");
    assert_eq!(switches::wrong(&repo.root, &guarantees).expect("the switches are read"), [""; 0]);
}
