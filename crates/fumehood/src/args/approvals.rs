//! The verb about what waits for a person: `approvals`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::policy::{RequestChoice, RulesChoice};
use super::value::{ApprovalName, TaskName};

/// Arguments of `approvals`.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: ApprovalsVerb,
}

/// What can be done about approvals.
#[derive(Debug, Subcommand)]
pub enum ApprovalsVerb {
    /// List the requests that wait for a person
    List(ApprovalsListArgs),
    /// Show what a request is about: what was asked, what it did when it was tried, and the way back
    Show(ApprovalsShowArgs),
    /// Say yes to exactly the requests that are named
    Approve(ApprovalsApproveArgs),
    /// Say no to a request
    Deny(ApprovalsDenyArgs),
    /// Take back a request, or a yes that was not used yet
    Revoke(ApprovalsRevokeArgs),
    /// Write requests down for people who answer from accounts of their own
    Export(ApprovalsExportArgs),
    /// Answer, from an account of your own, what somebody else wrote down with `export`
    Sign(ApprovalsSignArgs),
    /// Say how much is asked of people, and how they answer
    #[command(after_long_help = APPROVALS_STATS_EXAMPLES)]
    Stats,
    /// Show a request as a person is shown it before saying yes or no
    Render(ApprovalsRenderArgs),
}

const APPROVALS_LIST_EXAMPLES: &str = "\
Examples:
  fumehood approvals list
  fumehood approvals list --all --json";

/// Arguments of `approvals list`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_LIST_EXAMPLES)]
pub struct ApprovalsListArgs {
    /// Also those that came to their end
    #[arg(long)]
    pub all: bool,
}

const APPROVALS_SHOW_EXAMPLES: &str = "\
Examples:
  fumehood approvals show apr-aaaaaaaaaaaaaaaa
  fumehood approvals show apr-aaaa --full";

/// Arguments of `approvals show`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_SHOW_EXAMPLES)]
pub struct ApprovalsShowArgs {
    /// The request
    #[arg(value_name = "APPROVAL")]
    pub approval: ApprovalName,
    /// Show long lists and the whole patch
    #[arg(long)]
    pub full: bool,
}

const APPROVALS_APPROVE_EXAMPLES: &str = "\
Examples:
  fumehood approvals approve apr-aaaaaaaaaaaaaaaa
  fumehood approvals approve apr-aaaa --yes --reason 'read the patch'
  fumehood approvals approve apr-aaaa apr-bbbb apr-cccc
  fumehood approvals approve --all-of task-aaaa

A yes covers one exact action, once, until it expires. What was tried is not run again: the layer that was shown becomes
the task's. What was not tried runs when the same request is made again. When anything that it was asked on has changed
meanwhile, the yes is worth nothing, and it has to be asked for again. Of several requests each is listed with what it did,
one question is asked for all, and each gets an answer of its own: one that is void keeps no other back. No answer is taken from what an agent started.
Exit code 0 when the yes counts, 1 when it does not.";

/// Arguments of `approvals approve`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_APPROVE_EXAMPLES)]
pub struct ApprovalsApproveArgs {
    /// The requests
    #[arg(value_name = "APPROVAL", required_unless_present = "all_of", conflicts_with = "all_of")]
    pub approvals: Vec<ApprovalName>,
    /// Every request of this task that waits for a person; they are listed, and a question is asked at the terminal
    #[arg(long, value_name = "TASK", conflicts_with = "yes")]
    pub all_of: Option<TaskName>,
    /// Do not show them and ask first
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

const APPROVALS_DENY_EXAMPLES: &str = "\
Examples:
  fumehood approvals deny apr-aaaaaaaaaaaaaaaa --reason 'use the migration tool instead'

The reason reaches whoever asked, as soon as they ask for the same again.";

/// Arguments of `approvals deny`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_DENY_EXAMPLES)]
pub struct ApprovalsDenyArgs {
    /// The request
    #[arg(value_name = "APPROVAL")]
    pub approval: ApprovalName,
    /// Why, for the record and for whoever asked
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

const APPROVALS_REVOKE_EXAMPLES: &str = "\
Examples:
  fumehood approvals revoke apr-aaaaaaaaaaaaaaaa

What became a layer of the task already is taken off with `fumehood undo`.";

/// Arguments of `approvals revoke`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_REVOKE_EXAMPLES)]
pub struct ApprovalsRevokeArgs {
    /// The request
    #[arg(value_name = "APPROVAL")]
    pub approval: ApprovalName,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

const APPROVALS_EXPORT_EXAMPLES: &str = "\
Examples:
  fumehood approvals export apr-aaaaaaaaaaaaaaaa --to /tmp/release.json
  fumehood approvals export apr-aaaa apr-bbbb > two.json

What is written is all that a person should see before answering, the patch included, with the digests that an answer is
bound to. The other person shows and answers it with `fumehood approvals sign`. Nothing waits for that: look at the
request again, and the answers that came are taken.";

/// Arguments of `approvals export`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_EXPORT_EXAMPLES)]
pub struct ApprovalsExportArgs {
    /// The requests
    #[arg(value_name = "APPROVAL", required = true)]
    pub approvals: Vec<ApprovalName>,
    /// The file to write, which must not be there; without it they are printed
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

const APPROVALS_SIGN_EXAMPLES: &str = "\
Examples:
  fumehood approvals sign /tmp/release.json --answer approve --reason 'read the patch'
  fumehood approvals sign two.json --answer deny --reason 'after the freeze' --yes

Shows every request whole and asks once. The answer is a file in the directory that the machine's settings name; that it
belongs to your account is what says that it is yours. Remove the file to take the answer back: until the action starts it
counts only while the file is there. The state of who asked is not needed, and not looked at.";

/// What is answered to a request of somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SignedChoice {
    /// Yes, to exactly this
    Approve,
    /// No
    Deny,
}

/// Arguments of `approvals sign`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_SIGN_EXAMPLES)]
pub struct ApprovalsSignArgs {
    /// What `approvals export` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The answer, to every request in it
    #[arg(long, value_name = "ANSWER")]
    pub answer: SignedChoice,
    /// Why, for the record and for whoever asked
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Do not ask; what is answered is shown all the same
    #[arg(short = 'y', long)]
    pub yes: bool,
}

const APPROVALS_STATS_EXAMPLES: &str = "\
Examples:
  fumehood approvals stats
  fumehood approvals stats --json";

const APPROVALS_RENDER_EXAMPLES: &str = "\
Examples:
  fumehood approvals render -- git push origin main
  echo '{\"argv\": [\"rm\", \"-rf\", \"x\"]}' | fumehood approvals render --stdin

Every word and every command of a script has a line of its own. Control characters and characters that cannot be seen
are written out, and nothing is left out of sight: what is repeated or empty is counted.";

/// Arguments of `approvals render`.
#[derive(Debug, Args)]
#[command(after_long_help = APPROVALS_RENDER_EXAMPLES)]
pub struct ApprovalsRenderArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// What is asked for.
    #[command(flatten)]
    pub request: RequestChoice,
}
