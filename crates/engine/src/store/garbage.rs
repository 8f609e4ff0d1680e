//! Rows that go when their retention is over, and the space that they give back.

use std::collections::HashSet;

use model::{ContentClass, Digest, TaskId, Timestamp};
use rusqlite::{Row, Transaction, TransactionBehavior, params};

use super::error::StoreError;
use super::row::{Raw, Unsigned, Value, time};
use super::{Reader, Store, Writer};

/// Content, as retention looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptContent {
    /// Its digest.
    pub digest: Digest,
    /// When it was kept last.
    pub kept: Timestamp,
    /// The tasks that it was kept for.
    pub tasks: Vec<TaskId>,
}

/// Free pages of the database that are given back to the disk, from this part of it on.
const FREE_PART: i64 = 4;
/// Below that many free pages the work is not worth it.
const FREE_LEAST: i64 = 1024;

impl Store {
    /// Finds out what a write would come to, and leaves everything as it is.
    pub(crate) fn rehearse<T>(
        &self,
        write: impl FnOnce(&Writer<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = self.lock();
        let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
        write(&Writer(Reader { connection: &transaction, key: &self.key, redactor: &self.redactor }))
    }

    /// Has everything that goes from now on overwritten in the file, and not only let go.
    pub(crate) fn overwrite_what_goes(&self) -> Result<(), StoreError> {
        Ok(self.lock().execute_batch("PRAGMA secure_delete = ON")?)
    }

    /// Takes what went out of the write-ahead log too, and gives the space back to the disk where that is worth it. What
    /// somebody reads at this moment stays until the next time.
    pub(crate) fn give_back(&self) -> Result<(), StoreError> {
        let connection = self.lock();
        let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let (free, pages) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
        if free > FREE_LEAST && free > pages / FREE_PART {
            // It needs space for a second copy; without it, the pages are used again as they are.
            let _ = connection.execute_batch("VACUUM");
        }
        empty_log(&connection).map(drop)
    }

    /// Writes the database anew, so that nothing is left of what earlier versions of its rows held. Returns what kept that
    /// from being done.
    pub(crate) fn write_anew(&self) -> Result<Option<String>, StoreError> {
        let connection = self.lock();
        if let Err(error) = connection.execute_batch("VACUUM") {
            return Ok(Some(StoreError::from(error).to_string()));
        }
        let busy =
            "another process reads the state: its log is emptied when that ends and `fumehood` runs again";
        Ok((!empty_log(&connection)?).then(|| busy.to_owned()))
    }
}

/// Writes the write-ahead log into the database and empties it; tells whether nobody kept it from that.
fn empty_log(connection: &rusqlite::Connection) -> Result<bool, StoreError> {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))?;
    Ok(busy == 0)
}

impl Reader<'_> {
    /// Returns all content of a class, oldest first.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn contents(&self, class: ContentClass) -> Result<Vec<KeptContent>, StoreError> {
        let sql = "SELECT digest, kept, (SELECT group_concat(task) FROM content_tasks AS of \
                   WHERE of.class = contents.class AND of.digest = contents.digest) \
                   FROM contents WHERE class = ?1 ORDER BY kept, digest";
        let mut select = self.connection.prepare_cached(sql)?;
        let content = |row: &Row<'_>| {
            let tasks: Option<String> = row.get(2)?;
            let ids = tasks.iter().flat_map(|tasks| tasks.split(','));
            Ok(KeptContent {
                digest: row.get::<_, Raw<_>>(0)?.0,
                kept: row.get::<_, Raw<_>>(1)?.0,
                tasks: ids.filter_map(|id| id.parse().ok()).collect(),
            })
        };
        Ok(select.query_map([class.name()], content)?.collect::<Result<_, _>>()?)
    }

    /// Returns the bytes of all content of a class, what is shared once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn content_bytes(&self, class: ContentClass) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce((SELECT sum(length(body)) FROM pieces WHERE class = ?1), 0) \
                   + coalesce((SELECT sum(length(pieces)) FROM contents WHERE class = ?1), 0)";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_one([class.name()], |row| row.get::<_, Unsigned>(0))?.0)
    }

    /// Returns the tasks with a conversation, each with its bytes.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn transcripts(&self) -> Result<Vec<(TaskId, u64)>, StoreError> {
        let sql = "SELECT task, sum(length(CAST(body AS BLOB)) + coalesce(length(sealed), 0)) FROM messages GROUP BY task ORDER BY task";
        let mut select = self.connection.prepare_cached(sql)?;
        let one = |row: &Row<'_>| Ok((row.get::<_, Value<_>>(0)?.0, row.get::<_, Unsigned>(1)?.0));
        Ok(select.query_map([], one)?.collect::<Result<_, _>>()?)
    }

    /// Returns in how many files something was looked for before this time, and the bytes of what was found.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn scans_before(&self, before: Timestamp) -> Result<(usize, u64), StoreError> {
        let sql = "SELECT count(*), coalesce(sum(length(found) + length(rules) + 40), 0) FROM scans WHERE kept < ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        let (number, bytes): (i64, Unsigned) =
            select.query_one([time(before)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((usize::try_from(number).unwrap_or_default(), bytes.0))
    }
}

impl Writer<'_> {
    /// Notes for which task content is kept.
    ///
    /// # Errors
    /// When there is no such task, or it cannot be written.
    pub fn own_content(&self, class: ContentClass, digest: &Digest, task: &TaskId) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO content_tasks (class, digest, task) VALUES (?1, ?2, ?3)";
        let row = params![class.name(), digest.as_bytes(), task.as_str()];
        self.connection.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }

    /// Removes content, and the pieces that nothing else has. Returns the bytes that come free.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn drop_contents(&self, class: ContentClass, digests: &[Digest]) -> Result<u64, StoreError> {
        let before = self.content_bytes(class)?;
        for table in ["contents", "content_tasks"] {
            let sql = format!("DELETE FROM {table} WHERE class = ?1 AND digest = ?2");
            let mut delete = self.connection.prepare_cached(&sql)?;
            for digest in digests {
                delete.execute(params![class.name(), digest.as_bytes()])?;
            }
        }
        self.drop_pieces(class)?;
        Ok(before.saturating_sub(self.content_bytes(class)?))
    }

    /// Removes the pieces that no content has.
    fn drop_pieces(&self, class: ContentClass) -> Result<(), StoreError> {
        let mut select = self.connection.prepare_cached("SELECT pieces FROM contents WHERE class = ?1")?;
        let lists = select.query_map([class.name()], |row| row.get::<_, Vec<u8>>(0))?;
        let mut needed: HashSet<[u8; 32]> = HashSet::new();
        for list in lists {
            needed.extend(list?.as_chunks::<32>().0);
        }
        let mut select = self.connection.prepare_cached("SELECT name FROM pieces WHERE class = ?1")?;
        let names = select.query_map([class.name()], |row| row.get::<_, [u8; 32]>(0))?;
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let mut delete =
            self.connection.prepare_cached("DELETE FROM pieces WHERE class = ?1 AND name = ?2")?;
        for name in names.iter().filter(|name| !needed.contains(*name)) {
            delete.execute(params![class.name(), name])?;
        }
        Ok(())
    }

    /// Removes the conversation of a task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn drop_transcript(&self, task: &TaskId) -> Result<(), StoreError> {
        self.connection.prepare_cached("DELETE FROM messages WHERE task = ?1")?.execute([task.as_str()])?;
        Ok(())
    }
}
