//! Server-sent events: what a stream says, whatever way its bytes are split.
//!
//! Guarantees: each event and each line is bounded; a comment is reported, because the server sends it to say that
//! it is alive. Leaves to others: what the data means.

use std::io::{self, BufRead, Read};

/// The longest line and the longest event, in bytes.
pub(super) const EVENT_MAX: usize = 8 << 20;

/// What a stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// An event's data; its lines are joined by line feeds.
    Data(String),
    /// A line that means nothing but that the server is alive.
    Comment,
}

/// Says why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamError {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("an event is longer than {EVENT_MAX} bytes")]
    TooLong,
    #[error("an event is not UTF-8")]
    Encoding,
}

/// Reads the events of a stream.
pub(super) struct Events<R> {
    reader: R,
    data: Option<Vec<u8>>,
    begun: bool,
    after_return: bool,
}

impl<R: BufRead> Events<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, data: None, begun: false, after_return: false }
    }

    /// Returns what the stream says next; nothing at its end. Data that no empty line ends is not an event.
    pub(super) fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            let line = line.as_slice();
            if line.is_empty() {
                match self.data.take() {
                    Some(data) => {
                        return String::from_utf8(data)
                            .map(Event::Data)
                            .map(Some)
                            .map_err(|_| StreamError::Encoding);
                    }
                    None => continue,
                }
            }
            if line.starts_with(b":") {
                return Ok(Some(Event::Comment));
            }
            if let Some(value) = value_of_data(line) {
                self.append(value)?;
            }
        }
    }

    fn append(&mut self, value: &[u8]) -> Result<(), StreamError> {
        let data = match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data
            }
            None => self.data.insert(Vec::new()),
        };
        data.extend_from_slice(value);
        if data.len() > EVENT_MAX { Err(StreamError::TooLong) } else { Ok(()) }
    }

    /// Reads a line that ends with a line feed, a carriage return or both; nothing at the end of the stream.
    fn line(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        let mut line = Vec::new();
        loop {
            let buffer = match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                return Ok(None);
            }
            // The feed of a pair whose return has ended the line before.
            let skip = usize::from(std::mem::take(&mut self.after_return) && buffer[0] == b'\n');
            let rest = &buffer[skip..];
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.after_return = end.is_some_and(|end| rest[end] == b'\r');
            let used = skip + end.map_or(rest.len(), |end| end + 1);
            self.reader.consume(used);
            if line.len() > EVENT_MAX {
                return Err(StreamError::TooLong);
            }
            if end.is_some() {
                return Ok(Some(self.without_mark(line)));
            }
        }
    }

    /// Takes the byte order mark off the first line.
    fn without_mark(&mut self, mut line: Vec<u8>) -> Vec<u8> {
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        line
    }
}

/// Returns what a `data` line holds; other fields mean nothing to us.
fn value_of_data(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// Counts what passes, keeps a digest of it, and ends with an error when it is too much.
pub(super) struct Metered<R> {
    inner: R,
    digest: sha2::Sha256,
    left: u64,
}

impl<R: Read> Metered<R> {
    pub(super) fn new(inner: R, most: u64) -> Self {
        Self { inner, digest: sha2::Digest::new(), left: most }
    }

    /// Returns the digest of what passed.
    pub(super) fn digest(&self) -> model::Digest {
        model::Digest::from_bytes(sha2::Digest::finalize(self.digest.clone()).into())
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        sha2::Digest::update(&mut self.digest, &buffer[..count]);
        let too_much = || io::Error::new(io::ErrorKind::FileTooLarge, "the response is larger than allowed");
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_much)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn events(bytes: &[u8], buffer: usize) -> Vec<Event> {
        let mut events = Events::new(BufReader::with_capacity(buffer, bytes));
        std::iter::from_fn(|| events.next().expect("reads")).collect()
    }

    fn data(text: &str) -> Event {
        Event::Data(text.to_owned())
    }

    #[test]
    fn data_comments_and_other_fields_are_told_apart() {
        let stream = b"\xef\xbb\xbf: keep-alive\n\n\n\nevent: x\ndata: one\ndata:two\ndata\nid: 3\n\r\ndata: [DONE]\r\r";
        assert_eq!(events(stream, 64), [Event::Comment, data("one\ntwo\n"), data("[DONE]")]);
    }

    #[test]
    fn data_that_nothing_ends_is_no_event() {
        assert_eq!(events(b"data: a\n\ndata: cut", 64), [data("a")]);
        assert_eq!(events(b"data: a\n\ndata: cut\n", 64), [data("a")]);
    }

    #[test]
    fn lines_and_events_are_bounded() {
        let long = vec![b'x'; EVENT_MAX + 1];
        assert!(matches!(Events::new(long.as_slice()).next(), Err(StreamError::TooLong)));
        let many = b"data: xxxxxxxxxxxxxxxx\n".repeat(EVENT_MAX / 16);
        assert!(matches!(Events::new(many.as_slice()).next(), Err(StreamError::TooLong)));
        let mut metered = Metered::new(&b"12345"[..], 4);
        assert!(metered.read(&mut [0; 8]).is_err());
    }

    proptest! {
        #[test]
        fn the_way_the_bytes_are_split_changes_nothing(
            stream in "(data: [a-zé]{0,5}|: ka|\r\n|\n|\r|event: x){0,30}", buffer in 1usize..9,
        ) {
            prop_assert_eq!(events(stream.as_bytes(), buffer), events(stream.as_bytes(), 4096));
        }

        #[test]
        fn any_bytes_are_read_without_a_crash(stream in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut events = Events::new(stream.as_slice());
            while let Ok(Some(_)) = events.next() {}
        }
    }
}
