//! Everything that is known about one action, put together from its events.

mod parts;

use std::time::Duration;

use model::action::{Base, Principal, StartingPoint};
use model::change::Change;
use model::egress::{Attempt, NetworkUse};
use model::enforcement::{Held, Shortfall};
use model::event::{DecisionRecord, Event, HeldBack, Verdict};
use model::evidence::{Observed, Probe, Teardown};
use model::grant::{Input, Network, WorkspaceAccess};
use model::{ActionId, Ending, OsText, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::schemas as schema;
use super::{ApprovalPart, EffectRow, Moment, Name, milliseconds, moment};

/// `show --json`, and the outcome of `run --json`: everything that is known about one action.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ActionDocument {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// The task that it belongs to.
    #[schemars(with = "Option<String>")]
    pub task: Option<TaskId>,
    /// How far it came.
    pub state: State,
    /// Whether the command ran: `unknown` when nobody saw its end.
    pub ran: Ran,
    /// The exit code that `run` leaves with for this action; missing while it runs or when nobody saw its end.
    pub exit_code: Option<u8>,
    /// What was asked for.
    pub request: Option<RequestPart>,
    /// What policy decided.
    pub decision: Option<DecisionPart>,
    /// What it asked for or did although that was denied before in its task.
    pub denied_before: Vec<DeniedPart>,
    /// The request for a person's yes that it came to, when it needs one.
    pub approval: Option<ApprovalPart>,
    /// Why no person was asked although it needs a yes; `null` when one was.
    pub not_asked: Option<String>,
    /// How each layer was held; empty when no sandbox stood.
    #[schemars(schema_with = "schema::held")]
    pub held: Vec<Held>,
    /// The sandbox, and the proof that it held before the command started.
    pub sandbox: Option<SandboxPart>,
    /// Why it did not start.
    pub not_started: Option<NotStartedPart>,
    /// What was tried over the network so far, of a command that has not ended; else it stands in `end.observed`.
    #[schemars(schema_with = "schema::network_so_far")]
    pub network_so_far: Option<NetworkUse>,
    /// How the command ended.
    pub end: Option<EndPart>,
    /// What came out.
    pub inspection: Option<InspectionPart>,
    /// What was found when the sandbox was gone.
    #[schemars(schema_with = "schema::teardown")]
    pub teardown: Option<Teardown>,
    /// What was written to the host's directory, or taken back from it.
    pub applied: Vec<AppliedPart>,
    /// Whether its layer was taken off the task.
    pub undone: bool,
    /// The actions that were given its network, oldest first.
    pub joined_by: Vec<JoiningPart>,
    /// The events about it whose content was taken out of the record; what they said is missing here.
    pub pruned: Vec<String>,
}

/// An action that was given the network of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JoiningPart {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Its task: that of the other one, or a fork of it.
    #[schemars(with = "String")]
    pub task: TaskId,
}

/// Something that was denied before and was tried again in another way, or that policy denies and the action was seen to do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeniedPart {
    /// What.
    pub effect: EffectRow,
    /// The code of the reason for which it was denied.
    pub reason: String,
    /// The action to which it was denied first.
    #[schemars(with = "String")]
    pub first: ActionId,
    /// Whether it was seen while the action ran, so that nothing of it was kept; else its words said so, and it did not run.
    pub observed: bool,
    /// Whether nobody had denied it before: what this action was seen to do is what policy denies.
    pub is_first: bool,
    /// In how many other ways it was tried until then.
    pub ways: u32,
}

/// How far an action came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was asked for.
    Requested,
    /// The policy allowed it.
    Decided,
    /// The policy did not allow it, or a person must.
    Denied,
    /// It was allowed, and its sandbox could not be built or proved.
    NotStarted,
    /// Its command was started, and has not ended.
    Started,
    /// Its command ended.
    Ended,
    /// It ran on a throwaway layer, and waits for a person's yes.
    Tried,
    /// Nobody saw its end.
    Unknown,
}

/// Whether a command ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ran {
    /// It did not; a trial on a throwaway layer does not count.
    No,
    /// It did.
    Yes,
    /// It may have: we were ended in between.
    Unknown,
}

