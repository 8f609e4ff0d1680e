//! Signed heads in the database: made in the same write as the records that they are over, so they cost no wait for the
//! disk of their own.
//!
//! Guarantees: a head is signed only when it adds to the one that was signed before; where the record, the last signed head
//! and the key do not fit each other, nothing is signed and nothing is appended. The private key is in a file of the state
//! directory for its owner alone, is made when the first head is signed, and is never made a second time.

use audit::merkle::Tree;
use audit::{Checkpoint, PublicKey, Record, SigningKey};
use model::{Digest, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::error::StoreError;
use super::key;
use super::row::{Raw, Unsigned};
use super::{Reader, Store, Writer};

/// Records after which a head is signed at the latest.
const EVERY: u64 = 100;

/// Events after which a head is signed at once: a task came to another state, the host was written to, content of events went.
const ENDS: &[&str] = &["task-state", "applied", "applied-undone", "agent-ended", "record-pruned"];

/// The end of an action. Where heads are kept elsewhere, each is worth one.
const ACTION_ENDS: &str = "torn-down";

const KEY: &str = "signing-key";

impl Store {
    /// Signs the head of the record, keeps it elsewhere where that was configured, and returns it with what kept it from
    /// getting there. When nothing was appended since the last one was signed, it is that one.
    ///
    /// # Errors
    /// When the database cannot be written, or what is in it does not fit the heads that were signed before.
    pub fn sign_head(&self, time: Timestamp) -> Result<(Checkpoint, Option<String>), StoreError> {
        let signed = self.write(|writer| self.signed(writer, time))?;
        let failure = self.keep_elsewhere(&signed);
        Ok((signed, failure))
    }

    /// Returns the key with which signed heads of this directory are checked. It is made when there is none yet.
    ///
    /// # Errors
    /// When its file is missing although heads were signed, damaged, or not ours alone.
    pub fn public_key(&self) -> Result<PublicKey, StoreError> {
        self.read(|reader| Ok(self.signing_key(reader)?.public().clone()))
    }

    /// Tells whether a head is to be signed when these records are appended.
    pub(super) fn is_due(&self, records: &[Record]) -> bool {
        let ends = |record: &Record| {
            ENDS.iter().any(|name| record.is_event(name))
                || self.anchor.is_some() && record.is_event(ACTION_ENDS)
        };
        records.iter().any(|record| record.seq.is_multiple_of(EVERY) || ends(record))
    }

    /// Signs the head as this write leaves it.
    pub(super) fn signed(&self, writer: &Writer<'_>, time: Timestamp) -> Result<Checkpoint, StoreError> {
        let key = self.signing_key(writer)?;
        let head = writer.head(self.log.clone())?;
        let mut tree = match writer.last_signed(key.public())? {
            Some((last, _)) if *last.head() == head => return Ok(last),
            Some((_, tree)) => tree,
            None => Tree::default(),
        };
        writer.grow(&mut tree)?;
        if tree.size() != head.seq {
            return Err(misfit("there are records missing"));
        }
        let signed = Checkpoint::sign(head, &tree, time, key);
        writer.insert_signed(&signed, &tree)?;
        Ok(signed)
    }

    fn signing_key(&self, reader: &Reader<'_>) -> Result<&SigningKey, StoreError> {
        if let Some(key) = self.signing.get() {
            return Ok(key);
        }
        let secret = match key::load(&self.directory, KEY) {
            Err(StoreError::Key { state: key::MISSING, .. }) if !reader.has_signed()? => {
                key::make_locked(&self.directory, KEY)?
            }
            found => found?,
        };
        Ok(self.signing.get_or_init(|| SigningKey::new(&self.log, &secret)))
    }
}

impl Reader<'_> {
    fn has_signed(&self) -> Result<bool, StoreError> {
        Ok(self.connection.query_row("SELECT EXISTS (SELECT 1 FROM checkpoints)", [], |row| row.get(0))?)
    }

    /// Returns the last signed head with its tree, once they were found to fit each other, the key and the record.
    fn last_signed(&self, key: &PublicKey) -> Result<Option<(Checkpoint, Tree)>, StoreError> {
        let sql = "SELECT size, note, peaks FROM checkpoints ORDER BY size DESC LIMIT 1";
        let mut select = self.connection.prepare_cached(sql)?;
        let found = select
            .query_row([], |row| Ok((row.get::<_, Unsigned>(0)?.0, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((size, note, peaks)): Option<(u64, String, Vec<u8>)> = found else { return Ok(None) };
        let last = Checkpoint::open(&note, key)
            .map_err(|error| misfit_by("the last of them cannot be gone by", error))?;
        let tree = Tree::resume(size, digests(&peaks)?).filter(|tree| tree.root() == *last.root());
        let tree =
            tree.filter(|_| size == last.head().seq).ok_or_else(|| misfit("its tree is another one"))?;
        if size > 0 && self.digest_of(size)? != Some(last.head().digest) {
            return Err(misfit("the last of them names another record"));
        }
        Ok(Some((last, tree)))
    }

    fn digest_of(&self, seq: u64) -> Result<Option<Digest>, StoreError> {
        let mut select = self.connection.prepare_cached("SELECT digest FROM records WHERE seq = ?1")?;
        let found = select.query_row([seq.cast_signed()], |row| row.get::<_, Raw<Digest>>(0)).optional()?;
        Ok(found.map(|digest| digest.0))
    }

    /// Adds the records that are not in the tree yet.
    fn grow(&self, tree: &mut Tree) -> Result<(), StoreError> {
        let mut select =
            self.connection.prepare_cached("SELECT digest FROM records WHERE seq > ?1 ORDER BY seq")?;
        let mut rows = select.query([tree.size().cast_signed()])?;
        while let Some(row) = rows.next()? {
            tree.push(&row.get::<_, Raw<Digest>>(0)?.0);
        }
        Ok(())
    }

    /// Returns every signed head, oldest first, as text.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn signed_heads(&self) -> Result<Vec<String>, StoreError> {
        let mut select = self.connection.prepare_cached("SELECT note FROM checkpoints ORDER BY size")?;
        Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    fn insert_signed(&self, signed: &Checkpoint, tree: &Tree) -> Result<(), StoreError> {
        let peaks: Vec<u8> = tree.peaks().iter().flat_map(|peak| *peak.as_bytes()).collect();
        let sql = "INSERT INTO checkpoints (size, note, peaks) VALUES (?1, ?2, ?3)";
        let row = params![tree.size().cast_signed(), signed.to_string(), peaks];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}

fn digests(bytes: &[u8]) -> Result<Vec<Digest>, StoreError> {
    let (whole, rest) = bytes.as_chunks::<32>();
    if rest.is_empty() {
        Ok(whole.iter().map(|bytes| Digest::from_bytes(*bytes)).collect())
    } else {
        Err(misfit("its tree has no whole hashes"))
    }
}

fn misfit(why: &'static str) -> StoreError {
    StoreError::SignedHeads { why, source: None }
}

fn misfit_by(why: &'static str, source: audit::CheckpointError) -> StoreError {
    StoreError::SignedHeads { why, source: Some(source) }
}
