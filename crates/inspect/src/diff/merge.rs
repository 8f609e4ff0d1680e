//! Bringing two edits of one text together.

use similar::TextMerge;

/// Texts larger than this are not merged: the time grows with the product of lines and differences.
const BYTES_MAX: usize = 1 << 20;
/// Texts of more lines than this are not merged.
const LINES_MAX: usize = 10_000;

/// Merges two edits of one base, line by line. Nothing comes of it when they touch the same lines, when something is
/// no text, or when the texts are too large.
pub fn merge_texts(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<String> {
    let merge = TextMerge::from_lines(text(base)?, text(ours)?, text(theirs)?);
    (!merge.is_conflicted()).then(|| merge.to_string())
}

fn text(bytes: &[u8]) -> Option<&str> {
    let small = bytes.len() <= BYTES_MAX && bytes.iter().filter(|byte| **byte == b'\n').count() <= LINES_MAX;
    let text = std::str::from_utf8(bytes).ok()?;
    (small && !text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "one\ntwo\nthree\nfour\nfive\n";

    fn merged(ours: &str, theirs: &str) -> Option<String> {
        merge_texts(BASE.as_bytes(), ours.as_bytes(), theirs.as_bytes())
    }

    #[test]
    fn edits_of_different_lines_come_together() {
        let both = merged("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\nsix");
        assert_eq!(both.as_deref(), Some("ONE\ntwo\nthree\nfour\nFIVE\nsix"));
        assert_eq!(
            merged(BASE, "one\r\ntwo\nthree\nfour\nfive\n").as_deref(),
            Some("one\r\ntwo\nthree\nfour\nfive\n")
        );
        assert_eq!(merged("one\n", "one\n").as_deref(), Some("one\n"));
    }

    #[test]
    fn edits_of_one_line_do_not() {
        assert_eq!(merged("ONE\ntwo\nthree\nfour\nfive\n", "1\ntwo\nthree\nfour\nfive\n"), None);
        assert_eq!(merged("one\ntwo\n", "one\ntwo\nthree\nfour\n5\n"), None);
    }

    #[test]
    fn what_is_no_text_is_not_merged() {
        assert_eq!(merge_texts(b"a\n", b"a\0\n", b"a\nb\n"), None);
        assert_eq!(merge_texts(b"a\n", b"\xff\n", b"a\nb\n"), None);
        assert_eq!(merge_texts(&vec![b'a'; 2 << 20], b"", b""), None);
        assert_eq!(merge_texts("a\n".repeat(20_000).as_bytes(), b"", b""), None);
    }
}
