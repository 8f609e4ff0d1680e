//! A request as it is written for policy: on standard input, in the examples of rules and in decision tables.
//!
//! Guarantees: there is one form for all of them, an unknown key is refused, and what becomes of it is decided in the
//! way in which a run is: the same parsing, the same reading of effects, the same gate.

use std::collections::{BTreeMap, BTreeSet};

use engine::{ApplyMode, describe};
use gate::{Apply, ApplySource, Approval, Classes, Decision, Facts, Gate, OtherAction, Progress, Subject};
use model::action::{Base, Principal, StartingPoint};
use model::egress::RuleError;
use model::event::DecisionRecord;
use model::grant::{Input, Network, WorkspaceAccess};
use model::text::escape;
use model::{
    Action, ActionId, ActionRequest, Bytes, Change, ChangeKind, Digest, Effect, EgressRule, FileKind, Grant,
    Limits, OsText, Profile, Quorum, TaskId, Timestamp, Tool, WorkspacePath,
};
use serde::Deserialize;

use crate::output::shape::PolicyAnswer;

/// When these decisions are made, as far as an approval is concerned.
const NOW: Timestamp = Timestamp::from_nanos(1);
const LATER: Timestamp = Timestamp::from_nanos(2);
/// The account of the owner; those of others follow.
const OWNER: u32 = 0;

/// A request. It names one thing to be done; the rest is what it asks for beside, and facts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Asked {
    argv: Option<Vec<OsText>>,
    shell: Option<String>,
    read: Option<WorkspacePath>,
    list: Option<OsText>,
    search: Option<OsText>,
    write: Option<WorkspacePath>,
    apply: Option<AskedApply>,
    cwd: Option<OsText>,
    env: BTreeMap<String, OsText>,
    #[serde(rename = "as")]
    by: Option<String>,
    read_only: bool,
    network: Option<AskedNetwork>,
    /// The rules for what it is to reach through the gateway.
    reach: Vec<RuleText>,
    /// The rules that the settings have for that.
    named: Vec<RuleText>,
    joins: Option<AskedJoin>,
    terminal: bool,
    credentials: Vec<WorkspacePath>,
    input: Option<AskedInput>,
    limits: AskedLimits,
    classes: Option<BTreeMap<WorkspacePath, Classes>>,
    approvals: BTreeSet<Quorum>,
}

/// Changes to be written to the host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedApply {
    mode: AskedMode,
    #[serde(default)]
    classes: Classes,
    #[serde(default = "ordinary_file")]
    kinds: Vec<FileKind>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AskedMode {
    Ask,
    Clean,
    Always,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AskedNetwork {
    Host,
}

/// A rule for the network, as people write it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct RuleText(EgressRule);

impl TryFrom<String> for RuleText {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse().map(Self)
    }
}

/// The network of another action, and what is known of that.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedJoin {
    same_task: bool,
    running: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedInput {
    source: OsText,
    named_by_person: bool,
}

/// Limits that are asked for instead of the profile's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct AskedLimits {
    memory: Option<u64>,
    processes: Option<u32>,
    disk: Option<u64>,
    files: Option<u64>,
    output: Option<u64>,
    open_files: Option<u64>,
    file_size: Option<u64>,
}

/// Where a request is made, and by whom where it does not say.
pub(super) struct Scene {
    pub(super) workspace: OsText,
    /// Where a command starts, from the top.
    pub(super) directory: Option<WorkspacePath>,
    pub(super) by: Principal,
    pub(super) profile: Profile,
}

/// Something that can be decided, as often as one likes.
pub(super) enum Case {
    Action(Box<ActionCase>),
    Apply(Box<ApplyCase>),
}

pub(super) struct ActionCase {
    pub(super) action: Action,
    pub(super) facts: Facts,
    /// What it would do, as far as its words say.
    pub(super) effects: Vec<Effect>,
}

pub(super) struct ApplyCase {
    pub(super) by: Principal,
    pub(super) workspace: OsText,
    asked: AskedApply,
    approvals: BTreeSet<Quorum>,
}

