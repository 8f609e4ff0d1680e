//! Events: what is written to the record, one type for each step of the path.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::action::{Principal, StartingPoint};
use crate::approval::{ApprovalAnswer, ApprovalState};
use crate::change::Change;
use crate::content::ContentClass;
use crate::digest::Digest;
use crate::effect::Effect;
use crate::egress::{Attempt, CredentialAlert};
use crate::enforcement::{Held, Shortfall};
use crate::evidence::{Observed, Probe, StepTime, Teardown};
use crate::grant::Grant;
use crate::hold::HoldScope;
use crate::id::{ActionId, ApprovalId, HoldId, LegalHoldId, TaskId};
use crate::intake::Intake;
use crate::legal::LegalScope;
use crate::os_text::OsText;
use crate::outcome::{Ending, Usage};
use crate::profile::Profile;
use crate::retention::{EventClass, RecordRange, RemovedOf};
use crate::stage::{Stage, StageGrant, StageWork};
use crate::task::WorkspaceKey;
use crate::units::Timestamp;

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subject {
    /// The task, where there is one.
    pub task: Option<TaskId>,
    /// The action, where there is one.
    pub action: Option<ActionId>,
}

/// One step, as it is written to the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A task was opened.
    TaskOpened {
        /// The workspace.
        workspace: WorkspaceKey,
        /// Who opened it.
        owner: Principal,
        /// What it is for.
        title: Option<String>,
    },
    /// What is wanted of a task, from its opening on.
    Intake {
        /// All of it.
        intake: Box<Intake>,
    },
    /// A request for a task was refused: it lacks something for its level.
    IntakeRefused {
        /// The request.
        intake: Box<Intake>,
        /// What it lacks, one sentence for each.
        why: Vec<String>,
    },
    /// A stage of a task was passed.
    Stage {
        /// The stage.
        stage: Stage,
        /// How often the task came to a proposal, counted from one.
        round: u32,
        /// What was done in it.
        work: StageWork,
        /// What it might touch.
        grant: StageGrant,
        /// The digest of the record of the stage before it.
        previous: Option<Digest>,
    },
    /// An action was asked for and parsed.
    Requested {
        /// The digest that everything later refers to.
        digest: Digest,
        /// Who asked.
        principal: Principal,
        /// `action` for what was asked for, `internal` for a helper of ours.
        class: String,
        /// The tool.
        tool: String,
        /// The program and its arguments, or the path of a tool that has one.
        argv: Vec<OsText>,
        /// Names of the environment variables, each with a keyed digest of its value.
        environment: Vec<(String, Digest)>,
        /// What the asker says it is for.
        claimed_purpose: Option<String>,
        /// What was asked for.
        grant: Box<Grant>,
        /// What it starts from.
        start: StartingPoint,
        /// What a command would do, as far as its words say. What was observed is with its end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        declared: Vec<Effect>,
    },
    /// The policy decided.
    Decided {
        /// The digest of the action.
        digest: Digest,
        /// What was decided.
        decision: DecisionRecord,
    },
    /// The policy decided whether an action that needs a person's yes is tried before, on a throwaway layer.
    TrialDecided {
        /// The digest of the action.
        digest: Digest,
        /// What was decided.
        decision: DecisionRecord,
    },
    /// What was denied is remembered for the task.
    DenialRemembered {
        /// What was denied.
        effects: Vec<Effect>,
        /// The stable code of the reason.
        reason: String,
    },
    /// What was denied before was tried in another way.
    DenialMet {
        /// The effect.
        effect: Effect,
        /// The code of the reason for which it was denied.
        reason: String,
        /// The action to which it was denied first.
        first: ActionId,
        /// Whether it was seen while the action ran; else its words said so, and it did not run.
        observed: bool,
        /// In how many other ways it was tried until now.
        ways: u32,
    },
    /// Nothing runs in a task until a person resumes it: a person wants that, or what was denied in it was tried in too
    /// many ways.
    TaskFrozen {
        /// Why, for people.
        why: String,
        /// The person; nothing when it was for what was tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A person stopped something: nothing starts in it until that is lifted.
    Held {
        /// The hold.
        hold: HoldId,
        /// What it covers.
        scope: HoldScope,
        /// Who gave it.
        by: Principal,
        /// Why.
        reason: String,
        /// Why it may have been no person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doubt: Option<String>,
    },
    /// What was held may start again.
    HoldLifted {
        /// The hold.
        hold: HoldId,
        /// Who lifted it.
        by: Principal,
        /// Why.
        reason: String,
    },
    /// A person ordered that something stays whatever its retention.
    LegalHoldGiven {
        /// The hold.
        hold: LegalHoldId,
        /// What it covers.
        scope: LegalScope,
        /// The tasks that it covered then.
        tasks: Vec<TaskId>,
        /// Who gave it.
        by: Principal,
        /// Why.
        reason: String,
        /// Why it may have been no person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doubt: Option<String>,
    },
    /// What had to stay is under its retention again.
    LegalHoldLifted {
        /// The hold.
        hold: LegalHoldId,
        /// Who lifted it.
        by: Principal,
        /// Why.
        reason: String,
    },
    /// A person was asked.
    ApprovalAsked {
        /// The request.
        approval: ApprovalId,
        /// The digest of the action that a yes would cover.
        digest: Digest,
        /// Whose yes is missing, as quorums ([`crate::quorum`]).
        roles: Vec<String>,
        /// The accounts whose yes is the owner's own.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        owners: BTreeSet<u32>,
        /// When it ends, by the wall clock.
        expires: Timestamp,
    },
    /// The very same thing was asked for before, and nobody was asked again.
    ApprovalAskedAgain {
        /// The request that stands for it.
        approval: ApprovalId,
        /// Where that stood.
        state: ApprovalState,
        /// The reason of a no.
        why: Option<String>,
    },
    /// Nobody was asked.
    ApprovalNotAsked {
        /// Why.
        why: String,
    },
    /// A person answered.
    ApprovalAnswered {
        /// The request.
        approval: ApprovalId,
        /// What was answered, by whom and why.
        answer: ApprovalAnswer,
    },
    /// A request for a person's yes came to its end.
    ApprovalClosed {
        /// The request.
        approval: ApprovalId,
        /// How.
        state: ApprovalState,
        /// Why, for people.
        why: String,
    },
    /// An answer to a request was refused: it had ended, or came from whom no answer is taken.
    ApprovalRefused {
        /// The request.
        approval: ApprovalId,
        /// Who tried.
        by: Principal,
        /// Why it was refused.
        why: String,
        /// The name of the file that it stood in, when it came from another account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// A request was written down for people who answer from accounts of their own.
    ApprovalExported {
        /// The request.
        approval: ApprovalId,
        /// Digest of the text that they are shown.
        text: Digest,
    },
    /// A sandbox was built for an action, and proved.
    Started {
        /// The backend.
        backend: String,
        /// How each layer is held.
        held: Vec<Held>,
        /// What the prober tried and saw.
        probes: Vec<Probe>,
        /// Credential files that were masked.
        masked: Vec<OsText>,
    },
    /// The gateway of an action serves: the one that was started with its sandbox, or another one after that had ended.
    GatewayStarted {
        /// The rules that it decides by, as they are written.
        rules: Vec<String>,
        /// What it tried and saw when it had confined itself.
        probes: Vec<Probe>,
    },
    /// What was tried through the gateway, in the order in which it told.
    NetworkAttempts {
        /// The attempts.
        attempts: Vec<Attempt>,
        /// How many more there were than it could tell.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
    },
    /// An action has a credential from now on: its gateway puts it into requests, and nothing inside sees it.
    CredentialLeased {
        /// The credential.
        credential: String,
        /// Who answers for it.
        owner: String,
        /// What it is for, as the rules are written.
        rules: Vec<String>,
        /// When it ends at the latest, by the wall clock.
        expires: Timestamp,
    },
    /// An action has a credential no longer.
    CredentialEnded {
        /// The credential.
        credential: String,
        /// Why.
        why: String,
    },
    /// A person took a credential back: no action gets it until it is rotated.
    CredentialRevoked {
        /// The credential.
        credential: String,
        /// Who did it.
        by: Principal,
        /// Why.
        reason: String,
    },
    /// A person put another value in the place of one: what had the old one lost it.
    CredentialRotated {
        /// The credential.
        credential: String,
        /// Who did it.
        by: Principal,
    },
    /// The gateway saw something about credentials that a person should hear of.
    CredentialAlert {
        /// What.
        alert: CredentialAlert,
    },
    /// The gateway of an action ended before the action did, or was closed. What it had not told yet is not on the record.
    GatewayEnded {
        /// Why.
        why: String,
        /// Whether another one is started; else nothing is reached any longer.
        again: bool,
    },
    /// An action did not start.
    NotStarted {
        /// Why, for people.
        reason: String,
        /// Layers that could not be held.
        shortfalls: Vec<Shortfall>,
        /// Probes that did not hold.
        failed_probes: Vec<Probe>,
    },
    /// A command ended.
    Ended {
        /// How.
        ending: Ending,
        /// What it used.
        usage: Usage,
        /// What was seen.
        observed: Box<Observed>,
        /// How long each step took.
        steps: Vec<StepTime>,
        /// Digest and number of bytes that were printed, and of how many were dropped, for each stream.
        output: Vec<OutputRecord>,
    },
    /// What came out was looked at.
    Inspected {
        /// What changed.
        changes: Vec<Change>,
        /// How many more changes there are than are listed.
        changes_dropped: u64,
        /// What must wait for a person, with the reason.
        held_back: Vec<HeldBack>,
        /// What of a live base the host edited meanwhile, as far as that was seen; `.` is its top. Such a run is no
        /// evidence of anything.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        host_edits: Vec<OsText>,
    },
    /// The sandbox is gone, and that was checked.
    TornDown {
        /// What was found.
        teardown: Teardown,
    },
    /// Changes were written to the host's directory.
    Applied {
        /// What was written.
        changes: Vec<Change>,
        /// What was not, with the reason.
        held_back: Vec<HeldBack>,
        /// The name by which it was announced before it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<ActionId>,
    },
    /// Changes that had been written to the host's directory were taken back.
    AppliedUndone {
        /// What was put back.
        changes: Vec<Change>,
        /// What was not, with the reason.
        held_back: Vec<HeldBack>,
        /// The name by which it was announced before it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<ActionId>,
    },
    /// Commits that were made inside came to the host's repository, as a branch of their own.
    CommitsImported {
        /// The branch.
        branch: String,
        /// The commit that it names.
        commit: String,
        /// The commits that are new with it.
        number: u64,
        /// The helper that fetched them.
        by: ActionId,
    },
    /// The newest layers were taken off the task.
    Undone {
        /// The layers.
        layers: Vec<ActionId>,
    },
    /// A task was forked off another.
    Forked {
        /// The task it came from.
        from: TaskId,
        /// The layers that both share.
        layers: Vec<ActionId>,
    },
    /// A task came to another state.
    TaskState {
        /// The state.
        state: crate::task::TaskState,
        /// Who brought it there, where a person had to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A model was asked and answered; texts are kept by digest.
    ModelTurn {
        /// The model.
        model: String,
        /// Digest of the request's body.
        request: Digest,
        /// Digest of the response's body.
        response: Digest,
        /// Digest of the request's body as it was kept, with tokens where secrets were; nothing when it was not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Digest>,
        /// Tokens in, of which were cached, and out.
        tokens: TokenUsage,
    },
    /// Somebody read content that is kept about an action.
    RecordRead {
        /// The class.
        class: ContentClass,
        /// Who.
        by: Principal,
    },
    /// A commit was checked out for a task, which starts from there.
    BaseMade {
        /// The commit's full name.
        commit: String,
        /// The helper of ours that did it; nothing when it had been done for an earlier task.
        by: Option<ActionId>,
    },
    /// A process was started that asks a model what to do in a task.
    AgentStarted {
        /// The model that is asked.
        model: String,
        /// Where it answers.
        server: String,
        /// Digest of the transcript that is played in its place, when one is.
        transcript: Option<Digest>,
        /// Whether the task starts from a commit, and not from the directory as it stands.
        from_commit: bool,
        /// How many answers of the model the task may take.
        turns: u32,
        /// What its actions ask for.
        profile: Box<Profile>,
    },
    /// The process that holds the model key showed that it cannot start programs.
    AgentConfined {
        /// What it tried and saw.
        probes: Vec<Probe>,
    },
    /// The process that asks a model ended.
    AgentEnded {
        /// Whether the model said that the task is done.
        finished: bool,
        /// `finished`, `stopped`, or the code of what kept it from going on.
        reason: String,
    },
    /// Leftovers of a run whose owner died were found and removed.
    Recovered {
        /// What was removed.
        removed: Vec<String>,
        /// Actions whose end nobody saw.
        unknown: Vec<ActionId>,
    },
    /// A signed head of the record could not be kept elsewhere. The next one that gets there vouches for what this one did.
    AnchorFailed {
        /// How many records the head is over.
        records: u64,
        /// Where it was to be kept.
        file: OsText,
        /// Why it was not.
        why: String,
    },
    /// Something whose retention ended was removed.
    Removed {
        /// The layers and outputs.
        layers: Vec<ActionId>,
        /// Checked out commits, by the names of their directories.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bases: Vec<String>,
        /// What it was, by classes, with the bytes that it held.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        classes: Vec<RemovedOf>,
    },
    /// The content of older events was taken out of the record. What is left of each is a stub.
    RecordPruned {
        /// Their class.
        class: EventClass,
        /// Each was recorded before this.
        before: Timestamp,
        /// Which.
        records: Vec<RecordRange>,
        /// Who took it out.
        by: Principal,
        /// Why.
        reason: String,
    },
    /// What is left of an event whose content was taken out. It is never appended: it stands where the event stood.
    Pruned {
        /// The name of the event.
        was: String,
        /// The digest of its text.
        content: Digest,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A decision, as the record holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// Allowed, allowed with less, to be approved, or denied.
    pub verdict: Verdict,
    /// The rules that decided.
    pub rules: Vec<String>,
    /// A stable code for programs.
    pub reason: String,
    /// What the asker may do instead.
    pub advice: String,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
    /// The grant that was given, when one was.
    pub grant: Option<Grant>,
    /// Digest of the policy that decided.
    pub policy: Digest,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As asked.
    Allow,
    /// With a smaller grant than asked.
    Narrow,
    /// When a person says yes.
    RequireApproval,
    /// No.
    Deny,
}

/// Something that must wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// What.
    pub path: OsText,
    /// A stable code.
    pub reason: String,
    /// A sentence for people.
    pub why: String,
}

/// One output stream, as the record holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// `stdout`, `stderr` or `terminal`.
    pub stream: String,
    /// Digest of the bytes that were kept.
    pub digest: Digest,
    /// Bytes that were kept.
    pub kept: u64,
    /// Bytes that were dropped.
    pub dropped: u64,
}

/// Tokens of one model call, as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the prompt that the server had in its cache.
    pub prompt_cache_hit: u64,
    /// Tokens of the prompt that it had not.
    pub prompt_cache_miss: u64,
    /// Tokens of the answer.
    pub completion: u64,
}

