//! A full disk: nothing is recorded, the store stays alive, and goes on when there is space again.

use std::error::Error as _;
use std::fs;
use std::process::Command;

use audit::{AuditError, Log};
use engine::store::{Store, StoreError};

use super::fixture::{append, at, checked_length, child_command, event, given_state, place, subject};

#[test]
fn a_full_disk_records_nothing_and_spoils_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount a small file system");
        return;
    }
    let (directory, _) = place();
    // A mount namespace of its own takes the mount with it when it ends.
    let mount = "mount -t tmpfs -o size=1m,mode=700 tmpfs \"$FUMEHOOD_STORE_TEST\" && exec \"$@\"";
    let inner = child_command("full::fills_the_disk", directory.path());
    let mut outer = Command::new("unshare");
    outer.args(["--mount", "--propagation", "private", "sh", "-c", mount, "sh"]);
    outer.arg(inner.get_program()).args(inner.get_args()).env("FUMEHOOD_STORE_TEST", directory.path());
    let output = outer.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Tells whether an error says that the disk is full and what that means.
fn says_full(error: &AuditError) -> bool {
    error.source().and_then(|cause| cause.downcast_ref()).is_some_and(is_full)
}

fn is_full(error: &StoreError) -> bool {
    match error {
        StoreError::Open { source, .. } => is_full(source),
        StoreError::File { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
        StoreError::Full(_) => true,
        _ => false,
    }
}

#[test]
#[ignore = "started by another test on a small file system"]
fn fills_the_disk() {
    let Some(directory) = given_state() else { return };
    let state = directory.join("state");
    let ballast = directory.join("ballast");
    fs::write(&ballast, vec![1; 200 << 10]).unwrap();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    let text = "x".repeat(20_000);
    let (mut recorded, mut error) = (0, None);
    while error.is_none() && recorded < 1_000 {
        match log.append(&subject(1), &event(&text), at(1)) {
            Ok(receipt) => recorded = receipt.seq(),
            Err(refused) => error = Some(refused),
        }
    }
    let error = error.expect("a disk of 1 MiB is full sooner or later");
    assert!(says_full(&error), "{error:?}");
    assert!(error.to_string().contains("nothing was recorded"), "{error}");
    assert_eq!(checked_length(&store), recorded, "it can still be read, and only what was promised is there");

    fs::remove_file(&ballast).unwrap();
    assert_eq!(append(&log, "there is space again"), recorded + 1);
    drop(store);
    let store = Store::open(&state).unwrap();
    assert_eq!(checked_length(&store), recorded + 1);

    let rest = fs::write(directory.join("rest"), vec![1; 2 << 20]);
    assert!(rest.is_err(), "the file system is full to the last byte");
    let other = Store::open(&directory.join("other")).expect_err("there is no space for a new one");
    assert!(is_full(&other), "{other:?}");
}