/// What was decided.
pub(super) struct Decided {
    pub(super) answer: PolicyAnswer,
    pub(super) record: DecisionRecord,
    /// The roles whose yes is missing.
    pub(super) roles: Vec<String>,
}

fn ordinary_file() -> Vec<FileKind> {
    vec![FileKind::File]
}

impl Scene {
    /// A place that is the same on every machine, under the profile that ships with the program.
    pub(super) fn neutral() -> Self {
        Self {
            workspace: OsText::literal("/workspace"),
            directory: None,
            by: Principal::Agent("an agent".to_owned()),
            profile: Profile::default_profile(),
        }
    }
}

impl Asked {
    /// Asks for a command.
    pub(super) fn command(argv: Vec<OsText>) -> Self {
        Self { argv: Some(argv), ..Self::default() }
    }

    /// Asks for a command that is to reach something, where the settings name this.
    pub(super) fn reaching(rule: EgressRule, named: BTreeSet<EgressRule>) -> Self {
        let (reach, named) = (vec![RuleText(rule)], named.into_iter().map(RuleText).collect());
        Self { reach, named, ..Self::command(vec![OsText::literal("true")]) }
    }

    /// Reads a request: one JSON object.
    ///
    /// # Errors
    /// Says what is not understood.
    pub(super) fn from_json(text: &[u8]) -> Result<Self, String> {
        // A list would be taken for the fields in their order.
        if !text.trim_ascii_start().starts_with(b"{") {
            return Err("it is no JSON object".to_owned());
        }
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }

