//! Contests about starting: the whole of `fumehood run true` beside other ways to start `true` in a sandbox.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::account::Ordinary;
use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::peers::{self, Bundle};
use crate::bench::{Place, served};
use crate::run;

/// The contests of this module.
pub const NAMES: &[&str] = &["one-shot", "one-shot-user", "memory"];

const WHOLE: &str = "The whole process: settings, policy, durable record, build, proof, `true`, teardown, inspection of \
    the layer, record. The yardstick is `bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc \
    --tmpfs /tmp true`. Goal: within 2 times.";

/// Returns a contest by its name.
pub fn contest<'a>(place: &'a Place, name: &str) -> Option<Result<Contest<'a>>> {
    match name {
        "one-shot" => Some(one_shot(place)),
        "one-shot-user" => Some(one_shot_as_user(place)),
        "memory" => Some(memory(place)),
        _ => None,
    }
}

fn one_shot(place: &Place) -> Result<Contest<'_>> {
    let workspace = place.scratch.join("starts");
    fs::create_dir_all(&workspace)?;
    let run_true = |options: &'static [&str]| {
        let workspace = workspace.clone();
        move || run_true(place, &workspace, options)
    };
    let mut contenders = vec![
        peers::timed("`bwrap` (the yardstick)", peers::bwrap),
        peers::timed("`fumehood run true`", run_true(&[])),
        peers::timed("`fumehood run true`, a new task each time", run_true(&["--new-task"])),
        peers::timed("`fumehood run true`, strict", run_true(&["--profile", "strict"])),
        peers::timed("`unshare`, namespaces alone", peers::unshare),
        peers::timed("`true`, bare", || run::command("true")),
    ];
    let mut absent = Vec::new();
    for runtime in ["runc", "crun"] {
        match Bundle::new(runtime, &place.scratch) {
            Ok(bundle) => contenders.push(runtime_contender(runtime, bundle)),
            Err(error) => absent.push((format!("`{runtime}`"), error.to_string().replace('\n', "; "))),
        }
    }
    Ok(Contest {
        id: "one-shot",
        title: "One command, from the shell and back",
        note: WHOLE.into(),
        unit: Unit::Milliseconds,
        rounds: 200,
        contenders,
        absent,
    })
}

/// The same as an ordinary user, when this task runs as root.
fn one_shot_as_user(place: &Place) -> Result<Contest<'_>> {
    let mut contenders = Vec::new();
    let mut absent = Vec::new();
    match &place.user {
        Some(user) => contenders = user_contenders(place, user)?,
        None => {
            absent.push(("an ordinary user".into(), "this was not run as root: see the table above".into()))
        }
    }
    Ok(Contest {
        id: "one-shot-user",
        title: "The same, as an ordinary user",
        note: "As above; nothing of it has a privilege.".into(),
        unit: Unit::Milliseconds,
        rounds: 200,
        contenders,
        absent,
    })
}

fn user_contenders<'a>(place: &Place, user: &Ordinary) -> Result<Vec<Contender<'a>>> {
    let (state, workspace) = (user.directory("bench-state")?, user.directory("bench-workspace")?);
    let ways = [
        ("`bwrap` (the yardstick)", peers::bwrap()),
        ("`fumehood run true`", run_true(place, &workspace, &[])),
        ("`fumehood run true`, strict", run_true(place, &workspace, &["--profile", "strict"])),
        ("`unshare`, namespaces alone", peers::unshare()),
    ];
    let as_user = |(name, way): (&str, Command)| {
        let mut argv = vec![std::env::current_exe()?.into_os_string(), "timed".into(), "--".into()];
        argv.push(way.get_program().to_owned());
        argv.extend(way.get_args().map(std::ffi::OsStr::to_owned));
        let mut command = user.command(argv);
        command.current_dir("/").env("FUMEHOOD_STATE_DIR", &state);
        Ok(served::contender(name, command))
    };
    ways.into_iter().map(as_user).collect()
}

fn memory(place: &Place) -> Result<Contest<'_>> {
    let workspace = place.scratch.join("memory");
    fs::create_dir_all(&workspace)?;
    Ok(Contest {
        id: "memory",
        title: "Peak memory of one command",
        note: "The largest process of each, as `time` reports it.".into(),
        unit: Unit::Kibibytes,
        rounds: 20,
        contenders: vec![
            peers::peak_memory("`bwrap`", peers::bwrap),
            peers::peak_memory("`fumehood run true`", move || run_true(place, &workspace, &[])),
            peers::peak_memory("`unshare`", peers::unshare),
        ],
        absent: Vec::new(),
    })
}

fn runtime_contender<'a>(runtime: &'static str, mut bundle: Bundle) -> Contender<'a> {
    peers::timed(&format!("`{runtime} run`"), move || bundle.command(runtime))
}

/// Returns `fumehood run true`.
fn run_true(place: &Place, workspace: &Path, options: &[&str]) -> Command {
    let mut command = place.fumehood(&["run", "--apply", "never"]);
    command.args(options).arg("--workspace").arg(workspace).args(["--", "true"]);
    command
}