/// What was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RequestPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// The digest that everything later refers to.
    #[schemars(schema_with = "schema::digest")]
    pub digest: model::Digest,
    /// Who asked.
    #[schemars(schema_with = "schema::principal")]
    pub principal: Principal,
    /// `action`, or `internal` for a helper of ours.
    pub class: String,
    /// The tool.
    pub tool: String,
    /// The program and its arguments, or the path of a tool that has one.
    #[schemars(with = "Vec<Name>")]
    pub argv: Vec<OsText>,
    /// Names of the variables that were set; their values are never recorded.
    pub environment: Vec<String>,
    /// What the asker says it is for.
    pub claimed_purpose: Option<String>,
    /// What a command would do, as far as its words say; what it did is with its end and its inspection.
    pub effects: Vec<EffectRow>,
    /// What was asked for.
    pub grant: GrantPart,
    /// The workspace directory.
    #[schemars(with = "Name")]
    pub workspace: OsText,
    /// The commit that it starts from; `null` for the directory as it stands.
    pub commit: Option<String>,
    /// Whether it starts from the directory as it stands, which others may edit meanwhile.
    pub live: bool,
    /// The layers below, oldest first.
    #[schemars(with = "Vec<String>")]
    pub layers: Vec<ActionId>,
}

/// A grant.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrantPart {
    /// What the action may do with the workspace: `read-only` or `read-write`.
    #[schemars(with = "String")]
    pub workspace: WorkspaceAccess,
    /// What it may reach: `loopback` for its own, `host`, the loopback of the action that it joined, or what rules name.
    #[schemars(schema_with = "schema::network")]
    pub network: Network,
    /// The profile.
    pub profile: String,
    /// What it may use.
    pub limits: LimitsPart,
    /// The programs that it may start; `null` for all that are shown.
    pub programs: Option<Vec<ProgramPart>>,
    /// What is shown read-only.
    #[schemars(schema_with = "schema::inputs")]
    pub inputs: Vec<Input>,
    /// Credential files of the workspace that it may see.
    #[schemars(with = "Vec<Name>")]
    pub shown_credentials: Vec<model::WorkspacePath>,
    /// Whether it may use a terminal.
    pub terminal: bool,
    /// Paths of the workspace that are hidden from it beside what is masked for everybody.
    #[schemars(with = "Vec<Name>")]
    pub hidden: Vec<model::WorkspacePath>,
}

/// A program that an action may start.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProgramPart {
    /// The file.
    #[schemars(with = "Name")]
    pub file: OsText,
    /// What it held when it was granted, as a digest; `null` for whatever it holds.
    #[schemars(with = "Option<String>")]
    pub digest: Option<model::Digest>,
}

/// The most that an action may use.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitsPart {
    /// Memory of all processes together, in bytes.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Thousandths of a processor; `null` for all but a reserve.
    pub millicpus: Option<u32>,
    /// Time, in milliseconds.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub wall_time_ms: Duration,
    /// Bytes in every writable place together.
    pub disk: u64,
    /// Files in every writable place together.
    pub files: u64,
    /// `memory` or `disk`.
    #[schemars(with = "String")]
    pub disk_mode: model::limits::DiskMode,
    /// Bytes kept of each output stream.
    pub output: u64,
    /// Open descriptors of one process.
    pub open_files: u64,
    /// Size of one file, in bytes.
    pub file_size: u64,
}

/// What policy decided.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DecisionPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// `allow`, `narrow`, `require-approval` or `deny`.
    #[schemars(schema_with = "schema::verdict")]
    pub verdict: Verdict,
    /// The rules that decided.
    pub rules: Vec<String>,
    /// A stable code for programs.
    pub reason: String,
    /// What may be done instead.
    pub advice: String,
    /// Whether a person could allow it.
    pub person_may_allow: bool,
    /// The grant that was given, when one was.
    pub grant: Option<GrantPart>,
    /// The digest of the policy.
    #[schemars(schema_with = "schema::digest")]
    pub policy: model::Digest,
}

