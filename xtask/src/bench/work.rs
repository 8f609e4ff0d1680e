//! Contests about work: a fork of a large workspace, a long task, and a real build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::Place;
use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::peers;
use crate::repo::Repo;
use crate::{run, say};

/// The contests of this module.
pub const NAMES: &[&str] = &["fork", "long-task", "build"];

/// Files of the workspace that is forked.
const FILES: usize = 100_000;
/// Files in one of its directories.
const FILES_IN_A_DIRECTORY: usize = 100;
/// Actions of a long task, each of which leaves a layer, and files of the repository that it works on.
const ACTIONS: usize = 1000;
const FILES_OF_A_LONG_TASK: usize = 5000;

/// Returns a contest by its name.
pub fn contest<'a>(repo: &Repo, place: &'a Place, name: &str) -> Option<Result<Contest<'a>>> {
    match name {
        "fork" => Some(fork(place)),
        "long-task" => Some(long_task(place)),
        "build" => Some(build(repo, place)),
        _ => None,
    }
}

fn fork(place: &Place) -> Result<Contest<'_>> {
    let workspace = repository(&place.scratch.join("large"), FILES)?;
    // A fork needs a task to be forked off.
    let mut first = place.fumehood(&["run", "--apply", "never", "--workspace"]);
    first.arg(&workspace).args(["--", "sh", "-c", "echo changed > changed"]).current_dir(&workspace);
    let opened = run::output("open a task on the large workspace", &mut first);
    let mut contest = Contest {
        id: "fork",
        title: "A second workspace beside one of 100,000 files",
        note: "Each way ends when everything is synced to disk. Goal for `fumehood fork`: 20 ms.".into(),
        unit: Unit::Milliseconds,
        rounds: 3,
        contenders: vec![copy(&workspace), worktree(&workspace)],
        absent: Vec::new(),
    };
    match opened {
        Ok(_) => contest.contenders.push(fumehood_fork(place, &workspace)),
        Err(error) => contest.absent.push(("`fumehood fork`".into(), error.to_string().replace('\n', "; "))),
    }
    Ok(contest)
}

fn copy<'a>(workspace: &Path) -> Contender<'a> {
    let (from, to) = (workspace.to_owned(), workspace.with_extension("copy"));
    let attempt = move || {
        let took = peers::milliseconds(&mut synced(run::command("cp").arg("-a").arg(&from).arg(&to), &to));
        remove(&to)?;
        took
    };
    Contender { name: "`cp -a`".into(), attempt: Box::new(attempt) }
}

fn worktree<'a>(workspace: &Path) -> Contender<'a> {
    let (from, to) = (workspace.to_owned(), workspace.with_extension("worktree"));
    let attempt = move || {
        let mut add = git(&from);
        let took =
            peers::milliseconds(&mut synced(add.args(["worktree", "add", "--detach", "-q"]).arg(&to), &to));
        remove(&to)?;
        run::output("forget the worktree", git(&from).args(["worktree", "prune"]))?;
        took
    };
    Contender { name: "`git worktree add`".into(), attempt: Box::new(attempt) }
}

fn fumehood_fork<'a>(place: &'a Place, workspace: &Path) -> Contender<'a> {
    let workspace = workspace.to_owned();
    peers::timed("`fumehood fork`", move || {
        let mut command = place.fumehood(&["fork", "--workspace"]);
        command.arg(&workspace).current_dir(&workspace);
        command
    })
}

