//! Logs as text: JSON lines, one record a line, which anyone can keep, search and check offline.
//!
//! The first line names the log, the last one its last record; between them stands one record on each line:
//!
//! ```text
//! {"format":1,"log":"log-…"}
//! {"format":2,"seq":1,"time":1764440834000000000,"task":"task-…","action":null,"event":{…},"previous":"…","digest":"…"}
//! {"head":{"log":"log-…","seq":1,"digest":"…"}}
//! ```
//!
//! `time` counts nanoseconds since the start of 1970 in UTC. `event` is, byte for byte, what the digest was made
//! over: white space added or taken inside it breaks the digest. Where its content was pruned, its stub stands there. The last line shows that a file came through whole;
//! it is no anchor, because whoever changes the records can change it, too.

use std::io::{self, BufRead, Read as _, Write};

use model::event::Subject;
use model::{ActionId, Digest, LogId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::anchors::Anchors;
use crate::error::AuditError;
use crate::head::Head;
use crate::record::{MAX_EVENT, Record};
use crate::storage::{Malformed, ReadError};
use crate::verify::{Broken, Flaw, Verification, verify};

/// The format of an export. Each of its records says its own.
const EXPORT: u32 = 1;

/// Bytes of one line at most: an event, and room for what stands around it.
pub const MAX_LINE: usize = MAX_EVENT + 4096;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstLine {
    format: u32,
    log: LogId,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'l> {
    format: u32,
    seq: u64,
    time: Timestamp,
    task: Option<TaskId>,
    action: Option<ActionId>,
    #[serde(borrow)]
    event: &'l RawValue,
    previous: Digest,
    digest: Digest,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastLine {
    head: Head,
}

impl Record {
    /// Returns the record as it stands in an export, without the line feed.
    ///
    /// # Errors
    /// When the event is not JSON on one line; then no log of ours wrote it.
    pub fn to_line(&self) -> Result<String, Malformed> {
        let malformed = |error: serde_json::Error| Malformed::NotARecord(error.to_string());
        if self.event.contains(['\n', '\r']) {
            return Err(Malformed::NotARecord("the event is not on one line".to_owned()));
        }
        let line = Line {
            format: self.format,
            seq: self.seq,
            time: self.time,
            task: self.subject.task.clone(),
            action: self.subject.action.clone(),
            event: serde_json::from_str(&self.event).map_err(malformed)?,
            previous: self.previous,
            digest: self.digest,
        };
        serde_json::to_string(&line).map_err(malformed)
    }

    /// Reads a record from a line of an export.
    ///
    /// # Errors
    /// When the line is not a record. That its digest holds is not looked at here.
    pub fn from_line(line: &str) -> Result<Self, Malformed> {
        let line: Line<'_> = serde_json::from_str(line).map_err(|e| Malformed::NotARecord(e.to_string()))?;
        Ok(Self {
            format: line.format,
            seq: line.seq,
            time: line.time,
            subject: Subject { task: line.task, action: line.action },
            event: line.event.get().to_owned(),
            previous: line.previous,
            digest: line.digest,
        })
    }
}

/// Writes a log as JSON lines, and returns the head that its last line names.
///
/// # Errors
/// When the records cannot be read, one of them has no place on a line, or the output cannot be written.
pub fn export(
    records: impl IntoIterator<Item = Result<Record, ReadError>>,
    log: &LogId,
    mut out: impl Write,
) -> Result<Head, AuditError> {
    let mut head = Head::genesis(log.clone());
    write_line(&mut out, &FirstLine { format: EXPORT, log: log.clone() })?;
    for record in records {
        let seq = head.seq.saturating_add(1);
        let record = record.map_err(|error| AuditError::export(seq, error))?;
        let line = record.to_line().map_err(|malformed| AuditError::export(seq, malformed.into()))?;
        writeln!(out, "{line}").map_err(AuditError::Output)?;
        head.seq = record.seq;
        head.digest = record.digest;
    }
    write_line(&mut out, &LastLine { head: head.clone() })?;
    out.flush().map_err(AuditError::Output)?;
    Ok(head)
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> Result<(), AuditError> {
    serde_json::to_writer(&mut *out, line).map_err(|error| AuditError::Output(error.into()))?;
    writeln!(out).map_err(AuditError::Output)
}

/// Reads an export: an iterator over its records, which stops at its last line.
#[derive(Debug)]
pub struct ExportReader<R> {
    input: R,
    line: Vec<u8>,
    log: LogId,
    last: Option<Head>,
}

impl<R: BufRead> ExportReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// When the input cannot be read, or does not start like an export of a format that this build knows.
    pub fn open(mut input: R) -> Result<Self, ReadError> {
        let mut line = Vec::new();
        read_line(&mut input, &mut line)?;
        let first: FirstLine =
            serde_json::from_str(text(&line)?).map_err(|error| Malformed::NotARecord(error.to_string()))?;
        if first.format != EXPORT {
            let why = format!("the export has format {}, and this build reads only {EXPORT}", first.format);
            return Err(Malformed::NotARecord(why).into());
        }
        Ok(Self { input, line, log: first.log, last: None })
    }

    /// Returns the log that the first line names.
    pub fn log(&self) -> &LogId {
        &self.log
    }

    fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        if self.last.is_some() || !read_line(&mut self.input, &mut self.line)? {
            return Ok(None);
        }
        let line = text(&self.line)?;
        match Record::from_line(line) {
            Ok(record) => Ok(Some(record)),
            Err(malformed) => {
                let LastLine { head } = serde_json::from_str(line).map_err(|_| malformed)?;
                self.last = Some(head);
                Ok(None)
            }
        }
    }

    /// Returns what is wrong with the end of the export, once its records were read up to `end`.
    fn flaw_at_end(&mut self, end: &Head) -> Result<Option<Broken>, ReadError> {
        let broken = |record, flaw| Ok(Some(Broken { record, flaw }));
        match &self.last {
            None => broken(end.seq, Flaw::Unfinished),
            Some(last) if last.seq > end.seq => broken(end.seq + 1, Flaw::Cut { ends: last.seq }),
            Some(last) if last != end => broken(end.seq, Flaw::LastLine),
            Some(_) => match read_line(&mut self.input, &mut self.line) {
                Ok(false) => Ok(None),
                Ok(true) | Err(ReadError::Malformed(_)) => broken(end.seq, Flaw::AfterLastLine),
                Err(error) => Err(error),
            },
        }
    }
}

impl<R: BufRead> Iterator for ExportReader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

/// Checks an export as [`verify`] checks a log, and that it came through whole.
///
/// # Errors
/// When the input cannot be read.
pub fn verify_export(input: impl BufRead, anchors: &Anchors) -> Result<Verification, AuditError> {
    let found = |error| match error {
        ReadError::Malformed(malformed) => {
            Ok(Verification::Broken(Broken { record: 0, flaw: Flaw::Malformed(malformed) }))
        }
        ReadError::Source(source) => Err(AuditError::Unreadable(source)),
    };
    let mut reader = match ExportReader::open(input) {
        Ok(reader) => reader,
        Err(error) => return found(error),
    };
    let log = reader.log.clone();
    let verification = verify(&mut reader, &log, anchors)?;
    let Some(end) = verification.end() else { return Ok(verification) };
    match reader.flaw_at_end(end) {
        Ok(None) => Ok(verification),
        Ok(Some(broken)) => Ok(Verification::Broken(broken)),
        Err(error) => found(error),
    }
}

/// Reads one line without its line feed; tells whether there was one.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, ReadError> {
    line.clear();
    let limit = MAX_LINE as u64 + 1;
    let read = io::Read::by_ref(input).take(limit).read_until(b'\n', line).map_err(ReadError::source)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > MAX_LINE {
        return Err(Malformed::TooLong { limit: MAX_LINE }.into());
    }
    Ok(read > 0)
}

fn text(line: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(line).map_err(|_| Malformed::NotUtf8)
}
