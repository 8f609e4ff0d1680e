//! Runs what is too long for every change, and writes the last result of each part into `docs/benchmarks.md`. The virtual
//! machine (`guest`) is a part of it.
//!
//! The crates' own tests do the work: `crates/fumehood/tests/soak` has a small form for every change and takes
//! the number of rounds from `FUMEHOOD_SOAK_RUNS` and `FUMEHOOD_SOAK_KILLS`; the lines that it prints with
//! `soak: ` in front are the result. `crates/sandbox/tests/faults` has a sample for every change and tries all calls when
//! `FUMEHOOD_SOAK_FAULTS` says so. `fuzz/tests/seconds.rs` goes on for `FUMEHOOD_FUZZ_SECONDS`, with `fuzz: ` in front.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::bench::machine;
use crate::repo::Repo;
use crate::tally::Tally;
use crate::{guest, markers, run, say, scratch, setup};

/// What to run, and how long to go on.
#[derive(Debug, Args)]
pub struct Options {
    /// Only these parts; by default all
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Runs in a row of the real program, each writing a layer
    #[arg(long, default_value_t = 10_000)]
    runs: u32,
    /// Runs whose supervisor is killed at a random point
    #[arg(long, default_value_t = 500)]
    kills: u32,
    /// Minutes of a processor for each fuzz target
    #[arg(long, default_value_t = 10)]
    fuzz_minutes: u32,
    /// Only these fuzz targets; what the document says of the others stays
    #[arg(long, value_name = "NAME")]
    fuzz_target: Vec<String>,
}

/// A part that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Runs in a row, kills, and a process that lives long
    Runs,
    /// Every system call of the launcher fails once
    Faults,
    /// The parsers of foreign bytes
    Fuzz,
    /// The virtual machine
    Guest,
}

/// Runs all of it, or the parts that are asked for.
///
/// # Errors
/// When the machine cannot be set up, or something cannot be started.
pub fn run(repo: &Repo, options: &Options) -> Result<Tally> {
    setup::ensure(setup::FOR_TESTS)?;
    let mut tally = Tally::default();
    for part in Part::value_variants() {
        if !options.only.is_empty() && !options.only.contains(part) {
            continue;
        }
        tally += match part {
            Part::Runs => runs(repo, options)?,
            Part::Faults => faults(repo)?,
            Part::Fuzz => fuzz(repo, options)?,
            // It writes a section of its own.
            Part::Guest => guest::run(repo, &guest::Options::default())?,
        };
    }
    Ok(tally)
}

fn runs(repo: &Repo, options: &Options) -> Result<Tally> {
    say::step(&format!("{} runs in a row and {} kills", options.runs, options.kills));
    // A release build ends at named steps only with the feature; the program that is shipped is built without it.
    let mut cargo = repo.cargo(&["test", "--release", "--locked", "--package", "fumehood"]);
    cargo.args(["--features", "fail-points", "--test", "soak", "--", "--nocapture"]);
    cargo.env("FUMEHOOD_SOAK_RUNS", options.runs.to_string());
    cargo.env("FUMEHOOD_SOAK_KILLS", options.kills.to_string()).env("TMPDIR", scratch::place());
    // Nobody else writes to the places that everybody writes to, so they are compared too.
    cargo.env("FUMEHOOD_SOAK_ALONE", "1");
    tell(repo, "soak runs", &mut cargo)
}

/// Lets every system call of the launcher fail, one in each start.
fn faults(repo: &Repo) -> Result<Tally> {
    say::step("every system call of the launcher fails once");
    let words =
        ["test", "--locked", "--package", "fumehood-sandbox", "--test", "faults", "--", "--nocapture"];
    let mut cargo = repo.cargo(&words);
    tell(repo, "soak faults", cargo.env("FUMEHOOD_SOAK_FAULTS", "all"))
}

/// Runs tests, and writes the lines that they print for the document into a section of it.
fn tell(repo: &Repo, section: &str, cargo: &mut Command) -> Result<Tally> {
    let mut report = vec![machine::line(repo)?];
    let (status, output) = run::tee(cargo)?;
    report.extend(
        output.lines().filter_map(|line| line.strip_prefix("soak: ")).map(|line| format!("- {line}")),
    );
    let tally = Tally::of_cargo_test(&output, status.success());
    report.push(format!("- result: {tally}"));
    markers::replace_in(&document(repo), section, &report.join("\n"))?;
    Ok(tally)
}

fn fuzz(repo: &Repo, options: &Options) -> Result<Tally> {
    say::step(&format!("each fuzz target for {} minutes", options.fuzz_minutes));
    let machine = machine::line(repo)?;
    let mut cargo = repo.cargo(&["test", "--profile", "fuzz", "--locked", "--package", "fumehood-fuzz"]);
    cargo.args(["--test", "seconds", "--", "--nocapture"]).env("TMPDIR", scratch::place());
    cargo.env("FUMEHOOD_FUZZ_TARGETS", options.fuzz_target.join(" "));
    let (status, output) =
        run::tee(cargo.env("FUMEHOOD_FUZZ_SECONDS", (options.fuzz_minutes * 60).to_string()))?;
    let new = output.lines().filter_map(|line| line.strip_prefix("fuzz: "));
    let new: Vec<String> = new.map(|line| format!("- {line} ({machine})")).collect();
    let document = document(repo);
    markers::replace_in(&document, FUZZ, &merged(&markers::read_in(&document, FUZZ)?, new))?;
    Ok(Tally::of_cargo_test(&output, status.success()))
}

/// The section of the document with a line for each fuzz target.
const FUZZ: &str = "soak fuzz";

/// Puts new lines about targets in the place of old ones about the same; the others stay.
fn merged(old: &str, mut new: Vec<String>) -> String {
    fn target(line: &str) -> Option<&str> {
        line.strip_prefix("- ")?.split_once(": ").map(|(name, _)| name)
    }
    let mut lines: Vec<String> = old
        .lines()
        .filter(|line| target(line).is_some_and(|name| !new.iter().any(|line| target(line) == Some(name))))
        .map(str::to_owned)
        .collect();
    lines.append(&mut new);
    lines.sort();
    lines.join("\n")
}

fn document(repo: &Repo) -> PathBuf {
    repo.root.join("docs/benchmarks.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_was_fed_again_has_one_line_and_the_others_keep_theirs() {
        let old = "Not run yet.\n- event: 5 inputs\n- text: 3 inputs";
        let new = vec!["- patch: 7 inputs".to_owned(), "- event: 6 inputs".to_owned()];
        assert_eq!(merged(old, new), "- event: 6 inputs\n- patch: 7 inputs\n- text: 3 inputs");
    }
}
