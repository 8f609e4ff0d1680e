//! Lines of bounded length: what both ends of the pipe, the transcript and the replay server read.

use std::io::{self, BufRead, Read};

/// One line without its line feed, or what stood in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line that ended with a line feed.
    Whole(Vec<u8>),
    /// The last bytes of the stream, without a line feed.
    Cut(Vec<u8>),
    /// More bytes than allowed without a line feed. The stream cannot be read on.
    TooLong,
    /// The stream ended where a line could have begun.
    End,
}

/// Reads one line of at most `longest` bytes, not counting the line feed.
pub(crate) fn read_line(reader: &mut impl BufRead, longest: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    reader.take(most).read_until(b'\n', &mut line)?;
    Ok(match line.last() {
        None => Line::End,
        Some(b'\n') => {
            line.pop();
            Line::Whole(line)
        }
        Some(_) if line.len() > longest => Line::TooLong,
        Some(_) => Line::Cut(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_end_is_told_apart() {
        let mut input: &[u8] = b"one\n\nlast";
        assert_eq!(read_line(&mut input, 10).expect("reads"), Line::Whole(b"one".to_vec()));
        assert_eq!(read_line(&mut input, 10).expect("reads"), Line::Whole(Vec::new()));
        assert_eq!(read_line(&mut input, 10).expect("reads"), Line::Cut(b"last".to_vec()));
        assert_eq!(read_line(&mut input, 10).expect("reads"), Line::End);
    }

    #[test]
    fn the_bound_counts_the_bytes_before_the_line_feed() {
        assert_eq!(read_line(&mut &b"1234\n"[..], 4).expect("reads"), Line::Whole(b"1234".to_vec()));
        assert_eq!(read_line(&mut &b"12345\n"[..], 4).expect("reads"), Line::TooLong);
        assert_eq!(read_line(&mut &b"12345"[..], 4).expect("reads"), Line::TooLong);
    }
}
