//! Keeps what actions print, beside their layers, with tokens where secrets were, sealed under the key of their class.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use model::event::OutputRecord;
use model::{ActionId, ContentClass, Digest, TaskId};
use sandbox::{Printed, Stream};

use crate::Engine;
use crate::error::EngineError;

/// What was kept of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    /// `stdout`, `stderr` or `terminal`.
    pub stream: &'static str,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Returns the name of a stream in the record and on the disk.
pub(crate) fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Out => "stdout",
        Stream::Err => "stderr",
        Stream::Terminal => "terminal",
    }
}

/// Returns the name to which a stream is bound.
fn of(action: &ActionId, stream: &str) -> String {
    format!("{action}.{stream}")
}

impl Engine {
    /// Writes what an action printed, and returns what the record says about it.
    pub(crate) fn keep_output(
        &self,
        task: &TaskId,
        action: &ActionId,
        printed: &[(Stream, Printed)],
    ) -> Result<Vec<OutputRecord>, EngineError> {
        let mut records = Vec::new();
        for (stream, printed) in printed {
            let kept = self.as_kept(printed);
            if !kept.is_empty() {
                let sealed = self.store().seal(ContentClass::Output, &of(action, name(*stream)), &kept)?;
                self.write_output(self.output_path(task, action, name(*stream)), &sealed)?;
            }
            records.push(OutputRecord {
                stream: name(*stream).to_owned(),
                digest: Digest::of(&kept),
                kept: kept.len() as u64,
                dropped: printed.dropped,
            });
        }
        Ok(records)
    }

    /// Returns what a stream printed without secrets. It is looked at as a whole, however it was printed; what was cut off a
    /// secret where bytes were dropped goes too.
    fn as_kept(&self, printed: &Printed) -> Vec<u8> {
        if printed.dropped == 0 {
            return self.store().without_secrets(&printed.kept()).into_owned();
        }
        let (head, tail) = self.store().ends_without_secrets(&printed.head, &printed.tail);
        Printed { head, tail, dropped: printed.dropped }.kept()
    }

    fn write_output(&self, path: PathBuf, bytes: &[u8]) -> Result<(), EngineError> {
        let write = || {
            if let Some(parent) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            }
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?.write_all(bytes)
        };
        write().map_err(EngineError::file("keep the output in", &path))
    }

    /// Reads what was kept of what an action printed.
    ///
    /// # Errors
    /// When it is there and cannot be read, or the key of its class is gone.
    pub fn output(&self, task: &TaskId, action: &ActionId) -> Result<Vec<KeptOutput>, EngineError> {
        let mut kept = Vec::new();
        for stream in ["stdout", "stderr", "terminal"] {
            let path = self.output_path(task, action, stream);
            match fs::read(&path) {
                Ok(sealed) => {
                    let bytes = self.store().unseal(ContentClass::Output, &of(action, stream), &sealed)?;
                    kept.push(KeptOutput { stream, bytes });
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(EngineError::file("read", &path)(error)),
            }
        }
        Ok(kept)
    }

    fn output_path(&self, task: &TaskId, action: &ActionId, stream: &str) -> PathBuf {
        self.places().outputs(task).join(of(action, stream))
    }
}
