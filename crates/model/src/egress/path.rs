//! Paths of HTTP requests, and patterns of them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest path that is looked at, in bytes.
const PATH_MAX: usize = 8192;
/// What stands in a segment as it is, beside letters and digits (RFC 3986, section 3.3, without `;`).
const PLAIN: &[u8] = b"-._~!$&'()*+,=:@";

/// The path of a request that everybody reads in the same way: its segments, with their escapes undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath(Vec<Vec<u8>>);

/// Says why a path is not looked at: the server may read another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestPathError {
    /// It does not begin with a slash.
    #[error("the path does not begin with `/`")]
    Relative,
    /// It is longer than anything that is looked at.
    #[error("the path has more than {PATH_MAX} bytes")]
    Long,
    /// An escape that is none.
    #[error("the path has a `%` without two hexadecimal digits after it")]
    Escape,
    /// `.`, `..` or nothing between two slashes, also as an escape.
    #[error("the path has a `.`, `..` or empty segment, which servers read in different ways")]
    Segment,
    /// A slash, backslash, percent sign, NUL or another control character as an escape, or such a letter as it is.
    #[error(
        "the path has an escaped or bare separator or control character, which servers read in different ways"
    )]
    Separator,
}

impl RequestPath {
    /// Parses the path of a request, up to a `?`.
    ///
    /// # Errors
    /// When servers differ in how they read it.
    pub fn parse(target: &[u8]) -> Result<Self, RequestPathError> {
        let end = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
        let path = &target[..end];
        if path.len() > PATH_MAX {
            return Err(RequestPathError::Long);
        }
        let rest = path.strip_prefix(b"/").ok_or(RequestPathError::Relative)?;
        let segments = rest.split(|byte| *byte == b'/').map(unescaped).collect::<Result<Vec<_>, _>>()?;
        let last = segments.len() - 1;
        let unclear = |(at, segment): (usize, &Vec<u8>)| {
            matches!(segment.as_slice(), b"." | b"..") || (segment.is_empty() && at != last)
        };
        if segments.iter().enumerate().any(unclear) {
            return Err(RequestPathError::Segment);
        }
        Ok(Self(segments))
    }

    /// Returns its segments, with their escapes undone; nothing when they are not text.
    pub fn segments(&self) -> Option<Vec<&str>> {
        self.0.iter().map(|segment| std::str::from_utf8(segment).ok()).collect()
    }
}

fn unescaped(segment: &[u8]) -> Result<Vec<u8>, RequestPathError> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment;
    while let [first, after @ ..] = rest {
        rest = after;
        let byte = if *first == b'%' {
            let [high, low, after @ ..] = rest else { return Err(RequestPathError::Escape) };
            rest = after;
            digit(*high)? << 4 | digit(*low)?
        } else {
            *first
        };
        let escaped = *first == b'%';
        // A parameter (`;`) is dropped by some servers before they look at the segment.
        if byte.is_ascii_control()
            || byte == b'\\'
            || byte == b'#'
            || byte == b';'
            || (escaped && b"/%?".contains(&byte))
        {
            return Err(RequestPathError::Separator);
        }
        bytes.push(byte);
    }
    Ok(bytes)
}

fn digit(letter: u8) -> Result<u8, RequestPathError> {
    let value = (letter as char).to_digit(16).ok_or(RequestPathError::Escape)?;
    u8::try_from(value).map_err(|_| RequestPathError::Escape)
}

/// Which paths a rule is about: `/` and segments, of which `*` is any one, and a last `**` any number, also none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern {
    segments: Vec<String>,
    any_below: bool,
}

impl PathPattern {
    /// Tells whether it is about this path.
    pub fn matches(&self, path: &RequestPath) -> bool {
        let fits = |(own, other): (&String, &Vec<u8>)| own == "*" || own.as_bytes() == other.as_slice();
        let long_enough = match self.any_below {
            true => path.0.len() >= self.segments.len(),
            false => path.0.len() == self.segments.len(),
        };
        long_enough && self.segments.iter().zip(&path.0).all(fits)
    }

