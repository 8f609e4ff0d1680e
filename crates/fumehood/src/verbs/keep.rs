//! `gc`: what nobody needs any longer goes, and the record says so.

use super::context::Context;
use crate::args::GcArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::GcDocument;

/// Removes what is kept and whose retention has ended, by classes.
pub(super) fn gc(context: &Context<'_>, args: &GcArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let retention = context.settings.retention.resolved(args.older_than, args.incidents_older_than);
    let progress = context.console.progress("looking for what is kept and over, by tasks");
    let garbage =
        engine.collect_garbage(&retention, args.dry_run, &|done, total| progress.count(done, total))?;
    drop(progress);
    let document = GcDocument::of(args.dry_run, garbage);
    context.console.answer(&document, |paint| render::gc(&document, paint));
    Ok(Exit::Success)
}
