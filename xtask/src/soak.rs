//! Runs what is too long for every change, and writes the last result into `docs/benchmarks.md`. The virtual machine (`guest`) is
//! a part of it.
//!
//! The crates' own tests do the work: `crates/fumehood/tests/soak` has a small form for every change and takes
//! the number of rounds from `FUMEHOOD_SOAK_RUNS` and `FUMEHOOD_SOAK_KILLS`; the lines that it prints with
//! `soak: ` in front are the result. `crates/sandbox/tests/faults` has a sample for every change and tries all calls when
//! `FUMEHOOD_SOAK_FAULTS` says so. `fuzz/tests/seconds.rs` goes on for `FUMEHOOD_FUZZ_SECONDS`, with `fuzz: ` in front.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::bench::machine;
use crate::repo::Repo;
use crate::tally::Tally;
use crate::{guest, markers, run, say, scratch, setup};

/// How long to go on.
#[derive(Debug, Args)]
pub struct Options {
    /// Runs in a row of the real program, each writing a layer
    #[arg(long, default_value_t = 10_000)]
    runs: u32,
    /// Runs whose supervisor is killed at a random point
    #[arg(long, default_value_t = 500)]
    kills: u32,
    /// Minutes for each fuzz target, one after another; 0 leaves fuzzing out
    #[arg(long, default_value_t = 10)]
    fuzz_minutes: u32,
}

/// Runs all of it.
///
/// # Errors
/// When the machine cannot be set up, or something cannot be started.
pub fn run(repo: &Repo, options: &Options) -> Result<Tally> {
    setup::ensure(setup::FOR_TESTS)?;
    let mut report = vec![machine::line(repo)?];
    let mut tally = long_tests(repo, options, &mut report)?;
    tally += faults(repo, &mut report)?;
    if options.fuzz_minutes > 0 {
        tally += fuzz(repo, options.fuzz_minutes, &mut report)?;
    }
    report.push(format!("- result: {tally}"));
    markers::replace_in(&repo.root.join("docs/benchmarks.md"), "soak", &report.join("\n"))?;
    // It writes a section of its own.
    tally += guest::run(repo, &guest::Options::default())?;
    Ok(tally)
}

fn long_tests(repo: &Repo, options: &Options, report: &mut Vec<String>) -> Result<Tally> {
    say::step(&format!("{} runs in a row and {} kills", options.runs, options.kills));
    // A release build ends at named steps only with the feature; the program that is shipped is built without it.
    let mut cargo = repo.cargo(&["test", "--release", "--locked", "--package", "fumehood"]);
    cargo.args(["--features", "fail-points", "--test", "soak", "--", "--nocapture"]);
    cargo.env("FUMEHOOD_SOAK_RUNS", options.runs.to_string());
    cargo.env("FUMEHOOD_SOAK_KILLS", options.kills.to_string()).env("TMPDIR", scratch::place());
    // Nobody else writes to the places that everybody writes to, so they are compared too.
    cargo.env("FUMEHOOD_SOAK_ALONE", "1");
    tell(&mut cargo, report)
}

/// Lets every system call of the launcher fail, one in each start.
fn faults(repo: &Repo, report: &mut Vec<String>) -> Result<Tally> {
    say::step("every system call of the launcher fails once");
    let words =
        ["test", "--locked", "--package", "fumehood-sandbox", "--test", "faults", "--", "--nocapture"];
    let mut cargo = repo.cargo(&words);
    tell(cargo.env("FUMEHOOD_SOAK_FAULTS", "all"), report)
}

/// Runs tests, and keeps the lines that they print for the report.
fn tell(cargo: &mut Command, report: &mut Vec<String>) -> Result<Tally> {
    let (status, output) = run::tee(cargo)?;
    report.extend(
        output.lines().filter_map(|line| line.strip_prefix("soak: ")).map(|line| format!("- {line}")),
    );
    Ok(Tally::of_cargo_test(&output, status.success()))
}

fn fuzz(repo: &Repo, minutes: u32, report: &mut Vec<String>) -> Result<Tally> {
    say::step(&format!("each fuzz target for {minutes} minutes"));
    let mut cargo = repo.cargo(&["test", "--profile", "fuzz", "--locked", "--package", "fumehood-fuzz"]);
    cargo.args(["--test", "seconds", "--", "--nocapture"]).env("TMPDIR", scratch::place());
    let (status, output) = run::tee(cargo.env("FUMEHOOD_FUZZ_SECONDS", (minutes * 60).to_string()))?;
    report.extend(
        output.lines().filter_map(|line| line.strip_prefix("fuzz: ")).map(|line| format!("- fuzz {line}")),
    );
    Ok(Tally::of_cargo_test(&output, status.success()))
}
