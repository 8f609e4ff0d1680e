//! Signed heads: made by themselves, adding to each other, and never made over what does not fit.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use audit::{Anchors, Checkpoint, Entry, Log, Verification, read_checkpoints};
use engine::Anchor;
use engine::store::{Store, StoreError};
use model::event::Event;
use model::task::TaskState;

use super::fixture::{append, at, event, place, subject};

fn append_many(log: &Log<&Store>, number: usize) {
    let (subject, event) = (subject(1), event("one of many"));
    let entries = vec![Entry { subject: &subject, event: &event, time: at(7) }; number];
    drop(log.append_all(&entries, |_| Ok(())).unwrap());
}

fn heads(store: &Store) -> Vec<Checkpoint> {
    let key = store.public_key().unwrap();
    let notes = store.read(|reader| reader.signed_heads()).unwrap();
    notes.iter().map(|note| Checkpoint::open(note, &key).unwrap()).collect()
}

fn sizes(store: &Store) -> Vec<u64> {
    heads(store).iter().map(|head| head.head().seq).collect()
}

fn sql(state: &Path, sql: &str) {
    rusqlite::Connection::open(state.join("fumehood.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn heads_are_signed_by_themselves_and_the_record_holds_them_all() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    append_many(&log, 98);
    assert_eq!(sizes(&store), [0; 0]);
    append_many(&log, 5);
    append_many(&log, 300);
    append(&log, "nothing of note");
    let ended = Event::TaskState { state: TaskState::Discarded, by: None };
    drop(log.append(&subject(1), &ended, at(8)).unwrap());
    // A batch is signed once, as it leaves the record.
    assert_eq!(sizes(&store), [103, 403, 405]);
    let found = log.verify(&Anchors::default().and_signed(heads(&store))).unwrap();
    assert_eq!(found.to_string(), "consistent with all 3 signed heads: 405 records");
}

#[test]
fn a_head_is_signed_on_demand_and_again_only_when_something_was_added() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let (empty, _) = store.sign_head(at(1)).unwrap();
    assert_eq!(empty.head().seq, 0);
    append(&Log::open(&store).unwrap(), "one");
    let (one, failure) = store.sign_head(at(2)).unwrap();
    assert_eq!((one.head().seq, failure), (1, None));
    assert_eq!(store.sign_head(at(3)).unwrap().0, one);
    drop(store);
    let store = Store::open(&state).unwrap();
    assert_eq!(store.sign_head(at(4)).unwrap().0, one, "also by another process");
    assert_eq!(sizes(&store), [0, 1]);
}

#[test]
fn a_record_from_before_there_were_heads_is_signed_from_its_start() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    append_many(&Log::open(&store).unwrap(), 250);
    sql(&state, "DELETE FROM checkpoints");
    append_many(&Log::open(&store).unwrap(), 50);
    let found = Log::open(&store).unwrap().verify(&Anchors::default().and_signed(heads(&store))).unwrap();
    assert!(matches!(found, Verification::Anchored { anchored: 300, signed_heads: 1, .. }), "{found}");
}

#[test]
fn nothing_is_signed_or_appended_where_the_record_does_not_fit_its_heads() {
    for edit in [
        "DELETE FROM records WHERE seq > 90",
        "UPDATE records SET digest = zeroblob(32) WHERE seq = 100",
        "DELETE FROM records WHERE seq = 103",
        "UPDATE checkpoints SET note = replace(note, 'chain', 'chaim')",
        "UPDATE checkpoints SET peaks = zeroblob(96)",
        "UPDATE checkpoints SET peaks = zeroblob(95)",
        "UPDATE checkpoints SET size = 99",
        "UPDATE checkpoints SET size = 99, peaks = zeroblob(128)",
    ] {
        let (_directory, state) = place();
        let store = Store::open(&state).unwrap();
        let log = Log::open(&store).unwrap();
        append_many(&log, 100);
        append_many(&log, 5);
        sql(&state, edit);
        let error = store.sign_head(at(9)).expect_err(edit);
        assert!(matches!(error, StoreError::SignedHeads { .. }), "{edit}: {error}");
        let before = log.head().unwrap();
        let ended = Event::TaskState { state: TaskState::Stopped, by: None };
        assert!(log.append(&subject(1), &ended, at(9)).is_err(), "{edit}");
        assert_eq!(log.head().unwrap(), before, "{edit}: nothing was appended");
    }
}

