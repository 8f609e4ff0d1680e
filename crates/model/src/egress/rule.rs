//! Rules: one thing that an action may reach.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::{HostName, HostNameError, HostPattern};
use super::path::{PathPattern, RequestPath, RequestPathError};
use crate::text::escape;

/// The longest name of a method, in bytes. Registered ones have up to 17.
const METHOD_MAX: usize = 32;

/// One thing that an action may reach: `[METHOD,…] SCHEME://HOST[:PORT][/PATH]`.
///
/// What it does not name is not limited: without methods every method, without a path every path. A rule with methods, a
/// path, a credential or a registry is about what is in the connection, so the gateway has to look into it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    /// The hosts.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// What is spoken.
    pub protocol: Protocol,
    /// The methods of HTTP requests; all when there is none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub methods: BTreeSet<Method>,
    /// The paths of HTTP requests; all when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
    /// The name of the credential that the gateway puts into requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The name of the package registry that this is, whose rules hold for what is fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Networks that its names may resolve into though they are not public, such as `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub inside: BTreeSet<ipnet::IpNet>,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP over TLS, or anything else over TLS when the rule does not look inside.
    Https,
    /// HTTP in the clear.
    Http,
    /// Bytes that nobody looks at.
    Tcp,
}

/// The method of an HTTP request (RFC 9110, section 9), as it is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// Says why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// No scheme, or one that is not known.
    #[error(
        "`{}` does not begin with `https://`, `http://` or `tcp://`: write for example `https://example.com` or `GET https://example.com/v1/**`",
        escape(.0)
    )]
    Scheme(String),
    /// The host is none.
    #[error(transparent)]
    Host(#[from] HostNameError),
    /// No port, or one that is none.
    #[error("`{}` names no port from 1 to 65535; `tcp://` needs one", escape(.0))]
    Port(String),
    /// The path is none.
    #[error("the path of `{}`: {}", escape(.0), .1)]
    Path(String, RequestPathError),
    /// A method that is none.
    #[error("`{}` is no method: they are written like `GET` or `GET,HEAD`", escape(.0))]
    Method(String),
    /// Bytes that nobody looks at have no methods and paths.
    #[error("`{}` limits methods or paths, and what is spoken over `tcp://` is not looked at", escape(.0))]
    Tcp(String),
    /// Names and passwords do not belong there.
    #[error("`{}` has a user or password in it: name a credential instead", escape(.0))]
    User(String),
}

impl EgressRule {
    /// Tells whether the gateway has to look into a connection to know whether it is about it.
    pub fn looks_inside(&self) -> bool {
        !self.methods.is_empty()
            || self.path.is_some()
            || self.credential.is_some()
            || self.registry.is_some()
    }

    /// Tells whether it may lead to an address that is not public.
    pub fn is_inward(&self) -> bool {
        matches!(self.host, HostPattern::Address(_)) || !self.inside.is_empty()
    }

    /// Tells whether it is about connections to this host and port.
    pub fn reaches(&self, host: &HostName, port: u16) -> bool {
        self.port == port && self.host.matches(host)
    }

    /// Tells whether it is about a request with this method and path.
    pub fn takes(&self, method: &str, path: &RequestPath) -> bool {
        self.takes_method(method) && self.path.as_ref().is_none_or(|own| own.matches(path))
    }

