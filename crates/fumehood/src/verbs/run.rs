//! `run` and `shell`: one command in a sandbox of its own.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use engine::store::{ActionState, StoredAction};
use engine::{Engine, TaskChoice, Workspace};
use model::action::Principal;
use model::task::Task;
use model::text::escape;

use super::ancestry::client_processes;
use super::answer::{Answer, answered_meanwhile, wait_for_answer};
use super::apply::after_run;
use super::context::Context;
use super::launch::{Streams, launch};
use super::look;
use super::order::{Wanted, order};
use crate::args::{ApplyMode, RunArgs, SandboxOptions, ShellArgs, TaskName};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::shape::{ActionDocument, State};
use crate::output::{json_line, render};

/// Runs a command.
pub(super) fn run(context: &Context<'_>, args: &RunArgs) -> Result<Exit, CliError> {
    let wanted = Session {
        argv: args.command.clone(),
        options: &args.sandbox,
        task: choice(args.new_task, args.task.as_ref()),
        fork: args.fork,
        streams: Streams { stdin: args.stdin || args.tty, terminal: args.tty },
        agent: args.agent.as_deref(),
        wait: args.wait,
    };
    let engine = context.engine()?;
    let (task, document) = wanted.run(context, &engine)?;
    let apply = || applied(context, &engine, &task, &document, args.apply);
    in_turn(context, || report(context, &document, args.outcome.as_deref()), apply)?;
    exit(&document)
}

/// Tells whether an action left changes that a review would show.
fn changed(document: &ActionDocument) -> bool {
    let inspection = document.inspection.as_ref();
    inspection
        .is_some_and(|part| part.changes_dropped > 0 || part.changes.iter().any(|change| !change.ignored))
}

/// Opens a shell.
pub(super) fn shell(context: &Context<'_>, args: &ShellArgs) -> Result<Exit, CliError> {
    let argv = if args.command.is_empty() { vec![own_shell(context)] } else { args.command.clone() };
    let wanted = Session {
        argv,
        options: &args.sandbox,
        task: choice(args.new_task, args.task.as_ref()),
        fork: args.fork,
        streams: Streams { stdin: true, terminal: true },
        agent: None,
        wait: None,
    };
    let engine = context.engine()?;
    let (task, document) = wanted.run(context, &engine)?;
    let apply = || applied(context, &engine, &task, &document, args.apply);
    in_turn(context, || report(context, &document, None), apply)?;
    exit(&document)
}

/// Says how it ended and then applies, as people read it; a program finds the document in the last line.
fn in_turn(
    context: &Context<'_>,
    report: impl FnOnce() -> Result<(), CliError>,
    apply: impl FnOnce() -> Result<(), CliError>,
) -> Result<(), CliError> {
    if context.console.json {
        let applied = apply();
        report()?;
        return applied;
    }
    report()?;
    apply()
}

/// Takes over what an action changed, by what `--apply` says.
fn applied(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    document: &ActionDocument,
    asked: Option<ApplyMode>,
) -> Result<(), CliError> {
    if changed(document) { after_run(context, engine, task, asked) } else { Ok(()) }
}

/// Returns the caller's shell where a sandbox shows it; a shell of one's own in home is not shown.
pub(super) fn own_shell(context: &Context<'_>) -> OsString {
    let shown = |shell: &Path| {
        ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|dir| shell.parent() == Some(Path::new(dir)))
    };
    match context.environment.directory("SHELL") {
        Some(shell) if shown(shell) && shell.exists() => shell.as_os_str().to_owned(),
        _ => "/bin/sh".into(),
    }
}

fn choice(new: bool, named: Option<&TaskName>) -> TaskChoice {
    match named {
        Some(task) => TaskChoice::This(task.as_str().to_owned()),
        None if new => TaskChoice::New,
        None => TaskChoice::Current,
    }
}

/// One command that a person started.
struct Session<'a> {
    argv: Vec<OsString>,
    options: &'a SandboxOptions,
    task: TaskChoice,
    /// Whether to work on a fork when the task is busy.
    fork: bool,
    streams: Streams,
    /// The agent that asks; else it is the person at the keyboard.
    agent: Option<&'a str>,
    /// How long to wait for a person's yes.
    wait: Option<Duration>,
}

