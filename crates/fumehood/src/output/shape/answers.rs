//! The documents of the verbs that list, explain or check something.

use std::time::Duration;

use model::action::Principal;
use model::enforcement::{Held, Shortfall};
use model::evidence::{Probe, Teardown};
use model::stage::Stage;
use model::task::TaskState;
use model::{ActionId, KeptClass, OsText, TaskId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::schemas as schema;
use super::{
    ActionDocument, ChangePart, InspectionPart, IntakePart, Moment, Name, Ran, State, milliseconds, moment,
    moment_or_none,
};

/// What every verb writes to standard error with `--json` when it fails.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorDocument {
    /// What went wrong.
    pub error: ErrorPart,
}

/// What went wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorPart {
    /// The error.
    pub message: String,
    /// What it came from, outermost first.
    pub causes: Vec<String>,
    /// Whether a command ran.
    pub ran: Ran,
    /// The code that we leave with.
    pub exit_code: u8,
}

/// `task list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TasksDocument {
    /// The tasks, newest first.
    pub tasks: Vec<TaskRow>,
}

/// One task: a line of `task list --json`, and the answer of `fork --json`, `discard --json`,
/// `task stop --json` and `task freeze --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskRow {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// `open`, `stopped`, `frozen`, `applied` or `discarded`.
    #[schemars(with = "String")]
    pub state: TaskState,
    /// The workspace directory.
    #[schemars(with = "Name")]
    pub workspace: OsText,
    /// The commit that it started from; `null` for the directory as it stood.
    pub commit: Option<String>,
    /// Who opened it.
    #[schemars(schema_with = "schema::principal")]
    pub owner: Principal,
    /// What it is for.
    pub title: Option<String>,
    /// When it was opened.
    #[serde(serialize_with = "moment")]
    #[schemars(with = "Moment")]
    pub opened: Timestamp,
    /// How many actions it has.
    pub actions: u64,
}

/// `task show --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskDocument {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRow,
    /// What was wanted of it when it was opened; `null` when nobody said that.
    pub intake: Option<IntakePart>,
    /// The stage that it passed last; `null` when it has none.
    pub stage: Option<StagePart>,
    /// Its actions, oldest first.
    pub log: Vec<LogRow>,
    /// Tokens of the prompts that the server had in its cache.
    pub prompt_cache_hit_tokens: u64,
    /// Tokens of the prompts that it had not.
    pub prompt_cache_miss_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Processor time of all actions together.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub cpu_time_ms: Duration,
}

/// Where a task stands among its stages.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StagePart {
    /// The stage that it passed last.
    #[schemars(with = "String")]
    pub stage: Stage,
    /// How often it came to a proposal.
    pub round: u32,
    /// Stages that were passed without their work.
    #[schemars(with = "Vec<String>")]
    pub without_work: Vec<Stage>,
}

/// `log --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// Its actions, oldest first.
    pub log: Vec<LogRow>,
}

/// One action in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogRow {
    /// The action.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// When it was asked for.
    #[serde(serialize_with = "moment_or_none")]
    #[schemars(with = "Option<Moment>")]
    pub at: Option<Timestamp>,
    /// The tool and what it was given, as a person would have typed it.
    pub command: String,
    /// What policy decided.
    #[schemars(with = "Option<String>")]
    pub verdict: Option<model::event::Verdict>,
    /// Whether the command ran.
    pub ran: Ran,
    /// How it ended, in a few words.
    pub ending: String,
    /// The exit code that `run` leaves with for this action.
    pub exit_code: Option<u8>,
    /// From the start of the command to its end.
    #[serde(serialize_with = "milliseconds")]
    #[schemars(with = "f64")]
    pub wall_time_ms: Duration,
    /// How many files are different, without those that git ignores and its own below `.git`.
    pub changes: u64,
    /// Whether its layer was taken off the task.
    pub undone: bool,
}

