//! The verbs that read what was kept: `task`, `log`, `show`, `why` and `audit`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use model::EventClass;

use super::intake::TaskNewArgs;
use super::result::TaskChoice;
use super::value::{ActionName, TaskName, positive_duration, reason};

/// Arguments of `task`.
#[derive(Debug, Args)]
pub struct TaskArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: TaskVerb,
}

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum TaskVerb {
    /// Open a task with what is wanted of it: ceiling, budget, deadline and what its result must be
    New(Box<TaskNewArgs>),
    /// List the open tasks
    List(TaskListArgs),
    /// Show a task with its actions, its usage and its cost
    #[command(after_long_help = TASK_SHOW_EXAMPLES)]
    Show(TaskNameArgs),
    /// Go on with a task where it was interrupted
    Resume(TaskResumeArgs),
    /// Stop a task; what runs in it is ended, and it can be resumed
    #[command(after_long_help = TASK_STOP_EXAMPLES)]
    Stop(TaskNameArgs),
    /// Freeze a task: what runs in it is ended, and nothing runs until a person resumes it
    Freeze(TaskFreezeArgs),
}

const TASK_SHOW_EXAMPLES: &str = "\
Examples:
  fumehood task show
  fumehood task show task-aaaaaaaaaaaaaaaa --json";

const TASK_STOP_EXAMPLES: &str = "\
Examples:
  fumehood task stop
  fumehood task stop task-aaaaaaaaaaaaaaaa";

const TASK_FREEZE_EXAMPLES: &str = "\
Examples:
  fumehood task freeze --reason 'it reads what it has no business with'
  fumehood task freeze task-aaaaaaaaaaaaaaaa --reason 'wait for the review'

A stopped task is resumed by anybody. A frozen one is resumed with `fumehood task resume` or thrown away with
`fumehood discard` by a person alone, and nothing else starts in its directory meanwhile.";

/// Arguments of `task freeze`.
#[derive(Debug, Args)]
#[command(after_long_help = TASK_FREEZE_EXAMPLES)]
pub struct TaskFreezeArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Why, for the record and for whoever is refused
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: String,
}

/// Arguments of `task show` and `task stop`.
#[derive(Debug, Args)]
pub struct TaskNameArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
}

const TASK_LIST_EXAMPLES: &str = "\
Examples:
  fumehood task list
  fumehood task list --all --json";

/// Arguments of `task list`.
#[derive(Debug, Args)]
#[command(after_long_help = TASK_LIST_EXAMPLES)]
pub struct TaskListArgs {
    /// Also tasks that were applied or discarded
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Only tasks of this workspace
    #[arg(short = 'w', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

const TASK_RESUME_EXAMPLES: &str = "\
Examples:
  fumehood task resume task-aaaaaaaaaaaaaaaa
  fumehood task resume task-aaaaaaaaaaaaaaaa --replay session.jsonl";

/// Arguments of `task resume`.
#[derive(Debug, Args)]
#[command(after_long_help = TASK_RESUME_EXAMPLES)]
pub struct TaskResumeArgs {
    /// The task
    pub task: TaskName,
    /// Play this transcript in place of a model
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub replay: Option<PathBuf>,
    /// Wait this long for a person at each call for which policy wants one's yes
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub wait: Option<Duration>,
}

const LOG_EXAMPLES: &str = "\
Examples:
  fumehood log
  fumehood log -n 5
  fumehood log task-aaaaaaaaaaaaaaaa --json";

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_long_help = LOG_EXAMPLES)]
pub struct LogArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Only the newest of them
    #[arg(short = 'n', long = "number", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
    /// Also the engine's own helpers (git and the like)
    #[arg(long)]
    pub internal: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  fumehood show
  fumehood show act-aaaaaaaaaaaaaaaa
  fumehood show act-aaaaaaaaaaaaaaaa --output
  fumehood show act-aaaaaaaaaaaaaaaa --context
  fumehood show act-aaaaaaaaaaaaaaaa --response
  fumehood show --json";

