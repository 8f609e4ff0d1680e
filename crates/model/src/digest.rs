//! Digests, and the canonical form that they are taken over.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the digest of all that can be read, without keeping it.
    ///
    /// # Errors
    /// When reading fails.
    pub fn of_all(mut source: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut piece = [0; 16 << 10];
        loop {
            match source.read(&mut piece) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(read) => hasher.update(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes 32 bytes that already are a digest (or a keyed one) as one.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the digest as bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A log is checked a million records at a time, two digests each: formatting byte by byte shows there.
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Says that a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a SHA-256 digest: expected 64 hexadecimal digits in lower case", crate::text::escape(.0))]
pub struct DigestError(String);

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        parse_digits(text.as_bytes()).map(Self).ok_or_else(|| DigestError(text.to_owned()))
    }
}

fn parse_digits(digits: &[u8]) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = digits.try_into().ok()?;
    let mut bytes = [0; 32];
    // What is no digit has its highest bit set and is looked for once, at the end.
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    (seen & NO_DIGIT == 0).then_some(bytes)
}

const NO_DIGIT: u8 = 0x80;

/// What each byte stands for as a hexadecimal digit in lower case.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// Bytes in which every field carries its length, so that moving a boundary changes the digest.
#[derive(Debug, Default)]
pub struct Canonical(Vec<u8>);

impl Canonical {
    /// Starts the canonical form of one kind of thing; kinds never share a digest.
    pub fn new(kind: &str) -> Self {
        let mut canonical = Self::default();
        canonical.field(kind.as_bytes());
        canonical
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a list: its length, then its fields in order.
    pub fn list<'a>(&mut self, fields: impl ExactSizeIterator<Item = &'a [u8]>) -> &mut Self {
        self.number(fields.len() as u64);
        for field in fields {
            self.field(field);
        }
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.field(&number.to_be_bytes())
    }

    /// Adds something that may be missing; missing and empty are different.
    pub fn optional(&mut self, field: Option<&[u8]>) -> &mut Self {
        match field {
            None => self.number(0),
            Some(bytes) => self.number(1).field(bytes),
        }
    }

    /// Adds a value by its JSON form, whose field order is fixed by the type.
    ///
    /// # Panics
    /// Never for our own types: they hold no maps with keys that are not strings.
    #[allow(clippy::missing_panics_doc, clippy::expect_used)]
    pub fn value<T: Serialize>(&mut self, value: &T) -> &mut Self {
        let json = serde_json::to_vec(value).expect("our types have a JSON form");
        self.field(&json)
    }

    /// Returns the digest of all that was added.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_part_of_the_digest() {
        let of = |fields: &[&[u8]]| Canonical::new("argv").list(fields.iter().copied()).digest();
        assert_ne!(of(&[b"a b"]), of(&[b"a", b"b"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab", b""]), of(&[b"", b"ab"]));
    }

    #[test]
    fn missing_and_empty_are_different() {
        let missing = Canonical::new("x").optional(None).digest();
        let empty = Canonical::new("x").optional(Some(b"")).digest();
        assert_ne!(missing, empty);
    }

    #[test]
    fn a_digest_is_read_back_and_nothing_else_is_taken() {
        let digest = Digest::of(b"abc");
        assert!(digest.to_string().starts_with("ba7816bf"));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("xyz".parse::<Digest>().is_err());
        assert!("0".repeat(63).parse::<Digest>().is_err());
        assert!("g".repeat(64).parse::<Digest>().is_err());
        assert!("A".repeat(64).parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }
}
