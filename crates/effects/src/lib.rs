//! Effects: describes what a command would do, before it runs.
//!
//! Guarantees: an effect is left out only where the command is known not to have it. What is not known, not read
//! to its end, or decided only at run time becomes [`Effect::Unknown`] or [`Place::Anywhere`]; nothing is guessed.
//! The answer depends on the words alone: no file is looked at, no clock, no environment.
//! Leaves to others: holding a command to its description. The walls of the sandbox do that, whatever was said here:
//! a link that leads elsewhere, or a program that does more than its name says, comes up against those.
#![forbid(unsafe_code)]

mod account;
mod arg;
mod options;
mod place;
mod program;
mod shell;
mod tools;
mod variables;
mod word;

use std::collections::BTreeSet;
use std::path::Path;

use model::{Effect, OsText, WorkspacePath};

use crate::account::Account;
use crate::arg::Arg;

#[cfg(doc)]
use model::Place;

/// A command that somebody asks for.
#[derive(Debug, Clone, Copy)]
pub struct Command<'a> {
    /// The program and its arguments.
    pub argv: &'a [OsText],
    /// Where it starts, from the top of the workspace; the top when missing.
    pub directory: Option<&'a WorkspacePath>,
    /// The workspace, by its path inside the sandbox.
    pub workspace: &'a Path,
    /// The names of the variables that it sets in its environment.
    pub variables: &'a [&'a str],
}

/// Returns what a command would do, as far as its words say.
pub fn of_command(command: Command<'_>) -> BTreeSet<Effect> {
    let mut account = Account::new(command.workspace, command.directory);
    account.set_variables(command.variables);
    let argv: Vec<Arg> = command.argv.iter().map(Arg::given).collect();
    account.command(&argv);
    account.into_effects()
}
