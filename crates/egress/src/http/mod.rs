//! HTTP: every request of a connection, decided by itself.

pub mod hook;

use model::egress::HostName;

/// A host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub name: HostName,
    /// The port.
    pub port: u16,
}