/// Arguments of `show`.
#[derive(Debug, Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub struct ShowArgs {
    /// The action; by default the newest of the workspace's open task
    pub action: Option<ActionName>,
    /// The workspace whose newest action is meant; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", conflicts_with = "action", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Write what the command printed, as it was kept
    #[arg(long)]
    pub output: bool,
    /// Write what the model had been sent when it asked for the action, as JSON
    #[arg(long, conflicts_with_all = ["output", "full"])]
    pub context: bool,
    /// Write what the model answered when it asked for the action, as JSON
    #[arg(long, conflicts_with_all = ["output", "context", "full"])]
    pub response: bool,
    /// Every program, connection and probe, also when they are many
    #[arg(long)]
    pub full: bool,
}

const WHY_EXAMPLES: &str = "\
Examples:
  fumehood why
  fumehood why act-aaaaaaaaaaaaaaaa --json";

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_long_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// The action; by default the newest of the workspace's open task
    pub action: Option<ActionName>,
    /// The workspace whose newest action is meant; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", conflicts_with = "action", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: AuditVerb,
}

/// What can be done with the record.
#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Show the events of the record, one a line
    Show(AuditShowArgs),
    /// Check that no event was edited, dropped, swapped, doubled or cut off
    Verify(Box<AuditVerifyArgs>),
    /// Write the record as JSON lines, so that it can be verified elsewhere, or as OCSF events
    Export(AuditExportArgs),
    /// Sign the head of the record and write it, so that it can be kept elsewhere
    Checkpoint(AuditCheckpointArgs),
    /// Take the content of older events out of the record; stubs that can be checked stay
    Prune(AuditPruneArgs),
    /// Write the public key with which signed heads are checked
    #[command(after_long_help = AUDIT_KEY_EXAMPLES)]
    Key,
}

const AUDIT_SHOW_EXAMPLES: &str = "\
Examples:
  fumehood audit show
  fumehood audit show --task task-aaaaaaaaaaaaaaaa
  fumehood audit show --from 120 --number 20 --json
  fumehood audit show --head";

/// Arguments of `audit show`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_SHOW_EXAMPLES)]
pub struct AuditShowArgs {
    /// Only events of this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskName>,
    /// Only events of this action
    #[arg(long, value_name = "ACTION", conflicts_with = "task")]
    pub action: Option<ActionName>,
    /// Start at the event with this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub from: u64,
    /// At most this many events
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,
    /// Only the head: the name of the last record, to be kept elsewhere
    #[arg(long, conflicts_with_all = ["task", "action", "from", "number"])]
    pub head: bool,
}

const AUDIT_VERIFY_EXAMPLES: &str = "\
Examples:
  fumehood audit verify
  fumehood audit verify record.jsonl
  fumehood audit verify record.jsonl --checkpoint heads --key fumehood/log-aeaqcaibaeaqcaib+e39f6fca+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs
  fumehood audit verify --proof proof --checkpoint heads --key fumehood/log-aeaqcaibaeaqcaib+e39f6fca+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs
  fumehood audit verify --head log-aaaaaaaaaaaaaaaa:7:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae

Whoever knows the format could compute all hashes again. So the answer is `internally consistent, not anchored`
until you give heads that were kept elsewhere: signed ones with the key (`--key \"$(cat key)\"`), from `audit checkpoint` or an `anchor_file`, or
one from `audit show --head`. With a FILE or a proof neither the state directory nor a private key is needed. Exit code 1
when an event is wrong; it names the first, as closely as the heads tell.";

