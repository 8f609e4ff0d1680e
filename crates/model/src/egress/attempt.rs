//! What is recorded of one attempt to reach something.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

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
    /// What was decided.
    pub verdict: Verdict,
    /// Bytes that went out.
    pub sent: Bytes,
    /// Bytes that came in.
    pub received: Bytes,
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
    },
    /// A rule allows it, and it failed for another reason.
    Failed {
        /// The rule, as it is written.
        rule: String,
        /// A sentence for people.
        why: String,
    },
}
