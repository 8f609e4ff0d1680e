//! What can go wrong while the record is written or read.

use std::error::Error;
use std::io;

use model::text::escape;

use crate::record::MAX_EVENT;
use crate::storage::ReadError;
use crate::verify::Broken;

/// Says why something was not recorded, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The event could not be written down. Nothing was recorded.
    #[error("the event `{name}` cannot be written as JSON")]
    Unwritable {
        /// The event.
        name: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// What only ever stands in place of an event was to be appended. Nothing was recorded.
    #[error("a stub stands in place of an event and is never appended")]
    Stub,
    /// The event is too large. Nothing was recorded.
    #[error(
        "the event `{name}` takes {bytes} bytes and a record holds at most {MAX_EVENT}: shorten its lists"
    )]
    TooLarge {
        /// The event.
        name: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// The place that keeps the records failed. Nothing was recorded.
    #[error("cannot write the record: nothing was recorded and nothing may start")]
    Storage(#[source] Box<dyn Error + Send + Sync>),
    /// The record could not be read; that says nothing about the record itself.
    #[error("cannot read the record")]
    Unreadable(#[source] Box<dyn Error + Send + Sync>),
    /// The export could not be written.
    #[error("cannot write the export")]
    Output(#[source] io::Error),
    /// The last record is not as it was written, so nothing is put on top of it.
    #[error(
        "the record is damaged: {0}; run `fumehood audit verify`, keep the state directory as evidence, \
         and start with a new one (`--state-dir`)"
    )]
    Damaged(Broken),
    /// A record is not fit to be exported.
    #[error("record {seq} cannot be exported: {}; run `fumehood audit verify`", escape(.why))]
    Unexportable {
        /// Its place.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl AuditError {
    pub(crate) fn unreadable(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Unreadable(Box::new(error))
    }

    /// Takes what is said about one record as an error about reading them all.
    pub(crate) fn export(seq: u64, error: ReadError) -> Self {
        match error {
            ReadError::Malformed(malformed) => Self::Unexportable { seq, why: malformed.to_string() },
            ReadError::Source(source) => Self::Unreadable(source),
        }
    }
}