    /// Tells whether every path of the other one is one of this.
    pub fn covers(&self, other: &Self) -> bool {
        let enough = match (self.any_below, other.any_below) {
            (true, _) => other.segments.len() >= self.segments.len(),
            (false, true) => false,
            (false, false) => other.segments.len() == self.segments.len(),
        };
        enough && self.segments.iter().zip(&other.segments).all(|(own, other)| own == "*" || own == other)
    }
}

impl FromStr for PathPattern {
    type Err = RequestPathError;

    fn from_str(text: &str) -> Result<Self, RequestPathError> {
        let parsed = RequestPath::parse(text.as_bytes())?;
        if text.contains('?') {
            return Err(RequestPathError::Separator);
        }
        let mut segments = parsed
            .0
            .into_iter()
            .map(|segment| String::from_utf8(segment).map_err(|_| RequestPathError::Escape))
            .collect::<Result<Vec<_>, _>>()?;
        let any_below = segments.last().is_some_and(|last| last == "**");
        if any_below {
            segments.pop();
        }
        let stray = |segment: &String| segment.contains('*') && segment != "*";
        if segments.iter().any(stray) {
            return Err(RequestPathError::Segment);
        }
        Ok(Self { segments, any_below })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            f.write_str("/")?;
            segment.bytes().try_for_each(|byte| match byte {
                byte if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) => {
                    write!(f, "{}", byte as char)
                }
                byte => write!(f, "%{byte:02X}"),
            })?;
        }
        f.write_str(if self.any_below { "/**" } else { "" })
    }
}

impl TryFrom<String> for PathPattern {
    type Error = RequestPathError;

    fn try_from(text: String) -> Result<Self, RequestPathError> {
        text.parse()
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let pattern: PathPattern = pattern.parse().expect("a pattern");
        RequestPath::parse(path.as_bytes()).is_ok_and(|path| pattern.matches(&path))
    }

    #[test]
    fn a_pattern_matches_segment_by_segment() {
        assert!(matches("/v1/*", "/v1/users") && matches("/v1/**", "/v1/a/b") && matches("/v1/**", "/v1"));
        assert!(matches("/a b", "/a%20b") && matches("/x", "/%78") && matches("/x", "/x?y=/../z"));
        assert!(matches("/", "/") && matches("/**", "/") && matches("/repo/", "/repo/"));
        assert!(!matches("/v1/*", "/v1/a/b") && !matches("/v1/**", "/v10") && !matches("/repo", "/repo/"));
    }

    #[test]
    fn what_servers_read_in_different_ways_matches_nothing() {
        let unclear = [
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "/v1/.",
            "/v1//x",
            "/v1/%2fx",
            "/v1/%5cx",
            "/v1/\\x",
            "/v1/%00",
            "/v1/%252e",
            "/v1/x;y",
            "/v1/%3b",
            "/v1/%",
            "/v1/%g0",
            "v1",
            "",
            "/v1/x#y",
            "/v1/\nx",
            "*",
        ];
        assert_eq!(unclear.into_iter().find(|path| matches("/**", path)), None);
    }

    #[test]
    fn patterns_read_back_and_odd_ones_are_refused() {
        for text in ["/", "/**", "/v1/*/x", "/a%20b/**", "/repo/"] {
            let pattern: PathPattern = text.parse().expect("a pattern");
            assert_eq!(pattern, pattern.to_string().parse().expect("reads back"), "{text}");
        }
        for text in ["/a*", "/**/x", "/../x", "x", "/x?y", ""] {
            assert!(text.parse::<PathPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |wide: &str, narrow: &str| {
            wide.parse::<PathPattern>().expect("a pattern").covers(&narrow.parse().expect("a pattern"))
        };
        assert!(
            covers("/**", "/a/b") && covers("/a/*", "/a/b") && covers("/a/**", "/a/*") && covers("/a", "/a")
        );
        assert!(!covers("/a/b", "/a/*") && !covers("/a/*", "/a/**") && !covers("/a/**", "/**"));
    }
}