impl LogRow {
    /// Returns the line that stands for an action.
    pub fn of(document: &ActionDocument) -> Self {
        let wall_time_ms = document.end.as_ref().map_or(Duration::ZERO, |end| end.usage.wall_time_ms);
        let changes = document.inspection.as_ref().map_or(0, InspectionPart::shown);
        Self {
            action: document.action.clone(),
            at: document.request.as_ref().map(|request| request.at),
            command: document.command(),
            verdict: document.decision.as_ref().map(|decision| decision.verdict),
            ran: document.ran,
            ending: ending(document),
            exit_code: document.exit_code,
            wall_time_ms,
            changes,
            undone: document.undone,
        }
    }
}

/// Says in a few words how an action ended.
fn ending(document: &ActionDocument) -> String {
    match (document.state, &document.end, &document.decision) {
        (State::Tried, ..) => "tried, waits for a yes".to_owned(),
        (State::Denied, Some(_), _) => match &document.approval {
            Some(approval) => format!("tried, {}", approval.state),
            None => "tried".to_owned(),
        },
        (_, Some(end), _) => end.ending.to_string(),
        (State::Denied, _, Some(decision)) => format!("denied ({})", model::text::escape(&decision.reason)),
        (State::Denied, ..) => "denied".to_owned(),
        (State::NotStarted, ..) => "did not start".to_owned(),
        (State::Unknown, ..) => "no end on the record".to_owned(),
        (State::Started, ..) => "runs".to_owned(),
        (State::Ended, None, _) => "ended; how was pruned".to_owned(),
        (State::Requested | State::Decided, ..) => "asked for".to_owned(),
    }
}

/// `diff --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DiffDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The action, when it is about one.
    #[schemars(with = "Option<String>")]
    pub action: Option<ActionId>,
    /// What changed.
    pub changes: Vec<ChangePart>,
    /// How many more changes there are than are listed.
    pub changes_dropped: u64,
    /// What must wait for a person when it is applied.
    #[schemars(schema_with = "schema::held_back")]
    pub held_back: Vec<model::event::HeldBack>,
    /// The changes as `git apply` takes them; what is not UTF-8 is replaced here, and `diff --patch` has the bytes.
    pub patch: String,
    /// Changes that a patch cannot hold.
    #[schemars(with = "Vec<Name>")]
    pub not_in_patch: Vec<model::WorkspacePath>,
}

/// `doctor --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DoctorDocument {
    /// The profile that was tried.
    pub profile: String,
    /// Whether a command could run here under that profile.
    pub ready: bool,
    /// How each layer is held, by a sandbox that was really built.
    #[schemars(schema_with = "schema::held")]
    pub held: Vec<Held>,
    /// Layers that could not be held.
    #[schemars(schema_with = "schema::shortfalls")]
    pub shortfalls: Vec<Shortfall>,
    /// What the prober tried and saw.
    #[schemars(schema_with = "schema::probes")]
    pub probes: Vec<Probe>,
    /// What was found when the sandbox was gone.
    #[schemars(schema_with = "schema::teardown")]
    pub teardown: Option<Teardown>,
    /// Why no sandbox could be built, if none could.
    pub failure: Option<String>,
    /// Facts about this host.
    pub host: Vec<HostFact>,
}

/// One fact about the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostFact {
    /// What it is about.
    pub name: String,
    /// What was found.
    pub value: String,
}

/// `config explain --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigDocument {
    /// The settings as they hold.
    pub settings: Vec<ConfigRow>,
}

/// One setting as it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigRow {
    /// The key.
    pub key: String,
    /// The value, as a person would write it.
    pub value: String,
    /// Where it came from: `built in`, a file with line and column, a variable or an option.
    pub origin: String,
    /// What it is for.
    pub about: String,
}

/// `config check --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProblemsDocument {
    /// The files that were checked.
    pub files: Vec<String>,
    /// What is wrong in them; empty when nothing is.
    pub problems: Vec<ProblemRow>,
}

