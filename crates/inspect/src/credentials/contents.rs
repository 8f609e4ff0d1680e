//! What a file's content shows, by shapes that services give to their keys.

use std::ops::Range;
use std::sync::LazyLock;

use super::expression::Expression;
use super::judge::looks_made_up;
use aho_corasick::AhoCorasick;

pub(super) const LIST: &str = include_str!("../../data/credential-contents.txt");

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::parse(LIST));

/// A value that has the shape of a credential, in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaped {
    /// The name of the shape.
    pub name: &'static str,
    /// Where the value is.
    pub range: Range<usize>,
}

/// Shapes whose value goes on over lines: what the list catches is only its beginning.
const LONG: [&str; 2] = ["private-key", "putty-key"];

struct Shape {
    name: &'static str,
    expression: Expression,
    reason: &'static str,
}

struct Shapes {
    keywords: AhoCorasick,
    shapes: Vec<Shape>,
}

/// Returns the values in a text that have a shape of the list, in no order. Work grows with the text alone.
pub(super) fn shaped(text: &[u8]) -> Vec<Shaped> {
    let shapes = &*SHAPES;
    let mut keywords: Vec<usize> =
        shapes.keywords.find_overlapping_iter(text).map(|found| found.pattern().as_usize()).collect();
    keywords.sort_unstable();
    keywords.dedup();
    keywords.into_iter().flat_map(|index| shapes.shapes[index].all_in(text)).collect()
}

/// Returns what kind of credential a text shows, in words for people, by the list of shapes; nothing when it shows none.
pub fn shape_of(text: &[u8]) -> Option<&'static str> {
    let shapes = &*SHAPES;
    let mut tried = vec![false; shapes.shapes.len()];
    for keyword in shapes.keywords.find_overlapping_iter(text) {
        let index = keyword.pattern().as_usize();
        if !std::mem::replace(&mut tried[index], true) && shapes.shapes[index].is_in(text) {
            return Some(shapes.shapes[index].reason);
        }
    }
    None
}

impl Shape {
    fn is_in(&self, text: &[u8]) -> bool {
        let values = self.expression.get().captures_iter(text).filter_map(|captures| captures.get(1));
        values.into_iter().any(|value| !looks_made_up(value.as_bytes()))
    }

    fn all_in(&self, text: &[u8]) -> Vec<Shaped> {
        let values = self.expression.get().captures_iter(text).filter_map(|captures| captures.get(1));
        let real = values.filter(|value| !looks_made_up(value.as_bytes()));
        let whole = |end| if LONG.contains(&self.name) { end_of_key(text, end) } else { end };
        real.map(|value| Shaped { name: self.name, range: value.start()..whole(value.end()) }).collect()
    }
}

impl Shapes {
    /// Reads the list. It is part of the program: a line that cannot be read is a mistake of ours, which a test finds.
    fn parse(text: &'static str) -> Self {
        let mut keywords = Vec::new();
        let mut shapes = Vec::new();
        for line in crate::list::lines(text) {
            let [name, keyword, expression] = line.fields.as_slice() else { continue };
            keywords.push(keyword.replace("\\x20", " "));
            shapes.push(Shape { name, expression: Expression::new(expression), reason: line.reason });
        }
        let keywords = AhoCorasick::builder().ascii_case_insensitive(true).build(keywords);
        let keywords = keywords.unwrap_or_else(|_| unreachable!("a few dozen short keywords"));
        Self { keywords, shapes }
    }
}

/// Returns where the digits of a key end that are parted by line breaks, also by those that are written as `\n`.
fn end_of_key(text: &[u8], mut at: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\\');
    let is_blank = |byte: &u8| matches!(byte, b'\n' | b'\r' | b' ' | b'\t');
    while let Some(byte) = text.get(at) {
        // A blank belongs to it as far as something of it follows.
        let next = text[at..].iter().position(|byte| !is_blank(byte)).map(|blanks| at + blanks);
        match next {
            Some(next) if is_part(byte) || is_part(&text[next]) => at = next + 1,
            _ => break,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_and_has_a_reason() {
        let written = LIST.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        assert_eq!(SHAPES.shapes.len(), written);
        for shape in &SHAPES.shapes {
            let expression = shape.expression.get();
            assert!(!shape.reason.is_empty(), "{expression}");
            assert_eq!(expression.captures_len(), 2, "{expression} catches one group");
        }
    }
}
