//! TLS: taken off a connection from inside whose rule has to look into it, and spoken to servers.
//!
//! Guarantees: a certificate of ours is for the one name that its connection is to, and is shown only to a client that
//! asks for that name. Servers are verified in full, by roots that were read beforehand; there is no way to do without.
//! An authority that has expired, or whose file others may read, signs nothing.
//! Leaves to others: which connections are looked into (`EgressRule::looks_inside`), and telling clients inside to trust
//! the authority. Whether a server's certificate was revoked is not asked.

mod authority;
mod inside;
mod upstream;

use model::egress::HostName;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::rustls;

pub use self::authority::{Authority, AuthorityError};
pub use self::inside::Interceptor;
pub use self::upstream::{Upstream, system_roots};
use crate::http::{Host, Speaks};

/// What is spoken above TLS, the preferred first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

fn protocols() -> Vec<Vec<u8>> {
    PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect()
}

/// Returns what two ends agreed to speak; those who agree on nothing speak HTTP/1.1.
fn spoken(agreed: Option<&[u8]>) -> Speaks {
    if agreed == Some(PROTOCOLS[0]) { Speaks::Http2 } else { Speaks::Http1 }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, InvalidDnsNameError> {
    match host {
        Host::Name(name) => ServerName::try_from(HostName::as_str(name).to_owned()),
        Host::Address(address) => Ok(ServerName::from(*address)),
    }
}
