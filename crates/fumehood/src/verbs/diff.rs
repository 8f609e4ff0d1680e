//! `diff`: what a task or one action changed, for people, for programs and for `git apply`.

use std::ffi::OsString;

use engine::{Engine, Scope, Workspace};
use inspect::Stack;
use inspect::diff::{DiffBounds, Patch, differences, for_people, patch};
use model::event::HeldBack;
use model::task::Task;
use model::{ActionId, Change, Pathspecs, WorkspacePath};

use super::context::Context;
use super::task::choose;
use crate::args::{DiffArgs, Target, TaskChoice};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::DiffDocument;

/// Shows what a task or one action changed.
pub(super) fn diff(context: &Context<'_>, args: &DiffArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let progress = context.console.progress("reading the layers");
    let mut found = find(context, &engine, args)?;
    let wanted = pathspecs(context, &found.task, &args.pathspec)?;
    // What git changed of its own is never applied; the list of what is held back says that there is some.
    let shown = |change: &Change| !is_git(change) || !wanted.is_empty() || context.console.json;
    let ignored = found.changes.iter().filter(|change| change.ignored && !is_git(change)).count();
    found.changes.retain(|change| {
        (args.include_ignored || !change.ignored) && wanted.matches(&change.path) && shown(change)
    });
    drop(progress);
    show(context, args, &found)?;
    if found.changes.is_empty() && ignored > 0 && !args.include_ignored && !context.console.json {
        context
            .console
            .say(&format!("fumehood: git ignores {ignored} changes: --include-ignored shows them"));
    }
    Ok(Exit::answer(!args.exit_code || found.changes.is_empty()))
}

fn is_git(change: &Change) -> bool {
    change.path.as_bytes().starts_with(b".git/")
}

/// What changed, and where it can be read.
struct Found {
    task: Task,
    action: Option<ActionId>,
    stack: Stack,
    changes: Vec<Change>,
    /// How many more changes there are than are listed.
    unlisted: u64,
    held_back: Vec<HeldBack>,
}

fn find(context: &Context<'_>, engine: &Engine, args: &DiffArgs) -> Result<Found, CliError> {
    let task = match &args.target {
        Some(Target::Action(named)) => {
            let action = engine.store().read(|reader| reader.find_action(named.as_str()))?;
            return of_action(engine, &action.id);
        }
        Some(Target::Task(named)) => Some(named.clone()),
        None => None,
    };
    let task = choose(context, engine, &TaskChoice { task, workspace: args.workspace.clone() })?;
    let review = engine.review(&task, Scope::All)?;
    if engine.intake(&task.id)?.is_some() {
        let to_apply = engine.review(&task, Scope::ToApply { include_ignored: false })?;
        engine.shown(&task, &to_apply.report.changes)?;
    }
    let stack = engine.stack(&task, &review.layers)?;
    let held_back = review.inspection.held().iter().map(inspect::Held::record).collect();
    let (changes, unlisted) = (review.report.changes, review.report.unlisted);
    Ok(Found { task, action: None, stack, changes, unlisted, held_back })
}

fn of_action(engine: &Engine, action: &ActionId) -> Result<Found, CliError> {
    let document = super::look::document(engine, action)?;
    if document.is_pruned("inspected") {
        return Err(CliError::Cannot(format!(
            "what {action} changed was pruned from the record (`fumehood audit show --action {action}`)"
        )));
    }
    let stored = engine.store().read(|reader| reader.find_action(action.as_str()))?;
    let task = engine.store().read(|reader| reader.find_task(stored.task.as_str()))?;
    let stack = engine.stack_of_action(&task, action)?;
    let evidence = engine.store().read(|reader| reader.evidence(action))?;
    let unlisted = document.inspection.map_or(0, |part| part.changes_dropped);
    let (changes, held_back) = (evidence.changes.unwrap_or_default(), evidence.held_back.unwrap_or_default());
    Ok(Found { task, action: Some(action.clone()), stack, changes, unlisted, held_back })
}

/// Returns what one action changed, as a patch; what is not UTF-8 is replaced.
pub(super) fn patch_of_action(engine: &Engine, action: &ActionId) -> Result<String, CliError> {
    let found = of_action(engine, action)?;
    let shown: Vec<Change> = found.changes.iter().filter(|change| !is_git(change)).cloned().collect();
    let patch = patch(&found.stack, &shown, DiffBounds::default().file).map_err(engine::EngineError::from)?;
    Ok(String::from_utf8_lossy(&patch.bytes).into_owned())
}

/// Reads pathspecs as they stand on a command line: from where the caller is, when that is in the task's workspace.
pub(super) fn pathspecs(
    context: &Context<'_>,
    task: &Task,
    given: &[OsString],
) -> Result<Pathspecs, CliError> {
    let below = context.cwd.strip_prefix(task.workspace.path.as_path()).ok();
    let below = below.and_then(|below| WorkspacePath::parse(below).ok());
    Pathspecs::parse(given, below.as_ref()).map_err(|error| CliError::Cannot(error.to_string()))
}

/// Reads pathspecs for a workspace that has no task yet.
pub(super) fn pathspecs_in(workspace: &Workspace, given: &[OsString]) -> Result<Pathspecs, CliError> {
    let below = workspace.below.as_ref().and_then(|below| WorkspacePath::parse(below).ok());
    Pathspecs::parse(given, below.as_ref()).map_err(|error| CliError::Cannot(error.to_string()))
}

fn show(context: &Context<'_>, args: &DiffArgs, found: &Found) -> Result<(), CliError> {
    let console = context.console;
    let bounds = DiffBounds::default();
    if found.unlisted > 0 {
        console.say(&format!("fumehood: {} more changes are not listed", found.unlisted));
    }
    if args.name_only && !console.json {
        let names = found.changes.iter().map(|change| format!("{}\n", change.path));
        console.print(&names.collect::<String>());
    } else if args.patch && !console.json {
        let patch = written(found, &bounds)?;
        console.print_bytes(&patch.bytes);
        for path in patch.left_out {
            console.say(&format!("fumehood: a patch cannot hold `{path}`"));
        }
    } else if args.stat || console.json {
        let document = document(found, if console.json { Some(written(found, &bounds)?) } else { None });
        console.answer(&document, |paint| render::changes(&document, paint));
    } else {
        let shown = differences(&found.stack, &found.changes, &bounds).map_err(engine::EngineError::from)?;
        let text = for_people(&shown);
        console.print(&render::diff(&text, &found.held_back, console.out));
    }
    Ok(())
}

fn written(found: &Found, bounds: &DiffBounds) -> Result<Patch, CliError> {
    Ok(patch(&found.stack, &found.changes, bounds.file).map_err(engine::EngineError::from)?)
}

fn document(found: &Found, patch: Option<Patch>) -> DiffDocument {
    let patch = patch.unwrap_or_default();
    DiffDocument {
        task: found.task.id.clone(),
        action: found.action.clone(),
        changes: found.changes.iter().cloned().map(Into::into).collect(),
        changes_dropped: found.unlisted,
        held_back: found.held_back.clone(),
        patch: String::from_utf8_lossy(&patch.bytes).into_owned(),
        not_in_patch: patch.left_out,
    }
}
