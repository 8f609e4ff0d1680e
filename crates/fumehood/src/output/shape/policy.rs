//! What policy would answer to a request, and the request as a person is shown it.

use model::event::Verdict;
use model::{Effect, OsText};
use schemars::JsonSchema;
use serde::Serialize;

use super::Name;

/// `policy decide --json`, and `approvals render --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyDocument {
    /// The answer in a word.
    pub answer: PolicyAnswer,
    /// The decision as the record would have it.
    #[schemars(with = "String")]
    pub decision: Verdict,
    /// The stable code of the reason.
    pub reason_code: String,
    /// The rules that decided, by their ids.
    pub matched_rules: Vec<String>,
    /// What may be done instead.
    pub advice: String,
    /// Whether asking a person could help.
    pub person_may_allow: bool,
    /// Whose yes is missing, as policy writes it: `person`, `release-manager:2`, `person:not-owner`.
    pub roles: Vec<String>,
    /// What it would get less of than it asked for.
    pub narrowed: Vec<String>,
    /// What was asked for.
    pub request: AskedPart,
    /// What it would do, as far as its words say.
    pub effects: Vec<EffectRow>,
    /// How it can be taken back.
    pub way_back: WayBack,
}

/// An answer in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyAnswer {
    /// It would run, perhaps with less than it asked for.
    Allow,
    /// A person would be asked.
    Ask,
    /// It would not run.
    Deny,
}

impl PolicyAnswer {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AskedPart {
    /// Who asks, in words.
    pub by: String,
    /// The tool: `run` for a command.
    pub tool: String,
    /// The program and its arguments, or what another tool is about.
    #[schemars(with = "Vec<Name>")]
    pub argv: Vec<OsText>,
    /// What a tool that writes would write: the file, or the diff.
    pub content: Option<String>,
    /// Where it starts, from the top of the workspace; the top when missing.
    #[schemars(with = "Option<Name>")]
    pub directory: Option<OsText>,
    /// The workspace.
    #[schemars(with = "Name")]
    pub workspace: OsText,
    /// The variables that it sets.
    pub variables: Vec<VariablePart>,
}

/// A variable that is set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VariablePart {
    /// Its name.
    pub name: String,
    /// Its value; `null` where it is not kept.
    #[schemars(with = "Option<Name>")]
    pub value: Option<OsText>,
}

/// One effect.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EffectRow {
    /// Its class, for example `write-path`.
    pub class: String,
    /// What it is, in words.
    pub text: String,
}

impl From<&Effect> for EffectRow {
    fn from(effect: &Effect) -> Self {
        Self { class: effect.class().to_owned(), text: effect.to_string() }
    }
}

/// How something can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WayBack {
    /// It changes nothing.
    NothingToTakeBack,
    /// All of it stays in a layer, which `undo` takes off.
    ByLayer,
    /// A person has to make it good by other changes.
    ByCompensation,
    /// What leaves the machine cannot be called back.
    Irreversible,
}

/// `policy check --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PolicyCheckDocument {
    /// Which rules: a file or a bundle.
    pub rules_of: String,
    /// How many rules were read.
    pub rules: usize,
    /// How many examples were decided.
    pub examples: usize,
    /// What was found.
    pub findings: Vec<FindingRow>,
}

/// Something that is wrong with rules.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FindingRow {
    /// What kind of thing.
    pub kind: FindingKind,
    /// What it is, and what to do.
    pub message: String,
}

/// What can be wrong with rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// They cannot be used, so everything would be denied.
    Unusable,
    /// A rule can never decide anything.
    DeadRule,
    /// An example gets another answer than it should.
    Example,
}
