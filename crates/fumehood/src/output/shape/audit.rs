//! What `audit checkpoint` and `audit key` answer.

use ::audit::{Checkpoint, Proof, PublicKey};
use model::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Moment, moment};

/// A signed head of the record.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckpointDocument {
    /// The log.
    pub log: String,
    /// How many records it has.
    pub records: u64,
    /// The root of the Merkle tree over their digests.
    pub root: String,
    /// The digest of the last record.
    pub chain: String,
    /// When it was signed.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub time: Timestamp,
    /// The short name of the key that signed.
    pub key: String,
    /// The signed text.
    pub note: String,
    /// The proof that it adds to an older head, where that was asked for, with the signed text below it.
    pub proof: Option<String>,
    /// What kept it from being appended to the `anchor_file` of the settings.
    pub not_anchored: Option<String>,
}

impl CheckpointDocument {
    /// Makes the document.
    pub fn of(
        signed: &Checkpoint,
        key: &PublicKey,
        proof: Option<&Proof>,
        not_anchored: Option<String>,
    ) -> Self {
        Self {
            log: signed.head().log.to_string(),
            records: signed.head().seq,
            root: signed.root().to_string(),
            chain: signed.head().digest.to_string(),
            time: signed.time(),
            key: key.id(),
            note: signed.to_string(),
            proof: proof.map(ToString::to_string),
            not_anchored,
        }
    }
}

/// The public key with which signed heads are checked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KeyDocument {
    /// The key, as `audit verify --key` takes it.
    pub key: String,
    /// The name under which it signs.
    pub name: String,
    /// Its short name.
    pub id: String,
}

impl KeyDocument {
    /// Makes the document.
    pub fn of(key: &PublicKey) -> Self {
        Self { key: key.to_string(), name: key.name().to_owned(), id: key.id() }
    }
}
