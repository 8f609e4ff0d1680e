//! Looking for a value in what passes, also across the edges of its pieces.
//!
//! Guarantees: what passes has as many bytes as what came, and none of a form of the value is legible in it; only what could be
//! the beginning of a form waits for more.

use aho_corasick::AhoCorasick;
use model::redaction::forms_of;

/// What stands in the place of each byte.
const ILLEGIBLE: u8 = b'*';

/// Finds the forms of one value.
pub(crate) struct Scan {
    forms: Vec<Form>,
    finder: AhoCorasick,
}

struct Form {
    bytes: Vec<u8>,
    /// For each beginning of the form, how much of it stands at its own end again (Knuth, Morris and Pratt).
    again: Vec<usize>,
}

/// What came of a stream and has not passed yet.
#[derive(Default)]
pub(crate) struct Held {
    came: Vec<u8>,
    /// The same, illegible where the value is.
    passes: Vec<u8>,
}

impl Scan {
    /// Looks for this value.
    pub(crate) fn of(value: &[u8]) -> Result<Self, String> {
        let forms: Vec<Form> = forms_of(value).into_iter().map(|form| Form::new(form.bytes)).collect();
        let finder = AhoCorasick::new(forms.iter().map(|form| &form.bytes));
        let finder = finder.map_err(|error| format!("a credential cannot be looked for: {error}"))?;
        Ok(Self { forms, finder })
    }

    /// Makes the value illegible in a text that is there as a whole; nothing when it does not hold it.
    pub(crate) fn cover(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut covered = text.to_vec();
        self.cover_in(text, &mut covered).then_some(covered)
    }

    fn cover_in(&self, text: &[u8], covered: &mut [u8]) -> bool {
        let mut found = false;
        for one in self.finder.find_overlapping_iter(text) {
            covered[one.range()].fill(ILLEGIBLE);
            found = true;
        }
        found
    }

    /// Takes one more piece. Returns what may pass now, and whether the value was in it.
    pub(crate) fn piece(&self, held: &mut Held, piece: &[u8]) -> (Vec<u8>, bool) {
        held.came.extend_from_slice(piece);
        held.passes.extend_from_slice(piece);
        let found = self.cover_in(&held.came, &mut held.passes);
        let waits = self.forms.iter().map(|form| form.begun_by(&held.came)).max().unwrap_or(0);
        let passes = held.came.len() - waits;
        held.came.drain(..passes);
        let rest = held.passes.split_off(passes);
        (std::mem::replace(&mut held.passes, rest), found)
    }
}

impl Held {
    /// Returns what waited for more, when nothing more comes.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.came.clear();
        std::mem::take(&mut self.passes)
    }

    /// Tells whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.came.is_empty()
    }
}

impl Form {
    fn new(bytes: Vec<u8>) -> Self {
        let mut form = Self { again: vec![0; bytes.len()], bytes };
        for at in 1..form.bytes.len() {
            form.again[at] = form.advance(form.again[at - 1], form.bytes[at]);
        }
        form
    }

    fn advance(&self, mut matched: usize, byte: u8) -> usize {
        while matched > 0 && self.bytes.get(matched) != Some(&byte) {
            matched = self.again[matched - 1];
        }
        if self.bytes.get(matched) == Some(&byte) { matched + 1 } else { matched }
    }

    /// Returns how much of its beginning stands at the end of a text, the whole of it excepted.
    fn begun_by(&self, text: &[u8]) -> usize {
        let last = text.len().saturating_sub(self.bytes.len().saturating_sub(1));
        text[last..].iter().fold(0, |matched, byte| self.advance(matched, *byte))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUE: &[u8] = b"abcabcab-Q9abcabcab-Q9x";

    fn through(pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        let (scan, mut held) = (Scan::of(VALUE).expect("can be"), Held::default());
        let (mut passed, mut found) = (Vec::new(), false);
        for piece in pieces {
            let (passes, has) = scan.piece(&mut held, piece);
            passed.extend(passes);
            found |= has;
        }
        passed.extend(held.rest());
        (passed, found)
    }

    #[test]
    fn the_value_is_illegible_wherever_the_edges_of_pieces_are() {
        let text = [b"before ".as_slice(), VALUE, b" between ", VALUE, VALUE, b" after"].concat();
        for edge in 0..text.len() {
            let (one, two) = text.split_at(edge);
            let (passed, found) = through(&[one, two]);
            assert!(found, "{edge}");
            let expected = format!("before {0} between {0}{0} after", "*".repeat(VALUE.len()));
            assert_eq!(String::from_utf8_lossy(&passed), expected, "{edge}");
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert!(through(&single).1);
    }

    #[test]
    fn its_encodings_are_illegible_too_and_other_text_waits_for_nothing() {
        let hex: String = VALUE.iter().map(|byte| format!("{byte:02x}")).collect();
        let (passed, found) = through(&[&hex.as_bytes()[..7], &hex.as_bytes()[7..]]);
        assert!(found && passed.iter().all(|byte| *byte == ILLEGIBLE));
        let (scan, mut held) = (Scan::of(VALUE).expect("can be"), Held::default());
        assert_eq!(scan.piece(&mut held, b"data: 1\n\n"), (b"data: 1\n\n".to_vec(), false));
        assert!(held.is_empty());
        assert_eq!(scan.cover(b"nothing"), None);
    }

    proptest! {
        #[test]
        fn no_cutting_lets_it_through_and_nothing_else_changes(
            parts in proptest::collection::vec(prop_oneof![Just(VALUE.to_vec()), proptest::collection::vec(b'a'..b'd', 0..9)], 0..6),
            size in 1usize..40,
        ) {
            let text = parts.concat();
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            let (passed, found) = through(&pieces);
            prop_assert_eq!(passed.len(), text.len());
            prop_assert!(!passed.windows(VALUE.len()).any(|window| window == VALUE));
            prop_assert_eq!(found, parts.iter().any(|part| part == VALUE));
            let whole = Scan::of(VALUE).expect("can be").cover(&text).unwrap_or(text);
            prop_assert_eq!(passed, whole);
        }
    }
}
