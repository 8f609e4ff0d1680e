//! The record in the database: how records are appended and read.

use std::borrow::Cow;
use std::collections::VecDeque;

use audit::{Head, Malformed, ReadError, Record, Storage};
use model::event::{Event, Subject};
use model::{ActionId, Digest, EventClass, OsText, TaskId, Timestamp, Tool};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Row, params};

use super::error::StoreError;
use super::row::{Raw, Unsigned, time};
use super::{Reader, Store, StoredRequest, Writer, readable};

const COLUMNS: &str = "seq, format, time, task, action, event, previous, digest";

/// Records and bytes that are read at once. A page is never more than this and one record.
const PAGE_RECORDS: usize = 256;
const PAGE_BYTES: usize = 4 << 20;

impl Storage for Store {
    type Error = StoreError;
    type Rows<'t> = Writer<'t>;

    fn head(&self) -> Result<Head, StoreError> {
        self.read(|reader| reader.head(self.log.clone()))
    }

    fn cleaned(&self, event: String) -> Result<String, StoreError> {
        match self.redactor.clean_json(&self.key, &event) {
            Cow::Borrowed(_) => Ok(event),
            Cow::Owned(clean) => readable::<Event>("an event", &clean).map(|_| clean),
        }
    }

    fn append(
        &self,
        seal: impl FnOnce(Head) -> Vec<Record>,
        also: impl FnOnce(&Writer<'_>) -> Result<(), StoreError>,
    ) -> Result<Vec<Record>, StoreError> {
        let (records, signed) = self.write(|writer| {
            // INVARIANT: the write has begun, so no other process appends between here and its end.
            let records = seal(writer.head(self.log.clone())?);
            records.iter().try_for_each(|record| writer.insert_record(record))?;
            also(writer)?;
            let last = records.last().filter(|_| self.is_due(&records));
            let signed = last.map(|last| self.signed(writer, last.time)).transpose()?;
            Ok((records, signed))
        })?;
        // What keeps it from getting there was told, and goes on the record with the next event.
        let _told = signed.and_then(|signed| self.keep_elsewhere(&signed));
        Ok(records)
    }

    fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
        // Records cannot have negative numbers; reading from the very start shows those that were forged.
        let next = if from == 0 { i64::MIN } else { i64::try_from(from).unwrap_or(i64::MAX) };
        Pages { store: self, next: Some(next), page: VecDeque::new() }
    }
}

impl Reader<'_> {
    pub(super) fn head(&self, log: audit::LogId) -> Result<Head, StoreError> {
        let mut select =
            self.connection.prepare_cached("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1")?;
        let mut rows = select.query([])?;
        match rows.next()? {
            None => Ok(Head::genesis(log)),
            Some(row) => {
                Ok(Head { log, seq: row.get::<_, Unsigned>(0)?.0, digest: row.get::<_, Raw<Digest>>(1)?.0 })
            }
        }
    }

    /// Returns the records about a task, its actions included, oldest first.
    ///
    /// # Errors
    /// When they cannot be read, or one of them is not a record.
    pub fn records_of_task(&self, task: &TaskId) -> Result<Vec<Record>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE task = ?1 ORDER BY seq");
        self.selected(&sql, [task.as_str()])
    }

    /// Returns the records about a task that are about none of its actions, oldest first.
    ///
    /// # Errors
    /// When they cannot be read, or one of them is not a record.
    pub fn records_of_task_itself(&self, task: &TaskId) -> Result<Vec<Record>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE task = ?1 AND action IS NULL ORDER BY seq");
        self.selected(&sql, [task.as_str()])
    }

    /// Returns the records of the stages that a task passed, oldest first.
    ///
    /// # Errors
    /// When they cannot be read, or one of them is not a record.
    pub fn stages(&self, task: &TaskId) -> Result<Vec<Record>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM records WHERE task = ?1 AND action IS NULL AND event LIKE '{{\"event\":\"stage\",%' \
             ORDER BY seq"
        );
        self.selected(&sql, [task.as_str()])
    }

    /// Returns the records about an action, oldest first.
    ///
    /// # Errors
    /// When they cannot be read, or one of them is not a record.
    pub fn records_of_action(&self, task: &TaskId, action: &ActionId) -> Result<Vec<Record>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE task = ?1 AND action = ?2 ORDER BY seq");
        self.selected(&sql, [task.as_str(), action.as_str()])
    }

    /// Returns the record with this number.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn record_at(&self, seq: u64) -> Result<Record, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE seq = ?1");
        let found = self.selected(&sql, [seq.cast_signed()])?.pop();
        found.ok_or(StoreError::NotAsWritten { record: seq })
    }

    fn selected(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<Vec<Record>, StoreError> {
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query(parameters)?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let record = record(row);
            records.push(
                record.map_err(|source| StoreError::Value { what: "a record", source: source.into() })?,
            );
        }
        Ok(records)
    }

    /// Reads one page from a place on.
    fn page(&self, from: i64) -> Result<Page, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM records WHERE seq >= ?1 ORDER BY seq LIMIT {PAGE_RECORDS}");
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([from])?;
        let mut page = Page { records: VecDeque::new(), next: None };
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            let record = record(row);
            bytes += record.as_ref().map_or(0, |record| record.event.len());
            page.records.push_back(record);
            page.next = seq.checked_add(1);
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        Ok(page)
    }
}

