//! Git's way of naming paths: literal prefixes, wildcards, and the magic words that change how they are read.
//!
//! Follows `gitglossary(7)`: without magic `*` also matches `/`; with `:(glob)` it does not and `**` does. Matching
//! takes time proportional to the pattern times the path, whatever either looks like.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::path::WorkspacePath;
use crate::text::escape;

/// Several pathspecs together: what one of them names and none of the excluding ones does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pathspecs {
    include: Vec<Item>,
    exclude: Vec<Item>,
}

/// Says why a text is not a pathspec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathspecError {
    /// A magic word that git does not have either, or that needs more than a path to decide.
    #[error("the pathspec `{}` has the magic `{}`: known here are top, literal, glob, icase and exclude", escape(.pathspec), escape(.word))]
    Magic {
        /// The pathspec.
        pathspec: String,
        /// The word.
        word: String,
    },
    /// Magic words without an end.
    #[error("the pathspec `{}` starts magic words with `:(` and does not end them", escape(.0))]
    Unclosed(String),
    /// Both at once make no sense.
    #[error("the pathspec `{}` cannot be literal and have wildcards (glob) at once", escape(.0))]
    LiteralGlob(String),
    /// The path climbs out.
    #[error("the pathspec `{}` is outside the workspace", escape(.0))]
    Outside(String),
}

/// One pathspec.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    /// The pattern as bytes, from the top of the workspace.
    pattern: Vec<u8>,
    /// The pattern where it has wildcards.
    tokens: Option<Vec<Token>>,
    ignore_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Magic {
    top: bool,
    literal: bool,
    glob: bool,
    ignore_case: bool,
    exclude: bool,
}

impl Pathspecs {
    /// Reads pathspecs. Those without `top` magic start at `below`, the directory where the person stands.
    ///
    /// # Errors
    /// When one has unknown magic or leaves the workspace.
    pub fn parse<S: AsRef<OsStr>>(given: &[S], below: Option<&WorkspacePath>) -> Result<Self, PathspecError> {
        let mut pathspecs = Self::default();
        for text in given {
            let (magic, item) = Item::parse(text.as_ref(), below)?;
            if magic.exclude { pathspecs.exclude.push(item) } else { pathspecs.include.push(item) }
        }
        Ok(pathspecs)
    }

    /// Tells whether nothing was named, so that everything is meant.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Tells whether a path is named: itself, or as something in a directory that is.
    pub fn matches(&self, path: &WorkspacePath) -> bool {
        let named = self.include.is_empty() || self.include.iter().any(|item| item.matches(path.as_bytes()));
        named && !self.exclude.iter().any(|item| item.matches(path.as_bytes()))
    }
}

impl Item {
    fn parse(text: &OsStr, below: Option<&WorkspacePath>) -> Result<(Magic, Self), PathspecError> {
        let (magic, pattern) = magic(text.as_bytes())?;
        if magic.literal && magic.glob {
            return Err(PathspecError::LiteralGlob(shown(text.as_bytes())));
        }
        let start = below.filter(|_| !magic.top).map_or(&[][..], WorkspacePath::as_bytes);
        let pattern = joined(start, pattern).ok_or_else(|| PathspecError::Outside(shown(text.as_bytes())))?;
        let wild = !magic.literal && pattern.iter().any(|byte| b"*?[\\".contains(byte));
        let tokens = wild.then(|| tokens(&pattern, magic.glob));
        Ok((magic, Self { pattern, tokens, ignore_case: magic.ignore_case }))
    }

