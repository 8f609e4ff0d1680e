//! `audit prune`: the content of older events goes, and stubs that can be checked stay.

use engine::PruneOrder;
use model::EventClass;

use super::ancestry::refuse_agents;
use super::context::Context;
use crate::args::AuditPruneArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::PruneDocument;

/// Takes the content of older events out of the record.
pub(super) fn prune(context: &Context<'_>, args: &AuditPruneArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let settings = &context.settings.retention;
    let mut ages = settings.events();
    if let Some(age) = args.older_than {
        ages = EventClass::ALL.map(|class| (class, age)).into();
    }
    if !args.class.is_empty() {
        ages.retain(|class, _| args.class.contains(class));
    }
    if ages.is_empty() {
        return Err(CliError::Cannot(
            "nothing says how old events have to be: set `record_requests`, `record_runs` or `record_network` in \
             `[retention]`, or give --older-than"
                .to_owned(),
        ));
    }
    if !args.dry_run {
        refuse_agents(&engine, "prune the record")?;
    }
    let order = PruneOrder {
        ages,
        incidents: args.incidents_older_than.unwrap_or(settings.incidents()),
        by: context.principal(),
        reason: args.reason.clone().unwrap_or_default(),
        dry_run: args.dry_run,
    };
    let progress = context.console.progress("looking for events whose time is over, by tasks");
    let prune = engine.prune(&order, &|done, total| progress.count(done, total))?;
    drop(progress);
    let document = PruneDocument::of(args.dry_run, prune);
    context.console.answer(&document, |paint| render::pruned(&document, paint));
    Ok(Exit::Success)
}
