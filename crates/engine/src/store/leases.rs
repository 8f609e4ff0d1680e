//! Leases of credentials in the database, and which of them a person took back.

use model::action::Principal;
use model::{ActionId, Digest, TaskId, Timestamp};
use rusqlite::{OptionalExtension as _, Row, params};

use super::error::StoreError;
use super::holds::Halt;
use super::row::{Json, Raw, Value, time};
use super::{Reader, Writer};

const COLUMNS: &str = "credential, task, action, value, began, expires, ended, why";

/// A credential that one action has or had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLease {
    /// The credential.
    pub credential: String,
    /// The task.
    pub task: TaskId,
    /// The action.
    pub action: ActionId,
    /// The digest of the value, under the key of the state directory.
    pub value: Digest,
    /// When it began.
    pub began: Timestamp,
    /// When it ends at the latest.
    pub expires: Timestamp,
    /// When and why it ended.
    pub ended: Option<(Timestamp, String)>,
}

/// A credential that a person took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The credential.
    pub credential: String,
    /// Who did it.
    pub by: Principal,
    /// Why.
    pub reason: String,
    /// When.
    pub since: Timestamp,
}

impl Reader<'_> {
    /// Returns the leases that are in force, oldest first: of one credential, or of all.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open_leases(&self, credential: Option<&str>) -> Result<Vec<StoredLease>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM leases WHERE ended IS NULL AND (?1 IS NULL OR credential = ?1) \
             ORDER BY began, action, credential"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_map([credential], lease)?.collect::<Result<_, _>>()?)
    }

    /// Returns the newest leases of a credential, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn last_leases(&self, credential: &str, most: u32) -> Result<Vec<StoredLease>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM leases WHERE credential = ?1 ORDER BY began DESC, action LIMIT ?2"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_map(params![credential, most], lease)?.collect::<Result<_, _>>()?)
    }

    /// Returns all leases of an action.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn leases_of(&self, action: &ActionId) -> Result<Vec<StoredLease>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM leases WHERE action = ?1 ORDER BY credential");
        let mut select = self.connection.prepare_cached(&sql)?;
        Ok(select.query_map([action.as_str()], lease)?.collect::<Result<_, _>>()?)
    }

    /// Returns the digest of the value that was used last.
    pub(crate) fn last_value(&self, credential: &str) -> Result<Option<Digest>, StoreError> {
        Ok(self.last_leases(credential, 1)?.pop().map(|lease| lease.value))
    }

    /// Returns who took a credential back, when that is so.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn revocation(&self, credential: &str) -> Result<Option<Revocation>, StoreError> {
        let sql = "SELECT credential, by, reason, since FROM revocations WHERE credential = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row([credential], revocation).optional()?)
    }
}

impl Writer<'_> {
    /// Begins a lease, unless somebody took the credential back meanwhile.
    ///
    /// # Errors
    /// When that is so, or it cannot be written.
    pub(crate) fn begin_lease(&self, lease: &StoredLease) -> Result<(), StoreError> {
        if let Some(revocation) = self.revocation(&lease.credential)? {
            return Err(StoreError::Halted(Box::new(Halt::Revoked(revocation))));
        }
        let sql = "INSERT INTO leases (credential, task, action, value, began, expires) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.prepare_cached(sql)?.execute(params![
            lease.credential,
            lease.task.as_str(),
            lease.action.as_str(),
            lease.value.as_bytes(),
            time(lease.began),
            time(lease.expires),
        ])?;
        Ok(())
    }

    /// Ends what an action still has: one credential, or all.
    pub(crate) fn end_leases(
        &self,
        action: &ActionId,
        credential: Option<&str>,
        why: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET ended = ?3, why = ?4 \
                   WHERE action = ?1 AND ended IS NULL AND (?2 IS NULL OR credential = ?2)";
        let named = params![action.as_str(), credential, time(now), self.text(why)];
        self.connection.prepare_cached(sql)?.execute(named)?;
        Ok(())
    }

    /// Ends all leases of a credential.
    pub(crate) fn end_all_leases(
        &self,
        credential: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE leases SET ended = ?2, why = ?3 WHERE credential = ?1 AND ended IS NULL";
        self.connection.prepare_cached(sql)?.execute(params![credential, time(now), self.text(why)])?;
        Ok(())
    }

    /// Takes a credential back.
    ///
    /// # Errors
    /// When somebody did already, or it cannot be written.
    pub(crate) fn revoke_credential(&self, revocation: &Revocation) -> Result<(), StoreError> {
        if let Some(before) = self.revocation(&revocation.credential)? {
            return Err(StoreError::Halted(Box::new(Halt::Revoked(before))));
        }
        let sql = "INSERT INTO revocations (credential, by, reason, since) VALUES (?1, ?2, ?3, ?4)";
        self.connection.prepare_cached(sql)?.execute(params![
            revocation.credential,
            self.json("a principal", &revocation.by)?,
            self.text(&revocation.reason),
            time(revocation.since),
        ])?;
        Ok(())
    }

    /// Lets actions have a credential again.
    pub(crate) fn give_back_credential(&self, credential: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM revocations WHERE credential = ?1";
        self.connection.prepare_cached(sql)?.execute([credential])?;
        Ok(())
    }
}

fn lease(row: &Row<'_>) -> rusqlite::Result<StoredLease> {
    let ended: Option<Raw<Timestamp>> = row.get(6)?;
    let why: Option<String> = row.get(7)?;
    Ok(StoredLease {
        credential: row.get(0)?,
        task: row.get::<_, Value<_>>(1)?.0,
        action: row.get::<_, Value<_>>(2)?.0,
        value: row.get::<_, Raw<_>>(3)?.0,
        began: row.get::<_, Raw<Timestamp>>(4)?.0,
        expires: row.get::<_, Raw<Timestamp>>(5)?.0,
        ended: ended.map(|ended| (ended.0, why.unwrap_or_default())),
    })
}

fn revocation(row: &Row<'_>) -> rusqlite::Result<Revocation> {
    Ok(Revocation {
        credential: row.get(0)?,
        by: row.get::<_, Json<_>>(1)?.0,
        reason: row.get(2)?,
        since: row.get::<_, Raw<Timestamp>>(3)?.0,
    })
}
