//! Content: kept once, sealed under the key of its class, and refused when it is not what was kept.

use engine::store::Store;
use model::{ContentClass, Digest};
use rusqlite::Connection;
use tempfile::TempDir;

use super::fixture::{at, place};

fn store() -> (TempDir, Store) {
    let (directory, state) = place();
    let store = Store::open(&state).unwrap();
    (directory, store)
}

/// What a model is sent grows at its end, before what is the same each time.
fn context(messages: usize) -> Vec<u8> {
    let said = (0..messages).map(|at| format!("{{\"content\":\"{}\"}}", Digest::of(&at.to_le_bytes())));
    format!("{{\"messages\":[{}],\"tools\":[]}}", said.collect::<Vec<_>>().join(",")).into_bytes()
}

fn keep(store: &Store, content: &[u8]) -> Digest {
    let sealed = store.sealed(ContentClass::Context, content).unwrap();
    store.write(|rows| rows.keep_content(&sealed, at(1))).unwrap();
    sealed.digest()
}

fn read(store: &Store, digest: &Digest) -> Result<Option<Vec<u8>>, String> {
    store.content(ContentClass::Context, digest).map_err(|error| error.to_string())
}

fn bytes_in(database: &std::path::Path) -> i64 {
    let sql = "SELECT sum(length(body)) FROM pieces";
    let connection = Connection::open(database).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn content_is_read_back_and_a_conversation_costs_what_it_holds() {
    let (directory, store) = store();
    let turns: Vec<Vec<u8>> = (1..=40).map(|turn| context(turn * 25)).collect();
    let digests: Vec<Digest> = turns.iter().map(|turn| keep(&store, turn)).collect();
    for (turn, digest) in turns.iter().zip(&digests) {
        assert_eq!(read(&store, digest).unwrap().as_ref(), Some(turn));
    }
    assert_eq!(read(&store, &Digest::of(b"another")), Ok(None));
    assert_eq!(store.content(ContentClass::Output, &digests[0]).unwrap(), None);
    let all: usize = turns.iter().map(Vec::len).sum();
    let longest = turns.last().unwrap().len();
    drop(store);
    let kept = usize::try_from(bytes_in(&directory.path().join("state/fumehood.db"))).unwrap();
    assert!(kept < longest * 6 && kept < all / 3, "{kept} bytes for {longest} and {all}");
}

#[test]
fn no_file_of_the_state_holds_it_in_the_clear_and_a_secret_in_it_is_a_token() {
    let (directory, store) = store();
    store.learn_secrets([("KEY".to_owned(), b"q8Zr2LxP0vN5tY".to_vec())]);
    let digest = keep(&store, b"{\"content\":\"something plain and q8Zr2LxP0vN5tY\"}");
    let kept = String::from_utf8(read(&store, &digest).unwrap().unwrap()).unwrap();
    assert!(kept.starts_with("{\"content\":\"something plain and [secret:KEY:"), "{kept}");
    drop(store);
    let state = directory.path().join("state");
    for entry in std::fs::read_dir(&state).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(15).any(|part| part == b"something plain"), "{}", entry.path().display());
    }
    let key = state.join("keys/context");
    let mode = std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn without_its_key_a_class_is_unreadable_for_good_and_what_was_changed_is_refused() {
    let (directory, store) = store();
    let (changed, old) = (keep(&store, b"one content"), keep(&store, b"another content"));
    let connection = Connection::open(directory.path().join("state/fumehood.db")).unwrap();
    let sql = "UPDATE pieces SET body = (SELECT body FROM pieces ORDER BY rowid DESC LIMIT 1) \
               WHERE rowid = (SELECT min(rowid) FROM pieces)";
    connection.execute(sql, []).unwrap();
    let error = read(&store, &changed).expect_err("it is the other one's");
    assert!(error.contains("it was changed"), "{error}");
    assert_eq!(read(&store, &old), Ok(Some(b"another content".to_vec())));
    std::fs::remove_file(directory.path().join("state/keys/context")).unwrap();
    assert!(read(&store, &old).expect_err("it has no key").contains("its key was removed"));
    let new = keep(&store, b"new content");
    assert_eq!(read(&store, &new), Ok(Some(b"new content".to_vec())));
    assert!(read(&store, &old).is_err());
}