impl Session<'_> {
    fn run(self, context: &Context<'_>, engine: &Engine) -> Result<(Task, ActionDocument), CliError> {
        let workspace = self.workspace(context, engine)?;
        let terminal = self.streams.terminal;
        // Before a task is opened for what cannot be done.
        let joined = self.joined(engine)?;
        let joins = joined.as_ref().map(|action| action.id.clone());
        let mut task = engine.task_for(&workspace, &self.task, &context.principal(), None)?;
        // Waiting for the end of the very action that is to be joined would be waiting until there is nothing to join.
        let in_vain =
            joined.is_some_and(|other| other.task == task.id && other.state == ActionState::Started);
        if (self.fork || in_vain) && engine.is_busy(&task)? {
            task = engine.fork(&task, None)?;
            context
                .console
                .say(&format!("fumehood: the task is busy: this runs on a fork of it, {}", task.id));
        }
        let principal = match self.agent {
            Some(name) => Principal::Agent(name.to_owned()),
            None => context.principal(),
        };
        if let Some(name) = self.agent {
            engine.note_client(name, &client_processes())?;
        }
        let launch = || {
            let (principal, joins) = (principal.clone(), joins.clone());
            let argv = self.argv.clone();
            let wanted = Wanted { principal, argv, options: self.options, terminal, joins, purpose: None };
            let order = order(context, engine, &task, &workspace, wanted)?;
            launch(context, engine, &task, order, self.streams)
        };
        let mut document = launch()?;
        let answer = match (&document.approval, self.wait) {
            (Some(asked), Some(time)) => wait_for_answer(context, engine, &asked.approval, time, &|| false)?,
            (Some(asked), None) if asked.again => answered_meanwhile(context, engine, &asked.approval)?,
            _ => Answer::None,
        };
        document = match answer {
            Answer::RunAgain => launch()?,
            Answer::Stands(action) => look::document(engine, &action)?,
            Answer::None => document,
        };
        Ok((task, document))
    }

    /// Returns the action whose network is to be joined.
    fn joined(&self, engine: &Engine) -> Result<Option<StoredAction>, CliError> {
        let Some(name) = &self.options.join else { return Ok(None) };
        Ok(Some(engine.store().read(|reader| reader.find_action(name.as_str()))?))
    }

    /// Returns the workspace; a task that is named brings its own.
    fn workspace(&self, context: &Context<'_>, engine: &Engine) -> Result<Workspace, CliError> {
        let TaskChoice::This(name) = &self.task else {
            return context.workspace(self.options.workspace.as_deref());
        };
        let task = engine.store().read(|reader| reader.find_task(name))?;
        let workspace = context.workspace(Some(task.workspace.path.as_path()))?;
        if workspace.key == task.workspace {
            return Ok(workspace);
        }
        let path = escape(&workspace.path.to_string_lossy()).into_owned();
        Err(CliError::Cannot(format!(
            "`{path}` is another directory now than the one that {} was opened on",
            task.id
        )))
    }
}

/// Says how it ended, on standard error: standard output belongs to the command.
pub(super) fn report(
    context: &Context<'_>,
    document: &ActionDocument,
    outcome: Option<&Path>,
) -> Result<(), CliError> {
    let console = context.console;
    if let Some(file) = outcome {
        let path = context.cwd.join(file);
        std::fs::write(&path, json_line(document)).map_err(CliError::file("write the outcome to", &path))?;
    }
    if console.json {
        console.say_always(&json_line(document));
        return Ok(());
    }
    let line = render::outcome_line(document, console.err);
    match document.state {
        State::Denied | State::NotStarted | State::Tried => {
            console.say_always(&line);
            console.say(&format!("fumehood: `fumehood why {}` says more", document.action));
        }
        _ => console.say(&line),
    }
    if let Some(refused) = render::refused_line(document) {
        console.say_always(&refused);
    }
    Ok(())
}

/// Returns the exit that stands for what the record says of an action.
pub(super) fn exit(document: &ActionDocument) -> Result<Exit, CliError> {
    match (document.state, &document.end) {
        (State::Denied | State::Tried, _) => Ok(Exit::Denied),
        (_, Some(end)) => Ok(Exit::of(&end.ending)),
        _ => Ok(Exit::Failed),
    }
}
