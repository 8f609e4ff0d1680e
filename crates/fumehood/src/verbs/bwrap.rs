//! `bwrap`: a command as bubblewrap would have run it, under our policy for agents and on our record.
//!
//! Who has a command run in bubblewrap's terms is a harness, for its model. So the rules for agents hold, as they do for
//! our own agent; a person has `run`.

use std::path::{Path, PathBuf};

use engine::{Engine, TaskChoice, Workspace};
use model::action::Principal;
use model::text::escape;

use super::ancestry::client_processes;
use super::context::Context;
use super::launch::{Streams, launch};
use super::order::{Wanted, order};
use super::run::exit;
use crate::args::{BwrapArgs, EnvSetting, SandboxOptions};
use crate::bwrap::{self, BwrapRequest, Caller, Mapped, Parsed};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::json_line;
use crate::output::shape::{ActionDocument, State};

/// The agent whose commands these are, as policy and the record name it. Which of them called is not known: a name that
/// the caller gives itself would be no ground to decide on. The task is the person's, who started the agent.
const AGENT: &str = "bwrap";

/// Runs a command that was asked for in bubblewrap's terms.
pub(super) fn bwrap(context: &Context<'_>, args: &BwrapArgs) -> Result<Exit, CliError> {
    match bwrap::parse(&args.arguments, &bwrap::read_descriptor)? {
        Parsed::Version => context.console.print(concat!(
            "fumehood ",
            env!("CARGO_PKG_VERSION"),
            " (bubblewrap's arguments)\n"
        )),
        Parsed::Help => context.console.print(&super::help_of("bwrap")),
        Parsed::Request(request) => return run(context, &request),
    };
    Ok(Exit::Success)
}

fn run(context: &Context<'_>, request: &BwrapRequest) -> Result<Exit, CliError> {
    let mapped = bwrap::map(request, &caller(context))?;
    let narrowed = bwrap::narrowed(&mapped.narrowed);
    let engine = context.engine()?;
    let workspace = workspace(context, &engine, &mapped)?;
    let options = options(&workspace, &mapped)?;
    let principal = Principal::Agent(AGENT.to_owned());
    let wanted = Wanted {
        principal,
        argv: mapped.argv,
        options: &options,
        terminal: false,
        joins: None,
        purpose: None,
    };
    engine.note_client(AGENT, &client_processes())?;
    let task = engine.task_for(&workspace, &TaskChoice::Current, &context.principal(), None)?;
    let order = order(context, &engine, &task, &workspace, wanted)?;
    let first = engine.store().read(|reader| reader.actions(&task.id))?.is_empty();
    // Bubblewrap passes its own standard input on.
    let document = launch(context, &engine, &task, order, Streams { stdin: true, terminal: false })?;
    say(context, &document);
    // Only after the command's own output, whose first line means something to callers, and only where it helps: what
    // was taken away is the same for each command of an agent, and may be why one failed.
    if let Some(line) = narrowed.filter(|_| !context.console.json && (first || document.exit_code != Some(0)))
    {
        context.console.say(&line);
    }
    exit(&document)
}

fn caller<'c>(context: &Context<'_>) -> Caller<'c> {
    Caller {
        cwd: context.cwd.clone(),
        home: std::fs::canonicalize(&context.user.home).ok(),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        resolve: &|path: &Path| std::fs::canonicalize(path).ok(),
    }
}

/// Returns the workspace. Where none was named, it is the one of an open task around the directory, so that a command
/// that only reads sees what the writing ones before it wrote.
fn workspace(context: &Context<'_>, engine: &Engine, mapped: &Mapped) -> Result<Workspace, CliError> {
    let directory = match &mapped.workspace {
        bwrap::Workspace::Exactly(path) => return context.workspace(Some(path)),
        bwrap::Workspace::Around(directory) => directory,
    };
    for above in directory.ancestors() {
        let Ok(candidate) = context.workspace(Some(above)) else { break };
        if engine.store().read(|reader| reader.open_task(&candidate.key))?.is_some() {
            return Ok(candidate);
        }
    }
    let home = &context.user.home;
    Ok(Workspace::find(None, directory, home, &context.settings.state_dir.value)?)
}

fn options(workspace: &Workspace, mapped: &Mapped) -> Result<SandboxOptions, CliError> {
    let outside = |_| {
        let path = escape(&mapped.directory.to_string_lossy()).into_owned();
        CliError::Cannot(format!("`{path}` is outside the workspace"))
    };
    let below = mapped.directory.strip_prefix(&workspace.path).map_err(outside)?;
    let cwd = if below.as_os_str().is_empty() { PathBuf::from(".") } else { below.to_owned() };
    let env = mapped
        .environment
        .iter()
        .map(|(name, value)| EnvSetting { name: name.clone(), value: Some(value.clone()) });
    Ok(SandboxOptions {
        cwd: Some(cwd),
        read_only: mapped.read_only,
        env: env.collect(),
        ..SandboxOptions::default()
    })
}

/// Says what the agent behind the caller has to know: nothing of a command that ran, and the decision of one that did not.
fn say(context: &Context<'_>, document: &ActionDocument) {
    if context.console.json {
        return context.console.say_always(&json_line(document));
    }
    match (document.state, &document.decision, &document.not_started) {
        (State::Denied | State::Tried, Some(decision), _) => {
            context.console.say_always(&bwrap::denial(decision))
        }
        (_, _, Some(not_started)) => context.console.say_always(&bwrap::fatal(&not_started.reason)),
        _ => {}
    }
}
