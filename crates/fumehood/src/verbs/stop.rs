//! `stop`: ends what runs in more than one task, and holds new starts until a person lifts that.

use engine::Engine;
use model::{Hold, HoldScope, TaskId};

use super::ancestry::{not_a_person, refuse_agents};
use super::context::Context;
use super::order::os_text;
use crate::args::StopArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{HoldRow, StopDocument};

/// Stops, lists what is stopped, or lifts it.
pub(super) fn stop(context: &Context<'_>, args: &StopArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let reason = args.reason.as_deref().unwrap_or_default();
    match (scope(context, args)?, &args.lift) {
        (Some(scope), _) => hold(context, &engine, scope, reason),
        (None, Some(named)) => {
            refuse_agents(&engine, "lift what was stopped")?;
            let (hold, _) = engine.store().read(|reader| reader.find_hold(named.as_str()))?;
            engine.lift(&hold, &context.principal(), reason)?;
            let lifted = hold.id.to_string();
            answer(context, &engine, Vec::new(), Some(hold))?;
            context.console.say(&format!("fumehood: {lifted} is lifted"));
            Ok(Exit::Success)
        }
        (None, None) => {
            answer(context, &engine, Vec::new(), None)?;
            Ok(Exit::Success)
        }
    }
}

/// Returns what is to be stopped.
fn scope(context: &Context<'_>, args: &StopArgs) -> Result<Option<HoldScope>, CliError> {
    if let Some(directory) = &args.repo {
        let path = context.cwd.join(directory);
        let resolved = std::fs::canonicalize(&path).map_err(CliError::file("find", &path))?;
        return Ok(Some(HoldScope::Directory(os_text(resolved.into_os_string())?)));
    }
    Ok(args.user.clone().map(HoldScope::User).or(args.all.then_some(HoldScope::All)))
}

fn hold(context: &Context<'_>, engine: &Engine, scope: HoldScope, reason: &str) -> Result<Exit, CliError> {
    // Stopping is never refused: who may not have been a person is on the record as that.
    let doubt = not_a_person(&engine.clients()?);
    let hold = engine.hold(scope, &context.principal(), reason, doubt.as_deref())?;
    context
        .console
        .say(&format!("fumehood: {} holds {}: nothing starts there any more", hold.id, hold.scope));
    let progress = context.console.progress("waiting for the end of what runs");
    let ended = engine.end_held(&hold)?;
    drop(progress);
    answer(context, engine, ended, None)?;
    Ok(Exit::Success)
}

fn answer(
    context: &Context<'_>,
    engine: &Engine,
    ended: Vec<TaskId>,
    lifted: Option<Hold>,
) -> Result<(), CliError> {
    let holds = engine.store().read(|reader| reader.holds())?;

    let document = StopDocument {
        holds: holds.into_iter().map(HoldRow::of).collect(),
        ended,
        lifted: lifted.map(|hold| hold.id),
    };
    context.console.answer(&document, |paint| render::stopped(&document, paint));
    Ok(())
}
