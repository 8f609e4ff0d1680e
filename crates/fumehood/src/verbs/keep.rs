//! `gc`: what nobody needs any longer goes, and the record says so.

use super::context::Context;
use crate::args::GcArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::GcDocument;

/// Removes layers and outputs whose retention has ended.
pub(super) fn gc(context: &Context<'_>, args: &GcArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let retention = args.older_than.unwrap_or(context.settings.retention.value);
    let progress = context.console.progress("looking for layers whose retention has ended");
    let garbage = engine.collect_garbage(retention, args.dry_run)?;
    drop(progress);
    let document = GcDocument { dry_run: args.dry_run, layers: garbage.actions, freed: garbage.bytes };
    context.console.answer(&document, |paint| render::gc(&document, paint));
    Ok(Exit::Success)
}
