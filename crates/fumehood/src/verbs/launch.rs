//! Hands an order to the engine, with our streams and signals, and returns what the record then says of the action.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use engine::{Engine, Io, Order, Outcome, Request, Sink, controller};
use model::ActionId;
use model::task::Task;

use super::context::Context;
use super::look::document;
use super::signals::Forwarding;
use super::sink::Through;
use super::terminal::{self, Raw};
use crate::error::CliError;
use crate::output::shape::ActionDocument;

/// What the command gets of our streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streams {
    /// Our standard input; without it the command reads nothing.
    pub(super) stdin: bool,
    /// A terminal of its own.
    pub(super) terminal: bool,
}

/// Runs an order to its end.
pub(super) fn launch(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    order: Order,
    streams: Streams,
) -> Result<ActionDocument, CliError> {
    let (handle, controller) =
        controller().map_err(CliError::system("make a descriptor to steer the command by"))?;
    let forwarding = Forwarding::start(handle.clone(), context.console)?;
    // Until the command has the keyboard, Ctrl-C is for us.
    let raw = Arc::new(Mutex::new(None));
    let (keyboard, wanted) = (Arc::clone(&raw), streams.terminal);
    let controller = controller.on_start(move || {
        if let Ok(mut raw) = keyboard.lock() {
            *raw = wanted.then(Raw::enter).flatten();
        }
    });
    if let Some((rows, columns)) = terminal::size().filter(|_| streams.terminal) {
        handle.ask(Request::Resize { rows, columns });
    }
    let io = Io {
        stdin: streams.stdin.then(own_stdin).transpose()?,
        stdout: sink(context, streams, io::stdout().is_terminal()),
        stderr: sink(context, streams, io::stderr().is_terminal()),
        controller: Some(controller),
    };
    let waiting = || {
        context.console.say(
            "fumehood: another action of this task is running; waiting for its end (--fork does not wait)",
        )
    };
    let outcome = engine.handle(task, order, io, waiting);
    drop((raw, forwarding));
    let action = action_of(&outcome?);
    document(engine, &action)
}

fn own_stdin() -> Result<File, CliError> {
    let own = io::stdin().as_fd().try_clone_to_owned();
    own.map(File::from).map_err(CliError::system("pass standard input on"))
}

/// Only a terminal of the command's own may be driven by it.
fn sink(context: &Context<'_>, streams: Streams, is_terminal: bool) -> Box<dyn Sink> {
    let lines = Arc::clone(&context.console.lines);
    Box::new(if is_terminal && !streams.terminal { Through::text(lines) } else { Through::bytes(lines) })
}

fn action_of(outcome: &Outcome) -> ActionId {
    match outcome {
        Outcome::Denied { action, .. } | Outcome::NeedsApproval { action, .. } => action.clone(),
        Outcome::NotStarted(not_started) => not_started.action.clone(),
        Outcome::Finished(finished) => finished.action.clone(),
    }
}
