//! As much of HTTP/1.1 as the replay server speaks: one request and one response on each connection.
//!
//! Guarantees: heads and bodies are bounded. Leaves to others: what is asked and answered.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::lines::{Line, read_line};

/// The longest line of a head, and the most lines.
const LINE_MAX: usize = 16 << 10;
const LINES_MAX: usize = 200;
/// The largest body, in bytes.
const BODY_MAX: usize = 64 << 20;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) key: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Reads one request; nothing when the connection holds none.
pub(super) fn read_request(stream: impl Read) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let Some(first) = head_line(&mut reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (method, path) = (method.to_owned(), path.to_owned());
    let (mut key, mut length) = (None, 0);
    for _ in 0..LINES_MAX {
        let line = head_line(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            return Ok(Some(Request { method, path, key, body }));
        }
        let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
        match name.to_ascii_lowercase().as_str() {
            "authorization" => key = value.trim().strip_prefix("Bearer ").map(|key| key.trim().to_owned()),
            "content-length" => {
                let given: Option<usize> = value.trim().parse().ok();
                length = given.filter(|length| *length <= BODY_MAX).ok_or(io::ErrorKind::InvalidData)?;
            }
            _ => {}
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn head_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    match read_line(reader, LINE_MAX)? {
        Line::Whole(line) => {
            let line = String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData)?;
            Ok(Some(line.trim_end_matches('\r').to_owned()))
        }
        Line::End => Ok(None),
        Line::Cut(_) | Line::TooLong => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Writes the head of a response.
pub(super) fn write_head(stream: &mut impl Write, status: u16, headers: &[(&str, &str)]) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} {}\r\nconnection: close\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        429 => "Too Many Requests",
        500..=599 => "Server Error",
        400..=499 => "Client Error",
        _ => "Redirect",
    }
}

/// Puts bytes into the form of a body of unknown length.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_with_its_key_and_body() {
        let text = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAUTHORIZATION: Bearer k\r\nContent-Length: 2\r\n\r\n{}";
        let request = read_request(&text[..]).expect("reads").expect("there is one");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
        assert_eq!((request.key.as_deref(), request.body.as_slice()), (Some("k"), &b"{}"[..]));
    }

    #[test]
    fn what_is_no_request_is_an_error_and_nothing_is_nothing() {
        assert!(read_request(&b""[..]).expect("reads").is_none());
        let long = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", "a: b\r\n".repeat(LINES_MAX + 1));
        for wrong in ["GET / HTTP/1.1\r\n", "\r\nx\r\n", "GET / x\r\nno colon\r\n\r\n", long.as_str()] {
            assert!(read_request(wrong.as_bytes()).is_err(), "{wrong:.40}");
        }
        for length in ["-1", "x", "99999999999999"] {
            let text = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
            assert!(read_request(text.as_bytes()).is_err(), "{length}");
        }
    }
}
