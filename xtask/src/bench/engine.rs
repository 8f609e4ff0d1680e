//! The contest about one governed action inside a process that is already running, as an agent's server has it.
//!
//! The measuring stands in `crates/engine/examples/bench_action.rs`, which speaks the words of [`super::served`]:
//!
//! ```text
//! bench_action --workspace DIR --state-dir DIR [--profile NAME] [--ballast-mib NUMBER] [--parked]
//! ```
//!
//! One try is one action: decide, record durably, build, prove, run `true`, tear down, inspect, record.
//! `--ballast-mib` touches that much memory before `ready`; with `--parked` a sandbox waits, and building it is not part of
//! the try.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::{Place, peers, served};
use crate::repo::Repo;
use crate::run;

/// The contests of this module.
pub const NAMES: &[&str] = &["action"];

/// What is measured, and with which options of the example.
const VARIANTS: [(&str, &[&str]); 5] = [
    ("engine action", &[]),
    ("engine action, strict", &["--profile", "strict"]),
    ("engine action, parked", &["--parked"]),
    ("engine action, strict, parked", &["--profile", "strict", "--parked"]),
    ("engine action, 1 GiB parent", &["--ballast-mib", "1024"]),
];

/// Starts a program where no control group can be had. The engine has no option for that; it finds none, because all
/// of them lie under an empty read-only directory in a mount namespace of its own. As root only.
const WITHOUT_GROUPS: [&str; 7] = [
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-euc",
    "mount -t tmpfs -o ro none /sys/fs/cgroup; exec \"$@\"",
    "without-groups",
];

/// Returns a contest by its name.
pub fn contest<'a>(repo: &Repo, place: &'a Place, name: &str) -> Option<Result<Contest<'a>>> {
    (name == "action").then(|| action(repo, place))
}

fn action<'a>(repo: &Repo, place: &'a Place) -> Result<Contest<'a>> {
    let mut contenders = vec![peers::timed("`bwrap` (the yardstick)", peers::bwrap)];
    let mut absent = Vec::new();
    match build(repo)? {
        Some(example) => {
            for (name, options) in VARIANTS {
                contenders.push(contender(place, run::command(&example), name, options)?);
            }
            let mut without_groups = run::command("unshare");
            without_groups.args(WITHOUT_GROUPS).arg(&example);
            contenders.push(contender(place, without_groups, "engine action, no cgroups", &[])?);
        }
        None => absent.push(("engine action".to_owned(), "`bench_action` is not in the tree".to_owned())),
    }
    Ok(Contest {
        id: "action",
        title: "One governed action in a running process",
        note: "Decide, record durably, build, prove, run `true`, tear down and check, inspect the layer, record. \
               Goal: no slower than `bwrap`; parked within a quarter."
            .into(),
        unit: Unit::Milliseconds,
        rounds: 200,
        contenders,
        absent,
    })
}

/// Builds the example, if there is one.
fn build(repo: &Repo) -> Result<Option<PathBuf>> {
    if !repo.root.join("crates/engine/examples/bench_action.rs").is_file() {
        return Ok(None);
    }
    let words =
        ["build", "--release", "--locked", "--package", "fumehood-engine", "--example", "bench_action"];
    run::succeed("build bench_action", &mut repo.cargo(&words))?;
    Ok(Some(repo.target.join("release/examples/bench_action")))
}

fn contender<'a>(place: &Place, mut command: Command, name: &str, options: &[&str]) -> Result<Contender<'a>> {
    let own = place.scratch.join(name.replace([' ', ','], "-"));
    std::fs::create_dir_all(own.join("workspace"))?;
    command
        .arg("--workspace")
        .arg(own.join("workspace"))
        .arg("--state-dir")
        .arg(own.join("state"))
        .args(options);
    Ok(served::contender(name, command))
}
