//! What the tools around policy find: checks, tables, explanations, proofs, replays.

use std::collections::BTreeMap;

use model::event::Verdict;
use model::{ActionId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::policy::{PolicyAnswer, PolicyDocument};
use super::{Moment, moment_or_none};

/// `policy test --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyTestDocument {
    /// Which rules: a file or a bundle.
    pub rules_of: String,
    /// How many rows were decided.
    pub rows: usize,
    /// The rows that are answered otherwise than they must be.
    pub failures: Vec<RowFailure>,
}

/// A row that is answered otherwise than it must be.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RowFailure {
    /// The table, and where in it.
    pub place: String,
    /// Its id, and why it is there.
    pub row: String,
    /// What is otherwise.
    pub why: String,
    /// The answer that it got.
    pub answer: PolicyAnswer,
    /// The stable code of the reason; empty for a bare question.
    pub reason_code: String,
    /// The rules that decided, by their ids.
    pub matched_rules: Vec<String>,
}

/// `policy explain --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExplainDocument {
    /// Which rules: a file or a bundle.
    pub rules_of: String,
    /// What is decided, and about what.
    pub decision: PolicyDocument,
    /// Every question that was put to policy about it, as it was asked: before anything is made smaller.
    pub questions: Vec<QuestionPart>,
    /// What lifts what forbids it, in words.
    pub lifts: Vec<String>,
    /// What was decided when it was asked for, where it is of the record.
    pub recorded: Option<RecordedPart>,
}

/// One question to policy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuestionPart {
    /// What was asked, to follow after "may this".
    pub what: String,
    /// The action of the schema.
    pub action: String,
    /// Who asks.
    pub principal: String,
    /// What it is about.
    pub resource: String,
    /// What each layer of policy says; all must permit.
    pub layers: Vec<LayerPart>,
}

/// What one layer of policy says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LayerPart {
    /// Its name.
    pub layer: String,
    /// What it says.
    pub says: LayerWord,
    /// The rules that say so, in the order of the text.
    pub rules: Vec<RulePart>,
}

/// What a layer can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerWord {
    /// A rule permits it, and none forbids it.
    Permitted,
    /// A rule forbids it.
    Forbidden,
    /// No rule says anything, which is a no.
    Silent,
    /// No rule forbids it, and this layer has none that permit.
    NothingAgainst,
    /// A rule could not be evaluated, which is a no.
    Failed,
}

/// A rule that takes part in an answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RulePart {
    /// Its id.
    pub rule: String,
    /// The line in which it starts, where its text is at hand.
    pub line: Option<usize>,
    /// The stable code.
    pub reason_code: String,
    /// What to do instead; empty on a permit.
    pub advice: String,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
    /// The role whose yes lifts it.
    pub lifted_by_role: Option<String>,
    /// The smaller grant that lifts it.
    pub lifted_by_smaller_grant: Option<String>,
    /// The facts that its conditions name, with their values here.
    pub facts: BTreeMap<String, serde_json::Value>,
}

/// What was decided when something was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RecordedPart {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// The decision.
    #[schemars(with = "String")]
    pub decision: Verdict,
    /// The stable code of the reason.
    pub reason_code: String,
    /// The rules that decided, by their ids.
    pub matched_rules: Vec<String>,
}

/// `policy prove --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProveDocument {
    /// Which rules: a file or a bundle.
    pub rules_of: String,
    /// The solver with its version; none where nothing could be proved.
    pub solver: Option<String>,
    /// What was found out about each claim.
    pub claims: Vec<ClaimRow>,
}

/// What was found out about one claim.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClaimRow {
    /// Its name.
    pub claim: String,
    /// The same as a sentence.
    pub says: String,
    /// Whether it holds.
    pub verdict: ClaimWord,
    /// How many kinds of request it is about: who asks, for what, about what.
    pub kinds: usize,
    /// Why it is not proved.
    pub why: Option<String>,
    /// A request for which it does not hold. The authorizer was asked about it, and says so as well.
    pub counterexample: Option<ExamplePart>,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimWord {
    /// For every request.
    Proved,
    /// Not for this one.
    Refuted,
    /// Nobody knows.
    NotProved,
}

