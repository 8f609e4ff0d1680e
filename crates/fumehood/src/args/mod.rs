//! The command line, parsed to types at once.
//!
//! Guarantees: every value that leaves here has its type and unit, and arguments that are not UTF-8 survive.
//! Leaves to others: what a value means on this machine (whether a directory exists, a task is known).

mod approvals;
mod credential;
mod deps;
mod hold;
mod intake;
mod manage;
mod net;
mod policy;
mod record;
mod result;
mod stop;
pub(crate) mod value;
mod work;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use approvals::{
    ApprovalsApproveArgs, ApprovalsArgs, ApprovalsDenyArgs, ApprovalsExportArgs, ApprovalsListArgs,
    ApprovalsRenderArgs, ApprovalsRevokeArgs, ApprovalsShowArgs, ApprovalsSignArgs, ApprovalsVerb,
    SignedChoice,
};
pub use credential::{
    CredentialArgs, CredentialListArgs, CredentialRevokeArgs, CredentialRotateArgs, CredentialShowArgs,
    CredentialVerb,
};
pub use deps::{DepsArgs, DepsListArgs, DepsSbomArgs, DepsVerb, DepsWhoUsedArgs, PackageName};
pub use hold::{HoldAddArgs, HoldArgs, HoldLiftArgs, HoldVerb};
pub use intake::{AcceptanceOptions, BudgetOptions, TaskNewArgs};
pub use manage::{
    ArtifactsArgs, ArtifactsGetArgs, ArtifactsListArgs, ArtifactsVerb, BwrapArgs, CompletionsArgs,
    ConfigArgs, ConfigCheckArgs, ConfigExplainArgs, ConfigVerb, DemoArgs, DoctorArgs, GcArgs,
};
pub use net::{NetArgs, NetExplainArgs, NetLogArgs, NetTestArgs, NetVerb};
pub use policy::{
    PolicyArgs, PolicyCheckArgs, PolicyDecideArgs, PolicyDiffArgs, PolicyExplainArgs, PolicyProveArgs,
    PolicyReplayArgs, PolicyShowArgs, PolicySuggestArgs, PolicyTestArgs, PolicyVerb, RequestChoice,
    RulesChoice, Since,
};
pub use record::{
    AuditArgs, AuditCheckpointArgs, AuditExportArgs, AuditPruneArgs, AuditShowArgs, AuditVerb,
    AuditVerifyArgs, ExportFormat, LogArgs, ShowArgs, TaskArgs, TaskFreezeArgs, TaskListArgs, TaskNameArgs,
    TaskResumeArgs, TaskVerb, WhyArgs,
};
pub use result::{ApplyArgs, DiffArgs, DiscardArgs, ForkArgs, TaskChoice, UndoArgs};
pub use stop::StopArgs;
pub use value::{
    ActionName, ApprovalName, ArgumentError, EnvSetting, HoldName, InputSetting, Millicpus, Target, TaskName,
};
pub use work::{AgentArgs, ApplyMode, LimitOptions, ReproduceArgs, RunArgs, SandboxOptions, ShellArgs};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const TOP_EXAMPLES: &str = "\
Examples:
  fumehood doctor                              what this host can hold, by trying it
  fumehood run -- cargo test                   run a command in a sandbox of its own
  fumehood agent \"fix the failing test\"        let a model work, and look at the result
  fumehood diff                                see what changed
  fumehood apply                               take it over into the directory
  fumehood demo                                watch all of it on a small repository

Exit codes: the command's own; 124 it ran out of time; 125 Fumehood failed; 126 denied by policy;
127 no such program; 128+n a signal ended it. `docs/cli.md` has the whole table.";

