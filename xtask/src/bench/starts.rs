//! Contests about starting: the whole of `fumehood run true` beside other ways to start `true` in a sandbox.

use std::process::Command;

use anyhow::Result;

use crate::bench::Place;
use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::peers::{self, Bundle};
use crate::run;

/// The contests of this module.
pub const NAMES: &[&str] = &["one-shot", "memory"];

/// Returns a contest by its name.
pub fn contest<'a>(place: &'a Place, name: &str) -> Option<Result<Contest<'a>>> {
    match name {
        "one-shot" => Some(one_shot(place)),
        "memory" => Some(Ok(memory(place))),
        _ => None,
    }
}

fn one_shot(place: &Place) -> Result<Contest<'_>> {
    let mut contenders = vec![
        peers::timed("`bwrap` (the yardstick)", peers::bwrap),
        peers::timed("`fumehood run true`", || run_true(place, &[])),
        peers::timed("`fumehood run true`, a new task each time", || run_true(place, &["--new-task"])),
        peers::timed("`fumehood run true`, strict", || run_true(place, &["--profile", "strict"])),
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
        note: "The whole process: settings, policy, durable record, build, proof, `true`, teardown, inspection of the \
               layer, record. The yardstick is `bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc \
               /proc --tmpfs /tmp true`. Goal: within 2 times."
            .into(),
        unit: Unit::Milliseconds,
        rounds: 200,
        contenders,
        absent,
    })
}

fn memory(place: &Place) -> Contest<'_> {
    Contest {
        id: "memory",
        title: "Peak memory of one command",
        note: "The largest process of each, as `time` reports it.".into(),
        unit: Unit::Kibibytes,
        rounds: 20,
        contenders: vec![
            peers::peak_memory("`bwrap`", peers::bwrap),
            peers::peak_memory("`fumehood run true`", || run_true(place, &[])),
            peers::peak_memory("`unshare`", peers::unshare),
        ],
        absent: Vec::new(),
    }
}

fn runtime_contender<'a>(runtime: &'static str, mut bundle: Bundle) -> Contender<'a> {
    peers::timed(&format!("`{runtime} run`"), move || bundle.command(runtime))
}

/// Returns `fumehood run true` on a small workspace.
fn run_true(place: &Place, options: &[&str]) -> Command {
    let workspace = place.scratch.join("small");
    // Made once; a directory that cannot be made shows in the run.
    let _ = std::fs::create_dir_all(&workspace);
    let mut command = place.fumehood(&["run", "--apply", "never"]);
    command.args(options).arg("--workspace").arg(&workspace).args(["--", "true"]).current_dir(&workspace);
    command
}