#[test]
fn the_private_key_is_the_owner_s_alone_and_is_made_once() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    assert!(!state.join("signing-key").exists(), "it is made when it is first used");
    let key = store.public_key().unwrap();
    let file = state.join("signing-key");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Store::open(&state).unwrap().public_key().unwrap(), key);
    append(&Log::open(&store).unwrap(), "one");
    drop(store.sign_head(at(1)).unwrap());
    assert!(!format!("{store:?}").contains("signing"), "{store:?}");

    std::fs::remove_file(&file).unwrap();
    let error = Store::open(&state)
        .unwrap()
        .sign_head(at(2))
        .expect_err("another key would vouch for what it never saw");
    assert!(error.to_string().contains("is missing"), "{error}");
    std::fs::write(&file, [9; 32]).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let error = Store::open(&state).unwrap().sign_head(at(2)).expect_err("it is another key");
    assert!(matches!(error, StoreError::SignedHeads { source: Some(_), .. }), "{error}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o622)).unwrap();
    assert!(matches!(Store::open(&state).unwrap().public_key(), Err(StoreError::Writable { .. })));
}

/// Opens a store that keeps its heads in a file, and what it told.
fn anchored(state: &Path, file: &Path) -> (Result<Store, StoreError>, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = told.clone();
    let tell = move |text: &str| hears.lock().unwrap().push(text.to_owned());
    (Store::open(state).unwrap().anchored(Some(Anchor::new(file.to_owned(), tell))), told)
}

#[test]
fn each_head_is_appended_elsewhere_and_what_was_there_stays() {
    let (directory, state) = place();
    let file = directory.path().join("heads");
    let (store, told) = anchored(&state, &file);
    let store = store.unwrap();
    let log = Log::open(&store).unwrap();
    append_many(&log, 100);
    let first = std::fs::read_to_string(&file).unwrap();
    append_many(&log, 100);
    drop(store.sign_head(at(3)).unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&first) && text.len() > first.len());
    let kept = read_checkpoints(text.as_bytes(), &store.public_key().unwrap()).unwrap();
    assert_eq!(kept.iter().map(|head| head.head().seq).collect::<Vec<_>>(), [100, 200, 200]);
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn a_head_that_cannot_be_kept_elsewhere_is_told_and_the_next_one_is_tried_again() {
    let (directory, state) = place();
    let missing = directory.path().join("not-mounted");
    let (store, told) = anchored(&state, &missing.join("heads"));
    let store = store.unwrap();
    let log = Log::open(&store).unwrap();
    append_many(&log, 100);
    assert_eq!(log.head().unwrap().seq, 100, "the events are on the record all the same");
    assert!(told.lock().unwrap()[0].contains("NOT kept"), "{told:?}");
    std::fs::create_dir(&missing).unwrap();
    append_many(&log, 100);
    assert_eq!(told.lock().unwrap().len(), 1);
    let text = std::fs::read_to_string(missing.join("heads")).unwrap();
    assert_eq!(read_checkpoints(text.as_bytes(), &store.public_key().unwrap()).unwrap().len(), 1);
}

#[test]
fn what_is_no_file_and_what_is_in_the_state_directory_keeps_no_heads() {
    let (directory, state) = place();
    drop(Store::open(&state).unwrap());
    let (store, _) = anchored(&state, &state.join("heads"));
    assert!(matches!(store, Err(StoreError::AnchorInside { .. })), "{store:?}");
    std::os::unix::fs::symlink(&state, directory.path().join("link")).unwrap();
    let (store, _) = anchored(&state, &directory.path().join("link/heads"));
    assert!(matches!(store, Err(StoreError::AnchorInside { .. })), "{store:?}");
    for file in [directory.path(), Path::new("/dev/null")] {
        let (store, told) = anchored(&state, file);
        let (_, failure) = store.unwrap().sign_head(at(1)).unwrap();
        assert!(failure.is_some() && !told.lock().unwrap().is_empty(), "{file:?}");
    }
}
