//! The verbs about the program itself, what it keeps, and other programs' ways to call it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;

use super::value::{Target, positive_duration};

const DOCTOR_EXAMPLES: &str = "\
Examples:
  fumehood doctor
  fumehood doctor --profile strict
  fumehood doctor --json

It builds a real sandbox and tries to get out of it. For each layer it says: enforced, watched, or not enforceable
here, with the reason and what would fix it. Exit code 1 when the profile could not run here.";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(after_long_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// The profile to try; by default your default one
    #[arg(short = 'p', long, value_name = "NAME")]
    pub profile: Option<String>,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Say what each setting is and where its value came from
    Explain(ConfigExplainArgs),
    /// Check a settings file without using it
    Check(ConfigCheckArgs),
    /// Write the JSON schema of fumehood.toml, for editors
    #[command(after_long_help = "Example:\n  fumehood config schema > fumehood.schema.json")]
    Schema,
}

const CONFIG_EXPLAIN_EXAMPLES: &str = "\
Examples:
  fumehood config explain
  fumehood config explain default_profile
  fumehood config explain profile.strict.memory
  fumehood config explain --json";

/// Arguments of `config explain`.
#[derive(Debug, Args)]
#[command(after_long_help = CONFIG_EXPLAIN_EXAMPLES)]
pub struct ConfigExplainArgs {
    /// Only this setting, or the settings below it
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
}

const CONFIG_CHECK_EXAMPLES: &str = "\
Examples:
  fumehood config check
  fumehood config check ./fumehood.toml
  fumehood config check --repository .fumehood.toml

Without a file, the files that are in force are checked. Exit code 1 when something is wrong.";

/// Arguments of `config check`.
#[derive(Debug, Args)]
#[command(after_long_help = CONFIG_CHECK_EXAMPLES)]
pub struct ConfigCheckArgs {
    /// The file; by default those in force
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Check it as a repository's own file, which may only tighten
    #[arg(long, requires = "file")]
    pub repository: bool,
}

/// Arguments of `artifacts`.
#[derive(Debug, Args)]
pub struct ArtifactsArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub verb: ArtifactsVerb,
}

/// What can be done with artifacts.
#[derive(Debug, Subcommand)]
pub enum ArtifactsVerb {
    /// List what actions left
    List(ArtifactsListArgs),
    /// Write one artifact to a file or to standard output
    Get(ArtifactsGetArgs),
}

const ARTIFACTS_LIST_EXAMPLES: &str = "\
Examples:
  fumehood artifacts list
  fumehood artifacts list act-aaaaaaaaaaaaaaaa --json";

/// Arguments of `artifacts list`.
#[derive(Debug, Args)]
#[command(after_long_help = ARTIFACTS_LIST_EXAMPLES)]
pub struct ArtifactsListArgs {
    /// A task or one action; by default the open task of the workspace
    #[arg(value_name = "TASK|ACTION")]
    pub target: Option<Target>,
}

const ARTIFACTS_GET_EXAMPLES: &str = "\
Examples:
  fumehood artifacts get report.html --file report.html
  fumehood artifacts get coverage/lcov.info --from act-aaaaaaaaaaaaaaaa > lcov.info";

/// Arguments of `artifacts get`.
#[derive(Debug, Args)]
#[command(after_long_help = ARTIFACTS_GET_EXAMPLES)]
pub struct ArtifactsGetArgs {
    /// Its name, as `artifacts list` shows it
    #[arg(value_name = "NAME")]
    pub name: OsString,
    /// The task or action that left it; by default the open task of the workspace
    #[arg(long, value_name = "TASK|ACTION")]
    pub from: Option<Target>,
    /// Write to this file, which must not exist; by default to standard output
    #[arg(short = 'f', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

const GC_EXAMPLES: &str = "\
Examples:
  fumehood gc --dry-run
  fumehood gc
  fumehood gc --older-than 7d
  fumehood gc --older-than 1s --incidents-older-than 1s

What open tasks need stays, and so does what a legal hold covers (`fumehood hold`). `[retention]` in your settings says
how long each class stays, and how much of it; what failed, was denied or tried what is not allowed has an age of its own.
What is removed is recorded first. The record itself stays.";

/// Arguments of `gc`.
#[derive(Debug, Args)]
#[command(after_long_help = GC_EXAMPLES)]
pub struct GcArgs {
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Remove what is older than this instead of the retention of your settings
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub older_than: Option<Duration>,
    /// The same for what failed, was denied or tried what is not allowed
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    pub incidents_older_than: Option<Duration>,
}

const BWRAP_EXAMPLES: &str = "\
Examples:
  fumehood bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --die-with-parent -- bash -c true
  fumehood bwrap --ro-bind / / --tmpfs /tmp --bind /src/project /src/project -- make

mini-swe-agent: set `executable` of its bubblewrap environment to a link named `bwrap` that points to fumehood.
DeepSeek Harness: `runnerCommand: [fumehood, bwrap]` and `runnerFailureSignatures: ['fumehood: fatal']`.

What is asked for beyond policy is narrowed. After the first command of a task, and after each one that fails, one
line on standard error says so. What cannot be honoured is refused. Changes stay in the task's layer, as with `run`.";

/// Arguments of `bwrap`: bubblewrap's own, which are parsed elsewhere.
#[derive(Debug, Args)]
#[command(after_long_help = BWRAP_EXAMPLES)]
pub struct BwrapArgs {
    /// Bubblewrap's options, and the command
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub arguments: Vec<OsString>,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fumehood completions bash > ~/.local/share/bash-completion/completions/fumehood
  fumehood completions zsh > ~/.zfunc/_fumehood
  fumehood completions fish > ~/.config/fish/completions/fumehood.fish";

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_long_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  fumehood demo
  fumehood demo --json

A transcript plays the model, so no key is needed. It tries to read a key in home, to call out, to push and to write a
hook; each is stopped. Then it fixes a bug, and you see the diff, the costs, the proof and the verified record.";

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(after_long_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// Keep the small repository and its state in this new directory, to look around afterwards
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}