    fn matches(&self, path: &[u8]) -> bool {
        let same = |one: &[u8], two: &[u8]| {
            if self.ignore_case { one.eq_ignore_ascii_case(two) } else { one == two }
        };
        let pattern = self.pattern.strip_suffix(b"/").unwrap_or(&self.pattern);
        let is_in = path.len() > pattern.len()
            && path[pattern.len()] == b'/'
            && same(&path[..pattern.len()], pattern);
        let only_in = self.pattern.ends_with(b"/");
        if self.pattern.is_empty() || is_in || (!only_in && same(path, pattern)) {
            return true;
        }
        self.tokens.as_ref().is_some_and(|tokens| wild_match(tokens, path, self.ignore_case))
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Splits the magic words off a pathspec.
fn magic(text: &[u8]) -> Result<(Magic, &[u8]), PathspecError> {
    let mut magic = Magic::default();
    if let Some(rest) = text.strip_prefix(b":(") {
        let end =
            rest.iter().position(|byte| *byte == b')').ok_or_else(|| PathspecError::Unclosed(shown(text)))?;
        for word in rest[..end].split(|byte| *byte == b',').filter(|word| !word.is_empty()) {
            match word {
                b"top" => magic.top = true,
                b"literal" => magic.literal = true,
                b"glob" => magic.glob = true,
                b"icase" => magic.ignore_case = true,
                b"exclude" => magic.exclude = true,
                _ => return Err(PathspecError::Magic { pathspec: shown(text), word: shown(word) }),
            }
        }
        return Ok((magic, &rest[end + 1..]));
    }
    let Some(mut rest) = text.strip_prefix(b":") else { return Ok((magic, text)) };
    while let Some((byte, more)) = rest.split_first() {
        match byte {
            b'/' => magic.top = true,
            b'!' | b'^' => magic.exclude = true,
            b':' => return Ok((magic, more)),
            // Other marks are kept free by git for magic to come; what is no mark starts the pattern.
            b'*' | b'?' | b'[' | b'\\' | b'.' | b'_' | b'-' => break,
            byte if byte.is_ascii_punctuation() => {
                return Err(PathspecError::Magic { pathspec: shown(text), word: shown(&[*byte]) });
            }
            _ => break,
        }
        rest = more;
    }
    Ok((magic, rest))
}

/// Puts a pattern behind the directory that it starts in, without `.` and `..`.
fn joined(start: &[u8], pattern: &[u8]) -> Option<Vec<u8>> {
    let mut parts: Vec<&[u8]> = start.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    if pattern.starts_with(b"/") {
        return None;
    }
    for part in pattern.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let mut joined = parts.join(&b'/');
    if pattern.ends_with(b"/") && !joined.is_empty() {
        joined.push(b'/');
    }
    Some(joined)
}

/// One step of a pattern with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// One byte; not `/` when `false`.
    Any(bool),
    /// One byte of a set, or not of it.
    Set { ranges: Vec<(u8, u8)>, negated: bool, slash: bool },
    /// Any number of bytes; not `/` when `false`.
    Many(bool),
    /// Nothing, or directories with the slash behind them.
    Directories,
}

/// Reads a pattern with wildcards; `glob` keeps `*`, `?` and sets from matching `/`, and gives `**` its meaning.
fn tokens(pattern: &[u8], glob: bool) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < pattern.len() {
        let starts_part = at == 0 || pattern[at - 1] == b'/';
        match pattern[at] {
            b'*' if glob && starts_part && pattern[at..].starts_with(b"**/") => {
                tokens.push(Token::Directories);
                at += 3;
                continue;
            }
            b'*' => {
                let stars = pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                let all = glob && starts_part && stars == 2 && at + 2 == pattern.len();
                if all {
                    tokens.push(Token::Any(true)); // `dir/**` is everything in it, and not the directory itself.
                }
                tokens.push(Token::Many(!glob || all));
                at += stars;
                continue;
            }
            b'?' => tokens.push(Token::Any(!glob)),
            b'[' => {
                if let Some((set, length)) = set(&pattern[at..], !glob) {
                    tokens.push(set);
                    at += length;
                    continue;
                }
                tokens.push(Token::Byte(b'['));
            }
            b'\\' if at + 1 < pattern.len() => {
                at += 1;
                tokens.push(Token::Byte(pattern[at]));
            }
            byte => tokens.push(Token::Byte(byte)),
        }
        at += 1;
    }
    tokens
}

