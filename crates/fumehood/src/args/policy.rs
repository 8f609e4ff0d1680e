//! The verb about what would be decided: `policy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: PolicyVerb,
}

/// What can be done with policies.
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Say what policy would answer to a request, without running anything
    Decide(PolicyDecideArgs),
    /// Check rules without using them: the schema, rules that decide nothing, and examples
    Check(PolicyCheckArgs),
    /// Write the rules of a bundle that ships with the program, or the schema
    Show(PolicyShowArgs),
}

const POLICY_DECIDE_EXAMPLES: &str = "\
Examples:
  fumehood policy decide -- git push origin main
  fumehood policy decide --bundle cautious -- sh -c 'git status; touch x'
  echo '{\"shell\": \"ls | tee list\"}' | fumehood policy decide --bundle cautious --stdin

The first word of the answer is `allow`, `ask` or `deny`; below it stand the reason and the effects that were read from
the request. On standard input a request is one JSON object: `argv` (a list) or `shell` (a script), and where they
matter `cwd`, `env` and more; docs/policy.md has all of it. Exit code 0 for `allow`, 1 for `ask` and `deny`.";

/// Arguments of `policy decide`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_DECIDE_EXAMPLES)]
pub struct PolicyDecideArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// What is asked for.
    #[command(flatten)]
    pub request: RequestChoice,
}

/// Which rules decide.
#[derive(Debug, Clone, Default, Args)]
pub struct RulesChoice {
    /// A bundle that ships with the program; by default the policy of your settings decides
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub bundle: Option<String>,
    /// A file of rules
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

/// What is asked for, and by whom.
#[derive(Debug, Clone, Default, Args)]
pub struct RequestChoice {
    /// Read the request as JSON from standard input
    #[arg(long, conflicts_with = "command")]
    pub stdin: bool,
    /// The workspace; by default the git top level of the current directory, else that directory
    #[arg(short = 'w', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// Ask as yourself; by default an agent asks
    #[arg(long)]
    pub as_user: bool,
    /// The command
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present = "stdin", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

const POLICY_CHECK_EXAMPLES: &str = "\
Examples:
  fumehood policy check ./rules.cedar
  fumehood policy check --bundle cautious
  fumehood policy check ./rules.cedar --json

Rules are Cedar, held strictly against the schema that `fumehood policy show schema` writes. A rule that can never decide
anything is found, and so is an example that does not hold: the requests in `@allow_example`, `@ask_example` and
`@deny_example`, one a line, as a command or in the form of `policy decide --stdin`. Exit code 1 when something is found.";

/// Arguments of `policy check`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_CHECK_EXAMPLES)]
pub struct PolicyCheckArgs {
    /// The file; by default the policy of your settings
    #[arg(value_name = "FILE", conflicts_with = "bundle", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// A bundle that ships with the program
    #[arg(long, value_name = "NAME")]
    pub bundle: Option<String>,
}

const POLICY_SHOW_EXAMPLES: &str = "\
Examples:
  fumehood policy show default
  fumehood policy show cautious > rules.cedar
  fumehood policy show schema";

/// Arguments of `policy show`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_SHOW_EXAMPLES)]
pub struct PolicyShowArgs {
    /// The bundle, or `schema`
    #[arg(value_name = "NAME")]
    pub name: String,
}
