//! `cargo xtask TASK`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::repo::Repo;
use xtask::tally::Tally;
use xtask::{bench, cases, check, demo, disarm, guest, say, soak, test};

/// The tasks of this repository
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Set the machine up, build the program and show all of it on a small repository
    Demo,
    /// Set the machine up and run every test: the crates', again as an ordinary user when root, and the cases
    Test,
    /// Check format, lints, licences, banned crates and documents; changes nothing
    Check,
    /// Run the sandbox cases alone
    Cases,
    /// Compare with other programs side by side, and write docs/benchmarks.md
    Bench(bench::Options),
    /// Run a program each time that `go` is said; for `bench`, as somebody else
    #[command(hide = true)]
    Timed {
        /// The program and its arguments
        #[arg(last = true)]
        argv: Vec<String>,
    },
    /// Take one control away at a time and demand that its named tests turn red
    Disarm(disarm::Options),
    /// Run the tests of control groups in a virtual machine that has only version 2 of them
    Guest(guest::Options),
    /// Run what is too long for every change: ten thousand runs, five hundred kills, fuzzing, the virtual machine
    Soak(soak::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(error) => {
            say::step(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Does a task, and tells whether all is well.
fn run(task: Task) -> Result<bool> {
    match task {
        Task::Demo => demo::run(&Repo::find()?).map(|()| true),
        Task::Test => close(test::run(&Repo::find()?)?),
        Task::Check => check::run(&Repo::find()?).map(|()| true),
        Task::Cases => close(cases::run(&Repo::find()?)?),
        Task::Bench(options) => bench::run(&Repo::find()?, &options).map(|()| true),
        Task::Timed { argv } => bench::served::serve(&argv).map(|()| true),
        Task::Disarm(options) => close(disarm::run(&Repo::find()?, &options)?),
        Task::Guest(options) => close(guest::run(&Repo::find()?, &options)?),
        Task::Soak(options) => close(soak::run(&Repo::find()?, &options)?),
    }
}

/// Prints the closing line, the last one of a task that counts.
fn close(tally: Tally) -> Result<bool> {
    say::result(&tally.to_string());
    Ok(tally.is_good())
}
