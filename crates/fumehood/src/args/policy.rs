//! The verb about what would be decided: `policy`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use model::Timestamp;
use model::text::escape;
use model::units::parse_duration;

use super::value::ActionName;

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
    /// Decide the rows of decision tables, and say which are answered otherwise than they must be
    Test(PolicyTestArgs),
    /// Show every question that a request comes to, what each rule says to it, and what would lift it
    Explain(PolicyExplainArgs),
    /// Prove what rules never allow, or show a request that they do allow
    Prove(PolicyProveArgs),
    /// Say by proof what becomes wider and what narrower from one policy to another
    Diff(PolicyDiffArgs),
    /// Say what other rules would have answered to the requests of the record
    Replay(PolicyReplayArgs),
    /// Print the smallest change of rules that would have allowed a denial, and what else it allows
    Suggest(PolicySuggestArgs),
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

const POLICY_TEST_EXAMPLES: &str = "\
Examples:
  fumehood policy test decisions.jsonl
  fumehood policy test --bundle cautious reads.jsonl writes.toml
  fumehood policy test --file ./rules.cedar decisions.jsonl --json

A table has one JSON object a line, or in a `.toml` file one `[[row]]` each: a request as `policy decide --stdin` takes it,
`expect` (`allow`, `ask`, `deny`, or `stop` for either of both), and where they matter `reason`, `rules`, `id` and `why`.
Exit code 1 when a row is answered otherwise.";

/// Arguments of `policy test`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_TEST_EXAMPLES)]
pub struct PolicyTestArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// The tables
    #[arg(value_name = "TABLE", required = true, value_hint = ValueHint::FilePath)]
    pub tables: Vec<PathBuf>,
}

const POLICY_EXPLAIN_EXAMPLES: &str = "\
Examples:
  fumehood policy explain -- git push origin main
  fumehood policy explain --bundle cautious -- sh -c 'cat a > b'
  fumehood policy explain --action act-7k
  fumehood policy explain --stdin --json

First stands the answer, as `policy decide` gives it; then each question that was put to policy, the rules that permit or
forbid it with the facts that they look at, and what would lift what forbids. `--action` explains a request of the record
with the rules that are there now. Exit code 0 for `allow`, 1 for `ask` and `deny`.";

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_EXPLAIN_EXAMPLES)]
pub struct PolicyExplainArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// Explain an action of the record
    #[arg(long, value_name = "ACTION", conflicts_with_all = ["stdin", "command", "workspace", "as_user"])]
    pub action: Option<ActionName>,
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
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["stdin", "action"], value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

impl PolicyExplainArgs {
    /// Returns the request, where it is none of the record.
    pub fn request(&self) -> RequestChoice {
        let Self { stdin, workspace, as_user, command, .. } = self;
        let (workspace, command) = (workspace.clone(), command.clone());
        RequestChoice { stdin: *stdin, workspace, as_user: *as_user, command }
    }
}

const POLICY_PROVE_EXAMPLES: &str = "\
Examples:
  fumehood policy prove
  fumehood policy prove --bundle cautious --claim releases-wait
  fumehood policy prove --file ./rules.cedar --claims ./never.cedar --save found.jsonl

A claim is a `forbid` that a policy must imply; those that ship with the program are listed in docs/policy.md. Each is proved
for every request that the schema knows, or refuted by one that the authorizer allows as well; `--save` appends that to a
table for `policy test`. The solver is cvc5, named by the variable `CVC5` or found on PATH. Without it nothing is proved.
Exit code 0 only when every claim is proved, else 1.";

/// Arguments of `policy prove`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_PROVE_EXAMPLES)]
pub struct PolicyProveArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// Prove this claim; by default all that these rules are held to
    #[arg(long, value_name = "ID")]
    pub claim: Vec<String>,
    /// Prove the claims of this file, too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub claims: Option<PathBuf>,
    /// Append what refutes a claim to this table for `policy test`
    #[arg(long, value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
}

const POLICY_DIFF_EXAMPLES: &str = "\
Examples:
  fumehood policy diff default cautious
  fumehood policy diff default ./rules.cedar
  fumehood policy diff ./rules.cedar ./candidate.cedar --json

For each action of the schema a solver (cvc5) looks for a request that only one of both allows. What it finds is asked of
the authorizer again; where it finds nothing, there is nothing. Exit code 1 when something becomes wider or is not proved.";

/// Arguments of `policy diff`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_DIFF_EXAMPLES)]
pub struct PolicyDiffArgs {
    /// The rules that hold: a bundle, or the path of a file
    #[arg(value_name = "FROM")]
    pub from: OsString,
    /// The rules to compare with: a bundle, or the path of a file
    #[arg(value_name = "TO")]
    pub to: OsString,
}

const POLICY_REPLAY_EXAMPLES: &str = "\
Examples:
  fumehood policy replay cautious --since 7d
  fumehood policy replay ./candidate.cedar --since 2026-11-01
  fumehood policy replay ./candidate.cedar --json

The requests of the record are put together again and decided with these rules, with the effects that were read from them
then and with nobody's yes. What cannot be put together again is counted with the reason. Exit code 1 when a request
is answered otherwise than it was.";

/// Arguments of `policy replay`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_REPLAY_EXAMPLES)]
pub struct PolicyReplayArgs {
    /// The rules to try: a bundle, or the path of a file
    #[arg(value_name = "RULES")]
    pub candidate: OsString,
    /// From when on: a time before now (`12h`, `7d`), a day, or a moment in RFC 3339; by default from the beginning
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
}

const POLICY_SUGGEST_EXAMPLES: &str = "\
Examples:
  fumehood policy suggest
  fumehood policy suggest --action act-7k --file ./rules.cedar
  fumehood policy suggest --action act-7k --table decisions.jsonl

A suggestion is printed and never installed. It names the very asker, action, object, program and limit of the denial,
and was tried on it; below stands what else it would allow, of the record and of tables. There is none where the rules say
that no person may change a denial, or where a yes or a smaller grant is all that is missing. Exit code 1 without one.";

/// Arguments of `policy suggest`.
#[derive(Debug, Args)]
#[command(after_long_help = POLICY_SUGGEST_EXAMPLES)]
pub struct PolicySuggestArgs {
    /// Which rules.
    #[command(flatten)]
    pub rules: RulesChoice,
    /// The denied action; by default the newest of the record that these rules deny
    #[arg(long, value_name = "ACTION")]
    pub action: Option<ActionName>,
    /// Look at the record from when on, as for `policy replay`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
    /// Say which rows of this table it would allow, too
    #[arg(long, value_name = "TABLE", value_hint = ValueHint::FilePath)]
    pub table: Vec<PathBuf>,
}

/// From when on something is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// This long before now.
    Ago(Duration),
    /// This moment.
    Moment(Timestamp),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = parse_duration(text) {
            return Ok(Self::Ago(time));
        }
        // A day begins at midnight in UTC, the time of the record.
        let moment = [text.to_owned(), format!("{text}T00:00:00Z")];
        let moment = moment.iter().find_map(|text| text.parse::<jiff::Timestamp>().ok());
        let nanos = moment.and_then(|moment| u64::try_from(moment.as_nanosecond()).ok());
        nanos.map(|nanos| Self::Moment(Timestamp::from_nanos(nanos))).ok_or_else(|| {
            format!(
                "`{}` is no time: write for example `12h`, `7d`, `2026-11-01` or `2026-11-01T08:00:00Z`",
                escape(text)
            )
        })
    }
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