/// Reads a set such as `[a-z]`, `[!0-9]` or `[[:alpha:]_]`, and returns how many bytes it takes; nothing when it has no end.
fn set(pattern: &[u8], slash: bool) -> Option<(Token, usize)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let (mut at, mut ranges) = (first, Vec::new());
    loop {
        match *pattern.get(at)? {
            b']' if at > first => return Some((Token::Set { ranges, negated, slash }, at + 1)),
            b'[' if pattern[at..].starts_with(b"[:") => {
                // As in git's `wildmatch`: without a `:` before the next bracket, this one is a byte like others.
                let name = &pattern[at + 2..];
                let close = name.iter().position(|byte| *byte == b']')?;
                if let Some(name) = name[..close].strip_suffix(b":") {
                    ranges.extend_from_slice(class(name)?);
                    at += close + 3;
                } else {
                    ranges.push((b'[', b'['));
                    at += 1;
                }
            }
            mut low => {
                if low == b'\\' {
                    at += 1;
                    low = *pattern.get(at)?;
                }
                let range = matches!((pattern.get(at + 1), pattern.get(at + 2)), (Some(b'-'), Some(end)) if *end != b']');
                let high = if range { pattern[at + 2] } else { low };
                ranges.push((low, high));
                at += if range { 3 } else { 1 };
            }
        }
    }
}

fn class(name: &[u8]) -> Option<&'static [(u8, u8)]> {
    Some(match name {
        b"alpha" => &[(b'a', b'z'), (b'A', b'Z')],
        b"alnum" => &[(b'a', b'z'), (b'A', b'Z'), (b'0', b'9')],
        b"digit" => &[(b'0', b'9')],
        b"xdigit" => &[(b'0', b'9'), (b'a', b'f'), (b'A', b'F')],
        b"lower" => &[(b'a', b'z')],
        b"upper" => &[(b'A', b'Z')],
        b"space" => &[(b'\t', b'\r'), (b' ', b' ')],
        b"blank" => &[(b'\t', b'\t'), (b' ', b' ')],
        b"punct" => &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')],
        _ => return None,
    })
}

impl Token {
    /// Tells whether this step can take one byte and be done with it.
    fn takes(&self, byte: u8, ignore_case: bool) -> bool {
        match self {
            Self::Byte(own) if ignore_case => own.eq_ignore_ascii_case(&byte),
            Self::Byte(own) => *own == byte,
            Self::Any(slash) => *slash || byte != b'/',
            Self::Set { ranges, negated, slash } => {
                let in_set = |byte: u8| ranges.iter().any(|(low, high)| (*low..=*high).contains(&byte));
                let cased =
                    ignore_case && (in_set(byte.to_ascii_lowercase()) || in_set(byte.to_ascii_uppercase()));
                (*slash || byte != b'/') && (in_set(byte) || cased) != *negated
            }
            Self::Many(_) | Self::Directories => false,
        }
    }
}

/// Matches a whole path, keeping the set of places in the pattern that can have been reached: no backtracking.
fn wild_match(tokens: &[Token], path: &[u8], ignore_case: bool) -> bool {
    let mut reached = vec![false; tokens.len() + 1];
    reached[0] = true;
    skip_optional(tokens, &mut reached, true);
    for (at, byte) in path.iter().enumerate() {
        let mut next = vec![false; tokens.len() + 1];
        for (place, token) in tokens.iter().enumerate().filter(|(place, _)| reached[*place]) {
            match token {
                Token::Many(slash) => next[place] |= *slash || *byte != b'/',
                // It stays until a slash ends a directory, and may go on after each.
                Token::Directories => next[place] = true,
                token => next[place + 1] |= token.takes(*byte, ignore_case),
            }
        }
        reached = next;
        skip_optional(tokens, &mut reached, path.get(at) == Some(&b'/'));
    }
    reached[tokens.len()]
}