    /// Reads a request that stands in one line: an object in JSON or TOML, or a command. A command of plain words is that
    /// command, any other is a script.
    ///
    /// # Errors
    /// Says what is not understood.
    pub(super) fn from_line(line: &str) -> Result<Self, String> {
        if let Some(inner) = line.strip_prefix('{') {
            return match inner.trim_start().starts_with(['"', '}']) {
                true => Self::from_json(line.as_bytes()),
                false => from_toml(line),
            };
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || " _./:=@%+,-".contains(c);
        if !line.chars().all(plain) {
            return Ok(Self { shell: Some(line.to_owned()), ..Self::default() });
        }
        Ok(Self::command(line.split_ascii_whitespace().map(OsText::literal).collect()))
    }

    /// Takes out where it starts, to be looked at with the workspace in hand.
    pub(super) fn take_cwd(&mut self) -> Option<OsText> {
        self.cwd.take()
    }

    /// Makes of it what is decided.
    ///
    /// # Errors
    /// When it names no thing to be done or several, or names something that cannot be.
    pub(super) fn case(self, scene: Scene) -> Result<Case, String> {
        let by = self.by.as_deref().map_or(Ok(scene.by.clone()), principal)?;
        if let Some(asked) = self.apply.clone() {
            if self.tool()?.is_some() {
                return Err("a request has either `apply` or something that is to be run".to_owned());
            }
            let workspace = scene.workspace;
            return Ok(Case::Apply(Box::new(ApplyCase { by, workspace, asked, approvals: self.approvals })));
        }
        let tool = self
            .tool()?
            .ok_or("a request has either `argv` or `shell`, or names another tool: give one of them")?;
        let directory = match (&tool, &self.cwd) {
            (Tool::Run { .. }, Some(cwd)) => directory(cwd)?,
            (Tool::Run { .. }, None) => scene.directory.clone(),
            _ => None,
        };
        let environment = self.env.clone();
        let request = ActionRequest { principal: by, tool, directory, environment, purpose: None };
        self.action(request, scene).map(Box::new).map(Case::Action)
    }

    fn tool(&self) -> Result<Option<Tool>, String> {
        let below = |path: &OsText| match path.as_bytes() {
            b"." => Ok(None),
            _ => WorkspacePath::parse(path.as_path()).map(Some).map_err(|error| error.to_string()),
        };
        let script = |text: &String| {
            let script = OsText::new(text.clone()).map_err(|error| error.to_string())?;
            Ok::<_, String>(Tool::Run { argv: vec![OsText::literal("sh"), OsText::literal("-c"), script] })
        };
        let tools = [
            self.argv.clone().map(|argv| Tool::Run { argv }),
            self.shell.as_ref().map(script).transpose()?,
            self.read.clone().map(|path| Tool::Read { path }),
            self.list.as_ref().map(|path| below(path).map(|path| Tool::List { path })).transpose()?,
            self.search
                .as_ref()
                .map(|path| below(path).map(|path| Tool::Search { pattern: "x".to_owned(), path }))
                .transpose()?,
            self.write.clone().map(|path| Tool::Write { path, content: String::new() }),
        ];
        let mut tools = tools.into_iter().flatten();
        match (tools.next(), tools.next()) {
            (tool, None) => Ok(tool),
            _ => {
                Err("a request has either `argv` or `shell`, or names another tool: give one of them"
                    .to_owned())
            }
        }
    }

    fn action(self, request: ActionRequest, scene: Scene) -> Result<ActionCase, String> {
        let grant = self.grant(scene.profile.clone());
        let start = StartingPoint { workspace: scene.workspace, base: Base::Live, layers: Vec::new() };
        // Nothing is run or kept, so nothing needs a name.
        let (id, task) = (ActionId::from_random([0; 10]), TaskId::from_random([0; 10]));
        let action = Action::parse(id, task, request, grant, start).map_err(|error| error.to_string())?;
        let described = describe(&action);
        let named = |input: &AskedInput| input.named_by_person;
        let inputs =
            if self.input.as_ref().is_some_and(named) { action.grant().inputs.clone() } else { Vec::new() };
        let progress = |running| if running { Progress::Running } else { Progress::Ended };
        let approve = |quorum: &Quorum| approvals(action.digest(), quorum);
        let facts = Facts {
            inputs,
            egress: self.named.iter().map(|rule| rule.0.clone()).collect(),
            declared: described.declared.clone(),
            classes: self.classes.unwrap_or(described.classes),
            joined: self.joins.map(|AskedJoin { same_task, running }| OtherAction {
                same_task,
                progress: progress(running),
            }),
            approvals: self.approvals.iter().flat_map(approve).collect(),
            owners: owners(),
            ..Facts::new(scene.profile, NOW)
        };
        let effects = described.declared.into_iter().flatten().collect();
        Ok(ActionCase { action, facts, effects })
    }

    fn grant(&self, profile: Profile) -> Grant {
        let mut grant = Grant::under(profile);
        self.limits.ask_for(&mut grant.profile.limits);
        if self.read_only {
            grant.workspace = WorkspaceAccess::ReadOnly;
        }
        if let Some(AskedNetwork::Host) = self.network {
            grant.network = Network::Host;
        }
        if !self.reach.is_empty() {
            grant.network = Network::Egress(self.reach.iter().map(|rule| rule.0.clone()).collect());
        }
        if self.joins.is_some() {
            grant.network = Network::Joined(ActionId::from_random([1; 10]));
        }
        let input = |input: &AskedInput| Input { name: "input".to_owned(), source: input.source.clone() };
        grant.inputs = self.input.iter().map(input).collect();
        grant.shown_credentials.clone_from(&self.credentials);
        grant.terminal = self.terminal;
        grant
    }
}

impl AskedLimits {
    fn ask_for(&self, limits: &mut Limits) {
        fn set<T, U>(asked: Option<T>, limit: &mut U, value: impl FnOnce(T) -> U) {
            if let Some(asked) = asked {
                *limit = value(asked);
            }
        }
        set(self.memory, &mut limits.memory, Bytes::new);
        set(self.processes, &mut limits.processes, |number| number);
        set(self.disk, &mut limits.disk, Bytes::new);
        set(self.files, &mut limits.files, |number| number);
        set(self.output, &mut limits.output, Bytes::new);
        set(self.open_files, &mut limits.open_files, |number| number);
        set(self.file_size, &mut limits.file_size, Bytes::new);
    }
}

/// Reads an inline table: its texts can stand in single quotes, which need no escape inside a rule.
fn from_toml(line: &str) -> Result<Asked, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct One {
        request: Asked,
    }
    let one: Result<One, _> = toml::from_str(&format!("request = {line}"));
    one.map(|one| one.request).map_err(|error| error.message().to_owned())
}