/// Returns a command that runs another one and then syncs the file system that holds `place`.
fn synced(command: &Command, place: &Path) -> Command {
    let mut both = run::command("sh");
    both.args(["-c", r#"place=$1; shift; "$@" && exec sync -f "$place""#, "sh"]).arg(place);
    both.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        both.current_dir(directory);
    }
    both
}

/// Makes a git repository of many small files.
fn repository(root: &Path, files: usize) -> Result<PathBuf> {
    for number in 0..files {
        let directory = root.join(format!("d{:04}", number / FILES_IN_A_DIRECTORY));
        if number % FILES_IN_A_DIRECTORY == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{number:06}.txt")), format!("file {number}\n").repeat(20))?;
    }
    run::output("make a repository", git(root).args(["init", "-q"]))?;
    // Packing in the background would change the files while they are copied.
    run::output("keep it as it is", git(root).args(["config", "gc.auto", "0"]))?;
    run::output("add the files", git(root).args(["add", "-A"]))?;
    let author = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"];
    run::output("commit them", git(root).args(author).args(["commit", "-q", "-m", "base"]))?;
    Ok(root.to_owned())
}

fn long_task(place: &Place) -> Result<Contest<'_>> {
    let workspace = repository(&place.scratch.join("long"), FILES_OF_A_LONG_TASK)?;
    let act = |number: usize| {
        let file = number * FILES_OF_A_LONG_TASK / ACTIONS;
        let script = format!(
            "echo {number} >> d{:04}/f{file:06}.txt; echo {number} >> log; echo {number} > new-{number}",
            file / FILES_IN_A_DIRECTORY
        );
        let mut command = in_task(place, &workspace, &[], &["sh", "-c", &script]);
        run::output("act in the long task", &mut command).map(drop)
    };
    say::while_working("act a thousand times", || (0..ACTIONS).try_for_each(act))?;
    let mut list = place.fumehood(&["task", "list", "--json"]);
    let tasks: Value =
        serde_json::from_slice(&run::output("find the long task", list.current_dir(&workspace))?)?;
    let task = tasks["tasks"][0]["task"].as_str().context("the list has no task")?.to_owned();
    let status = ["git", "status", "--short"];
    let (first, later) = (workspace.clone(), workspace);
    Ok(Contest {
        id: "long-task",
        title: "`git status` at the start of a task and after 1,000 actions",
        note: "In a repository of 5,000 files. Each of the actions changed a file of it, made one, and left a layer. Goal: \
               within 1.3 of the first."
            .into(),
        unit: Unit::Milliseconds,
        rounds: 30,
        contenders: vec![
            peers::timed("first action of a task", move || in_task(place, &first, &["--new-task"], &status)),
            peers::timed("after 1,000 actions", move || in_task(place, &later, &["--task", &task], &status)),
        ],
        absent: Vec::new(),
    })
}

/// Returns a command that runs another one in a task of a workspace.
fn in_task(place: &Place, workspace: &Path, which: &[&str], argv: &[&str]) -> Command {
    let mut command = place.fumehood(&["run", "--apply", "never"]);
    command.args(which).arg("--").args(argv).current_dir(workspace);
    command
}

fn build<'a>(repo: &Repo, place: &'a Place) -> Result<Contest<'a>> {
    let source = place.scratch.join("source");
    let mut clone = run::command("git");
    clone.args(["clone", "-q", "--no-local"]).arg(&repo.root).arg(&source);
    run::output("clone this repository", &mut clone)?;
    run::output("fetch its dependencies", run::cargo().args(["fetch", "--locked"]).current_dir(&source))?;
    let (bare, inside) = (source.clone(), source);
    Ok(Contest {
        id: "build",
        title: "A real build inside, and bare",
        note: "`cargo build --offline --package xtask` of this repository from an empty target directory, with all its \
               dependencies. Inside, the commit of the layer and the record are part of it. Goal: within 2 %."
            .into(),
        unit: Unit::Milliseconds,
        rounds: 5,
        contenders: vec![
            Contender { name: "bare".into(), attempt: Box::new(move || bare_build(&bare)) },
            Contender { name: "`fumehood run`".into(), attempt: Box::new(move || build_inside(place, &inside)) },
        ],
        absent: Vec::new(),
    })
}

const BUILD: [&str; 5] = ["build", "--offline", "--locked", "--package", "xtask"];

fn bare_build(source: &Path) -> Result<f64> {
    let mut cargo = run::cargo();
    cargo.args(BUILD).current_dir(source).env_remove("CARGO_TARGET_DIR");
    let took = peers::milliseconds(&mut synced(&cargo, source));
    remove(&source.join("target"))?;
    took
}

fn build_inside(place: &Place, source: &Path) -> Result<f64> {
    let mut command = place.fumehood(&["run", "--new-task", "--apply", "never", "--workspace"]);
    command.arg(source).args(["--", "cargo"]).args(BUILD).current_dir(source).env_remove("CARGO_TARGET_DIR");
    peers::milliseconds(&mut synced(&command, source))
}

fn git(directory: &Path) -> Command {
    let mut git = run::command("git");
    git.current_dir(directory);
    git
}

fn remove(directory: &Path) -> Result<()> {
    match directory.exists() {
        true => Ok(fs::remove_dir_all(directory)?),
        false => Ok(()),
    }
}
