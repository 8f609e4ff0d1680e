//! Names of hosts, and patterns of them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::escape;

/// The longest name of a host, in bytes (RFC 1035, section 2.3.4, without the length bytes).
const NAME_MAX: usize = 253;
/// The longest label, in bytes (RFC 1035, section 2.3.4).
const LABEL_MAX: usize = 63;

/// The name of a host in small letters: labels of letters, digits, `-` and `_`, the last of which is no number.
///
/// A name that ends in a number is read as an address by many programs (WHATWG URL, "ends in a number"), so it is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Says why a text names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostNameError {
    /// It is empty, or too long.
    #[error("a host name has 1 to {NAME_MAX} bytes, and `{}` has {}", escape(.0), .0.len())]
    Length(String),
    /// A label is empty, or too long: also what a dot at the end makes.
    #[error("`{}` has a label of no or more than {LABEL_MAX} bytes between its dots", escape(.0))]
    Label(String),
    /// A letter that no host name has. Names in other scripts are written as they go over the wire, `xn--…`.
    #[error("`{}` has {} in it: host names are letters, digits, `-`, `_` and dots, others are written as `xn--…`", escape(.0), escape(&.1.to_string()))]
    Letter(String, char),
    /// Programs would read it as an address.
    #[error("`{}` ends in a number, so programs read it as an address", escape(.0))]
    Number(String),
}

impl HostName {
    /// Parses a name, with its letters made small.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        let name = text.to_ascii_lowercase();
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(HostNameError::Length(name));
        }
        let foreign = |letter: &char| !letter.is_ascii_alphanumeric() && !"-_.".contains(*letter);
        if let Some(letter) = name.chars().find(foreign) {
            return Err(HostNameError::Letter(name, letter));
        }
        if name.split('.').any(|label| label.is_empty() || label.len() > LABEL_MAX) {
            return Err(HostNameError::Label(name));
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostNameError::Number(name));
        }
        Ok(Self(name))
    }

    /// Returns the name in small letters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Tells whether a label is a number to those who take addresses in other spellings: digits, or hexadecimal after `0x`.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x");
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostName {
    type Error = HostNameError;

    fn try_from(text: String) -> Result<Self, HostNameError> {
        Self::parse(&text)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

/// Which hosts a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// This name and no other.
    Name(HostName),
    /// Every name below this one, at any depth, and not the name itself: `*.example.com`.
    Below(HostName),
    /// This address, for who writes it as an address. It is the only way to reach one that is not public by itself.
    Address(IpAddr),
}

impl HostPattern {
    /// Tells whether it is about a host of this name.
    pub fn matches(&self, name: &HostName) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(above) => {
                name.0.strip_suffix(&above.0).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
            }
            Self::Address(_) => false,
        }
    }

    /// Tells whether every host of the other one is one of this.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(own), Self::Below(other)) => own == other || self.matches(other),
            (own, Self::Name(name)) => own.matches(name),
            (own, other) => own == other,
        }
    }
}

impl FromStr for HostPattern {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(address) = bare.parse() {
            return Ok(Self::Address(address));
        }
        match text.strip_prefix("*.") {
            Some(above) => HostName::parse(above).map(Self::Below),
            None => HostName::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Below(above) => write!(f, "*.{above}"),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = HostNameError;

    fn try_from(text: String) -> Result<Self, HostNameError> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let pattern: HostPattern = pattern.parse().expect("a pattern");
        HostName::parse(name).is_ok_and(|name| pattern.matches(&name))
    }

    #[test]
    fn names_are_compared_on_whole_labels() {
        assert!(matches("allowed.test", "allowed.test"));
        assert!(matches("allowed.test", "ALLOWED.Test"));
        let others = [
            "evilallowed.test",
            "x-allowed.test",
            "allowed.test.evil.test",
            "evil.test/allowed.test",
            "allowed.test-evil.test",
            "allowed.test.",
            "allowed.tes",
            "sub.allowed.test",
            "allowed.test:80",
            "user@allowed.test",
            "allowed.test\0.evil.test",
            "allowed%2etest",
            "аllowed.test",
        ];
        assert_eq!(others.into_iter().find(|name| matches("allowed.test", name)), None);
    }

    #[test]
    fn a_star_stands_for_labels_in_front_and_not_for_none() {
        assert!(matches("*.allowed.test", "a.allowed.test"));
        assert!(matches("*.allowed.test", "a.b.allowed.test"));
        for name in ["allowed.test", ".allowed.test", "xallowed.test", "a.allowed.test.evil"] {
            assert!(!matches("*.allowed.test", name), "{name}");
        }
    }

    #[test]
    fn what_programs_read_as_an_address_is_no_name() {
        for text in ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "a.0x", "1.2.3.4.5"] {
            assert!(HostName::parse(text).is_err(), "{text}");
        }
        for text in ["*", "*.", "*.*.test", "a.*.test", "a*.test", "", "a..b", " a.test", "a.test ", "[::1"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
        assert!(HostName::parse(&"a".repeat(64)).is_err());
        assert!(HostName::parse(&["a".repeat(63).as_str(); 4].join(".")).is_err());
    }

    #[test]
    fn patterns_read_back_as_they_are_written() {
        for text in ["a.test", "*.a.test", "192.0.2.1", "[2001:db8::1]", "localhost", "_srv.a.test"] {
            assert_eq!(text.parse::<HostPattern>().expect("a pattern").to_string(), text);
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let covers = |wide: &str, narrow: &str| {
            wide.parse::<HostPattern>().expect("a pattern").covers(&narrow.parse().expect("a pattern"))
        };
        assert!(
            covers("*.a.test", "x.a.test") && covers("*.a.test", "*.x.a.test") && covers("a.test", "a.test")
        );
        assert!(
            !covers("*.a.test", "a.test")
                && !covers("x.a.test", "*.a.test")
                && !covers("*.x.a.test", "*.a.test")
        );
        assert!(!covers("*.a.test", "192.0.2.1"));
    }
}
