//! `log`, `show` and `why`: what is known of actions, from the record.

use ::agent::conversation::{CallId, Message};
use engine::store::{ActionState, LayerState, StoredAction};
use engine::{Engine, Moment, Unread};
use model::{ActionId, TaskId, Timestamp};

use super::context::Context;
use super::task::choose;
use crate::args::{ActionName, LogArgs, ShowArgs, WhyArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{ActionDocument, JoiningPart, LogDocument, LogRow, State, why as explain};

/// Lists the actions of a task.
pub(super) fn log(context: &Context<'_>, args: &LogArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, &args.which)?;
    let mut rows = rows(&engine, &task.id, args.internal)?;
    if let Some(number) = args.number {
        rows.drain(..rows.len().saturating_sub(number as usize));
    }
    let document = LogDocument { task: task.id, log: rows };
    context.console.answer(&document, |paint| render::log(&document.log, paint));
    Ok(Exit::Success)
}

/// Returns a line for each action of a task.
pub(super) fn rows(engine: &Engine, task: &TaskId, internal: bool) -> Result<Vec<LogRow>, CliError> {
    let actions = engine.store().read(|reader| reader.actions(task))?;
    let wanted = actions.iter().filter(|action| internal || action.class == "action");
    wanted.map(|action| Ok(LogRow::of(&of_stored(engine, action)?))).collect()
}

/// Shows everything that is known about an action.
pub(super) fn show(context: &Context<'_>, args: &ShowArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let action = choose_action(context, &engine, args.action.as_ref(), args.workspace.as_deref())?;
    if args.output {
        let output = engine.read_output(&context.principal(), &action)?;
        for kept in output.map_err(|unread| refused(&unread, &action))? {
            context.console.print_bytes(&kept.bytes);
        }
        return Ok(Exit::Success);
    }
    if args.context {
        return show_context(context, &engine, &action);
    }
    if args.response {
        return show_response(context, &engine, &action);
    }
    let document = whole(&engine, &action)?;
    context.console.answer(&document, |paint| render::action(&document, paint, args.full));
    Ok(Exit::Success)
}

fn refused(unread: &Unread, action: &StoredAction) -> CliError {
    let Unread { reason, advice } = unread;
    CliError::Cannot(format!("policy does not let you read that of {} ({reason}): {advice}", action.id))
}

/// Writes what the model had been sent when it asked for an action.
fn show_context(context: &Context<'_>, engine: &Engine, action: &StoredAction) -> Result<Exit, CliError> {
    let none = || {
        CliError::Cannot(format!(
            "nothing is kept of what a model was sent before {}: no agent asked for it, or its time was over",
            action.id
        ))
    };
    let sent = engine.read_context(&context.principal(), action)?;
    let sent = sent.map_err(|unread| refused(&unread, action))?.ok_or_else(none)?;
    if !sent.is_whole {
        context
            .console
            .say("fumehood: tokens stand where secrets were; the model was sent the rest as it is here");
    }
    context.console.print_bytes(&sent.content);
    context.console.print_bytes(b"\n");
    Ok(Exit::Success)
}

/// Writes what the model answered when it asked for an action: its text, its thoughts and its calls.
fn show_response(context: &Context<'_>, engine: &Engine, action: &StoredAction) -> Result<Exit, CliError> {
    let none = || {
        CliError::Cannot(format!(
            "nothing is kept of what a model answered to come to {}: no agent asked for it, or its time was over",
            action.id
        ))
    };
    let read = engine.read_conversation(&context.principal(), action)?;
    let conversation = read.map_err(|unread| refused(&unread, action))?.ok_or_else(none)?;
    let call: CallId = conversation.call.parse().map_err(|_| none())?;
    let mut turns = conversation
        .messages
        .iter()
        .filter(|message| matches!(serde_json::from_str(message.get()), Ok(Message::Assistant(_))));
    let turn = turns.nth(call.turn.saturating_sub(1) as usize).ok_or_else(none)?;
    context.console.print_bytes(turn.get().as_bytes());
    context.console.print_bytes(b"\n");
    Ok(Exit::Success)
}

/// Explains what stood in the way of an action.
pub(super) fn why(context: &Context<'_>, args: &WhyArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let action = choose_action(context, &engine, args.action.as_ref(), args.workspace.as_deref())?;
    let document = of_stored(&engine, &action)?;
    let causes = explain(&document);
    context.console.answer(&causes, |paint| render::why(&document, &causes, paint));
    Ok(Exit::Success)
}

/// Returns the action that is named, or the newest one of the workspace.
pub(super) fn choose_action(
    context: &Context<'_>,
    engine: &Engine,
    named: Option<&ActionName>,
    workspace: Option<&std::path::Path>,
) -> Result<StoredAction, CliError> {
    if let Some(named) = named {
        return Ok(engine.store().read(|reader| reader.find_action(named.as_str()))?);
    }
    let workspace = context.workspace(workspace)?;
    let none =
        || CliError::Cannot("nothing was run in this workspace yet: `fumehood run -- CMD` does".to_owned());
    let tasks = engine.store().read(|reader| reader.tasks())?;
    let here = tasks.into_iter().filter(|overview| overview.task.workspace == workspace.key);
    let newest = here.filter(|overview| overview.actions > 0).max_by_key(|overview| overview.last_action);
    let task = newest.ok_or_else(none)?.task.id;
    let actions = engine.store().read(|reader| reader.actions(&task))?;
    let asked_for = actions.into_iter().rfind(|action| action.class == "action");
    asked_for.ok_or_else(none)
}

/// Puts together what the record says of an action.
pub(super) fn document(engine: &Engine, action: &ActionId) -> Result<ActionDocument, CliError> {
    let stored = engine.store().read(|reader| reader.find_action(action.as_str()))?;
    whole(engine, &stored)
}

/// Puts together what the record says of an action, and who joined it.
fn whole(engine: &Engine, action: &StoredAction) -> Result<ActionDocument, CliError> {
    let joining = engine.store().read(|reader| reader.joining_actions(&action.id))?;
    let joined_by = joining.into_iter().map(|other| JoiningPart { action: other.id, task: other.task });
    Ok(ActionDocument { joined_by: joined_by.collect(), ..of_stored(engine, action)? })
}

/// Puts together what the record says of an action that was looked up: of it alone, not of who joined it.
pub(super) fn of_stored(engine: &Engine, action: &StoredAction) -> Result<ActionDocument, CliError> {
    let records = engine.store().read(|reader| reader.records_of_action(&action.task, &action.id))?;
    let events: Vec<(Timestamp, model::Event)> =
        records.iter().filter_map(|record| Some((record.time, record.parse_event().ok()?))).collect();
    let mut document =
        ActionDocument::from_events(action.id.clone(), events.iter().map(|(at, event)| (*at, event)));
    document.task = Some(action.task.clone());
    if let Some(ending) = &action.ending {
        document.ended_as(ending);
    }
    document.undone = action.layer == Some(LayerState::Undone);
    if let Some(part) = &document.approval {
        // It may stand for an earlier request, and expires without an event.
        let asked = engine.store().read(|reader| reader.find_approval(part.approval.as_str()))?;
        document.asked_is(asked.state_at(&Moment::now()?), asked.why);
    }
    if action.state == ActionState::Unknown {
        document.state = State::Unknown;
    }
    Ok(document)
}
