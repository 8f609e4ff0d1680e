//! The verbs that start something: `run`, `shell`, `agent` and `reproduce`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use model::{Bytes, WorkspacePath};

use super::value::{
    ActionName, EnvSetting, InputSetting, Millicpus, TaskName, agent_name, positive_bytes, positive_duration,
};

const RUN_EXAMPLES: &str = "\
Examples:
  fumehood run -- cargo test
  fumehood run --profile strict --timeout 60s -- make check
  fumehood run --input data=/srv/images --apply clean -- python3 train.py /inputs/data
  fumehood run -i -- sh -c 'wc -l' < notes.txt
  fumehood run --join act-aaaaaaaaaaaaaaaa -- curl localhost:8000
  fumehood run --agent my-harness --wait 10m -- make release

Runs in one directory belong to its open task and see what the earlier ones changed. The directory itself stays
as it is until `fumehood apply`.";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// How the sandbox is built.
    #[command(flatten)]
    pub sandbox: SandboxOptions,
    /// Start another task, also when the directory has an open one
    #[arg(long, conflicts_with_all = ["task", "fork"])]
    pub new_task: bool,
    /// Run in this task instead of the directory's open one
    #[arg(long, value_name = "TASK", conflicts_with = "workspace")]
    pub task: Option<TaskName>,
    /// When the task is busy, run on a fork of it instead of waiting
    #[arg(long)]
    pub fork: bool,
    /// Pass our standard input on; without it the command reads nothing
    #[arg(short = 'i', long)]
    pub stdin: bool,
    /// Give the command a terminal of its own
    #[arg(short = 't', long)]
    pub tty: bool,
    /// Run as an agent of this name: the rules for agents hold, and nothing that it started may answer for a person
    #[arg(long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,
    /// Wait this long for a person, when policy wants one's yes; without it the answer is that it does
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub wait: Option<Duration>,
    /// What to do with the changes: never, ask, clean or always
    ///
    /// `clean` applies when only ordinary files outside protected paths changed, and holds the rest with reasons.
    /// `always` only drops the question for what `clean` would apply. The default is `ask` on a terminal, else `never`.
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub apply: Option<ApplyMode>,
    /// Write the outcome as JSON to this file, also without --json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub outcome: Option<PathBuf>,
    /// The command and its arguments; nothing after it is taken as an option of ours
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What to do with the changes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApplyMode {
    /// Leave them in the layer.
    Never,
    /// Show them and ask.
    Ask,
    /// Apply ordinary files outside protected paths, hold the rest.
    Clean,
    /// Like `clean`, without a question where `ask` would put one.
    Always,
}

