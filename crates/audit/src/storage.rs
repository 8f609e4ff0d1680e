//! What the log needs from the place that keeps its records.

use std::error::Error;
use std::sync::Arc;

use crate::head::Head;
use crate::record::Record;

/// A place that keeps records. Several logs in several processes may stand on one.
pub trait Storage {
    /// What can go wrong.
    type Error: Error + Send + Sync + 'static;

    /// What can be changed together with an append, where the place keeps more than records.
    type Rows<'t>;

    /// Returns the last record's place and digest.
    ///
    /// # Errors
    /// When the place cannot be read.
    fn head(&self) -> Result<Head, Self::Error>;

    /// Takes out of an event what must not be kept, before it is sealed: the digest of its record is over what this returns.
    ///
    /// # Errors
    /// When it would not be an event any longer.
    fn cleaned(&self, event: String) -> Result<String, Self::Error> {
        Ok(event)
    }

    /// Keeps the records that `seal` makes out of the head, runs `also`, and returns the records.
    ///
    /// Nobody appends between the reading of the head and the end. It is all or nothing: when this returns `Ok`,
    /// the records and what `also` changed survive the end of the process and a loss of power; otherwise none of
    /// it is there.
    ///
    /// # Errors
    /// When the place cannot be written, or `also` fails.
    fn append(
        &self,
        seal: impl FnOnce(Head) -> Vec<Record>,
        also: impl FnOnce(&Self::Rows<'_>) -> Result<(), Self::Error>,
    ) -> Result<Vec<Record>, Self::Error>;

    /// Returns the records from a place on, in order, a few in memory at a time.
    fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>>;
}

impl<S: Storage> Storage for &S {
    type Error = S::Error;
    type Rows<'t> = S::Rows<'t>;

    fn head(&self) -> Result<Head, S::Error> {
        (**self).head()
    }

    fn cleaned(&self, event: String) -> Result<String, S::Error> {
        (**self).cleaned(event)
    }

    fn append(
        &self,
        seal: impl FnOnce(Head) -> Vec<Record>,
        also: impl FnOnce(&S::Rows<'_>) -> Result<(), S::Error>,
    ) -> Result<Vec<Record>, S::Error> {
        (**self).append(seal, also)
    }

    fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
        (**self).records(from)
    }
}

impl<S: Storage> Storage for Arc<S> {
    type Error = S::Error;
    type Rows<'t> = S::Rows<'t>;

    fn head(&self) -> Result<Head, S::Error> {
        (**self).head()
    }

    fn cleaned(&self, event: String) -> Result<String, S::Error> {
        (**self).cleaned(event)
    }

    fn append(
        &self,
        seal: impl FnOnce(Head) -> Vec<Record>,
        also: impl FnOnce(&S::Rows<'_>) -> Result<(), S::Error>,
    ) -> Result<Vec<Record>, S::Error> {
        (**self).append(seal, also)
    }

    fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
        (**self).records(from)
    }
}

/// Says why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// What is there is no record; that is a finding about the log.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The place could not be read; that says nothing about the log.
    #[error("cannot read the record")]
    Source(#[source] Box<dyn Error + Send + Sync>),
}

impl ReadError {
    /// Wraps the error of the place that was read.
    pub fn source(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Source(Box::new(error))
    }
}

/// Says why something is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Bytes that are not text.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// More than any record needs.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// Text that does not have the form of a record.
    #[error("it does not have the form of a record: {}", model::text::escape(.0))]
    NotARecord(String),
}
