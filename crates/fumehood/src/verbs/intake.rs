//! `task new`: a task with what is wanted of it, from options and a file.

mod file;

use engine::{Engine, Taken, Workspace, branch_of};
use model::grant::WorkspaceAccess;
use model::intake::{Acceptance, Budget, Ceiling, Intake, WorkLevel};
use model::os_text::OsText;
use model::task::Task;

use super::context::Context;
use super::task::row;
use crate::args::TaskNewArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::render;
use crate::output::shape::{IntakePart, TaskNewDocument};
use file::IntakeFile;

/// Opens a task with what is wanted of it, or says what the request lacks.
pub(super) fn new(context: &Context<'_>, args: &TaskNewArgs) -> Result<Exit, CliError> {
    let wanted = match &args.intake {
        Some(path) => IntakeFile::read(&context.cwd.join(path))?.under(args.clone()),
        None => args.clone(),
    };
    let engine = context.engine()?;
    let workspace = context.workspace(wanted.workspace.as_deref())?;
    let intake = intake(context, &workspace, &wanted)?;
    match engine.open_with_intake(&workspace, intake.clone(), wanted.deadline, !wanted.dirty)? {
        Taken::Refused(lacks) => {
            let document = TaskNewDocument { task: None, intake: IntakePart::of(&intake), lacks };
            context.console.answer(&document, |paint| render::task_refused(&document, paint));
            Ok(Exit::Denied)
        }
        Taken::Opened(task) => {
            let task = if wanted.dirty { *task } else { checked_out(context, &engine, &workspace, &task)? };
            opened(context, &engine, task)
        }
    }
}

fn opened(context: &Context<'_>, engine: &Engine, task: Task) -> Result<Exit, CliError> {
    let stored = engine.intake(&task.id)?;
    let stored = stored.ok_or_else(|| CliError::Cannot("what was wanted of the task is gone".to_owned()))?;
    let id = task.id.clone();
    let intake = IntakePart::of(&stored.intake);
    let document = TaskNewDocument { task: Some(row(task, 0)), intake, lacks: Vec::new() };
    context.console.answer(&document, |_| format!("{id}\n"));
    context.console.say(&format!("fumehood: {id} is open: `fumehood run --task {id}` runs a command in it"));
    Ok(Exit::Success)
}

/// Puts the current commit below a task.
fn checked_out(
    context: &Context<'_>,
    engine: &Engine,
    workspace: &Workspace,
    task: &Task,
) -> Result<Task, CliError> {
    let progress = context.console.progress("checking the commit out");
    let made = engine.make_base(task, workspace, &context.settings.profile(Some("default"))?.profile)?;
    drop(progress);
    Ok(made)
}

/// Puts together what is wanted. How sensitive the repository is comes from the operator alone.
fn intake(context: &Context<'_>, workspace: &Workspace, args: &TaskNewArgs) -> Result<Intake, CliError> {
    let holds = context.settings.profile(args.profile.as_deref())?;
    let asked = holds.asked(&args.limits).profile.limits;
    let level = args.level.unwrap_or(WorkLevel::BUILD);
    let (budget, acceptance) = (&args.budget, &args.acceptance);
    let by_shell = |command: &String| ["sh", "-c", command].map(str::to_owned).to_vec();
    Ok(Intake {
        user: context.principal(),
        agent: args.agent.clone(),
        repository: OsText::try_from(workspace.path.clone().into_os_string())
            .map_err(|error| CliError::Cannot(error.to_string()))?,
        branch: branch_of(workspace),
        sensitivity: context.settings.sensitivity_of(&workspace.path),
        outcome: args.outcome.clone(),
        ceiling: Ceiling {
            level,
            workspace: if level == WorkLevel::READ {
                WorkspaceAccess::ReadOnly
            } else {
                WorkspaceAccess::ReadWrite
            },
            network: args.network,
            limits: holds.profile.limits.tightest(&asked),
        },
        budget: Budget {
            actions: budget.max_actions,
            processor_time: budget.max_processor_time,
            tokens: budget.max_tokens,
        },
        deadline: None,
        acceptance: Acceptance {
            paths: acceptance.path.clone(),
            kinds: acceptance.kind.iter().copied().collect(),
            tests: acceptance.test.iter().map(by_shell).collect(),
            artifacts: acceptance.artifact.clone(),
        },
    })
}
