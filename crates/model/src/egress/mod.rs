//! Egress: what an action may reach beyond its own loopback, and what is recorded of each attempt.
//!
//! Guarantees: a rule names hosts, a port and a protocol; it never means more than it says. Names are compared byte for
//! byte on whole labels, after the case of ASCII letters is set aside; what can be read in two ways matches nothing.
//! Leaves to others: resolving names, carrying bytes (`egress`), and deciding which rules an action gets (`gate`).

mod attempt;
mod credential;
mod host;
mod path;
mod registry;
mod rule;
mod secret;
mod talk;

pub use attempt::{Attempt, AttemptCount, Door, NetworkUse, Verdict};
pub use credential::{
    AlertKind, Canary, CredentialAlert, GivenCredential, Placement, PlacementError, credentials_of,
};
pub use host::{HostName, HostNameError, HostPattern};
pub use path::{PathPattern, RequestPath, RequestPathError};
pub use registry::{
    Algorithm, COOLDOWN, Checksum, ChecksumError, Locked, Lockfile, NameError, NamePattern, PackageUse,
    Place, PlaceError, Registry, RegistryKind, Unlisted,
};
pub use rule::{EgressRule, Method, Protocol, RuleError};
pub use secret::Secret;
pub use talk::{Begin, Bounds, Entrance, FromGateway, Ranges, SigningAuthority, ToGateway};
