//! The little of the D-Bus protocol that one call needs: a message is written, and answers are read.
//!
//! Source: the D-Bus specification, "Message Protocol" and "Marshaling (Wire Format)". Guarantees: any bytes may come in; what
//! makes no sense is an error. Leaves to others: the socket, and what the call means.

use std::io::{self, Read};

/// The largest message that is read. Answers to our calls have some hundred bytes.
const MESSAGE_MAX: usize = 64 << 10;
/// The bytes before the header fields.
const FIXED: usize = 16;

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The answer to a call.
    Return,
    /// The refusal of a call.
    Error,
    /// Anything else: signals, and calls to us.
    Other,
}

/// A message that came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// The number of the call that it answers.
    pub(super) answers: Option<u32>,
    /// The name of an error.
    pub(super) error: Option<String>,
    /// Its first argument, where that is text.
    pub(super) text: Option<String>,
}

/// Writes a call. `body` holds the arguments, which `signature` describes.
pub(super) fn call(serial: u32, to: &Address<'_>, signature: &str, body: &Writer) -> Vec<u8> {
    let mut message = Writer::default();
    // Little endian, a call, no flags, version 1.
    message.bytes.extend([b'l', 1, 0, 1]);
    message.number(u32::try_from(body.bytes.len()).unwrap_or(u32::MAX));
    message.number(serial);
    let fields = [(1, "o", to.path), (6, "s", to.name), (2, "s", to.interface), (3, "s", to.member)];
    message.array(8, |message| {
        for (code, kind, value) in fields {
            message.align(8);
            message.bytes.push(code);
            message.signature(kind);
            message.text(value);
        }
        if !signature.is_empty() {
            message.align(8);
            message.bytes.push(8);
            message.signature("g");
            message.signature(signature);
        }
    });
    message.align(8);
    message.bytes.extend(&body.bytes);
    message.bytes
}

/// Who is called, and what of it.
pub(super) struct Address<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
}

/// Writes values one after another, each where its kind wants to begin.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn align(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }

    pub(super) fn number(&mut self, number: u32) {
        self.align(4);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    /// Writes the kind of a value that follows. Ours are short.
    pub(super) fn signature(&mut self, signature: &str) {
        self.bytes.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        self.bytes.extend(signature.as_bytes());
        self.bytes.push(0);
    }

    /// Writes an array whose elements begin at multiples of `alignment`. Its length does not count what aligns the first.
    pub(super) fn array(&mut self, alignment: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.bytes.len() - 4;
        self.align(alignment);
        let start = self.bytes.len();
        elements(self);
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads the next message.
///
/// # Errors
/// When it is cut, too long or makes no sense.
pub(super) fn receive(from: &mut impl Read) -> io::Result<Message> {
    let mut bytes = vec![0; FIXED];
    from.read_exact(&mut bytes)?;
    let length = rest_of(&bytes)?;
    bytes.resize(FIXED + length, 0);
    from.read_exact(&mut bytes[FIXED..])?;
    parse(&bytes)
}

/// Returns how many bytes follow after the first ones.
fn rest_of(fixed: &[u8]) -> io::Result<usize> {
    let reader = Reader::of(fixed)?;
    let (body, fields) = (reader.number_at(4)?, reader.number_at(12)?);
    let fields = usize::try_from(fields).ok().filter(|fields| *fields <= MESSAGE_MAX);
    let body = usize::try_from(body).ok().filter(|body| *body <= MESSAGE_MAX);
    let length = fields.zip(body).map(|(fields, body)| fields.next_multiple_of(8) + body);
    length.filter(|length| *length <= MESSAGE_MAX).ok_or_else(|| nonsense("a message is too long"))
}

/// Reads a whole message.
pub(super) fn parse(bytes: &[u8]) -> io::Result<Message> {
    let mut reader = Reader::of(bytes)?;
    let kind = match bytes.get(1) {
        Some(2) => Kind::Return,
        Some(3) => Kind::Error,
        _ => Kind::Other,
    };
    let end = reader.number_at(12)?;
    let end = FIXED.checked_add(usize::try_from(end).unwrap_or(usize::MAX)).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(|| nonsense("the header fields are longer than the message"))?;
    reader.at = FIXED;
    let mut message = Message { kind, answers: None, error: None, text: None };
    let mut signature = String::new();
    while reader.at < end {
        reader.align(8);
        let code = reader.byte()?;
        match (code, reader.signature()?.as_str()) {
            (4, "s") => message.error = Some(reader.text()?),
            (5, "u") => message.answers = Some(reader.number()?),
            (8, "g") => signature = reader.signature()?,
            (_, "s" | "o") => drop(reader.text()?),
            (_, "u") => drop(reader.number()?),
            (_, "g") => drop(reader.signature()?),
            _ => return Err(nonsense("a header field is of no known kind")),
        }
    }
    if signature.starts_with('s') {
        reader.at = end.next_multiple_of(8);
        message.text = Some(reader.text()?);
    }
    Ok(message)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8]) -> io::Result<Self> {
        let big = match bytes.first() {
            Some(b'l') => false,
            Some(b'B') => true,
            _ => return Err(nonsense("a message begins with no byte order")),
        };
        Ok(Self { bytes, at: 0, big })
    }

    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(length);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| nonsense("a message ends in the middle of a value"))?;
        self.at += length;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> io::Result<u32> {
        self.align(4);
        let bytes: [u8; 4] = self.take(4)?.try_into().unwrap_or_default();
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn number_at(&self, at: usize) -> io::Result<u32> {
        Reader { at, ..*self }.number()
    }

    fn text(&mut self) -> io::Result<String> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        self.words(length)
    }

    fn signature(&mut self) -> io::Result<String> {
        let length = usize::from(self.byte()?);
        self.words(length)
    }

    fn words(&mut self, length: usize) -> io::Result<String> {
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        if self.byte()? == 0 { Ok(text) } else { Err(nonsense("a text does not end where it says")) }
    }
}