/// The sandbox, and the proof that it held.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SandboxPart {
    /// When it stood.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// The backend.
    pub backend: String,
    /// What the prober tried and saw.
    #[schemars(schema_with = "schema::probes")]
    pub probes: Vec<Probe>,
    /// Credential files that were masked.
    #[schemars(with = "Vec<Name>")]
    pub masked: Vec<OsText>,
}

/// Why an action did not start.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NotStartedPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// Why, for people.
    pub reason: String,
    /// Layers that could not be held.
    #[schemars(schema_with = "schema::shortfalls")]
    pub shortfalls: Vec<Shortfall>,
    /// Probes that did not hold.
    #[schemars(schema_with = "schema::probes")]
    pub failed_probes: Vec<Probe>,
}

/// How a command ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EndPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// How.
    #[schemars(schema_with = "schema::ending")]
    pub ending: Ending,
    /// What it used.
    pub usage: UsagePart,
    /// What was seen.
    #[schemars(schema_with = "schema::observed")]
    pub observed: Box<Observed>,
    /// How long each step took.
    pub steps: Vec<StepPart>,
    /// What it printed.
    pub output: Vec<OutputPart>,
}

/// What an action used.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UsagePart {
    /// From the start of the command to its end.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub wall_time_ms: Duration,
    /// Processor time of all its processes.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub cpu_time_ms: Duration,
    /// The most memory at once, in bytes.
    pub memory_peak: u64,
    /// The most processes at once.
    pub processes_peak: u32,
    /// Bytes in the writable places at the end.
    pub disk: u64,
    /// Files in the writable places at the end.
    pub files: u64,
    /// Bytes that the command printed.
    pub output: u64,
    /// Memory over time.
    pub memory_byte_seconds: u64,
}

/// How long a step took.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StepPart {
    /// The step.
    pub step: String,
    /// How long.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub time_ms: Duration,
}

/// One output stream.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OutputPart {
    /// `stdout`, `stderr` or `terminal`.
    pub stream: String,
    /// Digest of the bytes that were kept.
    #[schemars(schema_with = "schema::digest")]
    pub digest: model::Digest,
    /// Bytes that were kept.
    pub kept: u64,
    /// Bytes that were dropped.
    pub dropped: u64,
}

/// What came out.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InspectionPart {
    /// What changed.
    pub changes: Vec<ChangePart>,
    /// How many more changes there are than are listed.
    pub changes_dropped: u64,
    /// What must wait for a person.
    #[schemars(schema_with = "schema::held_back")]
    pub held_back: Vec<HeldBack>,
    /// What the host edited while it ran, as far as that was seen; `.` is the top of the workspace.
    #[schemars(with = "Vec<Name>")]
    pub host_edits: Vec<OsText>,
}

/// One file, directory or link that is different now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangePart {
    /// Where it is, from the top of the workspace.
    #[schemars(with = "Name")]
    pub path: model::WorkspacePath,
    /// `created`, `modified` or `deleted`.
    #[schemars(with = "String")]
    pub kind: model::ChangeKind,
    /// `file`, `directory`, `symlink`, `fifo`, `socket` or `device`.
    #[schemars(with = "String")]
    pub file: model::FileKind,
    /// The permission bits, in octal; `null` when it is gone.
    pub mode: Option<String>,
    /// Bytes, or zero.
    pub size: u64,
    /// Whether git ignores it.
    pub ignored: bool,
}

impl ChangePart {
    /// Tells whether git changed it of its own: such a change is never applied, and shown only where it is asked for.
    pub fn is_of_git(&self) -> bool {
        self.path.as_bytes() == b".git" || self.path.as_bytes().starts_with(b".git/")
    }

    /// Tells whether a review shows it without being asked to.
    pub fn is_shown(&self) -> bool {
        !self.ignored && !self.is_of_git()
    }
}

impl InspectionPart {
    /// Returns how many changes a review shows, with those that are not listed.
    pub fn shown(&self) -> u64 {
        self.changes.iter().filter(|change| change.is_shown()).count() as u64 + self.changes_dropped
    }
}

/// What was written to the host's directory, or taken back from it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AppliedPart {
    /// When.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub at: Timestamp,
    /// Whether this took back what an earlier one wrote.
    pub undone: bool,
    /// What was written.
    pub changes: Vec<ChangePart>,
    /// What was not.
    #[schemars(schema_with = "schema::held_back")]
    pub held_back: Vec<HeldBack>,
}

