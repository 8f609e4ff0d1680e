//! Figures that no other program has: what deciding, recording and redacting cost.
//!
//! The measuring stands in examples of the crates, which print a line with `figure: ` in front for each: what, how much, and
//! the goal.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::repo::Repo;
use crate::{markers, run, say};

/// The name by which it is asked for.
pub const NAME: &str = "figures";

/// Runs the examples and writes what they print as a table.
///
/// # Errors
/// When one does not compile or fails, or the document cannot be written.
pub fn measure(repo: &Repo, scratch: &Path, machine: &str, no_write: bool) -> Result<()> {
    let mut table = "| what | measured | goal |\n| --- | --- | --- |\n".to_owned();
    let examples = [
        ("fumehood-gate", "cost"),
        ("fumehood-engine", "bench_record"),
        ("fumehood-engine", "bench_redaction"),
    ];
    for (package, example) in examples {
        let words = ["run", "--release", "--locked", "--package", package, "--example", example, "--"];
        let mut cargo = repo.cargo(&words);
        let (status, output) = run::tee(cargo.arg(scratch.join("figures")))?;
        ensure!(status.success(), "`{example}` failed");
        let figures = output.lines().filter_map(|line| line.strip_prefix("figure: "));
        table.extend(figures.map(|line| format!("| {line} |\n")));
    }
    if no_write {
        return Ok(());
    }
    say::result(&table);
    let text = format!("{table}\nMeasured {machine}.");
    markers::replace_in(&repo.root.join("docs/benchmarks.md"), "bench figures", &text)
}
