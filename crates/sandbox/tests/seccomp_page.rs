//! The page about the filter is written from the tables.

use std::fs;
use std::path::PathBuf;

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/seccomp.md")
}

#[test]
fn the_committed_page_is_current() {
    let committed = fs::read_to_string(page()).unwrap_or_default();
    let hint = "run `cargo test -p fumehood-sandbox --test seccomp_page -- --ignored`";
    assert!(committed == sandbox::seccomp::markdown(), "docs/seccomp.md is not current: {hint}");
}

#[test]
#[ignore = "writes docs/seccomp.md"]
fn write_the_page() {
    fs::write(page(), sandbox::seccomp::markdown()).unwrap();
}
