//! What `apply` does about commits that were made inside: imports them, asks, or says how they are to be had.

use engine::{Engine, ImportedCommits};
use model::task::Task;

use super::context::Context;
use crate::args::ApplyArgs;
use crate::error::CliError;

/// What becomes of commits that were made inside.
pub(super) enum Commits {
    /// There are none, or nobody wants them.
    None,
    /// They are on the host.
    Imported(ImportedCommits),
    /// Nobody was asked yet: the task keeps them.
    Wait,
}

/// Imports the commits of a task when that is wanted, asks where nobody said so, and else says how they are to be had.
pub(super) fn commits(
    context: &Context<'_>,
    engine: &Engine,
    task: &Task,
    args: &ApplyArgs,
) -> Result<Commits, CliError> {
    let console = context.console;
    if args.no_commits {
        return Ok(Commits::None);
    }
    if !engine.moved_a_branch(task)? {
        if args.commits {
            console.say("fumehood: no commit was made inside, so there is none to import");
        }
        return Ok(Commits::None);
    }
    let asked = || {
        let branch = format!("fumehood/{}", task.id);
        console.can_ask()
            && console.ask(&format!("commits were made inside; import them as the branch `{branch}`?"))
    };
    let wanted = args.commits || asked();
    if !wanted {
        console.say(
            "fumehood: commits were made inside and stay there: `fumehood apply --commits` imports them as a branch, \
             `--no-commits` leaves them behind",
        );
        return Ok(Commits::Wait);
    }
    let progress = console.progress("importing the commits");
    let workspace = context.workspace(Some(task.workspace.path.as_path()))?;
    // Ours, not the one for actions: `strict` has no room for a repository.
    let profile = context.settings.profile(Some("default"))?.profile;
    let imported = engine.import_commits(task, &workspace, &profile, &context.principal())?;
    drop(progress);
    Ok(match imported {
        Some(imported) => Commits::Imported(imported),
        None => {
            console.say("fumehood: the host has every commit of the task already");
            Commits::None
        }
    })
}
