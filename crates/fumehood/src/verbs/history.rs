//! `undo`, `fork` and `discard`: going back, branching off, throwing away. The host's directory is not touched.

use engine::Engine;
use model::ActionId;
use model::task::{Task, TaskState};

use super::ancestry::refuse_agents;
use super::context::Context;
use super::task::{choose, row};
use crate::args::{DiscardArgs, ForkArgs, UndoArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::UndoDocument;

/// Takes the newest layers off a task, or takes back what was applied.
pub(super) fn undo(context: &Context<'_>, args: &UndoArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    if args.applied {
        return taken_back(context, &engine, args);
    }
    let task =
        choose(context, &engine, &args.which).map_err(|error| after_apply(context, &engine, args, error))?;
    let first = first_to_go(&engine, &task, args)?;
    let document = UndoDocument { layers: engine.undo(&task, Some(&first))?, task: task.id };
    context.console.answer(&document, |paint| render::undo(&document, paint));
    Ok(Exit::Success)
}

/// Names the way back where the changes are in the directory already.
fn after_apply(context: &Context<'_>, engine: &Engine, args: &UndoArgs, error: CliError) -> CliError {
    let applied = args.which.task.is_none().then(|| context.workspace(args.which.workspace.as_deref()).ok());
    let applied = applied.flatten().and_then(|workspace| engine.last_applied(&workspace.key).ok().flatten());
    match (error, applied) {
        (CliError::Cannot(text), Some(_)) => CliError::Cannot(format!(
            "{text}; `fumehood undo --applied` takes back what the last apply wrote"
        )),
        (error, _) => error,
    }
}

/// Puts back what the last apply overwrote.
fn taken_back(context: &Context<'_>, engine: &Engine, args: &UndoArgs) -> Result<Exit, CliError> {
    let task = match &args.which.task {
        Some(named) => engine.store().read(|reader| reader.find_task(named.as_str()))?,
        None => {
            let workspace = context.workspace(args.which.workspace.as_deref())?;
            let none = || CliError::Cannot(format!("nothing is applied in `{}`", workspace.key.path));
            engine.last_applied(&workspace.key)?.ok_or_else(none)?
        }
    };
    let done = engine.undo_applied(&task, &context.principal())?;
    let document = super::apply::document(&task, done);
    context.console.answer(&document, |paint| render::taken_back(&document, paint));
    Ok(Exit::answer(document.held_back.is_empty()))
}

/// Returns the oldest layer that is to be taken off.
fn first_to_go(engine: &Engine, task: &Task, args: &UndoArgs) -> Result<ActionId, CliError> {
    let kept = engine.store().read(|reader| reader.kept_layers(&task.id))?;
    let mut kept = kept.into_iter().map(|layer| layer.action);
    let Some(named) = &args.to else {
        let from = kept.len().saturating_sub(args.last as usize);
        return kept.nth(from).ok_or_else(|| nothing(task, "it stands on no layer"));
    };
    let stays = engine.store().read(|reader| reader.find_action(named.as_str()))?.id;
    let mut after = kept.skip_while(|layer| *layer != stays);
    if after.next().is_none() {
        return Err(nothing(task, &format!("it does not stand on a layer of {stays}")));
    }
    after.next().ok_or_else(|| nothing(task, &format!("the layer of {stays} is its newest")))
}

fn nothing(task: &Task, why: &str) -> CliError {
    CliError::Cannot(format!("there is nothing to undo in {}: {why}", task.id))
}

/// Starts another task from the layers of one.
pub(super) fn fork(context: &Context<'_>, args: &ForkArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, &args.which)?;
    let at = args.at.as_ref().map(|named| engine.store().read(|reader| reader.find_action(named.as_str())));
    let at = at.transpose()?.map(|action| action.id);
    let fork = engine.fork(&task, at.as_ref())?;
    let id = fork.id.clone();
    context.console.answer(&row(fork, 0), |_| format!("{id}\n"));
    Ok(Exit::Success)
}

/// Closes a task without applying it.
pub(super) fn discard(context: &Context<'_>, args: &DiscardArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, &args.which)?;
    let actions = engine.store().read(|reader| reader.actions(&task.id))?.len() as u64;
    let question = format!("throw away what {} did in {}?", task.id, task.workspace.path);
    if !args.yes && !context.console.agrees(&question) {
        return Ok(Exit::Negative);
    }
    if task.state == TaskState::Frozen {
        refuse_agents(&engine, "throw a frozen task away")?;
    }
    engine.discard(&task)?;
    let id = task.id.clone();
    let discarded = row(Task { state: TaskState::Discarded, ..task }, actions);
    context.console.answer(&discarded, |_| String::new());
    context.console.say(&format!("fumehood: {id} is discarded; its layers stay until their retention ends"));
    Ok(Exit::Success)
}
