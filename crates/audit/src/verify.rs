//! The check of a log: does each record follow on the one before it, and does it agree with what was kept elsewhere.

use std::fmt;

use model::LogId;
use model::event::Event;
use model::text::escape;
use serde::Serialize;

use crate::anchors::{Anchors, Watch};
use crate::error::AuditError;
use crate::head::Head;
use crate::prune::{Pruned, Prunes};
use crate::record::{FORMAT, Record, WHOLE};
use crate::storage::{Malformed, ReadError};

/// What the check of a log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Verification {
    /// Every record follows on the one before it. Whoever knows the format could have written all of it anew.
    Consistent {
        /// The last record.
        end: Head,
        /// Whose content was taken out.
        pruned: Pruned,
    },
    /// Every record follows on the one before it, and the log holds every head that was kept elsewhere: nothing up
    /// to the last of them was changed, and what comes after it agrees with itself.
    Anchored {
        /// The last record.
        end: Head,
        /// The number of the last record that a head vouches for.
        anchored: u64,
        /// How many of the heads were signed.
        signed_heads: u64,
        /// Whose content was taken out.
        pruned: Pruned,
    },
    /// Two signed heads were compared, and the log was not looked at: what the older one vouches for stands unchanged at the
    /// start of the newer one.
    Extends {
        /// How many records the older one is over.
        from: u64,
        /// The newer one.
        end: Head,
    },
    /// The log is not as it was written.
    Broken(Broken),
}

/// The first bad record of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The number of the record; zero stands for the start of the log itself.
    pub record: u64,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "flaw", rename_all = "kebab-case")]
