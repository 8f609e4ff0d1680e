//! What is recorded of one attempt to reach something.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::credential::CredentialAlert;
use super::registry::PackageUse;
use crate::units::{Bytes, Timestamp};

/// One attempt: a name that was asked for, a connection, or a request in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How it came to the gateway.
    pub door: Door,
    /// The name of the host as it was given, where one was; not parsed, and as foreign as all that comes from inside.
    pub name: Option<String>,
    /// The port, where there is one.
    pub port: Option<u16>,
    /// The address of the server that was connected to.
    pub address: Option<IpAddr>,
    /// The method of a request that was looked at.
    pub method: Option<String>,
    /// Its path, without the query.
    pub path: Option<String>,
    /// The package that a request was about, where its registry is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Box<PackageUse>>,
    /// What was decided.
    pub verdict: Verdict,
    /// Bytes that went out.
    pub sent: Bytes,
    /// Bytes that came in.
    pub received: Bytes,
    /// Whether it was told before, and this tells what went over it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
}

/// How an attempt came to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// A question for a name.
    Dns,
    /// A connection as if to the host itself.
    Direct,
    /// A request to the HTTP proxy.
    Proxy,
    /// A request to the SOCKS proxy.
    Socks,
}

/// What was decided about an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// A rule allows it.
    Allowed {
        /// The rule, as it is written.
        rule: String,
    },
    /// Nothing allows it, or something forbids it.
    Refused {
        /// The stable code.
        reason: String,
        /// A sentence for people, with what would be needed.
        why: String,
        /// The rule that would let it, as it is written, where a rule would.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needs: Option<String>,
    },
    /// A rule allows it, and it failed for another reason.
    Failed {
        /// The rule, as it is written.
        rule: String,
        /// A sentence for people.
        why: String,
    },
}

/// What an action did over the network, as its gateway told it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkUse {
    /// The attempts, equal ones once, in the order of the first of each.
    pub attempts: Vec<AttemptCount>,
    /// How many more were told than are listed; all of them are on the record one by one.
    #[serde(default)]
    pub attempts_dropped: u64,
    /// How many more there were than the gateway could tell.
    #[serde(default)]
    pub untold: u64,
    /// How often the gateway was started anew.
    #[serde(default)]
    pub restarts: u32,
    /// What a person should hear of credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<CredentialAlert>,
    /// Why it was closed before the end, when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

/// Equal attempts: the same door, name, port, method, path, package and verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptCount {
    /// The first of them, with the bytes of all.
    pub attempt: Attempt,
    /// How many there were.
    pub times: u64,
}

impl Attempt {
    /// Tells whether another one differs in nothing but time, server and bytes.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.door, self.port) == (other.door, other.port)
            && (&self.name, &self.method, &self.path) == (&other.name, &other.method, &other.path)
            && (&self.package, &self.verdict) == (&other.package, &other.verdict)
    }

    /// Tells whether it was refused.
    pub fn is_refused(&self) -> bool {
        matches!(self.verdict, Verdict::Refused { .. })
    }
}

/// How many different attempts are listed.
const LISTED_MAX: usize = 500;

impl NetworkUse {
    /// Adds an attempt.
    pub fn add(&mut self, attempt: &Attempt) {
        if let Some(known) = self.attempts.iter_mut().find(|known| known.attempt.is_like(attempt)) {
            let sum = |one: Bytes, other: Bytes| Bytes::new(one.get().saturating_add(other.get()));
            known.times += u64::from(!attempt.continued);
            known.attempt.sent = sum(known.attempt.sent, attempt.sent);
            known.attempt.received = sum(known.attempt.received, attempt.received);
        } else if self.attempts.len() < LISTED_MAX {
            self.attempts.push(AttemptCount { attempt: attempt.clone(), times: 1 });
        } else {
            self.attempts_dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(name: &str, sent: u64) -> Attempt {
        Attempt {
            at: Timestamp::from_nanos(sent),
            door: Door::Direct,
            name: Some(name.to_owned()),
            port: Some(443),
            address: None,
            method: None,
            path: None,
            package: None,
            verdict: Verdict::Allowed { rule: "https://a.test".to_owned() },
            sent: Bytes::new(sent),
            received: Bytes::new(1),
            continued: false,
        }
    }

    #[test]
    fn equal_attempts_are_listed_once_and_no_more_than_there_is_room_for() {
        let mut used = NetworkUse::default();
        for attempt in [attempt("a.test", 1), attempt("b.test", 2), attempt("a.test", 3)] {
            used.add(&attempt);
        }
        let listed: Vec<_> = used
            .attempts
            .iter()
            .map(|one| (one.times, one.attempt.sent.get(), one.attempt.at.as_nanos()))
            .collect();
        assert_eq!(listed, [(2, 4, 1), (1, 2, 2)]);
        used.add(&Attempt { continued: true, ..attempt("a.test", 5) });
        let first = &used.attempts[0];
        assert_eq!((first.times, first.attempt.sent.get()), (2, 9));
        (0..LISTED_MAX).for_each(|number| used.add(&attempt(&format!("{number}.test"), 1)));
        assert_eq!((used.attempts.len(), used.attempts_dropped), (LISTED_MAX, 2));
    }
}
