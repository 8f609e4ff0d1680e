//! Credentials that stay outside: what the gateway of one action is told of them, and what it raises an alarm about.
//!
//! Guarantees: a value is in no other type than [`Secret`], which shows it to nobody; where it is put is parsed beforehand, so
//! that it never becomes part of what frames a request.
//! Leaves to others: which requests get one (`EgressRule::credential`), and having the value (`engine`).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::secret::Secret;
use crate::text::escape;

/// What stands in a template where the value comes.
const PLACE: &str = "{}";
/// Headers that frame a request or say whom it is for: a credential in one of them would be something else.
const FRAMING: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A credential, as the gateway of one action is given it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenCredential {
    /// Its name, as rules have it.
    pub name: String,
    /// The value.
    pub value: Secret,
    /// What the action has in its place: made up, and useless to everybody else.
    pub stand_in: Secret,
    /// Where it is put into requests.
    pub placement: Placement,
    /// Whether it may be put into requests in the clear.
    pub in_clear: bool,
}

/// A made-up credential that nothing takes. Who has seen it has looked for credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// The name of the variable that it is in.
    pub name: String,
    /// The value.
    pub value: Secret,
}

/// Where a credential is put into a request: `bearer`, `basic USER`, `header NAME[: TEMPLATE]` or `query NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Placement {
    /// `Authorization: Bearer …` (RFC 6750).
    Bearer,
    /// `Authorization: Basic …` (RFC 7617), as the password of this user.
    Basic {
        /// The user.
        user: String,
    },
    /// A header of its own.
    Header {
        /// Its name, in small letters.
        name: String,
        /// What stands in it; the value comes where `{}` is.
        template: String,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
    },
}

/// Says why a text names no place for a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// None of the four.
    #[error(
        "`{}` is no place in a request: write `bearer`, `basic USER`, `header NAME`, `header NAME: token {{}}` or `query NAME`",
        escape(.0)
    )]
    Kind(String),
    /// A header that cannot hold one.
    #[error("`{}` is no header for a credential", escape(.0))]
    Header(String),
    /// A template without one place for the value, or with signs that a header cannot have.
    #[error("`{}` does not have `{{}}` once, where the value comes, among plain signs", escape(.0))]
    Template(String),
    /// A name that a user or a parameter cannot have.
    #[error("`{}` is no name of a user or a parameter", escape(.0))]
    Name(String),
}

/// Something about credentials that a person should hear of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialAlert {
    /// What it is.
    pub kind: AlertKind,
    /// The credential, or the variable of a canary.
    pub credential: String,
    /// The host that was asked, as it was given, or the file; as foreign as all that comes from inside.
    pub host: String,
}

/// What a person should hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// A server sent the value back; it was made illegible.
    ValueCameBack,
    /// What stands for a credential was in something for another host; it was refused.
    StandInElsewhere,
    /// A canary was on its way out; it was refused.
    Canary,
    /// A canary was written to a file, which is held back.
    CanaryKept,
}

impl AlertKind {
    /// Returns the stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::ValueCameBack => "value-came-back",
            Self::StandInElsewhere => "stand-in-elsewhere",
            Self::Canary => "canary",
            Self::CanaryKept => "canary-kept",
        }
    }
}

impl fmt::Display for CredentialAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (credential, host) = (escape(&self.credential), escape(&self.host));
        match self.kind {
            AlertKind::ValueCameBack => {
                write!(
                    f,
                    "`{host}` sent the value of the credential `{credential}` back; it was made illegible"
                )
            }
            AlertKind::StandInElsewhere => {
                write!(
                    f,
                    "what stands for the credential `{credential}` was on its way to `{host}`; it was refused"
                )
            }
            AlertKind::CanaryKept => {
                write!(f, "the canary `{credential}` is in the file `{host}`, which is held back")
            }
            AlertKind::Canary => {
                write!(f, "the canary `{credential}` was on its way to `{host}`; it was refused")
            }
        }
    }
}

impl FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Self, PlacementError> {
        let (kind, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        match (kind, rest) {
            ("bearer", "") => Ok(Self::Bearer),
            ("basic", user) if !user.contains(':') && is_name(user) => {
                Ok(Self::Basic { user: user.to_owned() })
            }
            ("query", name) if is_name(name) => Ok(Self::Query { name: name.to_owned() }),
            ("basic" | "query", name) => Err(PlacementError::Name(name.to_owned())),
            ("header", header) => {
                let (name, template) = header.split_once(':').unwrap_or((header, PLACE));
                Self::header(name.trim(), template.trim())
            }
            _ => Err(PlacementError::Kind(text.to_owned())),
        }
    }
}

impl Placement {
    fn header(name: &str, template: &str) -> Result<Self, PlacementError> {
        // The signs of a token (RFC 9110, section 5.6.2).
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let name = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(fits) || FRAMING.contains(&name.as_str()) {
            return Err(PlacementError::Header(name));
        }
        let plain = template.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        if !plain || template.matches(PLACE).count() != 1 {
            return Err(PlacementError::Template(template.to_owned()));
        }
        Ok(Self::Header { name, template: template.to_owned() })
    }

    /// Returns what stands in its header with this value, where the template of it has its place.
    pub fn filled(template: &str, value: &str) -> String {
        template.replacen(PLACE, value, 1)
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Basic { user } => write!(f, "basic {user}"),
            Self::Header { name, template } if template == PLACE => write!(f, "header {name}"),
            Self::Header { name, template } => write!(f, "header {name}: {template}"),
            Self::Query { name } => write!(f, "query {name}"),
        }
    }
}

impl TryFrom<String> for Placement {
    type Error = PlacementError;

    fn try_from(text: String) -> Result<Self, PlacementError> {
        text.parse()
    }
}

impl From<Placement> for String {
    fn from(placement: Placement) -> Self {
        placement.to_string()
    }
}

/// Returns the names of the credentials that rules use.
pub fn credentials_of<'r>(rules: impl IntoIterator<Item = &'r super::EgressRule>) -> BTreeSet<String> {
    rules.into_iter().filter_map(|rule| rule.credential.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_as_they_are_written() {
        for text in [
            "bearer",
            "basic x-access-token",
            "header private-token",
            "header authorization: token {}",
            "query key",
        ] {
            assert_eq!(text.parse::<Placement>().map(|place| place.to_string()).as_deref(), Ok(text));
        }
        let header = Placement::Header { name: "x-key".to_owned(), template: "{}".to_owned() };
        assert_eq!(" header X-Key ".parse(), Ok(header));
    }

    #[test]
    fn no_place_is_one_that_frames_a_request() {
        for text in [
            "",
            "bearer x",
            "basic",
            "basic a:b",
            "basic a b",
            "header",
            "header Host",
            "header Content-Length",
            "header a b",
            "header x: {} {}",
            "header x: token",
            "header x: {}\r\nHost: y",
            "header x: ü{}",
            "query",
            "query a\tb",
            "cookie x",
        ] {
            assert!(text.parse::<Placement>().is_err(), "{text:?}");
        }
    }
}