pub enum Flaw {
    /// Its content is not what its digest was made over.
    Edited,
    /// It agrees with itself, and the record after it was made on top of another one.
    Replaced,
    /// It is missing.
    Dropped {
        /// The number of the record that stands there instead.
        next: u64,
    },
    /// It is missing in its place, and a later record stands there.
    Swapped {
        /// The number of the record that stands there.
        found: u64,
    },
    /// It was there already.
    Duplicated {
        /// The number of the record before the second one.
        after: u64,
    },
    /// It is missing, and so are all that came after it.
    Cut {
        /// The number of the record that the log must reach.
        ends: u64,
    },
    /// It is the first one and was made on top of another log's first value.
    OtherLog,
    /// A head that was kept elsewhere names another record in its place: it, or one before it, was written anew.
    Rewritten {
        /// The number of the first record that no head vouches for before: the first bad one is this or a later one.
        from: u64,
    },
    /// Two signed heads name different records in its place: the log went on in two ways.
    Forked,
    /// It is the last one of an older head, and a proof does not show that a newer one begins with that.
    Unproved {
        /// How many records the newer one is over.
        end: u64,
    },
    /// A head that was kept elsewhere belongs to another log.
    OtherHead {
        /// The log of that head.
        log: LogId,
    },
    /// It has a format that this build does not know.
    Format {
        /// The format.
        format: u32,
    },
    /// It is no record at all.
    Malformed(#[serde(serialize_with = "as_text")] Malformed),
    /// It holds no event that this build knows.
    Event {
        /// Why.
        why: String,
    },
    /// Its content was taken out, and no event says so.
    Unaccounted,
    /// Its content was taken out, and it is an event whose content always stays.
    NeverPruned {
        /// The name of the event.
        was: String,
    },
    /// An export ends after it, without its last line.
    Unfinished,
    /// The last line of an export does not name the record before it.
    LastLine,
    /// Something comes after the last line of an export.
    AfterLastLine,
}

/// Checks records in order, one in memory at a time, and names the first bad one.
///
/// A record that was edited and given a new digest is told from the ones around it by the record after it. The last
/// records of a log have none, and whoever knows the format can write all of them anew: only heads that were kept
/// elsewhere show that.
///
/// # Errors
/// When the records cannot be read; that says nothing about them.
pub fn verify(
    records: impl IntoIterator<Item = Result<Record, ReadError>>,
    log: &LogId,
    anchors: &Anchors,
) -> Result<Verification, AuditError> {
    let mut records = records.into_iter();
    let mut end = Head::genesis(log.clone());
    let mut watch = match Watch::start(anchors, &end) {
        Ok(watch) => watch,
        Err(found) => return Ok(Verification::Broken(found)),
    };
    let mut prunes = Prunes::default();
    while let Some(read) = records.next() {
        let record = match read {
            Ok(record) => record,
            Err(ReadError::Malformed(malformed)) => {
                return Ok(broken(end.seq + 1, Flaw::Malformed(malformed)));
            }
            Err(ReadError::Source(source)) => return Err(AuditError::Unreadable(source)),
        };
        if let Some(found) = first_flaw(&record, &end, || records.next()) {
            return Ok(Verification::Broken(found));
        }
        if let Some(found) = prunes.saw(&record) {
            return Ok(Verification::Broken(found));
        }
        end.seq = record.seq;
        end.digest = record.digest;
        if let Some(found) = watch.saw(&end) {
            return Ok(Verification::Broken(found));
        }
    }
    Ok(watch.finish(end, prunes))
}

fn broken(record: u64, flaw: Flaw) -> Verification {
    Verification::Broken(Broken { record, flaw })
}

/// Returns what is wrong with a record that must follow on `end`; `next` reads on, to tell one cause from another.
fn first_flaw(
    record: &Record,
    end: &Head,
    next: impl FnOnce() -> Option<Result<Record, ReadError>>,
) -> Option<Broken> {
    let expected = end.seq + 1;
    let found = |record, flaw| Some(Broken { record, flaw });
    if let Some(flaw) = own_flaw(record) {
        return found(expected, flaw);
    }
    if record.seq < expected {
        return found(record.seq, Flaw::Duplicated { after: end.seq });
    }
    let follower = || next().and_then(Result::ok);
    if record.seq > expected {
        // Where records are merely missing, the next one goes on; where two changed places, it goes back.
        let back = follower().is_some_and(|next| next.seq < record.seq);
        let flaw =
            if back { Flaw::Swapped { found: record.seq } } else { Flaw::Dropped { next: record.seq } };
        return found(expected, flaw);
    }
    if record.previous != end.digest {
        return Some(broken_link(record, end, follower()));
    }
    event_flaw(record).map(|flaw| Broken { record: expected, flaw })
}

/// Tells which of two records was replaced, when the second was not made on top of the first.
fn broken_link(record: &Record, end: &Head, follower: Option<Record>) -> Broken {
    if end.seq == 0 {
        return Broken { record: record.seq, flaw: Flaw::OtherLog };
    }
    let followed = follower.is_none_or(|next| next.seq == record.seq + 1 && next.previous == record.digest);
    let record = if followed { end.seq } else { record.seq };
    Broken { record, flaw: Flaw::Replaced }
}

/// Returns what is wrong with a record taken alone, its event apart.
pub(crate) fn own_flaw(record: &Record) -> Option<Flaw> {
    if record.format != FORMAT && record.format != WHOLE {
        return Some(Flaw::Format { format: record.format });
    }
    (record.computed_digest() != record.digest).then_some(Flaw::Edited)
}

fn event_flaw(record: &Record) -> Option<Flaw> {
    match record.parse_event() {
        Err(error) => Some(Flaw::Event { why: error.to_string() }),
        // The digest is over the name that the text begins with, and what stands further on must not be another one.
        Ok(event) if event.name() != record.name() => {
            Some(Flaw::Event { why: "its name is not what it begins with".to_owned() })
        }
        Ok(Event::Pruned { .. }) if record.stub().is_none() => {
            Some(Flaw::Event { why: "it is no stub as they are written".to_owned() })
        }
        Ok(_) => None,
    }
}

impl Verification {
    /// Returns the last record's place and digest, when every record follows on the one before it.
    pub fn end(&self) -> Option<&Head> {
        match self {
            Self::Consistent { end, .. } | Self::Anchored { end, .. } | Self::Extends { end, .. } => {
                Some(end)
            }
            Self::Broken(_) => None,
        }
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consistent { end, pruned } => {
                write!(f, "internally consistent, not anchored: {} records{}", end.seq, pruned.text(false))
            }
            Self::Anchored { end, anchored, signed_heads, pruned } => {
                let heads = match signed_heads {
                    0 => "the given head".to_owned(),
                    1 => "the signed head".to_owned(),
                    heads => format!("all {heads} signed heads"),
                };
                write!(f, "consistent with {heads}: {anchored} records")?;
                match end.seq - anchored {
                    0 => {}
                    after => write!(f, "; {after} records after it internally consistent, not anchored")?,
                }
                f.write_str(&pruned.text(true))
            }
            Self::Extends { from, end } => {
                write!(
                    f,
                    "the head over {} records adds to the one over {from}, which stands in it unchanged",
                    end.seq
                )
            }
            Self::Broken(broken) => broken.fmt(f),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, flaw } = self;
        match flaw {
            Flaw::Edited => write!(f, "record {record} was edited: its content does not match its digest"),
            Flaw::Replaced => {
                write!(f, "record {record} was replaced: the one after it was made on top of another")
            }
            Flaw::Dropped { next } => {
                write!(f, "record {record} is missing: record {next} stands in its place")
            }
            Flaw::Swapped { found } => {
                write!(f, "record {record} is not in its place: record {found} was put before it")
            }
            Flaw::Duplicated { after } => write!(f, "record {record} is there again after record {after}"),
            Flaw::Cut { ends } => {
                write!(f, "record {record} and what follows are missing: the log must reach {ends}")
            }
            Flaw::OtherLog => write!(f, "record {record} is the start of another log"),
            Flaw::Rewritten { from } if from == record => {
                write!(
                    f,
                    "record {record} is not the one that a head names which was kept elsewhere: it was rewritten"
                )
            }
            Flaw::Rewritten { from } => {
                write!(
                    f,
                    "record {record} is not the one that a head names which was kept elsewhere: it or one before it, \
                     from record {from} on, was rewritten"
                )
            }
            Flaw::Forked => write!(
                f,
                "two signed heads name different records {record}: the log went on in two ways, so one of them was cut \
                 or put back and written on"
            ),
            Flaw::Unproved { end } => write!(
                f,
                "it is not proved that the head over {end} records begins with what the one over {record} vouches for: the \
                 proof is for other heads, or a record up to {record} was rewritten or cut"
            ),
            Flaw::OtherHead { log } => write!(f, "a head that was given belongs to another log, `{log}`"),
            Flaw::Format { format } => {
                write!(
                    f,
                    "record {record} has format {format}, and this build reads up to {FORMAT}: use a newer one"
                )
            }
            Flaw::Malformed(why) => write!(f, "record {record} cannot be read: {why}"),
            Flaw::Event { why } => write!(f, "record {record} holds no event that is known: {}", escape(why)),
            Flaw::Unaccounted => write!(
                f,
                "the content of record {record} was taken out, and no event of a prune names it: somebody else did that"
            ),
            Flaw::NeverPruned { was } => write!(
                f,
                "the content of record {record} was taken out, and that of `{}` always stays: no prune did that",
                escape(was)
            ),
            Flaw::Unfinished => {
                write!(f, "the export ends after record {record} without its last line: it was cut")
            }
            Flaw::LastLine => {
                write!(f, "the last line of the export does not name record {record}, the last one")
            }
            Flaw::AfterLastLine => write!(f, "something comes after the last line of the export"),
        }
    }
}

fn as_text<S: serde::Serializer>(malformed: &Malformed, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("why", malformed.to_string())])
}