/// One thing that is wrong in a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProblemRow {
    /// The file, and where there is one the line and the column.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// `artifacts list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ArtifactsDocument {
    /// What actions left, oldest first.
    pub artifacts: Vec<ArtifactRow>,
}

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArtifactRow {
    /// Its name.
    #[schemars(with = "Name")]
    pub name: OsText,
    /// The action that left it.
    #[schemars(with = "String")]
    pub action: ActionId,
    /// Bytes.
    pub size: u64,
}

/// `gc --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GcDocument {
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// The layers that were, or would be, removed.
    #[schemars(with = "Vec<String>")]
    pub layers: Vec<ActionId>,
    /// What was, or would be, removed of each class, of those of which there was anything.
    pub classes: Vec<GcRow>,
    /// Bytes that all of it held.
    pub freed: u64,
    /// How many things stay only because a legal hold covers them.
    pub held: u64,
    /// How many things stay only because they failed, were denied or tried what is not allowed.
    pub incidents: u64,
}

/// What goes of one class.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GcRow {
    /// The class, as `[retention]` has it; `trials` and `bases` too.
    #[schemars(with = "String")]
    pub class: KeptClass,
    /// How many things.
    pub number: u64,
    /// Bytes that they hold on the disk, or in the database.
    pub bytes: u64,
}

impl GcDocument {
    /// Says what was, or would be, removed.
    pub fn of(dry_run: bool, garbage: engine::Garbage) -> Self {
        let row =
            |(class, of): (KeptClass, engine::Removed)| GcRow { class, number: of.number, bytes: of.bytes };
        Self {
            dry_run,
            layers: garbage.actions,
            classes: garbage.classes.into_iter().map(row).collect(),
            freed: garbage.bytes,
            held: garbage.held,
            incidents: garbage.incidents,
        }
    }
}

/// `undo --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UndoDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// The layers that were taken off it, oldest first.
    #[schemars(with = "Vec<String>")]
    pub layers: Vec<ActionId>,
}

/// `apply --json`, `apply --dry-run --json` and `undo --applied --json`, where `changes` are those that were taken back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ApplyDocument {
    /// The task.
    #[schemars(with = "String")]
    pub task: TaskId,
    /// Where it stands now: `applied` when all of it is on the host, else as before.
    #[schemars(with = "String")]
    pub state: TaskState,
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// Changes that are, or would be, on the host.
    pub changes: Vec<ChangePart>,
    /// Paths where an edit of the host and one of the task were brought together.
    #[schemars(with = "Vec<Name>")]
    pub merged: Vec<model::WorkspacePath>,
    /// Changes that met an edit of the host; both are kept.
    pub conflicts: Vec<ConflictRow>,
    /// What was not written, conflicts too, with the reason.
    #[schemars(schema_with = "schema::held_back")]
    pub held_back: Vec<model::event::HeldBack>,
    /// Commits that were made inside and are a branch of the host's repository now.
    pub commits: Option<CommitsRow>,
}

/// Commits that were imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommitsRow {
    /// The branch.
    pub branch: String,
    /// The commit that it names.
    pub commit: String,
    /// How many of its commits the current branch has not.
    pub number: u64,
}

impl From<engine::ImportedCommits> for CommitsRow {
    fn from(imported: engine::ImportedCommits) -> Self {
        let engine::ImportedCommits { branch, commit, number } = imported;
        Self { branch, commit, number }
    }
}

/// A change that met an edit of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConflictRow {
    /// The path; the host's file is as it was.
    #[schemars(with = "Name")]
    pub path: model::WorkspacePath,
    /// Where the task's file lies now, when it has one.
    #[schemars(with = "Option<Name>")]
    pub beside: Option<model::WorkspacePath>,
    /// What the host did.
    pub why: String,
}

impl From<engine::apply::Conflict> for ConflictRow {
    fn from(conflict: engine::apply::Conflict) -> Self {
        let engine::apply::Conflict { path, beside, why } = conflict;
        Self { path, beside, why }
    }
}
