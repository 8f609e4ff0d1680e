//! `agent` and `task resume`: a model works on a task; it only proposes, and every call goes the straight path.
//!
//! Guarantees: the model key is read here and handed to the one process that speaks with the model, after that has
//! shown that it starts nothing; it is written nowhere and no argument holds it. Whatever ends, the task can go on.

mod call;
mod interrupt;
mod report;
mod session;
mod source;

use std::path::Path;
use std::time::Duration;

use engine::{Engine, Workspace};
use model::Profile;
use model::action::Base;
use model::event::Event;
use model::task::{Task, TaskState};

use super::ancestry::refuse_agents;
use super::apply::after_run;
use super::context::Context;
use super::mutant;
use super::repository::tightened;
use crate::args::{AgentArgs, ApplyMode, Global, TaskResumeArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Console;
use crate::settings::{Environment, ModelSetting, Setting};

pub(super) use call::Made;
pub(super) use interrupt::Interrupt;
pub(super) use report::{Steps, document};
pub(super) use session::{End, Job, Plan, Watch, announce};
pub(super) use source::ModelSource;

/// Lets a model work on a new task.
pub(super) fn agent(
    global: &Global,
    console: &Console,
    environment: Environment,
    args: &AgentArgs,
) -> Result<Exit, CliError> {
    let context = &Context::with_flags(global, console, environment, flags(args))?;
    // What is missing is said before anything is opened.
    let source = ModelSource::choose(context, args.replay.as_deref())?;
    let asked = context.settings.profile(args.profile.as_deref())?.asked(&args.limits).profile;
    let engine = &context.engine()?;
    learn_key(engine, &source);
    let (workspace, task) = place(context, engine, args)?;
    let from_commit = args.within.is_none() && !args.dirty;
    let started = Started { turns: args.max_turns, asked, from_commit, wait: args.wait };
    work(context, engine, &workspace, task, source, started, args.apply)
}

/// Returns the task to work in, and where that is: the one that is named, or a new one.
fn place(context: &Context<'_>, engine: &Engine, args: &AgentArgs) -> Result<(Workspace, Task), CliError> {
    let owner = context.principal();
    if let Some(named) = &args.within {
        let task = engine.store().read(|reader| reader.find_task(named.as_str()))?;
        if let Some(halt) = engine.halt_of(&task)? {
            return Err(CliError::Cannot(halt.why()));
        }
        return Ok((same_workspace(context, &task)?, task));
    }
    let workspace = workspace(context, args.repo.as_deref())?;
    engine.refuse_held(&workspace, &owner)?;
    let text = args.task.as_deref();
    let task = if args.dirty {
        engine.open_task(&workspace, &owner, text, Base::Live)?
    } else {
        engine.open_task_at_commit(&workspace, &owner, text)?
    };
    Ok((workspace, task))
}

/// Returns the workspace of a task, when it is the directory that it was opened on.
fn same_workspace(context: &Context<'_>, task: &Task) -> Result<Workspace, CliError> {
    let workspace = context.workspace(Some(task.workspace.path.as_path()))?;
    if workspace.key == task.workspace {
        return Ok(workspace);
    }
    Err(CliError::Cannot(format!(
        "`{}` is another directory now than the one that {} was opened on",
        task.workspace.path, task.id
    )))
}

/// Sees to it that the model key is in nothing that is kept, whoever says it.
fn learn_key(engine: &Engine, source: &ModelSource) {
    let key = source.key.expose().as_bytes().to_vec();
    engine.store().learn_secrets([("model-key".to_owned(), key)]);
}

fn flags(args: &AgentArgs) -> Vec<(Setting, &'static str)> {
    let model = args.model.clone().map(|name| (Setting::Model(ModelSetting::Name(name)), "--model"));
    let url = args.base_url.clone().map(|url| (Setting::Model(ModelSetting::BaseUrl(url)), "--base-url"));
    let key = args.key_file.clone().map(|file| (Setting::Model(ModelSetting::KeyFile(file)), "--key-file"));
    model.into_iter().chain(url).chain(key).collect()
}

/// Returns the repository around the directory that is named, or around the current one.
fn workspace(context: &Context<'_>, repo: Option<&Path>) -> Result<Workspace, CliError> {
    let from = repo.map_or_else(|| context.cwd.clone(), |repo| context.cwd.join(repo));
    Ok(Workspace::find(None, &from, &context.user.home, &context.settings.state_dir.value)?)
}

/// Goes on with a task: with what an agent was doing, or, when none was, by opening it again.
pub(super) fn resume(context: &Context<'_>, args: &TaskResumeArgs) -> Result<Exit, CliError> {
    let engine = &context.engine()?;
    let task = engine.store().read(|reader| reader.find_task(args.task.as_str()))?;
    if !engine.events_of_task(&task.id)?.iter().any(|event| matches!(event, Event::AgentStarted { .. })) {
        return super::task::reopen(context, engine, task);
    }
    let started = Started { wait: args.wait, ..Started::of(engine, &task)? };
    let source = ModelSource::choose(context, args.replay.as_deref())?;
    learn_key(engine, &source);
    let workspace = same_workspace(context, &task)?;
    work(context, engine, &workspace, task, source, started, None)
}

/// How an agent was started on a task, as far as its next process needs it.
struct Started {
    turns: u32,
    /// What each action asks for.
    asked: Profile,
    from_commit: bool,
    /// How long to wait for a person.
    wait: Option<Duration>,
}

impl Started {
    /// Reads from the record how the last agent was started.
    fn of(engine: &Engine, task: &Task) -> Result<Self, CliError> {
        match task.state {
            TaskState::Open | TaskState::Stopped | TaskState::Frozen => {}
            state => return Err(CliError::Cannot(format!("{} is {state}: it cannot go on", task.id))),
        }
        let events = engine.events_of_task(&task.id)?;
        let last = events.into_iter().rev().find_map(|event| match event {
            Event::AgentStarted { turns, profile, from_commit, .. } => {
                Some(Self { turns, asked: *profile, from_commit, wait: None })
            }
            _ => None,
        });
        last.ok_or_else(|| {
            CliError::Cannot(format!(
                "no agent has worked on {}: `fumehood run --task {}` runs a command in it",
                task.id, task.id
            ))
        })
    }
}

/// Lets an agent work until it is done, stopped or cannot go on, and says how it went.
fn work(
    context: &Context<'_>,
    engine: &Engine,
    workspace: &Workspace,
    task: Task,
    source: ModelSource,
    started: Started,
    apply: Option<ApplyMode>,
) -> Result<Exit, CliError> {
    let plan = Plan {
        turns: started.turns,
        asked: started.asked,
        from_commit: started.from_commit,
        wait: started.wait,
        mutant: mutant::chosen(&context.environment),
    };
    announce(engine, &task.id, &source, &plan)?;
    let task = ready(context, engine, workspace, task, started.from_commit)?;
    let settings = tightened(context, engine, &task, workspace)?;
    let holds = settings.profile(Some(&plan.asked.name))?.profile;
    let job = Job { context, engine, task, workspace: workspace.clone(), source, plan, holds };
    let interrupt = Interrupt::start()?;
    let end = job.run(&mut Steps::new(context.console), &interrupt)?;
    drop(interrupt);
    let document = document(&job, &end)?;
    report::show(context.console, &document);
    if matches!(end, End::Finished { .. }) {
        after_run(context, engine, &job.task, apply)?;
    }
    Ok(end.exit())
}

/// Makes a task one that can be worked on: its base is there, and it is open.
fn ready(
    context: &Context<'_>,
    engine: &Engine,
    workspace: &Workspace,
    task: Task,
    from_commit: bool,
) -> Result<Task, CliError> {
    if task.state == TaskState::Frozen {
        refuse_agents(engine, "resume a frozen task")?;
        engine.thaw(&task, &context.principal())?;
    }
    if from_commit && task.base == Base::Live {
        let progress = context.console.progress("checking the commit out");
        // Ours, not the one for actions: `strict` has no room for a repository.
        let made = engine.make_base(&task, workspace, &context.settings.profile(Some("default"))?.profile)?;
        drop(progress);
        return Ok(made);
    }
    if task.state == TaskState::Stopped {
        engine.set_task_state(&task.id, TaskState::Open)?;
    }
    Ok(Task { state: TaskState::Open, ..task })
}

/// Is the process that speaks with the model: it talks to us over its standard streams.
pub(super) fn process() -> Exit {
    let confine = |reach: &::agent::Reach| sandbox::service::confine_agent(&reach.addresses);
    match ::agent::main_loop(std::io::stdin().lock(), std::io::stdout().lock(), confine) {
        Ok(()) => Exit::Success,
        Err(_) => Exit::Failed,
    }
}
