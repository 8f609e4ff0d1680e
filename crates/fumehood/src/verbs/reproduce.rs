//! `reproduce`: an earlier action once more, from the same base, layers, arguments, environment names and grant.

use std::collections::BTreeMap;

use engine::store::StoredAction;
use engine::{Engine, Order, Workspace};
use inspect::Finder;
use model::redaction::token_in;
use model::task::Task;
use model::{ActionRequest, Digest, FileKind, OsText, Tool, WorkspacePath};

use super::context::Context;
use super::launch::{Streams, launch};
use super::look::document;
use super::order::environment;
use super::repository::tightened;
use super::run::own_shell;
use super::{mutant, order};
use crate::args::ReproduceArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::shape::{ActionDocument, Difference, ReproduceDocument, differences};
use crate::output::{json_line, render};

/// Runs an earlier action again, or opens a shell where it stood.
pub(super) fn reproduce(context: &Context<'_>, args: &ReproduceArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let action = engine.store().read(|reader| reader.find_action(args.action.as_str()))?;
    if action.request.is_pruned() {
        let id = &action.id;
        return Err(CliError::Cannot(format!(
            "what {id} was asked for was pruned: run it anew with `fumehood run`"
        )));
    }
    refuse_secrets(&action, args.shell)?;
    let before = document(&engine, &action.id)?;
    let workspace = context.workspace(Some(action.start.workspace.as_path()))?;
    let variables = environment(context, &args.env)?;
    let notes = notes(&engine, &action, &workspace, &variables);
    let task = engine.task_before(&action)?;
    let streams = Streams { stdin: args.shell, terminal: args.shell || action.grant.terminal };
    let order = again(context, &engine, &task, workspace, &action, variables, args.shell)?;
    let now = launch(context, &engine, &task, order, streams);
    engine.discard(&task)?;
    let now = now?;
    if args.shell {
        return super::run::exit(&now);
    }
    let mut differs = differences(&before, &now);
    let first = engine.store().read(|reader| reader.find_task(action.task.as_str()))?;
    differs.extend(contents(&engine, (&first, &before), (&task, &now))?);
    report(context, ReproduceDocument { action: action.id, again: now, notes, differs })
}

/// Refuses what was given a secret: it is not kept, and with what stands in its place it is something else.
fn refuse_secrets(action: &StoredAction, shell: bool) -> Result<(), CliError> {
    let tool = serde_json::to_string(&action.request.tool).unwrap_or_default();
    match token_in(&tool) {
        Some(token) if !shell => Err(CliError::Cannot(format!(
            "{} was given a secret, which is not kept (`{token}` stands for it): run it anew with `fumehood run`",
            action.id
        ))),
        _ => Ok(()),
    }
}

/// Files larger than this are compared by their size only.
const LARGEST: u64 = 16 << 20;

/// Compares what files hold that both runs left with the same size.
fn contents(
    engine: &Engine,
    before: (&Task, &ActionDocument),
    now: (&Task, &ActionDocument),
) -> Result<Vec<Difference>, CliError> {
    let changed = |document: &ActionDocument| {
        let changes = document.inspection.iter().flat_map(|part| part.changes.clone());
        let files = changes.filter(|change| {
            change.mode.is_some() && change.file == FileKind::File && change.size <= LARGEST
        });
        files.map(|change| (change.path, change.size)).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (changed(before.1), changed(now.1));
    let both: Vec<&WorkspacePath> =
        old.iter().filter(|(path, size)| new.get(*path) == Some(size)).map(|(path, _)| path).collect();
    if both.is_empty() {
        return Ok(Vec::new());
    }
    let open = |(task, document): (&Task, &ActionDocument)| {
        engine.stack_of_action(task, &document.action).map(|stack| stack.after())
    };
    let (mut old, mut new) = (open(before)?, open(now)?);
    let read = |finder: &mut Finder, path: &WorkspacePath| -> Result<Option<Digest>, CliError> {
        let entry = finder.find(path).map_err(engine::EngineError::from)?;
        let bytes = entry.map(|entry| entry.read(LARGEST)).transpose().map_err(engine::EngineError::from)?;
        Ok(bytes.map(|bytes| Digest::of(&bytes)))
    };
    let mut differs = Vec::new();
    for path in both {
        let (before, now) = (read(&mut old, path)?, read(&mut new, path)?);
        if before != now {
            let shown = |digest: Option<Digest>| {
                digest.map_or_else(|| "unreadable".to_owned(), |digest| digest.to_string())
            };
            differs.push(Difference { what: format!("`{path}`"), before: shown(before), now: shown(now) });
        }
    }
    Ok(differs)
}

/// Puts the order of the earlier action together again.
fn again(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    workspace: Workspace,
    action: &StoredAction,
    variables: BTreeMap<String, OsText>,
    shell: bool,
) -> Result<Order, CliError> {
    let settings = tightened(context, engine, task, &workspace)?;
    let profile = settings.profile(Some(&action.grant.profile.name))?.profile;
    let mut grant = action.grant.clone();
    let mut tool = action.request.tool.clone();
    if shell {
        grant.terminal = true;
        tool = Tool::Run { argv: vec![order::os_text(own_shell(context))?] };
    }
    let request = ActionRequest {
        principal: context.principal(),
        tool,
        directory: action.request.directory.clone(),
        environment: variables,
        purpose: Some(format!("reproduce {}", action.id)),
    };
    let mutant = mutant::chosen(&context.environment);
    Ok(Order { request, grant, profile, workspace, mutant })
}

/// Says what is known to be different before it runs.
fn notes(
    engine: &Engine,
    action: &StoredAction,
    workspace: &Workspace,
    variables: &BTreeMap<String, OsText>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if action.start.base == model::action::Base::Live {
        notes.push("the base is the directory as it stands now: it may have been edited since".to_owned());
    }
    if workspace.path.as_path() != action.start.workspace.as_path() {
        notes.push(format!("the workspace is `{}` now", workspace.path.display()));
    }
    for (name, digest) in &action.request.environment {
        match variables.get(name) {
            None => notes.push(format!("`{name}` was set then; give its value with `--env {name}=VALUE`")),
            Some(value) if engine.store().value_digest(value.as_bytes()) != *digest => {
                notes.push(format!("`{name}` has another value than then"));
            }
            Some(_) => {}
        }
    }
    let known = |name: &String| action.request.environment.iter().any(|(known, _)| known == name);
    let new = variables.keys().filter(|name| !known(name)).map(|name| format!("`{name}` was not set then"));
    notes.extend(new);
    notes
}

fn report(context: &Context<'_>, document: ReproduceDocument) -> Result<Exit, CliError> {
    if context.console.json {
        context.console.say_always(&json_line(&document));
    } else {
        context.console.say(&render::reproduced(&document, context.console.err));
    }
    Ok(if document.again.end.is_none() { Exit::Failed } else { Exit::answer(document.differs.is_empty()) })
}
