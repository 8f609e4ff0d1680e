//! Opening: what is made, what is refused, and that nothing is deleted.

use std::error::Error as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use audit::Log;
use engine::store::{Store, StoreError};

use super::fixture::{append, checked_length, place};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns what an error says, its causes included.
fn told(error: &StoreError) -> String {
    let (mut told, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    told
}

fn refused(state: &Path) -> String {
    told(&Store::open(state).unwrap_err())
}

#[test]
fn everything_is_made_for_the_owner_alone() {
    let (_directory, state) = place();
    let state = state.join("nested/deeper");
    let store = Store::open(&state).unwrap();
    append(&Log::open(&store).unwrap(), "first");
    for directory in [&state, state.parent().unwrap()] {
        assert_eq!(mode(directory), 0o700);
    }
    assert_eq!(names(&state), ["fumehood.db", "fumehood.db-shm", "fumehood.db-wal", "key", "reserve"]);
    for name in names(&state) {
        assert_eq!(mode(&state.join(&name)), 0o600, "{name}");
    }
    assert_eq!(fs::read(state.join("key")).unwrap().len(), 32);
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let (_directory, state) = place();
    let (log, digest) = {
        let store = Store::open(&state).unwrap();
        append(&Log::open(&store).unwrap(), "first");
        (store.log().clone(), store.value_digest(b"value"))
    };
    let store = Store::open(&state).unwrap();
    assert_eq!((store.log(), store.value_digest(b"value")), (&log, digest));
    assert_eq!(append(&Log::open(&store).unwrap(), "second"), 2);
    assert_eq!(checked_length(&store), 2);
    assert_eq!(store.damage().unwrap(), [""; 0]);
}

#[test]
fn the_log_that_every_start_reads_stays_small() {
    let (_directory, state) = place();
    let log_size = || fs::metadata(state.join("fumehood.db-wal")).map_or(0, |found| found.len());
    for text in ["small", &"x".repeat(5 << 20), "small"] {
        append(&Log::open(Store::open(&state).as_ref().unwrap()).unwrap(), text);
        assert!(log_size() <= 2 << 20, "{}", log_size());
    }
    assert!(log_size() > 0, "a short run leaves it for the next one");
    assert_eq!(checked_length(&Store::open(&state).unwrap()), 3);
}

#[test]
fn two_directories_have_different_logs_and_keys() {
    let (directory, state) = place();
    let (one, two) = (Store::open(&state).unwrap(), Store::open(&directory.path().join("other")).unwrap());
    assert_ne!(one.log(), two.log());
    assert_ne!(one.value_digest(b"value"), two.value_digest(b"value"));
}

#[test]
fn a_directory_that_others_can_read_becomes_ours_alone() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    fs::set_permissions(&state, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(state.join("key"), Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&state).unwrap());
    assert_eq!((mode(&state), mode(&state.join("key"))), (0o700, 0o600));
}

#[test]
fn what_others_can_write_is_refused() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    for (path, wrong) in [
        (state.clone(), 0o770),
        (state.clone(), 0o702),
        (state.join("key"), 0o620),
        (state.join("fumehood.db"), 0o606),
    ] {
        let before = mode(&path);
        fs::set_permissions(&path, Permissions::from_mode(wrong)).unwrap();
        let told = refused(&state);
        assert!(told.contains("can be written by others") && told.contains("`chmod go-w`"), "{told}");
        assert_eq!(mode(&path), wrong, "nothing is changed by a refusal");
        fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
    }
    drop(Store::open(&state).unwrap());
}

#[test]
fn links_are_refused_wherever_they_stand() {
    let (directory, state) = place();
    drop(Store::open(&state).unwrap());
    let link = directory.path().join("link");
    symlink(&state, &link).unwrap();
    assert!(refused(&link).contains("is a symbolic link"));
    for name in ["key", "fumehood.db"] {
        let (path, moved) = (state.join(name), directory.path().join("moved"));
        fs::rename(&path, &moved).unwrap();
        symlink(&moved, &path).unwrap();
        assert!(refused(&state).contains("is not an ordinary file"), "{name}");
        fs::rename(&moved, &path).unwrap();
    }
    drop(Store::open(&state).unwrap());
}

#[test]
fn a_link_above_the_directory_is_the_owner_s_choice() {
    let (directory, state) = place();
    fs::create_dir(directory.path().join("disk")).unwrap();
    symlink(directory.path().join("disk"), &state).unwrap();
    let store = Store::open(&state.join("fumehood")).unwrap();
    assert!(store.directory().ends_with("disk/fumehood"), "{store:?}");
}

