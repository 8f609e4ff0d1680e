//! Finding something by its id, or by the start of it that only one has.

use rusqlite::Connection;

use super::error::StoreError;

/// What is looked for, and where.
pub(super) struct Named {
    /// What it is called in messages.
    pub(super) kind: &'static str,
    /// The prefix of its ids, with the dash.
    pub(super) prefix: &'static str,
    /// The table with a column `id`.
    pub(super) table: &'static str,
    /// The command that lists them.
    pub(super) listing: &'static str,
}

/// Ids that are named when several have the given start.
const SHOWN: usize = 5;

impl Named {
    /// Returns the id that has this start, which may lack the prefix of its kind.
    pub(super) fn find(&self, connection: &Connection, given: &str) -> Result<String, StoreError> {
        let mut found = self.starting_with(connection, given)?;
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(self.not_found(given)),
            _ => Err(StoreError::Ambiguous { kind: self.kind, given: given.to_owned(), matches: found }),
        }
    }

    /// Says that there is none of this name.
    pub(super) fn not_found(&self, given: &str) -> StoreError {
        StoreError::NotFound { kind: self.kind, given: given.to_owned(), listing: self.listing }
    }

    fn starting_with(&self, connection: &Connection, given: &str) -> Result<Vec<String>, StoreError> {
        let start = given.strip_prefix(self.prefix).unwrap_or(given);
        // Ids hold nothing else. This also keeps the upper bound below right: `~` is above every one of these.
        if start.is_empty() || !start.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            return Ok(Vec::new());
        }
        let (first, last) = (format!("{}{start}", self.prefix), format!("{}{start}~", self.prefix));
        let sql =
            format!("SELECT id FROM {} WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT {SHOWN}", self.table);
        let mut select = connection.prepare_cached(&sql)?;
        let ids = select.query_map([first, last], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}