struct Page {
    records: VecDeque<Result<Record, Malformed>>,
    /// Where to go on; nothing when the page is empty, or ends with the last number that there is.
    next: Option<i64>,
}

impl Writer<'_> {
    fn insert_record(&self, record: &Record) -> Result<(), StoreError> {
        let too_many = |source: std::num::TryFromIntError| StoreError::Value {
            what: "a record number",
            source: source.into(),
        };
        let sql = format!("INSERT INTO records ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
        self.connection.prepare_cached(&sql)?.execute(params![
            i64::try_from(record.seq).map_err(too_many)?,
            record.format,
            time(record.time),
            record.subject.task.as_ref().map(TaskId::as_str),
            record.subject.action.as_ref().map(ActionId::as_str),
            record.event,
            record.previous.as_bytes(),
            record.digest.as_bytes(),
        ])?;
        Ok(())
    }
}

/// What stands in a row where it was pruned from the record.
const PRUNED: &str = "[pruned]";

impl Writer<'_> {
    /// Puts a stub in place of the event that it stands for, and takes the same out of the rows about its action. That
    /// something waits for a person stays: later actions are kept from credentials by it.
    ///
    /// # Errors
    /// When the record is not there, or it cannot be written.
    pub fn put_stub(&self, stub: &Record, class: EventClass) -> Result<(), StoreError> {
        let sql = "UPDATE records SET event = ?2 WHERE seq = ?1 AND digest = ?3";
        let row = params![stub.seq.cast_signed(), stub.event, stub.digest.as_bytes()];
        if self.connection.prepare_cached(sql)?.execute(row)? != 1 {
            return Err(StoreError::NotAsWritten { record: stub.seq });
        }
        let Some(action) = &stub.subject.action else { return Ok(()) };
        match class {
            EventClass::Runs => {
                let sql = "DELETE FROM evidence WHERE action = ?1 AND kind <> 'held-back'";
                self.connection.prepare_cached(sql)?.execute([action.as_str()])?;
            }
            EventClass::Requests => self.prune_request(action)?,
            EventClass::Network => {}
        }
        Ok(())
    }

    fn prune_request(&self, action: &ActionId) -> Result<(), StoreError> {
        let Some(stored) = self.action(action)? else { return Ok(()) };
        let request = StoredRequest {
            principal: stored.request.principal,
            tool: Tool::Run { argv: vec![OsText::literal(PRUNED)] },
            directory: None,
            environment: Vec::new(),
            purpose: None,
        };
        let sql = "UPDATE actions SET request = ?2 WHERE id = ?1";
        let request = self.json("a request", &request)?;
        self.connection.prepare_cached(sql)?.execute(params![action.as_str(), request])?;
        Ok(())
    }
}

impl StoredRequest {
    /// Tells whether it was pruned: what is kept is not what was asked for.
    pub fn is_pruned(&self) -> bool {
        matches!(&self.tool, Tool::Run { argv } if *argv == [OsText::literal(PRUNED)])
    }
}

/// Reads records page by page, so that neither the log nor a lock is held while the caller works.
struct Pages<'s> {
    store: &'s Store,
    next: Option<i64>,
    page: VecDeque<Result<Record, Malformed>>,
}

impl Iterator for Pages<'_> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.is_empty() {
            let from = self.next.take()?;
            match self.store.read(|reader| reader.page(from)) {
                Ok(page) => (self.page, self.next) = (page.records, page.next),
                Err(error) => return Some(Err(ReadError::source(error))),
            }
        }
        self.page.pop_front().map(|record| record.map_err(ReadError::from))
    }
}

/// Reads a row. Whatever somebody put into the file, the answer is a record or what is wrong.
fn record(row: &Row<'_>) -> Result<Record, Malformed> {
    Ok(Record {
        seq: column::<i64>(row, 0)?.try_into().map_err(|_| negative())?,
        format: column(row, 1)?,
        time: column::<Raw<Timestamp>>(row, 2)?.0,
        subject: Subject { task: id(row, 3)?, action: id(row, 4)? },
        event: text(row, 5)?.ok_or_else(|| Malformed::NotARecord("it has no event".to_owned()))?,
        previous: column::<Raw<Digest>>(row, 6)?.0,
        digest: column::<Raw<Digest>>(row, 7)?.0,
    })
}

fn column<T: FromSql>(row: &Row<'_>, index: usize) -> Result<T, Malformed> {
    row.get(index).map_err(|error| Malformed::NotARecord(error.to_string()))
}

fn negative() -> Malformed {
    Malformed::NotARecord("its number is below zero".to_owned())
}

fn id<T: std::str::FromStr<Err: std::fmt::Display>>(
    row: &Row<'_>,
    index: usize,
) -> Result<Option<T>, Malformed> {
    let parse = |text: String| text.parse().map_err(|error: T::Err| Malformed::NotARecord(error.to_string()));
    text(row, index)?.map(parse).transpose()
}

fn text(row: &Row<'_>, index: usize) -> Result<Option<String>, Malformed> {
    match row.get_ref(index) {
        Ok(ValueRef::Null) => Ok(None),
        Ok(ValueRef::Text(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Malformed::NotUtf8),
        },
        Ok(other) => Err(Malformed::NotARecord(format!("{} stands where text must be", other.data_type()))),
        Err(error) => Err(Malformed::NotARecord(error.to_string())),
    }
}