pub(super) fn nonsense(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: Address<'_> =
        Address { name: "org.example", path: "/org/example", interface: "org.example.Do", member: "It" };

    #[test]
    fn a_call_begins_every_value_where_its_kind_wants_to() {
        let mut body = Writer::default();
        body.text("ab");
        body.array(8, |array| {
            array.align(8);
            array.text("k");
        });
        let message = call(7, &MANAGER, "sa(s)", &body);
        assert_eq!(message[..4], [b'l', 1, 0, 1]);
        // "ab" with its length and end takes 7 bytes, so the array's length stands at 8 and its first element at 16.
        assert_eq!(message[4..12], [22, 0, 0, 0, 7, 0, 0, 0]);
        let body = &message[message.len() - 22..];
        assert_eq!(body[..16], [2, 0, 0, 0, b'a', b'b', 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(body[16..], [1, 0, 0, 0, b'k', 0]);
        assert_eq!((message.len() - 22) % 8, 0);
    }

    #[test]
    fn an_answer_is_read_in_both_byte_orders() {
        for big in [false, true] {
            let number = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
            let mut bytes = vec![if big { b'B' } else { b'l' }, 3, 1, 1];
            bytes.extend(number(9));
            bytes.extend(number(4));
            bytes.extend(number(31));
            bytes.extend([5, 1, b'u', 0]);
            bytes.extend(number(2));
            bytes.extend([4, 1, b's', 0]);
            bytes.extend(number(3));
            bytes.extend(b"a.b\0\0\0\0\0");
            bytes.extend([8, 1, b'g', 0, 1, b's', 0]);
            bytes.push(0);
            bytes.extend(number(4));
            bytes.extend(b"sure\0");
            let expected = Message {
                kind: Kind::Error,
                answers: Some(2),
                error: Some("a.b".to_owned()),
                text: Some("sure".to_owned()),
            };
            assert_eq!(receive(&mut bytes.as_slice()).expect("it is whole"), expected, "big: {big}");
            for cut in 0..bytes.len() {
                assert!(receive(&mut &bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn lengths_that_are_lies_are_errors() {
        for (at, value) in [(4, u32::MAX), (12, u32::MAX), (4, 70_000), (12, 70_000)] {
            let mut bytes = vec![b'l', 2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(receive(&mut bytes.as_slice()).is_err());
        }
    }
}
