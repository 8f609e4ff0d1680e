//! `hold`: what stays whatever its retention, until a person lifts that.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};

use super::value::{LegalHoldName, Target, reason};

/// Arguments of `hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: HoldVerb,
}

/// What can be done with legal holds.
#[derive(Debug, Subcommand)]
pub enum HoldVerb {
    /// Keep a task, an action or all tasks of a repository, whatever their retention
    Add(HoldAddArgs),
    /// List the legal holds that are in force
    #[command(after_long_help = HOLD_LIST_EXAMPLES)]
    List,
    /// Lift a legal hold: what it kept is under its retention again
    Lift(HoldLiftArgs),
}

const HOLD_ADD_EXAMPLES: &str = "\
Examples:
  fumehood hold add task-aaaaaaaaaaaaaaaa --reason 'case 17'
  fumehood hold add act-aaaaaaaaaaaaaaaa --reason 'case 17'
  fumehood hold add --repo ~/src/project --reason 'case 17'

What it covers is removed neither by `gc` nor by `audit prune`, and a request for a yes that ends leaves its trial. Of an
action that is what it and the ones before it in its task left, and what belongs to the task as a whole. A repository's
covers tasks to come too. It stops nothing: that is `fumehood stop`. Everybody can add one; only a person lifts it.";

/// Arguments of `hold add`.
#[derive(Debug, Args)]
#[command(after_long_help = HOLD_ADD_EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).args(["target", "repo"]))]
pub struct HoldAddArgs {
    /// A task, or an action with what came before it in its task
    #[arg(value_name = "TASK|ACTION")]
    pub target: Option<Target>,
    /// All tasks in this directory, in parts of it, and in linked worktrees of its repository
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: String,
}

const HOLD_LIST_EXAMPLES: &str = "\
Examples:
  fumehood hold list
  fumehood hold list --json";

const HOLD_LIFT_EXAMPLES: &str = "\
Examples:
  fumehood hold lift legal-aaaaaaaaaaaaaaaa --reason 'case 17 is closed'";

/// Arguments of `hold lift`.
#[derive(Debug, Args)]
#[command(after_long_help = HOLD_LIFT_EXAMPLES)]
pub struct HoldLiftArgs {
    /// The legal hold, as `hold list` shows it
    #[arg(value_name = "HOLD")]
    pub hold: LegalHoldName,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: String,
}
