//! Deciding: what the rules of an action say about a name, a connection or a request.
//!
//! Guarantees: pure, and the same at every door; nothing is reached that no rule names, and a refusal says which rule would be
//! needed.

use std::net::IpAddr;
use std::sync::Arc;

use model::egress::{EgressRule, HostName, HostPattern, Protocol};

use crate::credentials::Credentials;
use crate::http::Host;
use crate::refusal::Refusal;

/// The rules of one action.
#[derive(Clone, Default)]
pub struct Rules {
    rules: Vec<EgressRule>,
    /// What must not go out as a name either.
    credentials: Arc<Credentials>,
}

/// Reads what stands for a host in an address: a name, or an address as the kernel writes it. Other spellings of addresses are
/// neither.
pub(crate) fn host(text: &str) -> Option<Host> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare.unwrap_or(text).parse() {
        Ok(address @ IpAddr::V6(_)) if bare.is_some() => Some(Host::Address(address)),
        Ok(address @ IpAddr::V4(_)) if bare.is_none() => Some(Host::Address(address)),
        _ => HostName::parse(text).ok().map(Host::Name),
    }
}

impl Rules {
    /// Takes the rules of an action.
    pub fn new(rules: Vec<EgressRule>) -> Self {
        Self { rules, credentials: Arc::default() }
    }

    /// Looks out for the stand-ins and canaries among these.
    pub(crate) fn look_out(&mut self, credentials: Arc<Credentials>) {
        self.credentials = credentials;
    }

    /// Returns all of them.
    pub(crate) fn all(&self) -> &[EgressRule] {
        &self.rules
    }

    /// Tells whether a rule could allow something of this name.
    pub fn name(&self, name: &HostName) -> Result<(), Refusal> {
        self.credentials.check(name.as_str().as_bytes(), None, name.as_str())?;
        match self.rules.iter().any(|rule| rule.host.matches(name)) {
            true => Ok(()),
            false => {
                let rule = format!("{}://{name}", Protocol::Https);
                Err(Refusal::without_rule("host-not-allowed", &format!("`{name}`"), rule))
            }
        }
    }

    /// Returns the rules for connections to a port of a host.
    ///
    /// # Errors
    /// When there is none.
    pub fn connection(&self, target: &Host, port: u16) -> Result<Vec<&EgressRule>, Refusal> {
        if let Host::Name(name) = target {
            self.credentials.check(name.as_str().as_bytes(), None, name.as_str())?;
        }
        let about = |rule: &&EgressRule| match target {
            Host::Name(name) => rule.reaches(name, port),
            Host::Address(address) => rule.host == HostPattern::Address(*address) && rule.port == port,
        };
        let rules: Vec<&EgressRule> = self.rules.iter().filter(about).collect();
        if !rules.is_empty() {
            return Ok(rules);
        }
        let scheme = Protocol::usual_at(port);
        let shown = if scheme == Protocol::Tcp { format!(":{port}") } else { String::new() };
        let rule = format!("{scheme}://{target}{shown}");
        Err(match target {
            Host::Name(name) if self.name(name).is_ok() => {
                Refusal::without_rule("port-not-allowed", &format!("port {port} of `{name}`"), rule)
            }
            Host::Name(name) => Refusal::without_rule("host-not-allowed", &format!("`{name}`"), rule),
            Host::Address(address) => {
                Refusal::without_rule("address-not-allowed", &format!("the address {address}"), rule)
            }
        })
    }
}

/// Tells whether what goes over a connection is looked at, and how: by the widest of its rules. A host with a credential is
/// always looked into: past it, a connection would have none and could carry what it got before.
pub(crate) fn looks(rules: &[&EgressRule]) -> Look {
    let has_credential = rules.iter().any(|rule| rule.credential.is_some());
    let plain = |protocol| {
        !has_credential && rules.iter().any(|rule| rule.protocol == protocol && !rule.looks_inside())
    };
    let any = |protocol| rules.iter().any(|rule| rule.protocol == protocol);
    if plain(Protocol::Tcp) {
        Look::Not
    } else {
        Look::Speech { tls: any(Protocol::Https), through: plain(Protocol::Https), http: any(Protocol::Http) }
    }
}

/// How a connection is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Not at all.
    Not,
    /// What is spoken on it must be one of these.
    Speech {
        /// TLS.
        tls: bool,
        /// TLS that nobody looks into.
        through: bool,
        /// HTTP in the clear.
        http: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        Rules::new(texts.iter().map(|text| text.parse().expect("a rule")).collect())
    }

    fn name(text: &str) -> Host {
        host(text).expect("a target")
    }

    fn reason<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> &'static str {
        answer.map_or_else(|refusal| refusal.reason, |_| "allowed")
    }

    #[test]
    fn a_connection_needs_a_rule_for_its_host_and_port() {
        let rules = rules(&["https://a.test", "http://*.b.test:8080", "tcp://192.0.2.1:22"]);
        for (target, port, expected) in [
            ("a.test", 443, "allowed"),
            ("a.test", 80, "port-not-allowed"),
            ("b.test", 8080, "host-not-allowed"),
            ("x.b.test", 8080, "allowed"),
            ("evila.test", 443, "host-not-allowed"),
            ("192.0.2.1", 22, "allowed"),
            ("192.0.2.1", 443, "address-not-allowed"),
            ("[::ffff:192.0.2.1]", 22, "address-not-allowed"),
        ] {
            assert_eq!(reason(rules.connection(&name(target), port)), expected, "{target}:{port}");
        }
    }

    #[test]
    fn other_spellings_of_addresses_are_no_targets() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "127.0.0.1.",
            "localhost.",
            "::1",
            "[127.0.0.1]",
            "",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_rule_that_would_be_needed() {
        let why = |target: &str, port| {
            rules(&["https://a.test"]).connection(&name(target), port).expect_err("refused").why
        };
        assert_eq!(why("b.test", 443), "no rule names `b.test`; `https://b.test` would");
        assert_eq!(why("a.test", 22), "no rule names port 22 of `a.test`; `tcp://a.test:22` would");
        assert_eq!(why("192.0.2.1", 80), "no rule names the address 192.0.2.1; `http://192.0.2.1` would");
    }

    #[test]
    fn the_widest_rule_says_whether_a_connection_is_looked_into() {
        let look = |texts: &[&str]| {
            let rules = rules(texts);
            looks(&rules.connection(&name("a.test"), 443).expect("there are some"))
        };
        assert_eq!(look(&["https://a.test/x", "tcp://a.test:443"]), Look::Not);
        assert_eq!(look(&["https://a.test/x"]), Look::Speech { tls: true, through: false, http: false });
        let with =
            EgressRule { credential: Some("c".to_owned()), ..rules(&["https://a.test/x"]).rules.remove(0) };
        for beside in ["https://a.test", "tcp://a.test:443"] {
            let beside = rules(&[beside]).rules.remove(0);
            assert_eq!(
                looks(&[&beside, &with]),
                Look::Speech { tls: true, through: false, http: false },
                "{beside}"
            );
        }
        assert_eq!(
            look(&["https://a.test/x", "https://a.test"]),
            Look::Speech { tls: true, through: true, http: false }
        );
        assert_eq!(look(&["http://a.test:443"]), Look::Speech { tls: false, through: false, http: true });
    }
}