#[test]
fn something_else_in_its_place_is_refused() {
    let (_directory, state) = place();
    fs::write(&state, "a file").unwrap();
    assert!(refused(&state).contains("is not a directory"));
    assert!(refused(&state.join("below")).contains("cannot make the state directory"));
}

#[test]
fn a_directory_of_other_things_is_refused_before_anything_in_it_is_touched() {
    let (_directory, state) = place();
    fs::create_dir_all(state.join("run/server")).unwrap();
    fs::write(state.join("run/server/lock"), "").unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused(&state).contains("no state directory of Fumehood"));
    assert_eq!((mode(&state), names(&state)), (0o755, vec!["run".to_owned()]));
    assert!(refused(Path::new("/usr")).contains("no state directory"), "whoever owns it");
    fs::remove_dir_all(state.join("run")).unwrap();
    Store::open(&state).unwrap();
}

#[test]
fn what_belongs_to_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    for path in [state.join("key"), state.join("fumehood.db"), state.clone()] {
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        let told = refused(&state);
        assert!(told.contains("belongs to user 1234 and you are user 0"), "{told}");
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    edit(&state, "UPDATE store SET schema = schema + 1000");
    let told = refused(&state);
    assert!(told.contains("schema 10") && told.contains("use the newer `fumehood`"), "{told}");
    edit(&state, "UPDATE store SET schema = schema - 1000");
    drop(Store::open(&state).unwrap());
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let (_directory, state) = place();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    fs::write(state.join("key"), [1; 32]).unwrap();
    edit(&state, "CREATE TABLE bookmarks (url TEXT)");
    let before = fs::read(state.join("fumehood.db")).unwrap();
    assert!(refused(&state).contains("not a state database of `fumehood`"));
    assert_eq!(fs::read(state.join("fumehood.db")).unwrap(), before);
}

#[test]
fn a_damaged_database_is_refused_and_left_alone() {
    let (_directory, state) = place();
    let path = state.join("fumehood.db");
    drop(Store::open(&state).unwrap());
    for damaged in [b"not a database, and long enough to be read as one".repeat(100), Vec::new()] {
        fs::write(&path, &damaged).unwrap();
        let told = refused(&state);
        assert!(told.contains("damaged") || told.contains("not a state database"), "{told}");
        assert!(told.contains("--state-dir"), "it says what to do: {told}");
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
}

#[test]
fn damage_in_the_middle_is_found_and_never_a_panic() {
    let (_directory, state) = place();
    {
        let store = Store::open(&state).unwrap();
        let log = Log::open(&store).unwrap();
        for _ in 0..200 {
            append(&log, &"x".repeat(500));
        }
    }
    edit(&state, "PRAGMA wal_checkpoint(TRUNCATE)");
    let path = state.join("fumehood.db");
    let mut bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 4096;
    bytes[(pages - 10) * 4096..(pages - 5) * 4096].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let found = Store::open(&state).map(|store| {
        let log = Log::open(&store)
            .and_then(|log| log.verify(&audit::Anchors::default()).map(|found| found.to_string()));
        (store.damage(), log)
    });
    let told = format!("{found:?}");
    assert!(!told.contains("consistent") && told.contains("Damaged"), "{told}");
}

#[test]
fn a_key_that_is_gone_or_cut_is_not_made_anew() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    fs::write(state.join("key"), "short").unwrap();
    assert!(refused(&state).contains("is not 32 bytes long: restore it"));
    fs::remove_file(state.join("key")).unwrap();
    assert!(refused(&state).contains("is missing: restore it"));
    assert!(!names(&state).contains(&"key".to_owned()));
}

#[test]
fn a_database_that_is_gone_while_its_journal_is_there_is_not_made_anew() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    fs::remove_file(state.join("fumehood.db")).unwrap();
    let before = names(&state);
    assert!(refused(&state).contains("is missing but its journal is there"));
    assert_eq!(names(&state), before);
}

#[test]
fn leftovers_of_a_start_that_died_are_no_obstacle() {
    let (_directory, state) = place();
    drop(Store::open(&state).unwrap());
    names(&state).iter().for_each(|name| fs::remove_file(state.join(name)).unwrap());
    for name in ["fumehood.db.new", "fumehood.db.new-wal", "key.new"] {
        fs::write(state.join(name), "half").unwrap();
    }
    assert_eq!(checked_length(&Store::open(&state).unwrap()), 0);
}

/// Runs a statement on the database, as somebody with an editor would.
fn edit(state: &Path, sql: &str) {
    rusqlite::Connection::open(state.join("fumehood.db")).unwrap().execute_batch(sql).unwrap();
}