/// Runs what a coding agent proposes in a proved sandbox, on the record, and shows what it did
///
/// Nothing reaches your directory until you apply it. Without a server, without root, without set-uid helpers.
#[derive(Debug, Parser)]
#[command(name = "fumehood", version, styles = STYLES, after_help = TOP_EXAMPLES, max_term_width = 100)]
#[command(propagate_version = false, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: Global,
    /// What is to be done.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options that every verb takes.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Write JSON instead of text; the shapes are in docs/json.md
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// Keep tasks, layers and the record here
    ///
    /// The default is `fumehood` in $XDG_STATE_HOME or ~/.local/state. FUMEHOOD_STATE_DIR does the same. The
    /// directory must belong to you, and nobody else may write to it.
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options", value_hint = clap::ValueHint::DirPath)]
    pub state_dir: Option<PathBuf>,
    /// Say only what went wrong
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Colour: `auto` follows NO_COLOR, CLICOLOR and the terminal
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        hide_possible_values = true,
        help_heading = "Global options",
        overrides_with = "no_color"
    )]
    pub color: Option<ColorChoice>,
    /// The same as --color never
    #[arg(long, global = true, help_heading = "Global options")]
    pub no_color: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// When the stream is a terminal and the environment does not object.
    Auto,
    /// Also into a file or a pipe.
    Always,
    /// Not at all.
    Never,
}

