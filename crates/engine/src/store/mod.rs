//! The store: one state directory with one SQLite database, which holds the record and what tasks are made of.
//!
//! Guarantees: what a write returned `Ok` for survives a crash and a loss of power (write-ahead log, synced at each
//! commit); several processes may write at once and the record stays one chain; a directory, database or key that
//! is not ours alone, damaged, or from a newer build is refused with what to do about it, and nothing is deleted.
//! Values of environment variables are never written, only digests under a key of this directory; secrets that are known
//! or show by themselves are replaced by tokens in every text that is written (`redaction`), events before they are sealed.
//!
//! Leaves to others: the files of layers and outputs beside the database, who may work on a task at once, and what
//! the rows mean. The record is the truth; the other tables make it quick to find. No other code of the process may
//! open the database's files: the kernel drops SQLite's locks when any descriptor of them is closed.

mod actions;
mod approvals;
mod cache;
mod contents;
mod denials;
mod error;
mod garbage;
mod heads;
mod holds;
mod intakes;
mod key;
mod layers;
mod leases;
mod legal;
mod messages;
mod open;
mod packages;
mod prefix;
mod records;
mod reserve;
mod retained;
mod row;
mod state_directory;
mod tasks;
mod vault;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use audit::{Checkpoint, LogId, SigningKey};
use model::Digest;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use actions::{ActionState, Evidence, StoredAction, StoredRequest};
pub use approvals::{ClientProcess, StoredApproval};
pub use cache::FileKey;
pub use contents::Sealed;
pub use denials::StoredDenial;
pub use error::StoreError;
pub use garbage::KeptContent;
pub use holds::{Freeze, Halt, Starter};
pub use intakes::StoredIntake;
pub use layers::{LayerState, StoredLayer};
pub use leases::{Revocation, StoredLease};
pub use legal::LegalHolds;
pub use packages::StoredPackage;
pub use reserve::Room;
pub use retained::{RetainedAction, RetainedTask};
pub use tasks::TaskOverview;

pub(crate) use key::Key;

use crate::anchor::{Anchor, Unanchored};
use crate::redaction::Redactor;

/// An open state directory. It can be shared between threads; one of them works on the database at a time.
pub struct Store {
    directory: PathBuf,
    connection: Mutex<Connection>,
    key: Key,
    redactor: Redactor,
    log: LogId,
    signing: OnceLock<SigningKey>,
    anchor: Option<Anchor>,
}

/// What can be read. One reader sees one state, whatever others write meanwhile.
pub struct Reader<'c> {
    connection: &'c Connection,
    key: &'c Key,
    redactor: &'c Redactor,
}

/// What can be changed, and read as changed. Until the end of the write nobody else sees it.
pub struct Writer<'c>(Reader<'c>);

impl<'c> std::ops::Deref for Writer<'c> {
    type Target = Reader<'c>;

    fn deref(&self) -> &Reader<'c> {
        &self.0
    }
}