impl ActionDocument {
    /// Puts an action together from its events, oldest first.
    pub fn from_events<'e>(
        action: ActionId,
        events: impl IntoIterator<Item = (Timestamp, &'e Event)>,
    ) -> Self {
        let mut document = Self::empty(action);
        for (at, event) in events {
            document.add(at, event);
        }
        document.settle();
        document
    }

    fn empty(action: ActionId) -> Self {
        Self {
            action,
            task: None,
            state: State::Requested,
            ran: Ran::No,
            exit_code: None,
            request: None,
            decision: None,
            denied_before: Vec::new(),
            approval: None,
            not_asked: None,
            held: Vec::new(),
            sandbox: None,
            not_started: None,
            network_so_far: None,
            end: None,
            inspection: None,
            teardown: None,
            applied: Vec::new(),
            undone: false,
            joined_by: Vec::new(),
            pruned: Vec::new(),
        }
    }

    fn add(&mut self, at: Timestamp, event: &Event) {
        ApprovalPart::add(&mut self.approval, event);
        match event.clone() {
            Event::Requested {
                digest,
                principal,
                class,
                tool,
                argv,
                environment,
                claimed_purpose,
                grant,
                start,
                declared,
            } => {
                let StartingPoint { workspace, base, layers } = start;
                let environment = environment.into_iter().map(|(name, _)| name).collect();
                let (live, commit) = match base {
                    Base::Live => (true, None),
                    Base::Commit { commit } => (false, Some(commit)),
                };
                let grant = GrantPart::from(*grant);
                let part = RequestPart {
                    at,
                    digest,
                    principal,
                    class,
                    tool,
                    argv,
                    environment,
                    claimed_purpose,
                    effects: declared.iter().map(EffectRow::from).collect(),
                    grant,
                    workspace,
                    commit,
                    live,
                    layers,
                };
                self.request = Some(part);
            }
            Event::Decided { decision, .. } => self.decision = Some(DecisionPart::new(at, decision)),
            Event::DenialMet { effect, reason, first, observed, ways } => {
                let effect = EffectRow::from(&effect);
                let is_first = first == self.action;
                self.denied_before.push(DeniedPart { effect, reason, first, observed, is_first, ways });
            }
            Event::ApprovalNotAsked { why } => self.not_asked = Some(why),
            Event::Started { backend, held, probes, masked } => {
                self.held = held;
                self.sandbox = Some(SandboxPart { at, backend, probes, masked });
            }
            Event::NotStarted { reason, shortfalls, failed_probes } => {
                self.not_started = Some(NotStartedPart { at, reason, shortfalls, failed_probes });
            }
            Event::NetworkAttempts { attempts, dropped } => self.tried(&attempts, dropped),
            Event::Ended { ending, usage, observed, steps, output } => {
                self.network_so_far = None;
                let steps = steps.into_iter().map(StepPart::from).collect();
                let output = output.into_iter().map(OutputPart::from).collect();
                self.end = Some(EndPart { at, ending, usage: usage.into(), observed, steps, output });
            }
            Event::Inspected { changes, changes_dropped, held_back, host_edits } => {
                let changes = changes.into_iter().map(ChangePart::from).collect();
                self.inspection = Some(InspectionPart { changes, changes_dropped, held_back, host_edits });
            }
            Event::TornDown { teardown } => self.teardown = Some(teardown),
            Event::Applied { changes, held_back, .. } => self.applied(at, false, changes, held_back),
            Event::AppliedUndone { changes, held_back, .. } => self.applied(at, true, changes, held_back),
            Event::Undone { layers } => self.undone |= layers.contains(&self.action),
            Event::Pruned { was, .. } => self.pruned.push(was),
            _ => {}
        }
    }

    fn tried(&mut self, attempts: &[Attempt], dropped: u64) {
        let network = self.network_so_far.get_or_insert_default();
        attempts.iter().for_each(|attempt| network.add(attempt));
        network.untold += dropped;
    }