/// What the program can be asked to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command in a sandbox of its own, and keep what it changed in a layer
    Run(Box<RunArgs>),
    /// Open a shell in a sandbox; the whole session is one action
    Shell(Box<ShellArgs>),
    /// Let a model work on a task; it may only propose
    Agent(Box<AgentArgs>),
    /// Open, list, show, resume, stop or freeze tasks
    Task(TaskArgs),
    /// End what runs and let nothing start: everywhere, for a user or in a repository, until a person lifts that
    Stop(StopArgs),
    /// Show what a task or one action changed
    Diff(DiffArgs),
    /// Write a task's changes to the directory
    Apply(ApplyArgs),
    /// Close a task without applying it; its layers stay until their retention ends
    Discard(DiscardArgs),
    /// Take the newest layers off a task, or take back what was applied
    Undo(UndoArgs),
    /// Start another task from the layers of this one
    Fork(ForkArgs),
    /// List the actions of a task
    Log(LogArgs),
    /// Show everything that is known about an action
    Show(ShowArgs),
    /// Explain why an action was denied, held back or ended
    Why(WhyArgs),
    /// Say what was tried over the network, what was refused and why, and what may be reached
    Net(NetArgs),
    /// List and show credentials that stay outside, take one back at once, or go on with a new value
    Credential(CredentialArgs),
    /// Say what this host can hold, by building a sandbox and trying to get out of it
    Doctor(DoctorArgs),
    /// Show, verify or export the record, or sign its head
    Audit(AuditArgs),
    /// Say what rules decide and why; check, test, prove and compare them; show those that ship with the program
    Policy(PolicyArgs),
    /// List, show and answer what waits for a person's yes
    Approvals(ApprovalsArgs),
    /// Explain, check or describe settings
    Config(ConfigArgs),
    /// Run an earlier action again from the same base, and say what differs
    Reproduce(Box<ReproduceArgs>),
    /// List or fetch what actions left in $FUMEHOOD_ARTIFACTS
    Artifacts(ArtifactsArgs),
    /// List packages that came from registries, find who used one, or write them as a CycloneDX document
    Deps(DepsArgs),
    /// Remove what is kept and whose retention has ended: layers, outputs, contexts, caches …
    Gc(GcArgs),
    /// Keep something whatever its retention (a legal hold), list what is kept so, or lift that
    Hold(HoldArgs),
    /// Take bubblewrap's arguments, for agents that call `bwrap`
    Bwrap(BwrapArgs),
    /// Write completions for a shell
    Completions(CompletionsArgs),
    /// Show all of it on a small repository that comes with the program
    Demo(DemoArgs),
    /// The process that talks to the model; started by `agent` and of no use by hand
    #[command(name = "__agent", hide = true)]
    AgentProcess,
    /// The process through which a sandbox reaches what it may; started by `run` and of no use by hand
    #[command(name = "__gateway", hide = true)]
    GatewayProcess,
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    fn leaves(command: &Command, path: &str, visit: &mut dyn FnMut(&Command, &str)) {
        let mut children =
            command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help").peekable();
        if children.peek().is_none() {
            visit(command, path);
        }
        for child in children {
            leaves(child, &format!("{path} {}", child.get_name()), visit);
        }
    }

    fn run(words: &[&str]) -> RunArgs {
        match Cli::try_parse_from(words).expect("is taken").verb {
            Verb::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_follows_the_command_is_the_command_s() {
        let args = run(&["fumehood", "run", "cargo", "test", "--json", "--memory", "-q"]);
        assert_eq!(args.command, ["cargo", "test", "--json", "--memory", "-q"]);
        assert_eq!(args.sandbox.limits, LimitOptions::default());
        let args = run(&["fumehood", "run", "--memory", "1GiB", "--", "--odd-name", "--", "x"]);
        assert_eq!(args.command, ["--odd-name", "--", "x"]);
    }

    #[test]
    fn arguments_that_are_no_text_survive() {
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(vec![b'a', 0xff, b'\n']);
        let mut words: Vec<std::ffi::OsString> = ["fumehood", "run", "--workspace"].map(Into::into).to_vec();
        words.extend([odd.clone(), "--".into(), "cat".into(), odd.clone()]);
        let Verb::Run(args) = Cli::try_parse_from(words).expect("is taken").verb else {
            panic!("another verb")
        };
        assert_eq!(args.command[1], odd);
        assert_eq!(args.sandbox.workspace.expect("given").as_os_str(), odd);
    }

    #[test]
    fn bubblewrap_s_arguments_are_left_alone() {
        let words =
            ["fumehood", "--quiet", "bwrap", "--ro-bind", "/", "/", "--json", "--", "sh", "-c", "--help"];
        let cli = Cli::try_parse_from(words).expect("is taken");
        let Verb::Bwrap(args) = cli.verb else { panic!("another verb") };
        assert_eq!(args.arguments, words[3..]);
        assert!(cli.global.quiet && !cli.global.json);
    }

    #[test]
    fn a_mistyped_word_is_answered_with_the_right_one() {
        for (words, right) in [
            (["fumehood", "run", "--memroy", "1GiB"], "--memory"),
            (["fumehood", "aply", "--yes", "-q"], "apply"),
            (["fumehood", "audit", "verfy", "-q"], "verify"),
            (["fumehood", "run", "--apply", "allways"], "always"),
        ] {
            let error = Cli::try_parse_from(words).expect_err("is refused").to_string();
            assert!(error.contains(right), "{words:?}: {error}");
        }
    }

    #[test]
    fn there_is_no_way_to_leave_the_record_out() {
        let error =
            Cli::try_parse_from(["fumehood", "run", "--no-record", "--", "true"]).expect_err("is refused");
        assert!(error.to_string().contains("unexpected argument"), "{error}");
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_a_long_help_with_an_example_of_itself() {
        let mut command = Cli::command();
        command.build();
        let mut seen = 0;
        leaves(&command, "fumehood", &mut |verb, path| {
            seen += 1;
            let help = verb.clone().render_long_help().to_string();
            assert!(help.contains("Example"), "{path}: no example");
            assert!(help.contains(&format!("  {path}")), "{path}: the example shows another verb\n{help}");
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{path}: `{about}`");
            for argument in verb.get_arguments().filter(|a| !a.is_hide_set()) {
                assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
            }
        });
        assert_eq!(seen, 66, "verbs without children");
    }

    #[test]
    fn every_example_is_taken() {
        let mut command = Cli::command().max_term_width(200).term_width(200);
        command.build();
        leaves(&command, "fumehood", &mut |verb, path| {
            let help = verb.clone().render_long_help().to_string();
            let examples = help
                .lines()
                .filter_map(|line| line.strip_prefix("  "))
                .filter(|l| l.starts_with("fumehood "));
            for example in examples {
                let words = split(example.split("   ").next().unwrap_or(example));
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{path}: `{example}` is not taken: {error}");
                }
            }
        });
    }

    /// Splits an example at blanks outside double and single quotes; stops at a redirection.
    fn split(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.chars() {
            match (c, quote) {
                ('>' | '|', None) => break,
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => words.push(String::new()),
                (c, _) => words.last_mut().expect("starts with one").push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }
}
