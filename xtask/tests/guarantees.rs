//! Every promise in `docs/guarantees.md` has tests, and the tests exist.

use std::fs;

use xtask::guarantees;
use xtask::repo::Repo;

#[test]
fn every_promise_names_tests_that_exist() {
    let repo = Repo::find().expect("cargo reads the manifests");
    let document = fs::read_to_string(repo.root.join("docs/guarantees.md")).expect("the document is there");
    let guarantees = guarantees::parse(&document).expect("its table is understood");
    assert!(!guarantees.is_empty(), "the table is empty");
    assert_eq!(guarantees::missing(&repo.root, &guarantees).expect("the cases are there"), [""; 0]);
}
