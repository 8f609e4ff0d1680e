//! Keeps what a command prints: the head and the tail of each stream, and the number of bytes in between.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use model::Bytes;

/// Which stream something was printed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
    /// A terminal, where both are one.
    Terminal,
}

/// What one stream printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Printed {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, when not all could be kept in `head`.
    pub tail: Vec<u8>,
    /// How many bytes in between are gone.
    pub dropped: u64,
}

impl Printed {
    /// Returns what was kept, with a line that says what is missing where something is.
    pub fn kept(&self) -> Vec<u8> {
        let mut kept = self.head.clone();
        if self.dropped > 0 {
            kept.extend_from_slice(self.gap().as_bytes());
        }
        kept.extend_from_slice(&self.tail);
        kept
    }

    /// Returns the line that stands for what was dropped.
    pub fn gap(&self) -> String {
        format!("\n[fumehood: {} dropped here, the output limit of this run]\n", Bytes::new(self.dropped))
    }

    /// Returns how many bytes were printed in all.
    pub fn total(&self) -> u64 {
        self.head.len() as u64 + self.tail.len() as u64 + self.dropped
    }
}

/// Takes what is printed while it is printed.
pub trait Sink: Send {
    /// Takes some bytes. An error is remembered by nobody: the reader of the command's output may leave early.
    fn print(&mut self, stream: Stream, bytes: &[u8]);
}

/// Drops everything; what was printed is in the execution.
pub struct Silent;

impl Sink for Silent {
    fn print(&mut self, _: Stream, _: &[u8]) {}
}

/// Collects one stream within its limit.
struct Collector {
    head_max: usize,
    tail_max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Collector {
    /// Three quarters of the limit are for the head: what was printed first is shown while the command runs.
    fn new(limit: Bytes) -> Self {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        let tail_max = limit / 4;
        Self { head_max: limit - tail_max, tail_max, head: Vec::new(), tail: VecDeque::new(), dropped: 0 }
    }

    /// Takes bytes, and returns those that still belong to the head.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = (self.head_max - self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.tail_max);
        self.tail.drain(..over);
        self.dropped += over as u64;
        head
    }

    fn finish(self) -> Printed {
        Printed { head: self.head, tail: self.tail.into(), dropped: self.dropped }
    }
}

/// Reads a stream to its end in a thread of its own, so that a slow reader of the output never delays a time limit.
pub(crate) fn collect(
    source: OwnedFd,
    stream: Stream,
    limit: Bytes,
    mut sink: Box<dyn Sink>,
) -> JoinHandle<Printed> {
    thread::spawn(move || {
        let mut source = File::from(source);
        let mut collector = Collector::new(limit);
        let mut buffer = vec![0; 64 << 10];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    let head = collector.take(&buffer[..read]);
                    if !head.is_empty() {
                        sink.print(stream, head);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A terminal answers with an input/output error when its other end is closed (`pty(7)`).
                Err(_) => break,
            }
        }
        let printed = collector.finish();
        if printed.dropped > 0 {
            sink.print(stream, printed.gap().as_bytes());
        }
        if !printed.tail.is_empty() {
            sink.print(stream, &printed.tail);
        }
        printed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(limit: u64, pieces: &[&[u8]]) -> Printed {
        let mut collector = Collector::new(Bytes::new(limit));
        for piece in pieces {
            collector.take(piece);
        }
        collector.finish()
    }

    #[test]
    fn what_fits_is_kept_unchanged() {
        let all = printed(8, &[b"abcd", b"efgh"]);
        assert_eq!((all.kept(), all.dropped, all.total()), (b"abcdefgh".to_vec(), 0, 8));
    }

    #[test]
    fn head_and_tail_are_kept_and_the_rest_is_counted() {
        let cut = printed(8, &[b"0123456789", b"abcdef"]);
        assert_eq!((cut.head.as_slice(), cut.tail.as_slice()), (&b"012345"[..], &b"ef"[..]));
        assert_eq!((cut.dropped, cut.total()), (8, 16));
    }
}
