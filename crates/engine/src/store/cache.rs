//! What the search for credentials found in files that have not changed since.

use model::{Digest, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use super::error::StoreError;
use super::row::time;
use super::{Reader, Writer};

/// Tells one state of a file from another. Whoever changes a file cannot set its change time back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// The device that holds it.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// The change time, in nanoseconds since the start of 1970.
    pub ctime_ns: i64,
    /// Its size in bytes.
    pub size: u64,
}

impl Reader<'_> {
    /// Returns what was found in each of these files under these rules; nothing for a file that was not looked at,
    /// or that changed since.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn scans(&self, rules: &Digest, files: &[FileKey]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut select = self.connection.prepare_cached(
            "SELECT found FROM scans WHERE device = ?1 AND inode = ?2 AND ctime = ?3 AND size = ?4 AND rules = ?5",
        )?;
        let mut found = Vec::with_capacity(files.len());
        for file in files {
            let key = params![
                file.device.cast_signed(),
                file.inode.cast_signed(),
                file.ctime_ns,
                file.size.cast_signed(),
                rules.as_bytes(),
            ];
            found.push(select.query_row(key, |row| row.get(0)).optional()?);
        }
        Ok(found)
    }
}

impl Writer<'_> {
    /// Keeps what was found in these files. A file has one row: what was found in an earlier state of it goes.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_scans(
        &self,
        rules: &Digest,
        found: &[(FileKey, Vec<u8>)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut insert = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO scans (device, inode, ctime, size, rules, found, kept) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        for (file, found) in found {
            insert.execute(params![
                file.device.cast_signed(),
                file.inode.cast_signed(),
                file.ctime_ns,
                file.size.cast_signed(),
                rules.as_bytes(),
                found,
                time(now),
            ])?;
        }
        Ok(())
    }

    /// Forgets what was kept before this time, and returns how many files that were.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget_scans(&self, before: Timestamp) -> Result<usize, StoreError> {
        let sql = "DELETE FROM scans WHERE kept < ?1";
        Ok(self.connection.prepare_cached(sql)?.execute([time(before)])?)
    }
}