/// A question to policy as it is put to Cedar.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExamplePart {
    /// Who asks.
    pub principal: String,
    /// The action of the schema.
    pub action: String,
    /// What it is about.
    pub resource: String,
    /// The facts.
    pub context: serde_json::Value,
    /// What is known of things that it names.
    pub entities: serde_json::Value,
    /// The rules that answer it.
    pub rules: Vec<String>,
}

/// `policy diff --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyDiffDocument {
    /// The rules that are compared.
    pub from: String,
    /// The rules that they are compared with.
    pub to: String,
    /// The solver with its version.
    pub solver: String,
    /// Every action of the schema.
    pub rows: Vec<PolicyDiffRow>,
}

/// What is different for one action.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyDiffRow {
    /// The action of the schema.
    pub action: String,
    /// What only the second rules allow.
    pub wider: DirectionPart,
    /// What only the first rules allow.
    pub narrower: DirectionPart,
}

/// One direction of a difference.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DirectionPart {
    /// Whether there is something.
    pub found: DirectionWord,
    /// A request for it.
    pub example: Option<ExamplePart>,
    /// Why it is not proved.
    pub why: Option<String>,
}

/// Whether rules allow something that others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectionWord {
    /// Nothing: proved.
    Nothing,
    /// Something.
    Something,
    /// Nobody knows.
    NotProved,
}

/// `policy replay --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReplayDocument {
    /// The rules that decided again.
    pub rules_of: String,
    /// From which moment on; from the beginning when missing.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub since: Option<Timestamp>,
    /// How many requests were decided again.
    pub decided: usize,
    /// How many of them got the answer that is on the record.
    pub alike: usize,
    /// What is answered otherwise.
    pub changes: Vec<ReplayChange>,
    /// What could not be decided again, and why.
    pub left_out: Vec<LeftOut>,
}

/// Requests that get another answer than they got.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReplayChange {
    /// What was decided.
    #[schemars(with = "String")]
    pub from: Verdict,
    /// What these rules decide.
    #[schemars(with = "String")]
    pub to: Verdict,
    /// How many they are.
    pub actions: usize,
    /// Some of them.
    pub examples: Vec<ReplayExample>,
}

/// A request that gets another answer than it got.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ReplayExample {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// What was asked for.
    pub request: String,
    /// The stable code of the reason on the record.
    pub reason_then: String,
    /// The stable code of the reason now.
    pub reason_now: String,
    /// The rules that decide now.
    pub rules_now: Vec<String>,
}

/// Requests that could not be decided again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Why not.
    pub why: String,
    /// How many they are.
    pub actions: usize,
}

/// `policy suggest --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SuggestDocument {
    /// The rules that deny it.
    pub rules_of: String,
    /// The denied action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// What was asked for.
    pub request: String,
    /// The rules that deny it now.
    pub denied_by: Vec<String>,
    /// Why there is no suggestion.
    pub refused: Option<String>,
    /// The rules that would allow it. None of them is in force.
    pub suggested: Vec<SuggestedRule>,
    /// How many other requests of the record were decided with them.
    pub decided: usize,
    /// Those of them that they would allow as well.
    pub also_allowed: Vec<ReplayExample>,
    /// Rows of tables that they would allow as well.
    pub rows_allowed: Vec<AllowedRow>,
    /// What could not be decided again, and why.
    pub left_out: Vec<LeftOut>,
}

/// One rule of a suggestion.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SuggestedRule {
    /// The rule whose text it stands for; a new one when missing.
    pub replaces: Option<String>,
    /// Its text.
    pub text: String,
}

/// A row of a table that a suggestion would allow.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AllowedRow {
    /// The table, and where in it.
    pub place: String,
    /// Its id, and why it is there.
    pub row: String,
}
