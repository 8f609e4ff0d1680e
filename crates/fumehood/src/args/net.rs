//! The verbs about the network: `net log`, `net explain` and `net test`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use model::egress::Method;

use super::result::TaskChoice;
use super::value::ActionName;

/// Arguments of `net`.
#[derive(Debug, Args)]
pub struct NetArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: NetVerb,
}

/// What can be asked about the network.
#[derive(Debug, Subcommand)]
pub enum NetVerb {
    /// List what the actions of a task tried to reach, and what became of it, also while they run
    Log(NetLogArgs),
    /// Explain what an action could not reach, and name the rules that it would need
    Explain(NetExplainArgs),
    /// Say whether something may be reached, by which rule and by whose yes, without reaching it
    Test(NetTestArgs),
}

const LOG_EXAMPLES: &str = "\
Examples:
  fumehood net log
  fumehood net log --refused
  fumehood net log -n 20 task-aaaaaaaaaaaaaaaa
  fumehood net log --action act-aaaaaaaaaaaaaaaa --json

Equal attempts of one action stand in one line. Each of them alone is on the record: `fumehood audit show --action ACTION`.";

/// Arguments of `net log`.
#[derive(Debug, Args)]
#[command(after_long_help = LOG_EXAMPLES)]
pub struct NetLogArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Only what this action tried
    #[arg(long, value_name = "ACTION", conflicts_with_all = ["task", "workspace"])]
    pub action: Option<ActionName>,
    /// Only what was refused
    #[arg(long)]
    pub refused: bool,
    /// Only the newest of them
    #[arg(short = 'n', long = "number", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub number: Option<u32>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  fumehood net explain
  fumehood net explain act-aaaaaaaaaaaaaaaa --json";

/// Arguments of `net explain`.
#[derive(Debug, Args)]
#[command(after_long_help = EXPLAIN_EXAMPLES)]
pub struct NetExplainArgs {
    /// The action; by default the newest of the workspace
    pub action: Option<ActionName>,
    /// The workspace whose newest action is meant; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", conflicts_with = "action", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

const TEST_EXAMPLES: &str = "\
Examples:
  fumehood net test https://example.com/v1/users
  fumehood net test https://example.com/v1/users --method DELETE
  fumehood net test tcp://db.example.com:5432 --allow-net web
  fumehood net test http://mirror.example.org/debian/ --json

Nothing is reached, and no name is resolved. The exit code is 0 when it may be reached without asking anybody, else 1.";

/// Arguments of `net test`.
#[derive(Debug, Args)]
#[command(after_long_help = TEST_EXAMPLES)]
pub struct NetTestArgs {
    /// What is to be reached: `https://HOST[:PORT]/PATH`, `http://…` or `tcp://HOST:PORT`
    pub url: String,
    /// The method of the request
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub method: Method,
    /// As if a run were given this, also `registry:NAME`; by default all that your settings name is tried
    #[arg(long, value_name = "RULE|NAME")]
    pub allow_net: Vec<String>,
    /// The workspace in which it would run; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}