    fn applied(&mut self, at: Timestamp, undone: bool, changes: Vec<Change>, held_back: Vec<HeldBack>) {
        let changes = changes.into_iter().map(ChangePart::from).collect();
        self.applied.push(AppliedPart { at, undone, changes, held_back });
    }

    /// Returns what it was seen to do although that was denied before: then nothing of it was kept.
    pub fn evaded(&self) -> Option<&DeniedPart> {
        self.denied_before.iter().find(|part| part.observed)
    }

    /// Says what the events together mean: whether the command ran, and with which code `run` left.
    pub(super) fn settle(&mut self) {
        use crate::exit::Exit;
        let allowed = self.decision.as_ref().map(DecisionPart::is_yes);
        if self.is_only_tried() {
            let waits = self.approval.as_ref().is_some_and(|approval| !approval.state.is_final());
            let state = if waits { State::Tried } else { State::Denied };
            (self.state, self.ran, self.exit_code) = (state, Ran::No, Some(Exit::Denied.code()));
            return;
        }
        (self.state, self.ran, self.exit_code) = match (&self.end, &self.not_started, &self.sandbox, allowed)
        {
            (Some(end), ..) => {
                let never = never_ran(&end.ending);
                (State::Ended, if never { Ran::No } else { Ran::Yes }, Some(Exit::of(&end.ending).code()))
            }
            (None, Some(_), ..) => (State::NotStarted, Ran::No, Some(Exit::Failed.code())),
            (None, None, Some(_), _) => (State::Started, Ran::Unknown, None),
            (None, None, None, Some(false)) => (State::Denied, Ran::No, Some(Exit::Denied.code())),
            (None, None, None, Some(true)) => (State::Decided, Ran::No, None),
            (None, None, None, None) => (State::Requested, Ran::No, None),
        };
    }

    /// Tells whether the content of an event about it was taken out of the record.
    pub fn is_pruned(&self, event: &str) -> bool {
        self.pruned.iter().any(|was| was == event)
    }

    /// Says how it ended where the event that said so was pruned.
    pub fn ended_as(&mut self, ending: &Ending) {
        use crate::exit::Exit;
        let allowed = self.decision.as_ref().is_some_and(DecisionPart::is_yes);
        if self.is_pruned("ended") && allowed {
            let ran = if never_ran(ending) { Ran::No } else { Ran::Yes };
            (self.state, self.ran, self.exit_code) = (State::Ended, ran, Some(Exit::of(ending).code()));
        }
    }

    /// Returns the action whose network it asked to join.
    pub fn joins(&self) -> Option<&ActionId> {
        self.request.as_ref()?.grant.network.joined()
    }

    /// Returns the command as a person would have typed it, escaped.
    pub fn command(&self) -> String {
        let Some(request) = &self.request else {
            return if self.is_pruned("requested") { "[pruned]" } else { "?" }.to_owned();
        };
        let argv: Vec<String> = request.argv.iter().map(shell_word).collect();
        match request.tool.as_str() {
            "run" => argv.join(" "),
            tool => format!("{tool} {}", argv.join(" ")).trim_end().to_owned(),
        }
    }
}

fn never_ran(ending: &Ending) -> bool {
    matches!(ending, Ending::NotFound | Ending::NotExecutable { .. } | Ending::NoDirectory { .. })
}

/// Writes an argument so that its end can be seen: in quotes where it holds a blank or a quote, or is empty.
pub(crate) fn shell_word(argument: &OsText) -> String {
    let shown = argument.to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+\\".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) {
        shown
    } else {
        format!("'{}'", shown.replace('\'', "'\\''"))
    }
}

impl DecisionPart {
    fn new(at: Timestamp, decision: DecisionRecord) -> Self {
        let DecisionRecord { verdict, rules, reason, advice, person_may_allow, grant, policy } = decision;
        let grant = grant.map(GrantPart::from);
        Self { at, verdict, rules, reason, advice, person_may_allow, grant, policy }
    }

    /// Tells whether the action was allowed, with or without less than it asked for.
    pub fn is_yes(&self) -> bool {
        matches!(self.verdict, Verdict::Allow | Verdict::Narrow)
    }
}
