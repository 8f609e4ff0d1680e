//! Text behind percent signs: `%41` is `A`. Encoders differ in what they leave as it is, so it is read back.

use std::ops::Range;

/// A text with its percent signs read back.
pub(super) struct Decoded {
    bytes: Vec<u8>,
    /// Which of the bytes stood behind a percent sign, in order.
    escaped: Vec<usize>,
}

impl Decoded {
    /// Reads a text back; nothing when there is nothing to be read back.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        text.windows(3).find(|three| value(three).is_some())?;
        let (mut bytes, mut escaped, mut at) = (Vec::with_capacity(text.len()), Vec::new(), 0);
        while let Some(byte) = text.get(at) {
            match text.get(at..at + 3).and_then(value) {
                Some(decoded) => {
                    escaped.push(bytes.len());
                    bytes.push(decoded);
                    at += 3;
                }
                None => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        Some(Self { bytes, escaped })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns where a range stood in the text.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let place = |at: usize| at + 2 * self.escaped.partition_point(|escaped| *escaped < at);
        place(range.start)..place(range.end)
    }
}

fn value(three: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match three {
        [b'%', high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_back_and_each_place_is_known() {
        let decoded = Decoded::of(b"a%2Fb%zz%4").expect("has one");
        assert_eq!(decoded.bytes(), b"a/b%zz%4");
        assert_eq!((decoded.original(&(1..2)), decoded.original(&(0..8))), (1..4, 0..10));
        assert!(Decoded::of(b"100% of it, %g1 %").is_none());
    }
}
