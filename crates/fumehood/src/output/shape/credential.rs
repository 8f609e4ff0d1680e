//! Credentials: what settings say of them, and who has them. No value is in any of it.

use engine::Credential;
use engine::store::{Revocation, StoredLease};
use model::{ActionId, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, moment, moment_or_none, who};

/// `credential list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CredentialsDocument {
    /// The credentials of the settings, by name.
    pub credentials: Vec<CredentialRow>,
}

/// `credential show --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CredentialDocument {
    /// What the settings say of it.
    #[serde(flatten)]
    pub credential: CredentialRow,
    /// Who has it, oldest first.
    pub leases: Vec<LeaseRow>,
    /// Who had it last, newest first.
    pub ended: Vec<LeaseRow>,
}

/// `credential revoke --json` and `credential rotate --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CredentialChangeDocument {
    /// Its name.
    pub credential: String,
    /// `revoked` or `rotated`.
    pub change: &'static str,
    /// Who had it until then.
    pub ended: Vec<LeaseRow>,
}

/// One credential.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CredentialRow {
    /// Its name.
    pub name: String,
    /// `development` or `production`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Who answers for it.
    pub owner: String,
    /// What it is for, as the rules are written.
    pub rules: Vec<String>,
    /// The directories whose repositories may use it.
    pub repositories: Vec<String>,
    /// The tasks that may use it; `null` for all of these repositories.
    pub tasks: Option<Vec<String>>,
    /// The most seconds from the start of an action that has it to its end there.
    pub lifetime_seconds: u64,
    /// Where it is put into requests.
    pub placement: String,
    /// The variable that holds what stands for it inside; `null` when there is none.
    pub stand_in: Option<String>,
    /// Whether it may be put into requests that are not encrypted.
    pub in_clear: bool,
    /// Where its value is, for people.
    pub provider: String,
    /// Who took it back, why and when; `null` when nobody did.
    pub revoked: Option<RevocationRow>,
    /// How many actions have it.
    pub in_use: u64,
}

/// Who took a credential back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RevocationRow {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub since: Timestamp,
}

/// An action that has a credential, or had it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeaseRow {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Since when.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub began: Timestamp,
    /// When it ends at the latest.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub expires: Timestamp,
    /// When it ended; `null` while it is in force.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub ended: Option<Timestamp>,
    /// Why it ended; `null` while it is in force.
    pub why: Option<String>,
}

impl CredentialRow {
    /// Makes the row of a credential.
    pub fn of(credential: &Credential, revoked: Option<Revocation>, in_use: usize) -> Self {
        Self {
            name: credential.name.clone(),
            kind: credential.kind.name(),
            owner: credential.owner.clone(),
            rules: credential.rules.iter().map(ToString::to_string).collect(),
            repositories: credential
                .repositories
                .iter()
                .map(|at| at.to_string_lossy().into_owned())
                .collect(),
            tasks: credential.tasks.as_ref().map(|tasks| tasks.iter().map(ToString::to_string).collect()),
            lifetime_seconds: credential.lifetime.as_secs(),
            placement: credential.placement.to_string(),
            stand_in: credential.stand_in.clone(),
            in_clear: credential.in_clear,
            provider: credential.provider.to_string(),
            revoked: revoked.map(|revocation| RevocationRow {
                by: who(&revocation.by),
                reason: revocation.reason,
                since: revocation.since,
            }),
            in_use: in_use as u64,
        }
    }
}

impl LeaseRow {
    /// Makes the row of a lease.
    pub fn of(lease: StoredLease) -> Self {
        let (ended, why) = lease.ended.unzip();
        let StoredLease { task, action, began, expires, .. } = lease;
        Self { task, action, began, expires, ended, why }
    }
}
