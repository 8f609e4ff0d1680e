//! Requests for a person's yes: what a person sees before answering, and what came of the answer.

use std::collections::BTreeSet;
use std::time::Duration;

use model::approval::{Answered, ApprovalAnswer};
use model::event::Event;
use model::text::escape;
use model::{ActionId, ApprovalId, ApprovalState, OsText, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schemas as schema;
use super::{
    ActionDocument, ArtifactRow, AskedPart, EffectRow, EndPart, GrantPart, InspectionPart, Moment, Name,
    WayBack, milliseconds, moment, moment_or_none,
};

/// The request for a person's yes that an action came to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ApprovalPart {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// Where it stands.
    #[schemars(with = "String")]
    pub state: ApprovalState,
    /// Whether the very same thing had been asked for before, so that this request stands for both.
    pub again: bool,
    /// Whether the action was tried on a throwaway layer, which is what the person is shown.
    pub tried: bool,
    /// Whose yes is needed, as policy writes it: `person`, `release-manager:2`, `person:not-owner`.
    pub roles: Vec<String>,
    /// When it ends; `null` where that is told with the first request.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub until: Option<Timestamp>,
    /// What people answered, oldest first.
    pub answers: Vec<AnswerPart>,
    /// Why it came to its end.
    pub why: Option<String>,
}

/// One answer of a person.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnswerPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// The number of their account; `null` in answers of earlier versions.
    pub account: Option<u32>,
    /// `yes`, `no` or `taken-back`.
    #[schemars(with = "String")]
    pub answer: Answered,
    /// The roles in which a yes was said.
    pub roles: BTreeSet<String>,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The name of the file that it stands in; `null` when it did not come from another account.
    pub file: Option<String>,
}

/// A line of `approvals list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ApprovalRow {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Its task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// Where it stands now: `trying`, `open`, `given`, `used`, `kept`, `refused`, `revoked`, `void` or `expired`.
    #[schemars(with = "String")]
    pub state: ApprovalState,
    /// When it was asked.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub asked: Timestamp,
    /// When it ends.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub until: Timestamp,
    /// Who asks.
    pub by: String,
    /// The command, as a person would have typed it.
    pub command: String,
    /// Whose yes is still missing, as policy writes it.
    pub missing: BTreeSet<String>,
    /// How often the very same thing was asked for again.
    pub repeats: u64,
}

/// `approvals list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ApprovalsDocument {
    /// The requests, oldest first.
    pub approvals: Vec<ApprovalRow>,
}

/// `approvals show --json`: everything that a person should know before answering.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DossierDocument {
    /// The request.
    pub approval: ApprovalRow,
    /// What was asked for, exactly.
    pub request: AskedPart,
    /// What the asker says it is for: a claim.
    pub claimed_purpose: Option<String>,
    /// What it may touch and use: a yes covers this too.
    pub grant: GrantPart,
    /// The digest that a yes covers.
    #[schemars(schema_with = "schema::digest")]
    pub digest: model::Digest,
    /// Why policy wants a yes, as a code.
    pub reason_code: String,
    /// The rules that want it.
    pub matched_rules: Vec<String>,
    /// What it would do, as far as its words say.
    pub effects: Vec<EffectRow>,
    /// What it did when it was tried; `null` when it was not.
    pub measured: Option<MeasuredPart>,
    /// What could not be measured, and why.
    pub not_measured: Vec<String>,
    /// How it can be taken back.
    pub way_back: WayBack,
    /// What people answered until now.
    pub answers: Vec<AnswerPart>,
    /// Whose yes policy wants, and how much of it is there.
    pub wanted: Vec<WantedPart>,
    /// Why it came to its end.
    pub why: Option<String>,
    /// Whether people of other accounts can answer on this machine.
    pub answers_from_elsewhere: bool,
}

/// `approvals export`: requests as they are written down for people of other accounts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportDocument {
    /// `fumehood-requests-1`.
    pub format: String,
    /// The record that the requests are on.
    pub store: String,
    /// The accounts whose answer is the owner's own.
    pub owners: BTreeSet<u32>,
    /// The processes through which agents came on this machine: no answer is taken from what these started.
    pub agents: AgentsPart,
    /// The requests.
    pub requests: Vec<ExportedPart>,
}

/// Processes through which agents came.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsPart {
    /// The name of the boot.
    pub boot: String,
    /// The processes: number, start in ticks since the boot, and pid namespace.
    pub processes: Vec<(u32, u64, u64)>,
}

/// One request as it is written down for people of other accounts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportedPart {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// The digest of the action.
    #[schemars(schema_with = "schema::digest")]
    pub action: model::Digest,
    /// When it ends, in nanoseconds since 1970.
    #[schemars(with = "u64")]
    pub expires: Timestamp,
    /// Whose yes is missing, as policy writes it.
    pub missing: BTreeSet<String>,
    /// All that a person should see before answering.
    pub text: String,
}

/// `approvals sign --json`: the answers that were left.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SignedDocument {
    /// One for each request.
    pub answers: Vec<SignedRow>,
}

/// An answer that was left.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SignedRow {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// `yes` or `no`.
    #[schemars(with = "String")]
    pub answer: Answered,
    /// The file: while it is there, the answer holds.
    pub file: String,
    /// The digest of the text that was shown.
    #[schemars(schema_with = "schema::digest")]
    pub shown: model::Digest,
}

/// People whose yes policy wants, and how much of it is there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WantedPart {
    /// As policy writes it.
    pub quorum: String,
    /// The role; everybody has `person`.
    pub role: String,
    /// How many different people.
    pub people: u8,
    /// Whether whoever owns the task does not count.
    pub without_owner: bool,
    /// The same in words.
    pub words: String,
    /// The accounts whose yes counts.
    pub given_by: Vec<String>,
    /// The accounts whose yes would count too; `null` where that is everybody, or everybody but the owner.
    pub could_give: Option<Vec<String>>,
}