/// How a sandbox is built: the workspace, the profile and what may be tightened or asked for.
#[derive(Debug, Clone, Default, Args)]
pub struct SandboxOptions {
    /// The workspace; by default the git top level of the current directory, else the directory
    #[arg(short = 'w', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Where the command starts, from the top of the workspace; by default where you are
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// The profile: default, strict, strict-build or one of your settings
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Show a file or directory read-only as /inputs/NAME
    #[arg(long, value_name = "NAME=PATH", value_parser = OsStringValueParser::new().try_map(InputSetting::parse))]
    pub input: Vec<InputSetting>,
    /// Show only what matches this git pathspec of the workspace
    #[arg(long, value_name = "PATHSPEC")]
    pub only: Vec<OsString>,
    /// Hide what matches this git pathspec of the workspace
    #[arg(long, value_name = "PATHSPEC")]
    pub hide: Vec<OsString>,
    /// Give the workspace read-only
    #[arg(long)]
    pub read_only: bool,
    /// Ask policy to show a credential file of the workspace that would be masked
    #[arg(long, value_name = "PATH", value_parser = OsStringValueParser::new().try_map(WorkspacePath::parse))]
    pub show_credential: Vec<WorkspacePath>,
    /// Set a variable, or pass on ours of that name; everything else of our environment stays outside
    #[arg(short = 'e', long, value_name = "NAME[=VALUE]", value_parser = OsStringValueParser::new().try_map(EnvSetting::parse))]
    pub env: Vec<EnvSetting>,
    /// Allow only this program, by a name on PATH or a file; can be given several times
    ///
    /// Nothing else can be executed then, and nothing that is written inside: what builds its own programs does not
    /// work. An interpreter grants all that it can do.
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub program: Vec<PathBuf>,
    /// Use the network of this running action, to talk to the server that it started
    ///
    /// It must belong to the task, or to the one that this task was forked from. As long as it runs its task is busy, so a
    /// fork of that task is made when none is open. The two share a loopback and nothing else.
    #[arg(long, value_name = "ACTION", conflicts_with = "new_task")]
    pub join: Option<ActionName>,
    /// Let it reach this over the network: a rule, the name of a `[network.NAME]` of your settings, or `registry:NAME`
    ///
    /// A rule is `[METHOD,…] SCHEME://HOST[:PORT][/PATH]` with `https`, `http` or `tcp`, for example `https://example.com`
    /// or `GET https://example.com/v1/**`. What your settings do not name needs a person's yes. See docs/network.md.
    #[arg(long, value_name = "RULE|NAME", conflicts_with = "join")]
    pub allow_net: Vec<String>,
    /// Let its gateway put this `[credential.NAME]` of your settings into requests; the command sees no value
    ///
    /// It reaches what the credential is for, and no other request gets it. See docs/credentials.md.
    #[arg(long, value_name = "NAME", conflicts_with = "join")]
    pub credential: Vec<String>,
    /// Limits that are tighter than the profile's.
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// Limits given on the command line. They may tighten the profile; wider ones are for policy to decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Memory of all processes together, for example 512MiB
    #[arg(long, value_name = "SIZE", value_parser = positive_bytes)]
    pub memory: Option<Bytes>,
    /// Processors, for example 2 or 0.5
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<Millicpus>,
    /// Processes and threads at once
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub pids: Option<u32>,
    /// Bytes in every writable place together
    #[arg(long, value_name = "SIZE", value_parser = positive_bytes)]
    pub disk: Option<Bytes>,
    /// Files in every writable place together
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub files: Option<u64>,
    /// Time until the command is ended, for example 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub timeout: Option<Duration>,
    /// Bytes kept of each output stream; the head and the tail stay
    #[arg(long, value_name = "SIZE", value_parser = positive_bytes)]
    pub output_limit: Option<Bytes>,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  fumehood shell
  fumehood shell --profile strict --timeout 10m
  fumehood shell --task task-aaaaaaaaaaaaaaaa -- /bin/bash --norc
  fumehood shell --join act-aaaaaaaaaaaaaaaa

The session is one action: one decision, one layer, and a record of each program that it started.";

/// Arguments of `shell`.
#[derive(Debug, Args)]
#[command(after_long_help = SHELL_EXAMPLES)]
pub struct ShellArgs {
    /// How the sandbox is built.
    #[command(flatten)]
    pub sandbox: SandboxOptions,
    /// Start another task, also when the directory has an open one
    #[arg(long, conflicts_with_all = ["task", "fork"])]
    pub new_task: bool,
    /// Open the shell in this task instead of the directory's open one
    #[arg(long, value_name = "TASK", conflicts_with = "workspace")]
    pub task: Option<TaskName>,
    /// When the task is busy, work on a fork of it instead of waiting
    #[arg(long)]
    pub fork: bool,
    /// What to do with the changes: never, ask, clean or always
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub apply: Option<ApplyMode>,
    /// The shell and its arguments; by default $SHELL where it is shown inside, else /bin/sh
    #[arg(last = true, value_name = "SHELL", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

const AGENT_EXAMPLES: &str = "\
Examples:
  fumehood agent \"fix the failing test in src/parser.rs\"
  fumehood agent --repo ~/src/project --model deepseek-v4-pro \"update the changelog\"
  fumehood agent --task task-aaaaaaaaaaaaaaaa
  fumehood agent --replay session.jsonl \"fix the failing test\"

The model key comes from DEEPSEEK_API_KEY or the file that `model.key_file` names. It never reaches a sandbox.";

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(after_long_help = AGENT_EXAMPLES)]
pub struct AgentArgs {
    /// What is to be done, in your words
    #[arg(value_name = "TASK", required_unless_present = "within")]
    pub task: Option<String>,
    /// Work in this task, which `fumehood task new` opened for what is to be done, within its ceiling
    #[arg(long = "task", id = "within", value_name = "ID", conflicts_with_all = ["task", "repo", "dirty"])]
    pub within: Option<TaskName>,
    /// The repository; by default the one of the current directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// Start from the working tree as it stands instead of the commit that is checked out
    #[arg(long)]
    pub dirty: bool,
    /// The model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The address of the model's API, for example a gateway of your own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Read the key of the model from this file instead of DEEPSEEK_API_KEY
    #[arg(long, value_name = "FILE", conflicts_with = "replay", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Play this transcript in place of a model; the wire path is the same
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub replay: Option<PathBuf>,
    /// Stop after this many answers of the model
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: u32,
    /// The profile for every action: default, strict, strict-build or one of your settings
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Wait this long for a person at each call for which policy wants one's yes; without it the model is told so
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub wait: Option<Duration>,
    /// What to do with the changes at the end: never, ask, clean or always
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub apply: Option<ApplyMode>,
    /// Limits that are tighter than the profile's.
    #[command(flatten)]
    pub limits: LimitOptions,
}

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  fumehood reproduce act-aaaaaaaaaaaaaaaa
  fumehood reproduce act-aaaaaaaaaaaaaaaa --shell

The same base, layers, arguments, environment names and grant; at the end it says what differed. Values of the
environment are never recorded: give them again with --env. Exit code 1 when something differed.";

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_long_help = REPRODUCE_EXAMPLES)]
pub struct ReproduceArgs {
    /// The action
    pub action: ActionName,
    /// Open a shell in that state instead of running the command
    #[arg(long)]
    pub shell: bool,
    /// Give a variable that the action had; its value was never recorded
    #[arg(short = 'e', long, value_name = "NAME[=VALUE]", value_parser = OsStringValueParser::new().try_map(EnvSetting::parse))]
    pub env: Vec<EnvSetting>,
}