/// Arguments of `audit verify`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_VERIFY_EXAMPLES)]
pub struct AuditVerifyArgs {
    /// An exported record; by default the one of this state directory
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// A head of the record that was kept elsewhere
    #[arg(long, value_name = "HEAD")]
    pub head: Option<audit::Head>,
    /// A file of signed heads that was kept elsewhere; may be given several times
    #[arg(long, value_name = "FILE", requires = "key", value_hint = ValueHint::FilePath)]
    pub checkpoint: Vec<PathBuf>,
    /// The public key by which those heads are signed, as `audit key` writes it
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    pub key: Option<audit::PublicKey>,
    /// Do not read the record: check by this proof from `audit checkpoint --since` that its head adds to the one of --checkpoint
    #[arg(long, value_name = "FILE", requires = "checkpoint", conflicts_with_all = ["file", "head"], value_hint = ValueHint::FilePath)]
    pub proof: Option<PathBuf>,
}

const AUDIT_EXPORT_EXAMPLES: &str = "\
Examples:
  fumehood audit export > record.jsonl
  fumehood audit export --file record.jsonl
  fumehood audit export --format ocsf > events.jsonl

The last line on standard error is the head: keep it where nobody who can write the record can reach it. OCSF is for a system
that collects events of many programs; what is exported so cannot be verified.";

/// Arguments of `audit export`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_EXPORT_EXAMPLES)]
pub struct AuditExportArgs {
    /// Write to this file, which must not exist; by default to standard output
    #[arg(short = 'f', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The form of each line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ExportFormat::Record)]
    pub format: ExportFormat,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The records as they are, which can be verified
    Record,
    /// Events of the Open Cybersecurity Schema Framework
    Ocsf,
}

const AUDIT_CHECKPOINT_EXAMPLES: &str = "\
Examples:
  fumehood audit checkpoint
  fumehood audit checkpoint --file head
  fumehood audit checkpoint --since heads > proof

Heads are also signed by themselves: after each hundred events, and when a task changes its state or is written to the host.
With `anchor_file` in the settings each is appended there. Exit code 1 when that failed; the head is written all the same.
Whoever can write the state directory can use its private key, so only what was kept elsewhere before vouches for anything.";

/// Arguments of `audit checkpoint`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_CHECKPOINT_EXAMPLES)]
pub struct AuditCheckpointArgs {
    /// Write to this file, which must not exist; by default to standard output
    #[arg(short = 'f', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Write before it a proof that it adds to the last head in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub since: Option<PathBuf>,
}

const AUDIT_PRUNE_EXAMPLES: &str = "\
Examples:
  fumehood audit prune --dry-run
  fumehood audit prune --reason 'a year is over'
  fumehood audit prune --class runs --older-than 400d --dry-run
  fumehood audit prune --class requests --class network --older-than 90d --reason 'asked for by the works council'

Classes are `requests` (what was asked for), `runs` (what runs did and changed) and `network`. `[retention]` says how old
events of each have to be (`record_requests`, `record_runs`, `record_network`); where nothing is said they stay for good.
Events of tasks that can go on stay, and what a legal hold covers; those of what failed or was denied have an age of their
own. Decisions, answers, and what reached the host always stay. The chain, signed heads and proofs hold as before; the prune is
an event that names each record, and `audit verify` demands that. Only a person prunes. Exports and backups keep what they have.";

/// Arguments of `audit prune`.
#[derive(Debug, Args)]
#[command(after_long_help = AUDIT_PRUNE_EXAMPLES)]
pub struct AuditPruneArgs {
    /// Only say what would be taken out
    #[arg(long)]
    pub dry_run: bool,
    /// Only events of this class; may be given several times
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<EventClass>,
    /// Take out what is older than this instead of the ages of your settings
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub older_than: Option<Duration>,
    /// The same for what failed, was denied or tried what is not allowed
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub incidents_older_than: Option<Duration>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", value_parser = reason, required_unless_present = "dry_run")]
    pub reason: Option<String>,
}

const AUDIT_KEY_EXAMPLES: &str = "\
Examples:
  fumehood audit key
  fumehood audit key > key

Keep it with whoever is to check the record, from the first day on: a key that is asked for later could be a new one. The
private half stays in the state directory and is never shown.";
