//! `task`: which tasks there are, and one of them whole.

use std::time::Duration;

use engine::Engine;
use model::action::Base;
use model::event::Event;
use model::task::{Task, TaskState};

use super::ancestry::refuse_agents;
use super::context::Context;
use super::look::rows;
use crate::args::{TaskChoice, TaskFreezeArgs, TaskListArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{IntakePart, StagePart, TaskDocument, TaskRow, TasksDocument};

/// Returns the task that is named, or the open one of the workspace.
pub(super) fn choose(context: &Context<'_>, engine: &Engine, which: &TaskChoice) -> Result<Task, CliError> {
    if let Some(named) = &which.task {
        return Ok(engine.store().read(|reader| reader.find_task(named.as_str()))?);
    }
    let workspace = context.workspace(which.workspace.as_deref())?;
    let open = engine.store().read(|reader| reader.open_task(&workspace.key))?;
    open.ok_or_else(|| {
        let path = model::text::escape(&workspace.path.to_string_lossy()).into_owned();
        CliError::Cannot(format!("`{path}` has no open task: `fumehood task list --all` names the others"))
    })
}

/// Lists tasks.
pub(super) fn list(context: &Context<'_>, args: &TaskListArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let workspace = args.workspace.as_deref().map(|dir| context.workspace(Some(dir))).transpose()?;
    let tasks = engine.store().read(|reader| reader.tasks())?;
    let is_live = |state| matches!(state, TaskState::Open | TaskState::Stopped | TaskState::Frozen);
    let tasks = tasks
        .into_iter()
        .filter(|overview| args.all || is_live(overview.task.state))
        .filter(|overview| {
            workspace.as_ref().is_none_or(|workspace| workspace.key == overview.task.workspace)
        })
        .map(|overview| row(overview.task, overview.actions))
        .collect();
    let document = TasksDocument { tasks };
    context.console.answer(&document, |paint| render::tasks(&document, paint));
    Ok(Exit::Success)
}

/// Returns the line that stands for a task.
pub(super) fn row(task: Task, actions: u64) -> TaskRow {
    let Task { id, workspace, base, owner, title, state, opened } = task;
    let commit = match base {
        Base::Live => None,
        Base::Commit { commit } => Some(commit),
    };
    TaskRow { task: id, state, workspace: workspace.path, commit, owner, title, opened, actions }
}

/// Shows one task with its actions.
pub(super) fn show(context: &Context<'_>, which: &TaskChoice) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, which)?;
    let actions = engine.store().read(|reader| reader.actions(&task.id))?;
    let records = engine.store().read(|reader| reader.records_of_task(&task.id))?;
    let cpu_time =
        actions.iter().filter_map(|action| action.usage).map(|usage| usage.cpu_time).sum::<Duration>();
    let mut document = TaskDocument {
        log: rows(&engine, &task.id, false)?,
        intake: engine.intake(&task.id)?.map(|stored| IntakePart::of(&stored.intake)),
        stage: engine.stage_of(&task.id)?.map(|end| StagePart {
            stage: end.stage(),
            round: end.round(),
            without_work: end.without_work(),
        }),
        task: row(task, actions.len() as u64),
        prompt_cache_hit_tokens: 0,
        prompt_cache_miss_tokens: 0,
        completion_tokens: 0,
        cpu_time_ms: cpu_time,
    };
    for event in records.iter().filter_map(|record| record.parse_event().ok()) {
        if let Event::ModelTurn { tokens, .. } = event {
            document.prompt_cache_hit_tokens += tokens.prompt_cache_hit;
            document.prompt_cache_miss_tokens += tokens.prompt_cache_miss;
            document.completion_tokens += tokens.completion;
        }
    }
    context.console.answer(&document, |paint| render::task(&document, paint));
    Ok(Exit::Success)
}

/// Stops a task, and waits for the end of what runs in it.
pub(super) fn stop(context: &Context<'_>, which: &TaskChoice) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, which)?;
    let progress = context.console.progress("waiting for the end of what runs");
    engine.stop(&task)?;
    drop(progress);
    let actions = engine.store().read(|reader| reader.actions(&task.id))?.len() as u64;
    let id = task.id.clone();
    let stopped = row(Task { state: TaskState::Stopped, ..task }, actions);
    context.console.answer(&stopped, |_| String::new());
    context.console.say(&format!("fumehood: {id} is stopped; `fumehood task resume {id}` goes on with it"));
    Ok(Exit::Success)
}

/// Freezes a task, and waits for the end of what runs in it.
pub(super) fn freeze(context: &Context<'_>, args: &TaskFreezeArgs) -> Result<Exit, CliError> {
    let engine = context.engine()?;
    let task = choose(context, &engine, &args.which)?;
    refuse_agents(&engine, "freeze a task")?;
    let progress = context.console.progress("waiting for the end of what runs");
    engine.freeze(&task, &context.principal(), &args.reason)?;
    drop(progress);
    let actions = engine.store().read(|reader| reader.actions(&task.id))?.len() as u64;
    let id = task.id.clone();
    let frozen = row(Task { state: TaskState::Frozen, ..task }, actions);
    context.console.answer(&frozen, |_| String::new());
    context
        .console
        .say(&format!("fumehood: {id} is frozen; a person goes on with it by `fumehood task resume {id}`"));
    Ok(Exit::Success)
}

/// Opens a stopped task again, so that commands can be run in it.
pub(super) fn reopen(context: &Context<'_>, engine: &Engine, task: Task) -> Result<Exit, CliError> {
    match task.state {
        TaskState::Open => {}
        TaskState::Stopped => engine.set_task_state(&task.id, TaskState::Open)?,
        TaskState::Frozen => {
            refuse_agents(engine, "resume a frozen task")?;
            engine.thaw(&task, &context.principal())?;
        }
        state => return Err(CliError::Cannot(format!("{} is {state}: it cannot go on", task.id))),
    }
    let actions = engine.store().read(|reader| reader.actions(&task.id))?.len() as u64;
    let id = task.id.clone();
    let open = row(Task { state: TaskState::Open, ..task }, actions);
    context.console.answer(&open, |_| String::new());
    context.console.say(&format!("fumehood: {id} is open: `fumehood run --task {id}` runs a command in it"));
    Ok(Exit::Success)
}
