//! One end of the pipe: bounded JSON lines in, JSON lines out.

use std::io::{BufRead, BufReader, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{LINE_MAX, ProtocolError};
use crate::lines::{Line, read_line};

/// A reader and a writer of lines.
#[derive(Debug)]
pub(super) struct Link<R: Read, W> {
    reader: BufReader<R>,
    writer: W,
}

impl<R: Read, W: Write> Link<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self { reader: BufReader::new(reader), writer }
    }

    /// Writes one line and flushes it: the other end may wait for nothing else.
    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), ProtocolError> {
        let mut line = serde_json::to_vec(message)
            .map_err(|error| ProtocolError::Syntax { reason: what_failed(&error) })?;
        if line.len() > LINE_MAX {
            return Err(ProtocolError::TooLong);
        }
        line.push(b'\n');
        self.writer.write_all(&line).and_then(|()| self.writer.flush()).map_err(gone_or_failed)
    }

    /// Reads one line; nothing when the other end closed the pipe between two lines.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ProtocolError> {
        receive(&mut self.reader)
    }

    /// Reads one line that must come.
    pub(super) fn expect<T: DeserializeOwned>(&mut self) -> Result<T, ProtocolError> {
        self.receive()?.ok_or(ProtocolError::Gone)
    }
}

fn receive<T: DeserializeOwned>(reader: &mut impl BufRead) -> Result<Option<T>, ProtocolError> {
    match read_line(reader, LINE_MAX).map_err(gone_or_failed)? {
        Line::End => Ok(None),
        Line::Cut(_) => Err(ProtocolError::Cut),
        Line::TooLong => Err(ProtocolError::TooLong),
        Line::Whole(line) => {
            let value = serde_json::from_slice(&line);
            value.map(Some).map_err(|error| ProtocolError::Syntax { reason: what_failed(&error) })
        }
    }
}

fn gone_or_failed(error: std::io::Error) -> ProtocolError {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset => ProtocolError::Gone,
        _ => ProtocolError::Pipe(error),
    }
}

/// Says where and in which way a line is wrong. The parser's own words may quote the line, and the line may hold
/// the key, so they are not passed on.
fn what_failed(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Io => "it could not be written",
        serde_json::error::Category::Syntax => "it is not JSON",
        serde_json::error::Category::Data => "it is JSON with other words or types than agreed",
        serde_json::error::Category::Eof => "its JSON ends too early",
    };
    format!("{what} (column {})", error.column())
}
