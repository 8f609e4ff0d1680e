//! Patterns of our lists.

use std::collections::HashMap;

use model::WorkspacePath;

use super::fold::folded_names;

/// One or more names, each with `*` for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    written: String,
    names: Vec<String>,
    at_top: bool,
}

impl Pattern {
    /// Reads a pattern; `/` in front ties it to the top.
    pub(crate) fn parse(written: &str) -> Self {
        let names = written.trim_matches('/').split('/').map(str::to_owned).collect();
        Self { written: written.to_owned(), names, at_top: written.starts_with('/') }
    }

    /// Makes a pattern for one directory, whatever characters are in its name.
    pub(crate) fn of_path(path: &WorkspacePath) -> Self {
        Self { written: path.to_string(), names: folded_names(path.as_bytes()), at_top: true }
    }

    /// Returns the pattern as it is written.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// Tells whether the pattern matches folded names of a path where they end.
    fn matches_end_of(&self, path: &[String]) -> bool {
        let Some(start) = path.len().checked_sub(self.names.len()) else { return false };
        let matches = |(pattern, name): (&String, &String)| matches_folded(pattern, name);
        (start == 0 || !self.at_top) && self.names.iter().zip(&path[start..]).all(matches)
    }
}

/// Many patterns, arranged so that a name is compared with few of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patterns {
    all: Vec<Pattern>,
    by_last_name: HashMap<String, Vec<usize>>,
    with_star: Vec<usize>,
}

impl Patterns {
    /// Adds one; patterns are known by their place in the order in which they were added.
    pub(crate) fn push(&mut self, pattern: Pattern) {
        let index = self.all.len();
        match pattern.names.last().filter(|name| !name.contains('*')) {
            Some(name) => self.by_last_name.entry(name.clone()).or_default().push(index),
            None => self.with_star.push(index),
        }
        self.all.push(pattern);
    }

    /// Returns a pattern by its place.
    pub(crate) fn get(&self, index: usize) -> &Pattern {
        &self.all[index]
    }

    /// Returns the places of the patterns that match folded names of a path where they end, in no order.
    pub(crate) fn matching_end_of(&self, path: &[String]) -> Vec<usize> {
        let Some(name) = path.last() else { return Vec::new() };
        let matches = |index: &usize| self.all[*index].matches_end_of(path);
        // A short name may stand for any long one.
        if name.contains('~') {
            return (0..self.all.len()).filter(matches).collect();
        }
        let literal = self.by_last_name.get(name).into_iter().flatten();
        literal.chain(&self.with_star).copied().filter(matches).collect()
    }
}

/// Tells whether a folded name matches a pattern of one name.
fn matches_folded(pattern: &str, name: &str) -> bool {
    wildcard(pattern.as_bytes(), name.as_bytes()) || (name.contains('~') && is_short_name_of(pattern, name))
}

/// Tells whether a name is the short form (`GITHUB~1`) that Windows gives to a long name such as `.github`.
fn is_short_name_of(pattern: &str, name: &str) -> bool {
    let Some((stem, number)) = name.split_once('~') else { return false };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    let mut long = pattern.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_');
    is_number && !pattern.contains('*') && stem.len() >= 3 && stem.chars().all(|c| long.next() == Some(c))
}

/// Matches `*` against any characters; remembers the last star and tries again from there, so that time grows with
/// the product of the lengths at worst.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    // Nearly every name is told apart by its first or its last character.
    let differs = |p: Option<&u8>, n: Option<&u8>| p != Some(&b'*') && p != n;
    if differs(pattern.first(), name.first()) || differs(pattern.last(), name.last()) {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            p += 1;
            n += 1;
        } else if let Some((star, from)) = retry {
            retry = Some((star, from + 1));
            p = star + 1;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*_test.*", "a_test.go", true),
            ("*_test.*", "_test.", true),
            ("*_test.*", "a_test", false),
            ("*.t", "x.t", true),
            ("*.t", "x.ts", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(wildcard(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_cost_more_than_the_product_of_the_lengths() {
        let pattern = "*a".repeat(60);
        assert!(!wildcard(pattern.as_bytes(), "a".repeat(59).as_bytes()));
        assert!(!wildcard(format!("{pattern}b").as_bytes(), "a".repeat(250).as_bytes()));
    }
}
