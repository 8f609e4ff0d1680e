//! A storage in memory, for tests here and in the crates above. Nothing in it survives the process.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::LogId;

use crate::head::Head;
use crate::record::Record;
use crate::storage::{ReadError, Storage};

/// Records in memory.
#[derive(Debug)]
pub struct MemoryStorage {
    log: LogId,
    records: Mutex<Vec<Record>>,
}

impl MemoryStorage {
    /// Makes a place without records.
    pub fn new(log: LogId) -> Self {
        Self::holding(log, Vec::new())
    }

    /// Makes a place that holds these records, whatever they are.
    pub fn holding(log: LogId, records: Vec<Record>) -> Self {
        Self { log, records: Mutex::new(records) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        // Records are pushed one after the other and never half written, so a panic elsewhere spoils nothing.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head_of(&self, records: &[Record]) -> Head {
        match records.last() {
            None => Head::genesis(self.log.clone()),
            Some(last) => Head { log: self.log.clone(), seq: last.seq, digest: last.digest },
        }
    }
}

impl Storage for MemoryStorage {
    type Error = Infallible;
    type Rows<'t> = ();

    fn head(&self) -> Result<Head, Infallible> {
        Ok(self.head_of(&self.lock()))
    }

    fn append(
        &self,
        seal: impl FnOnce(Head) -> Vec<Record>,
        also: impl FnOnce(&()) -> Result<(), Infallible>,
    ) -> Result<Vec<Record>, Infallible> {
        let mut records = self.lock();
        let new = seal(self.head_of(&records));
        also(&())?;
        records.extend(new.iter().cloned());
        Ok(new)
    }

    fn records(&self, from: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
        let records: Vec<Record> = self.lock().iter().filter(|record| record.seq >= from).cloned().collect();
        records.into_iter().map(Ok)
    }
}
