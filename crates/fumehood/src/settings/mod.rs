//! Settings: what was written ([`SettingsFile`]), and what holds ([`Settings`]).
//!
//! Guarantees: unknown keys and variables are errors, each value knows where it came from, and what can only tighten
//! never widens, whoever wrote it. A repository's own file can hold nothing else.
//! Leaves to others: reading the repository's file out of its base commit, and what a value means to the sandbox.

mod accounts;
mod clients;
mod credentials;
mod environment;
mod explain;
mod file;
mod key;
mod load;
mod networks;
mod origin;
mod policy;
mod profile;
mod registries;
mod resolved;
mod retention;
mod roles;
mod schema;
mod value;

pub use accounts::Accounts;
pub use credentials::{CredentialSource, CredentialTable};
pub use environment::Environment;
pub use explain::{Row, rows};
pub use file::{Problem, ProblemKind, SettingsFile};
pub use key::{
    AuditSetting, LimitSetting, MinimumSetting, ModelSetting, ProfileSetting, REPOSITORY_FILE, Setting,
    VaultPlace,
};
pub use load::{Locations, read, text_of};
pub use origin::{Origin, Place, Source, Sourced};
pub use policy::bundle;
pub use profile::{Asked, ResolvedProfile};
pub use resolved::{KeySource, ModelSettings, Settings, SettingsError};
pub use retention::{RetentionSetting, RetentionSettings};
pub use roles::problems as role_problems;
pub use schema::schema;
pub use value::ValueError;

/// Returns the candidate that looks most like what was written, if one does.
fn nearest<'a>(written: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| strsim::jaro_winkler(&written.to_lowercase(), &candidate.to_lowercase());
    candidates
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|one, two| one.0.total_cmp(&two.0))
        .map(|(_, candidate)| candidate)
}
