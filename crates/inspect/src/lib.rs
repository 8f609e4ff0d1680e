//! Looks at what an action left behind, and says what of it may leave.
//!
//! Guarantees: a layer is read exactly as the kernel would show it; no symbolic link is followed and nothing of a
//! layer is run; what cannot be read or listed is reported and never taken for unchanged.
//! Leaves to others: making the layers (`sandbox`), asking people and writing to the host (`engine`).
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod copy;
pub mod credentials;
pub mod diff;
mod error;
pub mod layer;
mod list;
mod name;
pub mod protected;
pub mod release;
pub mod tree;

pub use error::InspectError;
pub use layer::{Finding, Report};
pub use protected::{Class, Rules};
pub use release::{Artifact, Artifacts, Consent, Held, Inspection, Quarantine, Reason, inspect};
pub use tree::{Finder, Node, Stack, Tree};