/// Names every event. The match makes sure that none is left out.
macro_rules! names {
    ($($event:ident => $name:literal,)+) => {
        impl Event {
            /// The names by which the record lists events.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Returns the name by which the record lists the event.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$event { .. } => $name,)+
                }
            }
        }
    };
}

names! {
    TaskOpened => "task-opened",
    Intake => "intake",
    IntakeRefused => "intake-refused",
    Stage => "stage",
    Requested => "requested",
    Decided => "decided",
    TrialDecided => "trial-decided",
    DenialRemembered => "denial-remembered",
    DenialMet => "denial-met",
    TaskFrozen => "task-frozen",
    Held => "held",
    HoldLifted => "hold-lifted",
    LegalHoldGiven => "legal-hold-given",
    LegalHoldLifted => "legal-hold-lifted",
    ApprovalAsked => "approval-asked",
    ApprovalAskedAgain => "approval-asked-again",
    ApprovalNotAsked => "approval-not-asked",
    ApprovalAnswered => "approval-answered",
    ApprovalClosed => "approval-closed",
    ApprovalRefused => "approval-refused",
    ApprovalExported => "approval-exported",
    Started => "started",
    GatewayStarted => "gateway-started",
    NetworkAttempts => "network-attempts",
    CredentialLeased => "credential-leased",
    CredentialEnded => "credential-ended",
    CredentialRevoked => "credential-revoked",
    CredentialRotated => "credential-rotated",
    CredentialAlert => "credential-alert",
    GatewayEnded => "gateway-ended",
    NotStarted => "not-started",
    Ended => "ended",
    Inspected => "inspected",
    TornDown => "torn-down",
    Applied => "applied",
    AppliedUndone => "applied-undone",
    CommitsImported => "commits-imported",
    Undone => "undone",
    Forked => "forked",
    TaskState => "task-state",
    ModelTurn => "model-turn",
    RecordRead => "record-read",
    BaseMade => "base-made",
    AgentStarted => "agent-started",
    AgentConfined => "agent-confined",
    AgentEnded => "agent-ended",
    Recovered => "recovered",
    AnchorFailed => "anchor-failed",
    Removed => "removed",
    RecordPruned => "record-pruned",
    Pruned => "pruned",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_the_name_that_it_is_written_with() {
        // What reads a record knows every variant, and says so of a name that is none.
        let error = serde_json::from_str::<Event>(r#"{"event":"no-such-event"}"#).expect_err("is no event");
        let text = error.to_string();
        let (_, known) = text.split_once("expected one of ").expect("names them");
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        assert_eq!(known, Event::NAMES);
    }
}
