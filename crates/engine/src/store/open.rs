//! Opening the database: made in one piece when it is not there, otherwise looked at before it is trusted.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use audit::LogId;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};

use super::Store;
use super::error::StoreError;
use super::key::{self, Key};
use super::reserve;
use super::row::Value;
use super::state_directory::{self, check_file};
use crate::redaction::Redactor;

/// What each version of the schema added to the one before. This build writes the last one, and brings an older
/// database there when it opens it.
const VERSIONS: [&str; 12] = [
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
    include_str!("schema-7.sql"),
    include_str!("schema-8.sql"),
    include_str!("schema-9.sql"),
    include_str!("schema-10.sql"),
    include_str!("schema-11.sql"),
    include_str!("schema-12.sql"),
];

/// The schema that this build writes.
pub(super) const SCHEMA: i64 = VERSIONS.len() as i64;

/// `FUME`: tells our database from any other with the same name.
const APPLICATION: i64 = 0x4655_4d45;

pub(super) fn open(directory: &Path) -> Result<Store, StoreError> {
    let directory = state_directory::prepare(directory)?;
    let path = directory.join("fumehood.db");
    if !check_file(&path)? {
        make(&directory, &path).map_err(|source| at(&path, source))?;
    }
    let key = Key::load(&directory, key::NAME)?;
    let (connection, log) = connect(&path).map_err(|source| at(&path, source))?;
    reserve::keep(&directory);
    let (connection, signing) = (Mutex::new(connection), OnceLock::new());
    Ok(Store { directory, connection, key, redactor: Redactor::default(), log, signing, anchor: None })
}

/// Adds the path to what SQLite says; errors about files name theirs already.
fn at(path: &Path, source: StoreError) -> StoreError {
    match source {
        source @ (StoreError::File { .. } | StoreError::Missing { .. }) => source,
        source => StoreError::Open { path: path.to_owned(), source: Box::new(source) },
    }
}

/// Makes the database under another name and renames it, so that nobody ever sees half of one.
fn make(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let _lock = state_directory::lock(directory)?;
    if check_file(path)? {
        return Ok(());
    }
    // SQLite would play what is in an old journal into the new database.
    if beside(path, "-wal").exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    Key::make(directory, key::NAME)?;
    let new = directory.join("fumehood.db.new");
    for leftover in ["", "-journal", "-wal", "-shm"] {
        state_directory::remove_unfinished(&beside(&new, leftover))?;
    }
    drop(state_directory::create(&new)?);
    fill(&new)?;
    state_directory::publish(directory, &new, path)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn fill(path: &Path) -> Result<(), StoreError> {
    let connection = Connection::open_with_flags(path, flags())?;
    // The file has no readers and no name yet: it is synced as a whole before it gets one.
    connection.execute_batch("PRAGMA synchronous = OFF")?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Journal { mode });
    }
    let log = LogId::from_random(key::random()?);
    let transaction = connection.unchecked_transaction()?;
    VERSIONS.iter().try_for_each(|added| transaction.execute_batch(added))?;
    transaction.execute("INSERT INTO store (schema, log) VALUES (?1, ?2)", (SCHEMA, log.as_str()))?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error.into())
}

fn connect(path: &Path) -> Result<(Connection, LogId), StoreError> {
    let mut connection = Connection::open_with_flags(path, flags())?;
    connection.busy_handler(Some(wait))?;
    connection.set_prepared_statement_cache_capacity(64);
    // What somebody else wrote into the file must not act: no triggers or views, no writes to the schema.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    // Emptying the log at every close would make a short run wait for the disk four times more. It stays, and the
    // next start reads it, which takes less than a millisecond for as many pages as it holds here.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 256; \
         PRAGMA temp_store = MEMORY;",
    )?;
    let (schema, log) = identify(&connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Journal { mode });
    }
    if schema < SCHEMA {
        upgrade(&mut connection)?;
    }
    Ok((connection, log))
}

/// Lets the close that follows empty the log when it became larger than a start should have to read.
pub(super) fn shrink_log(connection: &Connection) -> Result<(), StoreError> {
    let path = PathBuf::from(connection.path().unwrap_or_default());
    if std::fs::metadata(beside(&path, "-wal")).is_ok_and(|found| found.len() > LARGE_LOG) {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    }
    Ok(())
}

/// Twice what the log has when it is written into the database.
const LARGE_LOG: u64 = 2 << 20;

fn flags() -> OpenFlags {
    // One connection is used by one thread at a time, so SQLite needs no lock of its own. No link is followed.
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// Adds what later versions of the schema have, all of it or nothing.
fn upgrade(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let (schema, _) = identify(&transaction)?;
    let missing = VERSIONS.iter().skip(usize::try_from(schema).unwrap_or(usize::MAX));
    missing.into_iter().try_for_each(|added| transaction.execute_batch(added))?;
    transaction.execute("UPDATE store SET schema = ?1", [SCHEMA])?;
    Ok(transaction.commit()?)
}

/// Tells whether the database is ours and not of a newer schema than ours; returns which, and the log that it holds.
fn identify(connection: &Connection) -> Result<(i64, LogId), StoreError> {
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION {
        return Err(StoreError::Foreign);
    }
    let found: Option<(i64, Value<LogId>)> = connection
        .query_row("SELECT schema, log FROM store", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((schema, _)) if schema > SCHEMA => Err(StoreError::Newer { schema, known: SCHEMA }),
        Some((schema, log)) => Ok((schema, log.0)),
        None => Err(StoreError::Foreign),
    }
}

/// Waits for another process's write. A write takes about a millisecond, so the steps are far smaller than SQLite's
/// own, which grow to a tenth of a second. The sum is about a minute: nobody gets a turn in order, and two hundred starts at
/// once on a busy machine need more than the twenty seconds that would do for a disk that hangs.
fn wait(times: i32) -> bool {
    let pause = match times {
        0..10 => Duration::from_micros(200),
        10..100 => Duration::from_millis(1),
        _ => Duration::from_millis(5),
    };
    std::thread::sleep(pause);
    times < 12_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a database as an older build made it.
    fn of_version(directory: &Path, version: usize) -> PathBuf {
        let path = directory.join("fumehood.db");
        drop(open(directory).expect("a store"));
        std::fs::remove_file(&path).expect("is ours");
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(&path, suffix));
        }
        drop(state_directory::create(&path).expect("makes it"));
        let connection = Connection::open_with_flags(&path, flags()).expect("opens");
        connection.pragma_update(None, "application_id", APPLICATION).expect("writes");
        let _: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).expect("answers");
        VERSIONS[..version].iter().try_for_each(|added| connection.execute_batch(added)).expect("has tables");
        let log = LogId::from_random([7; 10]);
        let row = (i64::try_from(version).expect("small"), log.as_str());
        connection.execute("INSERT INTO store (schema, log) VALUES (?1, ?2)", row).expect("has a row");
        path
    }

    #[test]
    fn an_older_database_is_brought_to_this_version_and_keeps_what_it_holds() {
        for version in 1..VERSIONS.len() {
            let place = tempfile::tempdir().expect("a directory");
            let directory = place.path().join("state");
            let path = of_version(&directory, version);
            for _ in 0..2 {
                let store = open(&directory).unwrap_or_else(|error| panic!("{version}: {error}"));
                assert_eq!(store.log, LogId::from_random([7; 10]), "{version}");
                assert_eq!(store.read(|reader| reader.approvals(false)).expect("can be read"), []);
            }
            let (schema, _) = identify(&Connection::open(&path).expect("opens")).expect("is ours");
            assert_eq!(schema, SCHEMA);
        }
    }
}