    /// Tells whether it is about requests with this method.
    pub fn takes_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own.0 == method)
    }

    /// Tells whether all that the other one allows is allowed by this. One with a credential covers only what uses it, and one
    /// of a registry only what its rules hold for.
    pub fn covers(&self, other: &Self) -> bool {
        let methods =
            self.methods.is_empty() || (!other.methods.is_empty() && other.methods.is_subset(&self.methods));
        let path = match (&self.path, &other.path) {
            (None, _) => true,
            (Some(own), Some(other)) => own.covers(other),
            (Some(_), None) => false,
        };
        let inside = other.inside.iter().all(|net| self.inside.iter().any(|own| own.contains(net)));
        self.host.covers(&other.host)
            && (self.port, self.protocol) == (other.port, other.protocol)
            && (&self.credential, &self.registry) == (&other.credential, &other.registry)
            && methods
            && path
            && inside
    }
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Https, Self::Http, Self::Tcp];

    /// Returns the scheme of a rule.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Tcp => "tcp",
        }
    }

    /// Returns what is usually spoken at a port.
    pub fn usual_at(port: u16) -> Self {
        Self::ALL.into_iter().find(|protocol| protocol.port() == Some(port)).unwrap_or(Self::Tcp)
    }

    fn port(self) -> Option<u16> {
        match self {
            Self::Https => Some(443),
            Self::Http => Some(80),
            Self::Tcp => None,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl Method {
    /// Returns it as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Method {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let fits = |letter: u8| letter.is_ascii_uppercase() || letter == b'-';
        if text.is_empty() || text.len() > METHOD_MAX || !text.bytes().all(fits) {
            return Err(RuleError::Method(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Method {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.0
    }
}

impl FromStr for EgressRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let whole = || text.to_owned();
        let (methods, target) = text.trim().rsplit_once(' ').unwrap_or(("", text.trim()));
        let methods = match methods.trim() {
            "" => BTreeSet::new(),
            methods => methods.split(',').map(|method| method.trim().parse()).collect::<Result<_, _>>()?,
        };
        let (scheme, rest) = target.split_once("://").ok_or_else(|| RuleError::Scheme(whole()))?;
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.scheme() == scheme);
        let protocol = protocol.ok_or_else(|| RuleError::Scheme(whole()))?;
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => (rest, None),
        };
        if authority.contains('@') {
            return Err(RuleError::User(whole()));
        }
        let (host, port) = host_and_port(authority);
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0 && digits(authority)),
            None => protocol.port(),
        };
        let port = port.ok_or_else(|| RuleError::Port(whole()))?;
        let path = path.map(str::parse).transpose().map_err(|error| RuleError::Path(whole(), error))?;
        if protocol == Protocol::Tcp && (path.is_some() || !methods.is_empty()) {
            return Err(RuleError::Tcp(whole()));
        }
        Ok(Self {
            host: host.parse()?,
            port,
            protocol,
            methods,
            path,
            credential: None,
            registry: None,
            inside: BTreeSet::new(),
        })
    }
}

/// Takes the port off; an address with colons stands in brackets.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Tells whether what stands after the last colon has digits only: `u16` would also take a plus sign.
fn digits(authority: &str) -> bool {
    authority.rsplit(':').next().is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        if !methods.is_empty() {
            write!(f, "{} ", methods.join(","))?;
        }
        write!(f, "{}://{}", self.protocol, self.host)?;
        if self.protocol.port() != Some(self.port) {
            write!(f, ":{}", self.port)?;
        }
        self.path.as_ref().map_or(Ok(()), |path| path.fmt(f))?;
        let beside = [("with", &self.credential), ("as", &self.registry)];
        let named = beside.into_iter().filter_map(|(word, name)| Some((word, name.as_ref()?)));
        for (word, name) in named {
            write!(f, " {word} {}", escape(name))?;
        }
        let inside: Vec<String> = self.inside.iter().map(ToString::to_string).collect();
        if inside.is_empty() { Ok(()) } else { write!(f, " in {}", inside.join(",")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> EgressRule {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn rules_read_back_as_they_are_written() {
        let texts = [
            "https://example.com",
            "https://*.example.com:8443",
            "GET,HEAD https://example.com/v1/**",
            "http://example.com/",
            "tcp://db.example.com:5432",
            "tcp://[2001:db8::1]:22",
            "https://192.0.2.1",
        ];
        for text in texts {
            assert_eq!(rule(text).to_string(), text);
        }
        assert_eq!(rule("HEAD, GET https://example.com:443").to_string(), "GET,HEAD https://example.com");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let texts = [
            "",
            "example.com",
            "ftp://example.com",
            "tcp://example.com",
            "https://",
            "https://example.com:0",
            "https://example.com:65536",
            "https://example.com:+443",
            "https://example.com:",
            "get https://example.com",
            "GET tcp://example.com:1",
            "tcp://example.com:1/x",
            "https://user@example.com",
            "https://127.1",
            "https://example.com/../x",
            "GET,, https://example.com",
            "https://exa mple.com",
            "https://a.test/x?y",
        ];
        for text in texts {
            assert!(text.parse::<EgressRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_covers_what_it_allows_and_no_more() {
        let covers = |wide: &str, narrow: &str| rule(wide).covers(&rule(narrow));
        assert!(covers("https://a.test", "GET https://a.test/x"));
        assert!(covers("GET,HEAD https://a.test/x/**", "GET https://a.test/x/y"));
        for (wide, narrow) in [
            ("GET https://a.test", "https://a.test"),
            ("https://a.test/x", "https://a.test"),
            ("https://a.test", "http://a.test:443"),
            ("https://a.test", "https://a.test:444"),
            ("https://a.test", "https://b.test"),
        ] {
            assert!(!covers(wide, narrow), "{wide} covers {narrow}");
        }
        let with = EgressRule { credential: Some("c".to_owned()), ..rule("https://a.test") };
        assert!(!rule("https://a.test").covers(&with) && !with.covers(&rule("https://a.test")));
        let inward = EgressRule {
            inside: BTreeSet::from(["10.0.0.0/8".parse().expect("a network")]),
            ..rule("https://a.test")
        };
        assert!(!rule("https://a.test").covers(&inward) && inward.covers(&rule("https://a.test")));
    }
}
