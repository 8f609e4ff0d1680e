//! The document of `audit prune`.

use engine::{Prune, Removed};
use model::{EventClass, RecordRange};
use schemars::JsonSchema;
use serde::Serialize;

/// `audit prune --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PruneDocument {
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// How many events were, or would be, pruned of each class, of those of which there was any.
    pub classes: Vec<PruneRow>,
    /// Their records.
    pub records: Vec<PrunedRange>,
    /// How many events stay only because a legal hold covers them.
    pub held: u64,
    /// How many stay only because of what they are about: something failed, was denied or tried what is not allowed.
    pub incidents: u64,
    /// How many stay because an older build recorded them, with their text in the digest.
    pub whole: u64,
    /// Why copies of what was taken out may still stand in free space of the database; `null` when none does.
    pub left: Option<String>,
}

/// What goes of one class.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PruneRow {
    /// `requests`, `runs` or `network`.
    #[schemars(with = "String")]
    pub class: EventClass,
    /// How many events.
    pub number: u64,
    /// Bytes of their content.
    pub bytes: u64,
}

/// Records that follow on each other without a gap.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PrunedRange {
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
}

impl PruneDocument {
    /// Says what was, or would be, pruned.
    pub fn of(dry_run: bool, prune: Prune) -> Self {
        let row = |(class, of): (EventClass, Removed)| PruneRow { class, number: of.number, bytes: of.bytes };
        let range = |RecordRange { first, last }| PrunedRange { first, last };
        Self {
            dry_run,
            classes: prune.classes.into_iter().map(row).collect(),
            records: prune.records.into_iter().map(range).collect(),
            held: prune.held,
            incidents: prune.incidents,
            whole: prune.whole,
            left: prune.left,
        }
    }
}
