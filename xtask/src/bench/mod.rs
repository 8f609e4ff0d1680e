//! Compares Fumehood with other programs, side by side in one run on one machine, and writes the tables of
//! `docs/benchmarks.md` with the raw samples beside them.
//!
//! Guarantees: the ways of one contest are tried in turn, so that all of them meet the same disturbances; a way
//! that could not be measured is named with the reason.
//! Leaves to others: whether a figure is good enough. No test fails because a machine was slow.

pub mod contest;
pub mod egress;
pub mod engine;
pub mod figures;
pub mod machine;
pub mod peers;
pub mod served;
pub mod starts;
pub mod stats;
pub mod work;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::account::{Ordinary, is_root};
use crate::repo::Repo;
use crate::{markers, say, scratch, setup};
use contest::{Contest, Measured};

/// What to measure.
#[derive(Debug, Args)]
pub struct Options {
    /// Only these contests; by default all
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Divide the number of rounds by this, to see whether everything works
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    quick: u32,
    /// Print the tables and leave the documents as they are
    #[arg(long)]
    no_write: bool,
}

/// The scratch place of one run of the benchmarks.
#[derive(Debug)]
pub struct Place {
    /// The program.
    pub fumehood: PathBuf,
    /// A directory that is removed at the end.
    pub scratch: PathBuf,
    /// An ordinary user, when this task runs as root.
    pub user: Option<Ordinary>,
}

impl Place {
    /// Returns a command of the program, with a state directory of this run.
    pub fn fumehood(&self, words: &[&str]) -> std::process::Command {
        let mut command = crate::run::command(&self.fumehood);
        command.arg("--quiet").args(words).env("FUMEHOOD_STATE_DIR", self.scratch.join("state"));
        command
    }
}

/// Measures and writes.
///
/// # Errors
/// When the program does not compile, a contest breaks off, or a document cannot be written.
pub fn run(repo: &Repo, options: &Options) -> Result<()> {
    setup::try_to_ensure(setup::FOR_BENCH);
    let fumehood = repo.build_fumehood()?;
    let scratch = scratch::directory("fumehood-bench.")?;
    let user = if is_root() { Some(Ordinary::ready(repo)?) } else { None };
    let place = Place { fumehood, scratch: scratch.path().to_owned(), user };
    let machine = machine::line(repo)?;
    for name in starts::NAMES.iter().chain(engine::NAMES).chain(work::NAMES).chain(egress::NAMES) {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            let mut contest = contest(repo, &place, name)?;
            contest.rounds = (contest.rounds / options.quick.max(1)).max(1);
            write(repo, options, &machine, &contest.run()?)?;
        }
    }
    if options.only.is_empty() || options.only.iter().any(|only| only == figures::NAME) {
        figures::measure(repo, &place.scratch, &machine, options.no_write)?;
    }
    let left = place.user.map(Ordinary::leave).transpose()?.unwrap_or_default();
    left.iter().for_each(|process| say::note(&format!("left running: {} {}", process.pid, process.command)));
    say::while_working("remove the scratch files", || scratch.close())
        .context("cannot remove the scratch files")
}

fn contest<'a>(repo: &Repo, place: &'a Place, name: &str) -> Result<Contest<'a>> {
    starts::contest(place, name)
        .or_else(|| engine::contest(repo, place, name))
        .or_else(|| work::contest(repo, place, name))
        .or_else(|| egress::contest(repo, place, name))
        .with_context(|| format!("there is no contest `{name}`"))?
}

fn write(repo: &Repo, options: &Options, machine: &str, measured: &Measured) -> Result<()> {
    let table = measured.table();
    say::result(&table);
    if options.no_write || options.quick > 1 {
        return Ok(());
    }
    let folder = repo.root.join("docs/benchmarks");
    fs::create_dir_all(&folder)?;
    measured.write_samples(&folder, machine)?;
    let text = format!("{table}\nMeasured {machine}.");
    markers::replace_in(&repo.root.join("docs/benchmarks.md"), &format!("bench {}", measured.id), &text)
}
