//! What a file's content shows, by shapes that services give to their keys.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;

use super::judge::looks_made_up;

pub(super) const LIST: &str = include_str!("../../data/credential-contents.txt");

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::parse(LIST));

struct Shape {
    expression: Regex,
    reason: &'static str,
}

struct Shapes {
    keywords: AhoCorasick,
    shapes: Vec<Shape>,
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
        let values = self.expression.captures_iter(text).filter_map(|captures| captures.get(1));
        values.into_iter().any(|value| !looks_made_up(value.as_bytes()))
    }
}

impl Shapes {
    /// Reads the list. It is part of the program: a line that cannot be read is a mistake of ours, which a test finds.
    fn parse(text: &'static str) -> Self {
        let mut keywords = Vec::new();
        let mut shapes = Vec::new();
        for line in crate::list::lines(text) {
            let [_name, keyword, expression] = line.fields.as_slice() else { continue };
            let Ok(expression) = Regex::new(expression) else { continue };
            keywords.push(keyword.replace("\\x20", " "));
            shapes.push(Shape { expression, reason: line.reason });
        }
        let keywords = AhoCorasick::builder().ascii_case_insensitive(true).build(keywords);
        let keywords = keywords.unwrap_or_else(|_| unreachable!("a few dozen short keywords"));
        Self { keywords, shapes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_understood_and_has_a_reason() {
        let written = LIST.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        assert_eq!(SHAPES.shapes.len(), written);
        for shape in &SHAPES.shapes {
            assert!(!shape.reason.is_empty(), "{}", shape.expression);
            assert_eq!(shape.expression.captures_len(), 2, "{} catches one group", shape.expression);
        }
    }
}
