//! The verbs about what came out: `diff`, `apply`, `discard`, `undo` and `fork`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::value::{ActionName, Target, TaskName};

/// Which task is meant: a named one, or the open one of a directory.
#[derive(Debug, Clone, Default, Args)]
pub struct TaskChoice {
    /// The task; by default the open one of the workspace
    #[arg(value_name = "TASK")]
    pub task: Option<TaskName>,
    /// The workspace whose open task is meant; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", conflicts_with = "task", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
}

const DIFF_EXAMPLES: &str = "\
Examples:
  fumehood diff
  fumehood diff --stat
  fumehood diff --patch > task.patch
  fumehood diff act-aaaaaaaaaaaaaaaa -- src
  fumehood diff --json

What git changed of its own, below .git, is shown only when a pathspec names it: it is never applied.";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_long_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// A task or one action; by default the open task of the workspace
    #[arg(value_name = "TASK|ACTION")]
    pub target: Option<Target>,
    /// The workspace whose open task is meant; by default the one of the current directory
    #[arg(short = 'w', long, value_name = "DIR", conflicts_with = "target", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,
    /// One line a file and the sum
    #[arg(long, conflicts_with_all = ["name_only", "patch"])]
    pub stat: bool,
    /// Only the names
    #[arg(long, conflicts_with = "patch")]
    pub name_only: bool,
    /// Write a patch that `git apply` takes, byte for byte
    #[arg(short = 'p', long)]
    pub patch: bool,
    /// Also what git ignores
    #[arg(long)]
    pub include_ignored: bool,
    /// Exit with 1 when there are changes
    #[arg(long)]
    pub exit_code: bool,
    /// Only what matches these git pathspecs
    #[arg(last = true, value_name = "PATHSPEC")]
    pub pathspec: Vec<OsString>,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  fumehood apply
  fumehood apply --yes
  fumehood apply --commits
  fumehood apply task-aaaaaaaaaaaaaaaa --include-ignored -- target/doc

Protected paths (git internals, hooks, CI, tests, editor and agent settings) are shown apart and asked for one by
one. A file that changed on both sides is never overwritten: the task's version is written beside it. A task with
commits stays open until they are imported or --no-commits leaves them behind.
Exit code 1 when something was held back.";

/// Arguments of `apply`.
#[derive(Debug, Args)]
#[command(after_long_help = APPLY_EXAMPLES)]
pub struct ApplyArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Also what git ignores
    #[arg(long)]
    pub include_ignored: bool,
    /// Do not ask about ordinary files; protected paths are held back unless named with --protected
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Apply this protected path, which you have looked at
    #[arg(long, value_name = "PATH")]
    pub protected: Vec<OsString>,
    /// Import commits that were made inside as the branch fumehood/TASK
    #[arg(long, overrides_with = "no_commits")]
    pub commits: bool,
    /// Do not import commits, and do not ask
    #[arg(long)]
    pub no_commits: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Only what matches these git pathspecs; the task stays open for the rest
    #[arg(last = true, value_name = "PATHSPEC")]
    pub pathspec: Vec<OsString>,
}

const DISCARD_EXAMPLES: &str = "\
Examples:
  fumehood discard
  fumehood discard task-aaaaaaaaaaaaaaaa --yes";

/// Arguments of `discard`.
#[derive(Debug, Args)]
#[command(after_long_help = DISCARD_EXAMPLES)]
pub struct DiscardArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
}

const UNDO_EXAMPLES: &str = "\
Examples:
  fumehood undo
  fumehood undo --last 3
  fumehood undo --to act-aaaaaaaaaaaaaaaa
  fumehood undo --applied

Without --applied only layers are touched. With it, files that `apply` overwrote are put back where the directory
has not changed since; what has changed is held back (exit code 1).";

/// Arguments of `undo`.
#[derive(Debug, Args)]
#[command(after_long_help = UNDO_EXAMPLES)]
pub struct UndoArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Take this many layers off
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,
    /// Take off all layers after this action's
    #[arg(long, value_name = "ACTION", conflicts_with = "last")]
    pub to: Option<ActionName>,
    /// Put back what the last `apply` overwrote
    #[arg(long, conflicts_with_all = ["last", "to"])]
    pub applied: bool,
}

const FORK_EXAMPLES: &str = "\
Examples:
  fumehood fork
  fumehood fork task-aaaaaaaaaaaaaaaa --at act-aaaaaaaaaaaaaaaa

Prints the new task. The two share their layers so far and no later ones. Later runs in the directory belong to the new
task, because it was opened last; --task names the other.";

/// Arguments of `fork`.
#[derive(Debug, Args)]
#[command(after_long_help = FORK_EXAMPLES)]
pub struct ForkArgs {
    /// The task.
    #[command(flatten)]
    pub which: TaskChoice,
    /// Start after this action instead of the newest
    #[arg(long, value_name = "ACTION")]
    pub at: Option<ActionName>,
}
