//! `apply`, and what `run --apply` does at its end: a task's changes go to the host's directory, as far as policy and a
//! person let them.

use std::collections::BTreeSet;
use std::ffi::OsString;

use engine::{AppliedTask, ApplyOrder, Engine, Scope};
use gate::ApplyMode as Mode;
use inspect::diff::{DiffBounds, differences, for_people};
use inspect::{Consent, Held};
use model::task::Task;
use model::text::escape;
use model::{Change, ChangeKind, FileKind, Pathspecs, WorkspacePath};

use super::commits::{Commits, commits};
use super::context::Context;
use super::diff::pathspecs;
use super::task::choose;
use crate::args::{ApplyArgs, ApplyMode};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{ApplyDocument, CommitsRow, ConflictRow};

/// How much of a task is taken over.
pub(super) struct Extent {
    include_ignored: bool,
    only: Pathspecs,
    /// Protected paths that the person named.
    protected: BTreeSet<WorkspacePath>,
    /// Whether commits that were made inside are still to be had from the task.
    stays_open: bool,
    /// Whether applying is what was ordered, and not said beforehand with a run.
    is_ordered: bool,
}

/// Writes a task's changes to the directory.
pub(super) fn apply(context: &Context<'_>, args: &ApplyArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, &args.which)?;
    let extent = Extent {
        include_ignored: args.include_ignored,
        only: pathspecs(context, &task, &args.pathspec)?,
        protected: paths(&args.protected)?,
        stays_open: false,
        is_ordered: true,
    };
    if args.dry_run {
        let document = looked_at(&engine, &task, &extent)?;
        context.console.answer(&document, |paint| render::applied(&document, paint));
        return Ok(Exit::answer(document.held_back.is_empty()));
    }
    // Whoever types `apply` wants it; at a terminal they see it once more before it is done.
    let asks = context.console.can_ask() && !args.yes;
    let mode = if asks { ApplyMode::Ask } else { ApplyMode::Clean };
    let (commits, stays_open) = match commits(context, &engine, &task, args)? {
        Commits::None => (None, false),
        Commits::Imported(imported) => (Some(imported), false),
        Commits::Wait => (None, true),
    };
    let done = take_over(context, &engine, &task, mode, Extent { stays_open, ..extent })?;
    let Some(mut document) = done.or_else(|| commits.is_some().then(|| nothing_but_commits(&task))) else {
        return Ok(Exit::Negative);
    };
    document.commits = commits.map(CommitsRow::from);
    context.console.answer(&document, |paint| render::applied(&document, paint));
    Ok(Exit::answer(document.held_back.is_empty()))
}

/// Answers that commits came, and no change of a file.
fn nothing_but_commits(task: &Task) -> ApplyDocument {
    document(task, AppliedTask::nothing(task))
}

/// Takes over what a task changed after a run, by what `--apply` says, and says on standard error what was done.
pub(super) fn after_run(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    asked: Option<ApplyMode>,
) -> Result<(), CliError> {
    let console = context.console;
    let mode = match asked {
        None if console.can_ask() => ApplyMode::Ask,
        None => ApplyMode::Never,
        Some(ApplyMode::Ask) if !console.can_ask() => {
            console.say(
                "fumehood: there is no terminal to ask at, so nothing is applied: `fumehood apply` does it",
            );
            ApplyMode::Never
        }
        Some(mode) => mode,
    };
    if mode == ApplyMode::Never {
        return Ok(());
    }
    let extent = Extent {
        include_ignored: false,
        only: Pathspecs::default(),
        protected: BTreeSet::new(),
        stays_open: engine.moved_a_branch(task)?,
        is_ordered: false,
    };
    if let Some(document) = take_over(context, engine, task, mode, extent)? {
        console.say(&render::applied(&document, console.err));
    }
    Ok(())
}

fn paths(given: &[OsString]) -> Result<BTreeSet<WorkspacePath>, CliError> {
    let parse =
        |path: &OsString| WorkspacePath::parse(path).map_err(|error| CliError::Cannot(error.to_string()));
    let named = given.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    Ok(named.iter().flat_map(with_directories).collect())
}

