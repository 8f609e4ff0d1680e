//! Hands an order to the engine, with our streams and signals, and returns what the record then says of the action.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::{Arc, Mutex};

use engine::{Engine, Io, Order, Outcome, Sink, controller};
use model::ActionId;
use model::task::Task;
use rustix::fs::{major, minor};

use super::context::Context;
use super::look::document;
use super::signals::Forwarding;
use super::sink::Through;
use super::terminal::{self, Raw};
use crate::error::CliError;
use crate::output::shape::ActionDocument;

/// The number of `/dev/null` (Documentation/admin-guide/devices.txt: 1, 3).
const NULL_DEVICE: (u32, u32) = (1, 3);

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
        handle.resize(rows, columns);
    }
    let io = Io {
        stdin: if streams.stdin { own_stdin()? } else { None },
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

/// Returns our standard input, unless nothing can come from it.
fn own_stdin() -> Result<Option<File>, CliError> {
    let own = io::stdin().as_fd().try_clone_to_owned();
    let own = own.map(File::from).map_err(CliError::system("pass standard input on"))?;
    let found = own.metadata().map_err(CliError::system("look at standard input"))?;
    let is_empty =
        found.file_type().is_char_device() && (major(found.rdev()), minor(found.rdev())) == NULL_DEVICE;
    Ok((!is_empty).then_some(own))
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