fn directory(cwd: &OsText) -> Result<Option<WorkspacePath>, String> {
    if cwd.as_bytes() == b"." {
        return Ok(None);
    }
    WorkspacePath::parse(cwd.as_path()).map(Some).map_err(|error| error.to_string())
}

fn principal(word: &str) -> Result<Principal, String> {
    match word.split_once(':').unwrap_or((word, "")) {
        ("agent", "") => Ok(Principal::Agent("an agent".to_owned())),
        ("user", "") => Ok(Principal::User("a user".to_owned())),
        ("agent", name) => Ok(Principal::Agent(name.to_owned())),
        ("user", name) => Ok(Principal::User(name.to_owned())),
        _ => Err(format!(
            "nobody is called `{}`: write `agent`, `agent:NAME`, `user` or `user:NAME`",
            escape(word)
        )),
    }
}

/// Returns the accounts of whoever owns what is asked.
pub(super) fn owners() -> BTreeSet<u32> {
    [OWNER].into()
}

/// Returns the yes of so many people, the owner among them where they count.
fn approvals(subject: Digest, quorum: &Quorum) -> Vec<Approval> {
    let first = OWNER + u32::from(quorum.is_without_owner());
    let accounts = first..first + u32::from(quorum.people());
    let approval = |account| Approval {
        subject,
        approver: Principal::User("somebody".to_owned()),
        account,
        role: quorum.role().to_owned(),
        expires: LATER,
    };
    accounts.map(approval).collect()
}

impl Case {
    /// Says what policy answers.
    pub(super) fn decide(&self, gate: &Gate) -> Decided {
        match self {
            Self::Action(case) => Decided::of(&gate.decide(case.action.clone(), &case.facts)),
            Self::Apply(case) => {
                let apply = case.apply();
                let (approvals, now) = case.approvals_of(&apply);
                Decided::of(&gate.decide_apply(apply, &approvals, &owners(), now))
            }
        }
    }
}

impl ApplyCase {
    /// Returns the changes that are asked about.
    pub(super) fn apply(&self) -> Apply {
        let task = TaskId::from_random([0; 10]);
        let source = ApplySource { task: &task, workspace: &self.workspace, layers: &[] };
        let change = |(number, file): (usize, &FileKind)| Change {
            path: WorkspacePath::parse(format!("change-{number}"))
                .unwrap_or_else(|_| unreachable!("it is inside")),
            kind: ChangeKind::Modified,
            file: *file,
            mode: 0o644,
            size: 1,
            ignored: false,
        };
        let changes: Vec<Change> = self.asked.kinds.iter().enumerate().map(change).collect();
        let mode = match self.asked.mode {
            AskedMode::Ask => ApplyMode::Ask,
            AskedMode::Clean => ApplyMode::Clean,
            AskedMode::Always => ApplyMode::Always,
        };
        Apply::new(self.by.clone(), mode, source, &changes, self.asked.classes.clone())
    }
}

impl ApplyCase {
    /// Returns the yes that was said to the changes, and the time at which that counts.
    pub(super) fn approvals_of(&self, apply: &Apply) -> (Vec<Approval>, Timestamp) {
        let approve = |quorum: &Quorum| approvals(apply.digest(), quorum);
        (self.approvals.iter().flat_map(approve).collect(), NOW)
    }
}

impl Decided {
    /// Takes a decision for the answer that it is.
    pub(super) fn of<S: Subject>(decision: &Decision<S>) -> Self {
        let (answer, roles) = match decision {
            Decision::Allow(_) | Decision::Narrow(_) => (PolicyAnswer::Allow, Vec::new()),
            Decision::RequireApproval(request) => {
                (PolicyAnswer::Ask, request.quorums().iter().map(ToString::to_string).collect())
            }
            Decision::Deny(_) => (PolicyAnswer::Deny, Vec::new()),
        };
        Self { answer, record: decision.record().clone(), roles }
    }
}