/// Goes on past steps that may take nothing: any number of bytes, and directories when a part of the path starts here.
fn skip_optional(tokens: &[Token], reached: &mut [bool], starts_part: bool) {
    for (place, token) in tokens.iter().enumerate() {
        let skips = matches!(token, Token::Many(_)) || (starts_part && *token == Token::Directories);
        if reached[place] && skips {
            reached[place + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pathspecs: &[&str], path: &str) -> bool {
        let pathspecs = Pathspecs::parse(pathspecs, None).expect("are pathspecs");
        pathspecs.matches(&WorkspacePath::parse(path).expect("inside"))
    }

    #[test]
    fn a_name_is_itself_and_all_that_is_in_it() {
        assert!(
            matches(&["src"], "src") && matches(&["src"], "src/a/b.rs") && matches(&["src/a"], "src/a/b.rs")
        );
        assert!(
            !matches(&["src"], "srcs")
                && !matches(&["src"], "lib/src")
                && !matches(&["src/a.rs"], "src/a.rss")
        );
        assert!(matches(&["src/"], "src/x") && !matches(&["src/"], "src"));
        assert!(
            matches(&["."], "anything/at/all") && matches(&[""], "x") && matches(&["./src/../src"], "src/x")
        );
    }

    #[test]
    fn wildcards_without_magic_match_slashes_too() {
        assert!(
            matches(&["*.rs"], "a.rs")
                && matches(&["*.rs"], "src/deep/a.rs")
                && matches(&["s*c/*"], "src/a/b")
        );
        assert!(matches(&["src/?.rs"], "src/a.rs") && !matches(&["src/?.rs"], "src/ab.rs"));
        assert!(matches(&["[a-c]*"], "bx") && !matches(&["[!a-c]*"], "bx") && matches(&["[[:digit:]]"], "7"));
        assert!(matches(&["a\\*b"], "a*b") && !matches(&["a\\*b"], "axb"));
        assert!(matches(&["[[:]x"], "[x") && matches(&["[[:]x"], ":x") && !matches(&["[[:]x"], "ax"));
        assert!(matches(&["[x"], "[x") && matches(&["a[]]"], "a]") && matches(&["[a\\]]"], "]"));
    }

    #[test]
    fn glob_magic_keeps_to_directories() {
        let glob = |pattern: &str, path: &str| matches(&[&format!(":(glob){pattern}")], path);
        assert!(
            glob("*.rs", "a.rs") && !glob("*.rs", "src/a.rs") && !glob("a?b", "a/b") && !glob("a[/]b", "a/b")
        );
        assert!(glob("**/a.rs", "a.rs") && glob("**/a.rs", "x/y/a.rs") && !glob("**/a.rs", "x/ba.rs"));
        assert!(glob("src/**/a", "src/a") && glob("src/**/a", "src/x/y/a") && !glob("src/**/a", "src/xa"));
        assert!(
            glob("src/**", "src/a/b")
                && !glob("src/**", "src")
                && !glob("a**b", "a/b")
                && glob("a**b", "axxb")
        );
    }

    #[test]
    fn magic_words_change_how_a_pattern_is_read() {
        assert!(matches(&[":(literal)a*"], "a*") && !matches(&[":(literal)a*"], "ab"));
        assert!(matches(&[":(icase)SRC/*.RS"], "src/a.rs") && matches(&[":(icase)[a]B"], "Ab"));
        assert!(matches(&[":(exclude)target"], "src/x") && !matches(&[":!target"], "target/x"));
        assert!(matches(&["src", ":^src/gen"], "src/a") && !matches(&["src", ":^src/gen"], "src/gen/a"));
        assert!(matches(&[":(glob,icase)A*"], "ab") && matches(&["::a"], "a") && matches(&[":/a"], "a"));
    }

    #[test]
    fn a_pathspec_starts_where_the_person_stands_unless_it_says_top() {
        let below = WorkspacePath::parse("crates/x").expect("inside");
        let matches = |pathspec: &str, path: &str| {
            let pathspecs = Pathspecs::parse(&[pathspec], Some(&below)).expect("is one");
            pathspecs.matches(&WorkspacePath::parse(path).expect("inside"))
        };
        assert!(matches("src", "crates/x/src/a") && !matches("src", "src/a"));
        assert!(
            matches(":/src", "src/a") && matches("../y", "crates/y/a") && matches(":!src", "crates/x/lib")
        );
        assert!(Pathspecs::parse(&["../../../x"], Some(&below)).is_err());
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for wrong in [":(attr:x)a", ":(top", ":(literal,glob)a", "/etc/passwd", "..", ":%a"] {
            assert!(Pathspecs::parse(&[wrong], None).is_err(), "{wrong}");
        }
        assert!(Pathspecs::parse::<&str>(&[], None).expect("is none").is_empty());
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = format!("{}b", "*a".repeat(200));
        assert!(!matches(&[&pattern], &"a".repeat(4000)));
    }
}
