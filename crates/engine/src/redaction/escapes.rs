//! Text behind escapes: `%41`, `\u0041`, `\x41` and `&#65;` are all `A`. Writers differ in what they leave as it is, so each kind
//! is read back.

use std::ops::Range;

/// The escapes of one kind of writer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Of addresses (RFC 3986, section 2.1).
    Percent,
    /// Of JSON (RFC 8259, section 7) and of the many languages that write strings like it.
    Backslash,
    /// Of HTML and XML, as far as letters have to be escaped there, and by number.
    Entity,
}

/// A text with the escapes of one kind read back.
pub(super) struct Decoded {
    bytes: Vec<u8>,
    /// The escapes, in order.
    escapes: Vec<Escape>,
}

/// Where an escape stood, and where what it means is.
struct Escape {
    read: Range<usize>,
    written: Range<usize>,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Percent, Self::Backslash, Self::Entity];

    fn mark(self) -> u8 {
        match self {
            Self::Percent => b'%',
            Self::Backslash => b'\\',
            Self::Entity => b'&',
        }
    }

    /// Reads the escape at the beginning of a text: what it means, and how many bytes it has.
    fn read(self, text: &[u8]) -> Option<(char, usize)> {
        match self {
            // The bytes of a letter come one by one, and as such they stand in the text.
            Self::Percent => hexadecimal(text.get(1..3)?).map(|value| (value, 3)),
            Self::Backslash => backslash(text),
            Self::Entity => entity(text),
        }
        .and_then(|(value, length)| Some((char::from_u32(value)?, length)))
    }
}

fn backslash(text: &[u8]) -> Option<(u32, usize)> {
    let short = |letter: u8| Some((u32::from(letter), 2));
    match text.get(1)? {
        b'n' => short(b'\n'),
        b'r' => short(b'\r'),
        b't' => short(b'\t'),
        b'x' => hexadecimal(text.get(2..4)?).map(|value| (value, 4)),
        b'u' => {
            let first = hexadecimal(text.get(2..6)?)?;
            // Letters beyond the first plane are written as two, which together are one (RFC 8259, section 7).
            let second = || hexadecimal(text.get(6..12)?.strip_prefix(b"\\u")?);
            match (first, second()) {
                (0xd800..0xdc00, Some(second @ 0xdc00..0xe000)) => {
                    Some((0x1_0000 + ((first - 0xd800) << 10 | (second - 0xdc00)), 12))
                }
                _ => Some((first, 6)),
            }
        }
        letter if letter.is_ascii_punctuation() => short(*letter),
        _ => None,
    }
}

fn entity(text: &[u8]) -> Option<(u32, usize)> {
    /// More than any has whose letter a secret could hold.
    const LONGEST: usize = 10;
    let end = text.iter().take(LONGEST).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[1..end]).ok()?;
    let value = match name {
        "amp" => u32::from(b'&'),
        "lt" => u32::from(b'<'),
        "gt" => u32::from(b'>'),
        "quot" => u32::from(b'"'),
        "apos" => u32::from(b'\''),
        name => match name.strip_prefix("#")? {
            number if number.starts_with(['x', 'X']) => hexadecimal(&number.as_bytes()[1..])?,
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok()?,
            _ => return None,
        },
    };
    Some((value, end + 1))
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let value = |sum: u32, digit: &u8| Some(sum << 4 | char::from(*digit).to_digit(16)?);
    if digits.is_empty() || digits.len() > 6 { None } else { digits.iter().try_fold(0, value) }
}

impl Decoded {
    /// Reads a text back; nothing when there is nothing to be read back.
    pub(super) fn of(text: &[u8], kind: Kind) -> Option<Self> {
        let (mut bytes, mut escapes, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(length) = text[at..].iter().position(|byte| *byte == kind.mark()) {
            bytes.extend_from_slice(&text[at..at + length]);
            at += length;
            let (began, length) = (
                bytes.len(),
                match kind.read(&text[at..]) {
                    Some((letter, length)) => {
                        push(&mut bytes, letter, kind);
                        length
                    }
                    None => {
                        bytes.push(kind.mark());
                        1
                    }
                },
            );
            if length > 1 {
                escapes.push(Escape { read: began..bytes.len(), written: at..at + length });
            }
            at += length;
        }
        bytes.extend_from_slice(&text[at..]);
        (!escapes.is_empty()).then_some(Self { bytes, escapes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns where a range stood in the text, with the whole of each escape that it has a part of.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        self.byte(range.start).start..range.end.checked_sub(1).map_or(0, |last| self.byte(last).end)
    }

    /// Returns where one byte stood.
    fn byte(&self, at: usize) -> Range<usize> {
        let after = self.escapes.partition_point(|escape| escape.read.start <= at);
        match after.checked_sub(1).map(|before| &self.escapes[before]) {
            Some(escape) if escape.read.contains(&at) => escape.written.clone(),
            Some(escape) => {
                let at = escape.written.end + (at - escape.read.end);
                at..at + 1
            }
            None => at..at + 1,
        }
    }
}

/// Adds a letter: what stands behind a percent sign is a byte, and everything else a letter in UTF-8.
fn push(bytes: &mut Vec<u8>, letter: char, kind: Kind) {
    match (kind, u8::try_from(letter)) {
        (Kind::Percent, Ok(byte)) => bytes.push(byte),
        _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back_and_each_place_is_known() {
        let decoded = Decoded::of(b"a%2Fb%zz%4", Kind::Percent).expect("has one");
        assert_eq!(decoded.bytes(), b"a/b%zz%4");
        assert_eq!((decoded.original(&(1..2)), decoded.original(&(0..8))), (1..4, 0..10));
        let decoded = Decoded::of(b"%E2%82%AC", Kind::Percent).expect("has one");
        assert_eq!((decoded.bytes(), decoded.original(&(1..2))), ("€".as_bytes(), 3..6));
    }

    #[test]
    fn each_kind_is_read_back() {
        for (kind, written, read) in [
            (Kind::Backslash, r#"a\/b\u0026\x3c\n\"\\\u00e9\ud83d\ude00\q\u12"#, "a/b&<\n\"\\é😀\\q\\u12"),
            (Kind::Backslash, r"\ud83dx\", "\\ud83dx\\"),
            (Kind::Entity, "&amp;&lt;&#39;&#x27;&#233;&nbsp;&&#;&#xg; ", "&<''é&nbsp;&&#;&#xg; "),
        ] {
            let decoded = Decoded::of(written.as_bytes(), kind);
            let decoded = decoded.as_ref().map_or(written.as_bytes(), Decoded::bytes);
            assert_eq!(String::from_utf8_lossy(decoded), read, "{written}");
        }
    }

    #[test]
    fn a_range_has_the_whole_of_each_escape_that_it_touches() {
        let decoded = Decoded::of(br"x\u00e9y", Kind::Backslash).expect("has one");
        assert_eq!(decoded.bytes(), "xéy".as_bytes());
        assert_eq!((decoded.original(&(2..3)), decoded.original(&(0..4))), (1..7, 0..8));
        assert!(Decoded::of(b"plain & simple", Kind::Entity).is_none());
    }
}
