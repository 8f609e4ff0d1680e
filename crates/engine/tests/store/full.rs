//! A disk that is full or cannot be written: nothing is recorded, nothing is spoiled, and the message says why.

use std::error::Error as _;
use std::fs;
use std::process::Command;

use audit::{AuditError, Log};
use engine::store::{Store, StoreError};

use super::fixture::{append, at, checked_length, child_command, event, given_state, place, subject};

#[test]
fn a_full_disk_records_nothing_and_spoils_nothing() {
    on_a_small_file_system("full::fills_the_disk");
}

#[test]
fn a_disk_that_cannot_be_written_is_named() {
    on_a_small_file_system("full::makes_the_disk_read_only");
}

/// Runs an ignored test on a file system of 1 MiB, which ends with the mount namespace that it is in.
#[allow(clippy::print_stderr)]
fn on_a_small_file_system(test: &str) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount a small file system");
        return;
    }
    let (directory, _) = place();
    let mount = "mount -t tmpfs -o size=1m,mode=700 tmpfs \"$FUMEHOOD_STORE_TEST\" && exec \"$@\"";
    let inner = child_command(test, directory.path());
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

    while fs::write(directory.join("rest"), vec![1; 1 << 20]).is_ok() {}
    // What the files have already is used up first.
    while log.append(&subject(1), &event("small"), at(1)).is_ok() {}
    let room = store.make_room();
    recorded = append(&log, "what gives space back is recorded all the same");
    drop(room);

    fs::remove_file(directory.join("rest")).unwrap();
    fs::remove_file(&ballast).unwrap();
    assert_eq!(append(&log, "there is space again"), recorded + 1);
    drop(store);
    let store = Store::open(&state).unwrap();
    assert_eq!(checked_length(&store), recorded + 1);
    assert!(state.join("reserve").exists(), "and some of it is kept for the next time");

    let rest = fs::write(directory.join("rest"), vec![1; 2 << 20]);
    assert!(rest.is_err(), "the file system is full to the last byte");
    let other = Store::open(&directory.join("other")).expect_err("there is no space for a new one");
    assert!(is_full(&other), "{other:?}");
}

#[test]
#[ignore = "started by another test on a small file system"]
fn makes_the_disk_read_only() {
    let Some(directory) = given_state() else { return };
    let state = directory.join("state");
    append(&Log::open(&Store::open(&state).unwrap()).unwrap(), "first");
    let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&directory).status().unwrap();
    assert!(mounted.success());
    let store = Store::open(&state).unwrap();
    assert_eq!(checked_length(&store), 1, "what is there can be read");
    let refused = Log::open(&store).unwrap().append(&subject(1), &event("second"), at(1)).unwrap_err();
    let told = refused.source().unwrap().to_string();
    assert!(told.contains("whether the file system is read-only"), "{refused:?}");
    let elsewhere = Store::open(&directory.join("other")).unwrap_err();
    assert!(matches!(elsewhere, StoreError::File { .. }), "{elsewhere:?}");
}
