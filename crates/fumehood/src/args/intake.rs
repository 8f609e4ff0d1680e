//! `task new`: what is wanted of a task, before anything is done in it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use model::intake::{ChangeName, WorkLevel};

use super::value::{agent_name, change_name, claim, positive_duration, work_level};
use super::work::LimitOptions;

const TASK_NEW_EXAMPLES: &str = "\
Examples:
  fumehood task new --outcome 'the parser takes empty input' --path src --test 'cargo test parser'
  fumehood task new --level 1 --outcome 'say where the time goes'
  fumehood task new --intake task.toml --deadline 2h
  fumehood task new --intake task.toml --level 6 --max-actions 200 --max-processor-time 1h

What is said here is on the record and never changed. The ceiling (level, limits, network) holds for all that is done in the
task and its forks, and a request that lacks what its level needs is refused with the reasons, exit code 126. A file has the
same names in TOML: `fumehood task new --help` and docs/tasks.md show one. Options go before the file.";

/// Arguments of `task new`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_long_help = TASK_NEW_EXAMPLES)]
pub struct TaskNewArgs {
    /// The workspace; by default the git top level of the current directory, else the directory
    #[arg(short = 'w', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Read what is wanted from this TOML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub intake: Option<PathBuf>,
    /// Start from the directory as it stands instead of the commit that is checked out
    #[arg(long)]
    pub dirty: bool,
    /// What is wanted, in your words; they decide nothing
    #[arg(long, value_name = "TEXT", value_parser = claim)]
    pub outcome: Option<String>,
    /// The agent that is to do it
    #[arg(long, value_name = "NAME", value_parser = agent_name)]
    pub agent: Option<String>,
    /// How far it may go: 1 (read only) to 6 (by itself within bounds); by default 3
    #[arg(long, value_name = "NUMBER", value_parser = work_level)]
    pub level: Option<WorkLevel>,
    /// Let policy decide about a network; without it there is none beside that of its own actions
    #[arg(long)]
    pub network: bool,
    /// How long it may take, for example 2h; what still runs then is ended
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub deadline: Option<Duration>,
    /// The profile whose limits are the most for each action
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,
    /// What all of it may use together.
    #[command(flatten)]
    pub budget: BudgetOptions,
    /// What the result must be.
    #[command(flatten)]
    pub acceptance: AcceptanceOptions,
    /// Limits that are tighter than the profile's.
    #[command(flatten)]
    pub limits: LimitOptions,
}

/// What a task and its forks may use together.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Budget")]
pub struct BudgetOptions {
    /// Actions that are started
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_actions: Option<u64>,
    /// Processor time of all actions
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub max_processor_time: Option<Duration>,
    /// Tokens of the model, in and out
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
}

/// What the result of a task must be.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Acceptance")]
pub struct AcceptanceOptions {
    /// A path that may change, as git names paths; can be given several times
    ///
    /// Other changes wait for a person, like protected paths.
    #[arg(long, value_name = "PATHSPEC")]
    pub path: Vec<String>,
    /// A kind of change that may be: created, modified or deleted
    #[arg(long, value_name = "KIND", value_parser = change_name)]
    pub kind: Vec<ChangeName>,
    /// A command that fails before and must succeed after; a shell reads it
    #[arg(long, value_name = "COMMAND")]
    pub test: Vec<String>,
    /// The name of an artifact that must be there
    #[arg(long, value_name = "NAME")]
    pub artifact: Vec<String>,
}