/// What an action did when it was tried.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MeasuredPart {
    /// How it ended, what it used, and which programs and connections it tried.
    pub end: EndPart,
    /// What it changed, and what of that would be held back.
    pub inspection: InspectionPart,
    /// The changes as a patch; what is not UTF-8 is replaced.
    pub patch: String,
    /// What it wrote to the git repository of a linked worktree, by the names below that.
    #[schemars(with = "Vec<Name>")]
    pub git_files: Vec<OsText>,
    /// What it left as artifacts.
    pub artifacts: Vec<ArtifactRow>,
}

/// `approvals approve|deny|revoke --json`: what came of an answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AnswerDocument {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Where the request stands now.
    #[schemars(with = "String")]
    pub state: ApprovalState,
    /// Until when the same request may run; `null` when that is not what came of it.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub until: Option<Timestamp>,
    /// Whose yes is still missing, as policy writes it.
    pub missing: BTreeSet<String>,
    /// Why the answer is worth nothing, when it is.
    pub why: Option<String>,
}

/// `approvals approve --json` with several requests: what came of each.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchDocument {
    /// Each request, in the order in which it was named.
    pub answers: Vec<BatchRow>,
}

/// What came of one of several answers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchRow {
    /// The request.
    #[schemars(with = "String")]
    pub approval: ApprovalId,
    /// What came of the answer; `null` when it was not taken.
    pub answer: Option<AnswerDocument>,
    /// Why it was not taken.
    pub error: Option<String>,
}

impl AnswerDocument {
    /// Tells whether the yes counts.
    pub fn counts(&self) -> bool {
        self.state != ApprovalState::Void
    }
}

impl BatchRow {
    /// Tells whether the yes was taken and counts.
    pub fn counts(&self) -> bool {
        self.answer.as_ref().is_some_and(AnswerDocument::counts)
    }
}

/// `approvals stats --json`: how much is asked of people.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StatsDocument {
    /// Requests that people were asked.
    pub asked: u64,
    /// Times that the very same thing was asked for again, for which nobody was asked.
    pub repeats: u64,
    /// Requests that wait now.
    pub waiting: u64,
    /// Requests that got their yes.
    pub approved: u64,
    /// Requests that got a no.
    pub refused: u64,
    /// Requests that ended without an answer.
    pub unanswered: u64,
    /// From the question to the last answer, at the median; `null` when nothing was answered.
    #[serde(serialize_with = "milliseconds_or_none")]
    #[schemars(with = "Option<f64>")]
    pub median_time_to_answer_ms: Option<Duration>,
}

fn milliseconds_or_none<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => milliseconds(time, to),
        None => to.serialize_none(),
    }
}

impl From<&ApprovalAnswer> for AnswerPart {
    fn from(answer: &ApprovalAnswer) -> Self {
        let ApprovalAnswer { by, account, answer, roles, reason, at, file } = answer.clone();
        Self { at, by: super::who(&by), account, answer, roles, reason, file }
    }
}

impl ApprovalPart {
    fn new(approval: &ApprovalId) -> Self {
        Self {
            approval: approval.clone(),
            state: ApprovalState::Open,
            again: false,
            tried: false,
            roles: Vec::new(),
            until: None,
            answers: Vec::new(),
            why: None,
        }
    }

    /// Says in a line what the action waits for, or why it does not; escaped.
    pub fn sentence(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(": {}", escape(why))).unwrap_or_default();
        let approval = &self.approval;
        match self.state {
            ApprovalState::Trying | ApprovalState::Open => {
                format!("a person is asked: `fumehood approvals show {approval}`")
            }
            ApprovalState::Given => format!("{approval} has its yes: make the same request again"),
            state => format!("{approval} is {state}{why}"),
        }
    }

    /// Takes in what an event says of the request.
    pub(super) fn add(part: &mut Option<Self>, event: &Event) {
        match event {
            Event::ApprovalAsked { approval, roles, expires, .. } => {
                let (roles, until) = (roles.clone(), Some(*expires));
                *part = Some(Self { roles, until, ..Self::new(approval) });
            }
            Event::ApprovalAskedAgain { approval, state, why } => {
                let why = why.clone();
                *part = Some(Self { again: true, state: *state, why, ..Self::new(approval) });
            }
            event => part.iter_mut().for_each(|part| part.follow(event)),
        }
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::TrialDecided { .. } => (self.tried, self.state) = (true, ApprovalState::Trying),
            Event::Ended { .. } if self.state == ApprovalState::Trying => self.state = ApprovalState::Open,
            Event::ApprovalAnswered { answer, .. } => self.answers.push(answer.into()),
            Event::ApprovalClosed { state, why, .. } => {
                self.state = *state;
                self.why = Some(why.clone()).filter(|why| !why.is_empty());
            }
            _ => {}
        }
    }
}

impl ActionDocument {
    /// Says where the request for a person's yes stands now.
    pub fn asked_is(&mut self, state: ApprovalState, why: Option<String>) {
        let Some(part) = &mut self.approval else { return };
        (part.state, part.why) = (state, why);
        self.settle();
    }

    /// Tells whether it was tried, and its layer is not the task's.
    pub fn is_only_tried(&self) -> bool {
        let tried = self.approval.as_ref().is_some_and(|approval| approval.tried);
        tried && self.end.is_some() && !self.decision.as_ref().is_some_and(super::DecisionPart::is_yes)
    }
}