/// Takes changes over; nothing when the person says no, or when there is nothing.
fn take_over(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    mode: ApplyMode,
    extent: Extent,
) -> Result<Option<ApplyDocument>, CliError> {
    let Extent { include_ignored, only, mut protected, stays_open, is_ordered } = extent;
    let gate_mode = match mode {
        ApplyMode::Never => return Ok(None),
        ApplyMode::Ask => Mode::Ask,
        ApplyMode::Clean => Mode::Clean,
        ApplyMode::Always => Mode::Always,
    };
    let asks = mode == ApplyMode::Ask;
    if asks && !person_agrees(context, engine, task, include_ignored, &only, &mut protected)? {
        return Ok(None);
    }
    let person = context.user.name.clone();
    // What was said with a run was said before there was anything to see.
    let consent =
        (asks || is_ordered || !protected.is_empty()).then_some(Consent { person, paths: protected });
    let principal = context.principal();
    let wanted = |path: &WorkspacePath| only.matches(path);
    let progress = context.console.progress("writing the changes");
    let done = engine.apply_task(
        task,
        ApplyOrder { principal, mode: gate_mode, include_ignored, only: &wanted, consent, stays_open },
    )?;
    drop(progress);
    Ok(Some(document(task, done)))
}

/// Returns what was done, as programs read it.
pub(super) fn document(task: &Task, done: AppliedTask) -> ApplyDocument {
    ApplyDocument {
        task: task.id.clone(),
        state: done.state,
        dry_run: false,
        changes: done.applied.changes.into_iter().map(Into::into).collect(),
        merged: done.applied.merged,
        conflicts: done.applied.conflicts.into_iter().map(ConflictRow::from).collect(),
        held_back: done.held,
        commits: None,
    }
}

/// Shows what would be written and asks for it; then each protected change with its difference, and asks for that.
fn person_agrees(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    include_ignored: bool,
    only: &Pathspecs,
    protected: &mut BTreeSet<WorkspacePath>,
) -> Result<bool, CliError> {
    let review = engine.review(task, Scope::ToApply { include_ignored })?;
    let stack = engine.stack(task, &review.layers)?;
    let (free, held) = review.inspection.without_what_is_held();
    let free = free.narrowed(|change| only.matches(&change.path));
    let held: Vec<Held> = held.into_iter().filter(|held| only.matches(&held.change.path)).collect();
    let console = context.console;
    // A directory goes with what is in it.
    let releasable = |held: &&Held| {
        let is_directory = held.change.file == FileKind::Directory && held.change.kind != ChangeKind::Deleted;
        !is_directory && held.person_may_release() && !protected.contains(&held.change.path)
    };
    let asked_apart: Vec<Change> = held.iter().filter(releasable).map(|held| held.change.clone()).collect();
    if free.is_empty() && asked_apart.is_empty() && protected.is_empty() {
        return Ok(false);
    }
    let mut agreed = !protected.is_empty();
    if !free.is_empty() {
        let changes: Vec<_> = free.items().iter().map(|item| item.change().clone().into()).collect();
        console.say_always(&render::change_list(&changes, console.err));
        let number = changes.len();
        agreed |= console.ask(&format!("write {number} changes to `{}`?", task.workspace.path));
        if !agreed {
            return Ok(false);
        }
    }
    for change in asked_apart {
        let shown = differences(&stack, std::slice::from_ref(&change), &DiffBounds::default());
        let shown = for_people(&shown.map_err(engine::EngineError::from)?);
        console.say_always(&render::diff(&shown, &[], console.err));
        let why = held.iter().find(|held| held.change.path == change.path).map(|held| held.record().why);
        let question =
            format!("`{}` is protected: {}. Write it too?", change.path, escape(&why.unwrap_or_default()));
        if console.ask(&question) {
            protected.extend(with_directories(&change.path));
            agreed = true;
        }
    }
    Ok(agreed)
}

/// Returns a path and the directories that it is in.
fn with_directories(path: &WorkspacePath) -> Vec<WorkspacePath> {
    path.as_path().ancestors().filter_map(|part| WorkspacePath::parse(part).ok()).collect()
}

/// Says what would be done.
fn looked_at(engine: &Engine, task: &Task, extent: &Extent) -> Result<ApplyDocument, CliError> {
    let review = engine.review(task, Scope::ToApply { include_ignored: extent.include_ignored })?;
    engine.previewed(task, &review.report.changes)?;
    let (free, held) = review.inspection.without_what_is_held();
    let wanted = |path: &WorkspacePath| extent.only.matches(path);
    let named = |held: &&Held| extent.protected.contains(&held.change.path) && held.person_may_release();
    let changes = free.items().iter().map(|item| item.change());
    let changes = changes
        .chain(held.iter().filter(named).map(|held| &held.change))
        .filter(|change| wanted(&change.path));
    let held_back = held.iter().filter(|held| wanted(&held.change.path) && !named(held)).map(Held::record);
    Ok(ApplyDocument {
        task: task.id.clone(),
        state: task.state,
        dry_run: true,
        changes: changes.cloned().map(Into::into).collect(),
        merged: Vec::new(),
        conflicts: Vec::new(),
        held_back: held_back.collect(),
        commits: None,
    })
}
