//! The command `fumehood`: arguments, settings, output and exit codes.
//!
//! Guarantees: this is the only crate that prints and the only one that reads the environment.
//! Leaves to others: everything that decides, records or runs; see `engine`.
#![forbid(unsafe_code)]

pub mod args;
pub mod bwrap;
pub mod error;
pub mod exit;
pub mod output;
pub mod settings;
mod verbs;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};
use error::CliError;
use exit::Exit;
use output::{Console, json_line};
use settings::Environment;

/// Runs the program.
pub fn main() -> ExitCode {
    let environment = Environment::of_this_process();
    let arguments = arguments(std::env::args_os().collect());
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return misused(&error).into(),
    };
    // Empty in a release build.
    let test = |name| environment.filled(name);
    sandbox::fail_point::arm(test("FUMEHOOD_TEST_DIE_AT"), test("FUMEHOOD_TEST_STEPS"));
    allow_many_files();
    let console = Console::new(&cli.global, &environment);
    let voice = Voice::of(&cli.verb);
    let exit =
        verbs::dispatch(cli, &console, environment).unwrap_or_else(|error| failed(&console, &error, voice));
    // What cannot be removed now is found by the next start.
    let _ = sandbox::leave_own_group();
    if console.is_lost() {
        console.say_always("fumehood: cannot write all of standard output: is the disk full?");
        return Exit::Failed.into();
    }
    exit.into()
}

/// Raises the number of files that this process may hold open as far as it is allowed to: a large apply holds many. What is
/// started inside has limits of its own.
fn allow_many_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, work that needs more says so.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}

/// Returns the arguments; called by the name of `bwrap`, through a link, we are `fumehood bwrap`.
fn arguments(mut given: Vec<OsString>) -> Vec<OsString> {
    let name = given.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == "bwrap") {
        given.splice(..1, ["fumehood".into(), "bwrap".into()]);
    }
    given
}

/// Says what is wrong with the arguments, or what help was asked for.
fn misused(error: &clap::Error) -> Exit {
    // When neither stream takes it, there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() { Exit::Failed } else { Exit::Success }
}

/// How a verb says that it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    /// Standard output is ours: JSON goes there.
    Ours,
    /// Standard output is the command's: JSON goes to standard error, like everything that we say.
    Command,
    /// Like `Command`, in the form that a caller of bubblewrap looks for.
    Bwrap,
}

impl Voice {
    fn of(verb: &Verb) -> Self {
        match verb {
            Verb::Bwrap(_) => Self::Bwrap,
            Verb::Run(_) | Verb::Shell(_) | Verb::Reproduce(_) => Self::Command,
            _ => Self::Ours,
        }
    }
}

fn failed(console: &Console, error: &CliError, voice: Voice) -> Exit {
    match voice {
        Voice::Ours if console.json => {
            console.print_json(&error.document());
        }
        Voice::Command | Voice::Bwrap if console.json => console.say_always(&json_line(&error.document())),
        Voice::Bwrap => console.say_always(&bwrap::fatal(&error.text().replace("\n  ", "; "))),
        _ => console.say_always(&format!("{} {}", console.err.bad("fumehood:"), error.text())),
    }
    Exit::Failed
}
