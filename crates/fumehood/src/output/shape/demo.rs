//! What the demonstration showed.

use schemars::JsonSchema;
use serde::Serialize;

use super::AgentDocument;

/// `demo --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DemoDocument {
    /// Whether everything went as it must.
    pub passed: bool,
    /// What was looked at, in order.
    pub checks: Vec<DemoCheck>,
    /// What the agent did.
    pub agent: AgentDocument,
    /// The change of the text files as a unified diff.
    pub patch: String,
    /// Tries of the probers in all sandboxes that were refused, as they must be.
    pub probes_held: u64,
    /// Tries of the probers in all sandboxes.
    pub probes: u64,
    /// Records in the log.
    pub records: u64,
    /// What the check of the record found.
    pub record: String,
}

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DemoCheck {
    /// What must be so.
    pub what: String,
    /// Whether it was.
    pub passed: bool,
    /// What was seen, and for what was stopped: the layer or the rule that stopped it.
    pub seen: String,
}
