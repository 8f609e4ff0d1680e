//! What a supervisor and the gateway of its sandbox say to each other: one message a packet, as JSON.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;
use super::credential::{Canary, CredentialAlert, GivenCredential};
use super::registry::{Locked, Registry, RegistryKind};
use super::rule::EgressRule;
use super::secret::Secret;
use crate::evidence::Probe;
use crate::units::{Bytes, Timestamp};

/// What the supervisor says. `Begin`, then rules and what they need, then the entrances, then `Open`; `Finish` at the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToGateway {
    /// What holds for all. The first message.
    Begin(Box<Begin>),
    /// One more rule.
    Rule(Box<EgressRule>),
    /// A registry that a rule names.
    Registry(Box<Registry>),
    /// Some of what the lockfiles of the workspace say; all of one kind that is named at all hold.
    Locked(Vec<Locked>),
    /// Some of the names that were used here before.
    Used {
        /// Of which kind.
        kind: RegistryKind,
        /// The names, in the form that they are compared in.
        names: Vec<String>,
    },
    /// What signs for the clients inside, when a rule has to look into TLS.
    Authority(Box<SigningAuthority>),
    /// One more root that servers are verified by, beside the system's; a certificate as PEM.
    Root(String),
    /// A credential that rules name.
    Credential(Box<GivenCredential>),
    /// A made-up credential that is inside, and must not come out.
    Canary(Box<Canary>),
    /// Listening sockets inside the sandbox; their descriptors come along in the same order.
    Entrances(Vec<Entrance>),
    /// All is said: serve.
    Open,
    /// Serve nobody any longer, tell what is left to tell, and end.
    Finish,
    /// A credential is no longer to be used, also on connections that are open.
    Revoke {
        /// Its name.
        credential: String,
    },
}

/// What holds for all rules of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The addresses that names get inside.
    pub ranges: Ranges,
    /// The servers that are asked for the addresses of names.
    pub resolvers: Vec<SocketAddr>,
    /// What it may use at most.
    pub bounds: Bounds,
}

/// The authority that signs for the clients inside, who trust its certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningAuthority {
    /// Its certificate, as PEM: all of it that clients inside may know.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: Secret,
    /// Its last moment.
    pub until: Timestamp,
}

/// The ranges out of which names get their addresses inside; no packet to them leaves the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges {
    /// The range of IPv4 addresses.
    pub v4: ipnet::Ipv4Net,
    /// The range of IPv6 addresses.
    pub v6: ipnet::Ipv6Net,
}

/// What the gateway of one action may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Connections that are open at once.
    pub connections: u32,
    /// Questions for names, in all.
    pub questions: u32,
    /// Bytes that may go out, in all.
    pub sent: Bytes,
    /// Bytes that may come in, in all.
    pub received: Bytes,
}

/// A listening socket inside the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entrance {
    /// Questions for names, as datagrams.
    DnsDatagrams,
    /// Questions for names, as streams.
    DnsStreams,
    /// The HTTP and SOCKS proxy.
    Proxy,
    /// Connections to this port of any host: the local address of an accepted one is the host's.
    Port(u16),
    /// Connections to any port, turned here by the kernel: `SO_ORIGINAL_DST` says where they were to go.
    Redirected,
}

/// What the gateway says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromGateway {
    /// It has confined itself, and serves; what it then tried.
    Ready(Vec<Probe>),
    /// It cannot serve.
    Failed(String),
    /// What was tried since.
    Attempts(Vec<Attempt>),
    /// Something about credentials that a person should hear of.
    Alert(CredentialAlert),
    /// More was tried than can be told.
    Dropped(u64),
}

impl Default for Ranges {
    /// The ranges of RFC 2544 (benchmarks between networks) and a locally assigned one of RFC 4193.
    fn default() -> Self {
        let v4 = ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(198, 18, 0, 0), 15);
        let v6 = std::net::Ipv6Addr::new(0xfd66, 0x756d, 0x65, 0, 0, 0, 0, 0);
        Self { v4, v6: ipnet::Ipv6Net::new_assert(v6, 64) }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 1024,
            questions: 65536,
            sent: Bytes::new(1 << 30),
            received: Bytes::new(16 << 30),
        }
    }
}
