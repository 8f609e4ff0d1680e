//! Our two streams, and whether what was written last ended its line.
//!
//! Guarantees: what we say begins on a line of its own, also after a command whose last line has no end, and also where
//! both streams go to one file or terminal. Nothing is added to what is passed on while nothing is said.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One of our streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Our two streams.
#[derive(Debug, Default)]
pub struct Lines {
    /// Whether both end in one place.
    are_one: bool,
    out: End,
    err: End,
}

/// Whether the last line of a stream is unfinished. It is held while something is written, so that two who write at
/// once to one place cannot both be the last; streams that are two do not wait for each other.
type End = Mutex<bool>;

impl Lines {
    /// Looks at the streams of this process.
    pub fn of_this_process() -> Self {
        Self { are_one: are_one(), ..Self::default() }
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// When the stream does not take them.
    pub fn pass(&self, to: To, bytes: &[u8]) -> io::Result<()> {
        let mut unfinished = self.end(to);
        note(&mut unfinished, bytes);
        match to {
            To::Out => all(&mut io::stdout().lock(), bytes),
            To::Err => all(&mut io::stderr().lock(), bytes),
        }
    }

    /// Writes to standard error what begins on a line of its own.
    ///
    /// # Errors
    /// When the stream does not take it.
    pub fn say(&self, text: &str) -> io::Result<()> {
        let mut unfinished = self.end(To::Err);
        let text = begun(*unfinished, text);
        note(&mut unfinished, text.as_bytes());
        all(&mut io::stderr().lock(), text.as_bytes())
    }

    /// Notes that a person has ended the line, by their answer.
    pub fn answered(&self) {
        *self.end(To::Err) = false;
    }

    fn end(&self, to: To) -> MutexGuard<'_, bool> {
        let end = if to == To::Out || self.are_one { &self.out } else { &self.err };
        end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether both streams go to one place: one file or pipe, or the terminal, which can have several names.
fn are_one() -> bool {
    let (out, err) = (io::stdout(), io::stderr());
    let place =
        |stream: &dyn AsFd| rustix::fs::fstat(stream.as_fd()).ok().map(|found| (found.st_dev, found.st_ino));
    let one_file = place(&out).is_some_and(|out| place(&err) == Some(out));
    one_file || (out.is_terminal() && err.is_terminal())
}

fn note(unfinished: &mut bool, bytes: &[u8]) {
    if let Some(last) = bytes.last() {
        *unfinished = *last != b'\n';
    }
}

fn begun(unfinished: bool, text: &str) -> String {
    if unfinished { format!("\n{text}") } else { text.to_owned() }
}

fn all(stream: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).and_then(|()| stream.flush())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_line_is_remembered_where_it_was_written() {
        let after = |are_one, to, bytes: &[u8]| {
            let lines = Lines { are_one, ..Lines::default() };
            note(&mut lines.end(to), bytes);
            *lines.end(To::Err)
        };
        assert!(after(false, To::Err, b"x") && after(true, To::Err, b"x") && after(true, To::Out, b"x"));
        assert!(!after(false, To::Out, b"x"), "another place");
        assert!(!after(true, To::Out, b"x\n") && !after(false, To::Err, b"x\n"));
        let lines = Lines::default();
        note(&mut lines.end(To::Err), b"x");
        note(&mut lines.end(To::Err), b"");
        assert!(*lines.end(To::Err), "nothing ends no line");
        lines.answered();
        assert_eq!(begun(*lines.end(To::Err), "said"), "said");
        assert_eq!(begun(true, "said"), "\nsaid");
    }
}
