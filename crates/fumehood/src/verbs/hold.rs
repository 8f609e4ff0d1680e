//! `hold`: what stays whatever its retention, until a person lifts that.

use engine::Engine;
use model::{LegalHold, LegalScope};

use super::ancestry::{not_a_person, refuse_agents};
use super::context::Context;
use super::order::os_text;
use crate::args::{HoldAddArgs, HoldLiftArgs, Target};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{LegalHoldRow, LegalHoldsDocument};

/// Keeps something.
pub(super) fn add(context: &Context<'_>, args: &HoldAddArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let scope = scope(context, &engine, args)?;
    // Keeping is never refused: who may not have been a person is on the record as that.
    let doubt = not_a_person(&engine.clients()?);
    let hold = engine.hold_legally(scope, &context.principal(), &args.reason, doubt.as_deref())?;
    context.console.say(&format!("fumehood: {} keeps {}", hold.id, hold.scope));
    answer(context, &engine, None)
}

fn scope(context: &Context<'_>, engine: &Engine, args: &HoldAddArgs) -> Result<LegalScope, CliError> {
    match (&args.target, &args.repo) {
        (Some(Target::Task(task)), _) => {
            let task = engine.store().read(|reader| reader.find_task(task.as_str()))?;
            Ok(LegalScope::Task(task.id))
        }
        (Some(Target::Action(action)), _) => {
            let action = engine.store().read(|reader| reader.find_action(action.as_str()))?;
            Ok(LegalScope::Action { task: action.task, action: action.id, ordinal: action.ordinal })
        }
        (None, repo) => {
            let path = context.cwd.join(repo.as_deref().unwrap_or(&context.cwd));
            let resolved = std::fs::canonicalize(&path).map_err(CliError::file("find", &path))?;
            Ok(LegalScope::Directory(os_text(resolved.into_os_string())?))
        }
    }
}

/// Lists the legal holds that are in force.
pub(super) fn list(context: &Context<'_>) -> Result<Exit, CliError> {
    answer(context, &context.engine()?, None)
}

/// Lifts one.
pub(super) fn lift(context: &Context<'_>, args: &HoldLiftArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    refuse_agents(&engine, "lift a legal hold")?;
    let hold = engine.store().read(|reader| reader.find_legal_hold(args.hold.as_str()))?;
    engine.lift_legally(&hold.id, &context.principal(), &args.reason)?;
    context.console.say(&format!("fumehood: {} is lifted", hold.id));
    answer(context, &engine, Some(hold))
}

fn answer(context: &Context<'_>, engine: &Engine, lifted: Option<LegalHold>) -> Result<Exit, CliError> {
    let holds = engine.store().read(|reader| reader.legal_holds())?;
    let document = LegalHoldsDocument {
        holds: holds.all().iter().cloned().map(LegalHoldRow::of).collect(),
        lifted: lifted.map(|hold| hold.id),
    };
    context.console.answer(&document, |paint| render::legal_holds(&document, paint));
    Ok(Exit::Success)
}
