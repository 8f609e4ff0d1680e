//! The contest about one governed action inside a process that is already running, as an agent's server has it.
//!
//! The measuring stands in `crates/engine/examples/bench_action.rs`, which speaks a few words on its standard
//! streams, so that its tries can be taken in turn with other programs:
//!
//! ```text
//! bench_action --workspace DIR --state-dir DIR [--no-cgroups] [--parked] [--ballast-mib NUMBER]
//! > ready                     once, when everything that is not measured is done
//! < go                        one action: decide, record durably, build, prove, run `true`, tear down, record
//! > {"wall_us": 5123}         how long that took
//! ```
//!
//! At the end of its input it ends with 0. `--ballast-mib` touches that much memory before `ready`.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::bench::Place;
use crate::bench::contest::{Contender, Contest, Unit};
use crate::bench::peers;
use crate::repo::Repo;
use crate::run;

/// The contests of this module.
pub const NAMES: &[&str] = &["action"];

/// What is measured, and with which options of the example.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("engine action", &[]),
    ("engine action, no cgroups", &["--no-cgroups"]),
    ("engine action, 1 GiB parent", &["--ballast-mib", "1024"]),
    ("engine action, parked sandbox", &["--parked"]),
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
            contenders
                .extend(VARIANTS.iter().map(|(name, options)| contender(place, &example, name, options)));
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

fn contender<'a>(place: &'a Place, example: &PathBuf, name: &str, options: &[&str]) -> Contender<'a> {
    let mut command = run::command(example);
    let own = place.scratch.join(name.replace([' ', ','], "-"));
    command
        .arg("--workspace")
        .arg(own.join("workspace"))
        .arg("--state-dir")
        .arg(own.join("state"))
        .args(options);
    let running: RefCell<Option<Running>> = RefCell::new(None);
    let attempt = move || {
        let mut running = running.borrow_mut();
        if running.is_none() {
            std::fs::create_dir_all(own.join("workspace"))?;
            *running = Some(Running::start(&mut command)?);
        }
        running.as_mut().context("the example was just started")?.go()
    };
    Contender { name: name.to_owned(), attempt: Box::new(attempt) }
}

#[derive(Deserialize)]
struct Answer {
    wall_us: f64,
}

/// The example, waiting for a word. It ends when its input does.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(command: &mut std::process::Command) -> Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start it")?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("it has no output")?).lines();
        let mut running = Self { child, input, output };
        match running.line()?.as_str() {
            "ready" => Ok(running),
            other => bail!("it said `{other}` where `ready` was expected"),
        }
    }

    /// Lets it do one action, and returns how long that took in milliseconds.
    fn go(&mut self) -> Result<f64> {
        let input = self.input.as_mut().context("its input is closed")?;
        input.write_all(b"go\n").context("it went away")?;
        let line = self.line()?;
        let answer: Answer = serde_json::from_str(&line).with_context(|| format!("it said `{line}`"))?;
        Ok(answer.wall_us / 1000.0)
    }

    fn line(&mut self) -> Result<String> {
        self.output.next().context("it ended")?.context("it cannot be read")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
