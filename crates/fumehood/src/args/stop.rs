//! `stop`: everything, a user or a repository at once, until a person lifts that.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use super::value::{HoldName, reason, user_name};

const STOP_EXAMPLES: &str = "\
Examples:
  fumehood stop --all --reason 'a key has leaked'
  fumehood stop --repo ~/src/project --reason 'the build server was broken into'
  fumehood stop --user ada --reason 'her laptop is lost'
  fumehood stop --list
  fumehood stop --lift hold-aaaaaaaaaaaaaaaa --reason 'the key was changed'

What runs is ended and waited for. Nothing new starts until it is lifted: no command, trial, retry or call of an agent,
also after a restart, and whoever is refused is told who stopped it and why. What exists stays, and can be looked at.
Everybody can stop; only a person lifts.";

/// Arguments of `stop`.
#[derive(Debug, Args)]
#[command(after_long_help = STOP_EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).args(["all", "user", "repo", "list", "lift"]))]
pub struct StopArgs {
    /// Stop everything that this state directory knows
    #[arg(long, requires = "reason")]
    pub all: bool,
    /// Stop what this user asks for, and what runs in the tasks of this user
    #[arg(long, value_name = "NAME", requires = "reason", value_parser = user_name)]
    pub user: Option<String>,
    /// Stop work in this directory, in parts of it, and in linked worktrees of its repository
    #[arg(long, value_name = "DIR", requires = "reason", value_hint = ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
    /// List what is stopped
    #[arg(long)]
    pub list: bool,
    /// Let what this hold stopped start again
    #[arg(long, value_name = "HOLD", requires = "reason")]
    pub lift: Option<HoldName>,
    /// Why, for the record and for whoever is refused
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: Option<String>,
}