impl Store {
    /// Opens the state directory, and makes it when it is not there.
    ///
    /// # Errors
    /// When the directory or a file in it is a link, belongs to somebody else or can be written by others; when
    /// the database is damaged, not ours or from a newer build; when the disk is full or cannot be written.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        open::open(directory)
    }

    /// Returns the state directory, resolved.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the name of the log that the store holds.
    pub fn log(&self) -> &LogId {
        &self.log
    }

    /// Has each head that is signed from now on kept elsewhere, too.
    ///
    /// # Errors
    /// When that is in this directory, where it would vouch for nothing.
    pub fn anchored(mut self, anchor: Option<Anchor>) -> Result<Self, StoreError> {
        if let Some(file) = anchor.as_ref().and_then(|anchor| anchor.inside(&self.directory)) {
            return Err(StoreError::AnchorInside { path: file });
        }
        self.anchor = anchor;
        Ok(self)
    }

    /// Keeps a signed head elsewhere where that was configured, and tells at once what kept it from getting there.
    fn keep_elsewhere(&self, signed: &Checkpoint) -> Option<String> {
        self.anchor.as_ref()?.keep(signed).err()
    }

    /// Returns the head that could not be kept elsewhere since this was asked last, by its number of records, with what
    /// kept it from getting there.
    pub(crate) fn take_unanchored(&self) -> Option<Unanchored> {
        self.anchor.as_ref()?.take_failure()
    }

    /// Returns the digest of a value under the key of this directory (HMAC-SHA256). Equal values have equal digests
    /// here; without the key the digest does not help to guess the value.
    pub fn value_digest(&self, value: &[u8]) -> Digest {
        self.key.digest(value)
    }

    /// Makes secrets known, each with a name: from here on they are replaced in everything that is written.
    pub fn learn_secrets(&self, secrets: impl IntoIterator<Item = (String, Vec<u8>)>) {
        self.redactor.learn(&self.key, secrets);
    }

    /// Returns bytes as they may be kept: with tokens where secrets are.
    pub fn without_secrets<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.redactor.clean(&self.key, text)
    }

    /// Returns the two ends of something whose middle is gone, as they may be kept.
    pub(crate) fn ends_without_secrets(&self, head: &[u8], tail: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.redactor.clean_ends(&self.key, head, tail)
    }

    /// Returns a value as it is read back once it was written; nothing when it has no secret, and is itself.
    ///
    /// # Errors
    /// When it cannot be written without one.
    pub(crate) fn as_kept<T: Serialize + DeserializeOwned>(
        &self,
        what: &'static str,
        value: &T,
    ) -> Result<Option<T>, StoreError> {
        let text = row::json(what, value)?;
        match self.redactor.clean_json(&self.key, &text) {
            Cow::Borrowed(_) => Ok(None),
            Cow::Owned(clean) => Ok(Some(readable(what, &clean)?)),
        }
    }

    /// Reads, all of it from one state of the store.
    ///
    /// # Errors
    /// When the database cannot be read, or `read` fails.
    pub fn read<T>(&self, read: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.lock();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Deferred)?;
        read(&Reader { connection: &transaction, key: &self.key, redactor: &self.redactor })
    }

    /// Changes rows: all that `write` does, or nothing when it fails. It is durable when this returns.
    ///
    /// # Errors
    /// When the database cannot be written, or `write` fails.
    pub fn write<T>(
        &self,
        write: impl FnOnce(&Writer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = self.lock();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        let value =
            write(&Writer(Reader { connection: &transaction, key: &self.key, redactor: &self.redactor }))?;
        transaction.commit()?;
        Ok(value)
    }

    /// Frees the space that is kept for a full disk, until the answer is dropped. It is for what gives space back.
    pub fn make_room(&self) -> Room {
        Room::make(&self.directory)
    }

    /// Looks at every page of the database, and returns what is wrong with them; nothing when all is well.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub fn damage(&self) -> Result<Vec<String>, StoreError> {
        self.read(|reader| {
            let mut check = reader.connection.prepare("PRAGMA integrity_check")?;
            let found: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok(found.into_iter().filter(|line| line != "ok").collect())
        })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        // A panic in the middle of a write rolls its transaction back, so the connection is as good as before.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer<'_> {
    /// Returns the JSON form of one of our types for a column, without secrets.
    fn json<T: Serialize + DeserializeOwned>(
        &self,
        what: &'static str,
        value: &T,
    ) -> Result<String, StoreError> {
        let text = row::json(what, value)?;
        match self.redactor.clean_json(self.key, &text) {
            Cow::Borrowed(_) => Ok(text),
            Cow::Owned(clean) => readable::<T>(what, &clean).map(|_| clean),
        }
    }

    /// Returns a text for a column, without secrets.
    fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.clean_text(self.key, text)
    }
}

/// Reads back what is about to be written without its secrets. A secret that is one of the words that a type is made of
/// would leave something that nobody can read.
fn readable<T: DeserializeOwned>(what: &'static str, clean: &str) -> Result<T, StoreError> {
    serde_json::from_str(clean).map_err(|source| StoreError::Secret { what, source })
}

impl Drop for Store {
    fn drop(&mut self) {
        // When this fails the log stays as large as it is, and nothing in it is lost.
        let _ = open::shrink_log(self.connection.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("directory", &self.directory)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}
