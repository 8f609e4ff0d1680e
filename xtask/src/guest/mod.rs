//! Runs the tests of control groups in a virtual machine that has only version 2 of them.
//!
//! A host that mounts version 1 beside it keeps the controllers there, so real limits of version 2 are met nowhere else.
//! The machine is emulated (QEMU, TCG): no processor feature and no privilege is needed, and nothing of the host is seen
//! or changed. Its whole content is an archive of the test programs as they were built, their libraries and busybox.
//!
//! Guarantees: every test that the programs list is found on the second serial line as passed, for each of the
//! scenarios; a machine that does not boot, stops in the middle or leaves a test out is a failure.
//! Leaves to others: what is tested (`crates/sandbox/src/cgroup/kernel_tests.rs`, `crates/fumehood/tests/groups`).

mod archive;
mod content;
mod debian;
mod machine;
mod results;
mod scenario;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::artifacts::{self, TestBinary};
use crate::bench::machine as host;
use crate::repo::Repo;
use crate::tally::Tally;
use crate::{markers, run, say, setup};

use results::Expected;
use scenario::{SCENARIOS, Scenario};

/// Where a kernel comes from, and how long it may take.
#[derive(Debug, Args)]
pub struct Options {
    /// A Debian package of a kernel, 6.10 or newer; without it, one is downloaded
    #[arg(long, value_name = "FILE")]
    kernel: Option<std::path::PathBuf>,
    /// Seconds that the machine may run; emulation is slow
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
    /// Only the scenarios whose name contains this; then nothing is written into the documents
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Some three minutes for each scenario on an idle machine, and a machine that is not idle.
const SECONDS: u64 = 3600;

impl Default for Options {
    fn default() -> Self {
        Self { kernel: None, seconds: SECONDS, only: None }
    }
}

impl Options {
    fn includes(&self, scenario: &Scenario) -> bool {
        self.only.as_ref().is_none_or(|only| scenario.name.contains(only.as_str()))
    }
}

/// A test program and which of its tests are run.
pub(crate) struct Program {
    binary: TestBinary,
    filter: &'static str,
}

/// The programs: package, target and filter.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("fumehood-sandbox", "sandbox", "cgroup::kernel_tests::"), ("fumehood", "groups", "")];

/// Runs all scenarios, and writes the result into `docs/benchmarks.md`.
///
/// # Errors
/// When the machine cannot be put together or started.
pub fn run(repo: &Repo, options: &Options) -> Result<Tally> {
    let (tally, report) = measured(repo, options)?;
    match options.only {
        Some(_) => report.iter().for_each(|line| say::note(line)),
        None => markers::replace_in(&repo.root.join("docs/benchmarks.md"), "guest", &report.join("\n"))?,
    }
    Ok(tally)
}

fn measured(repo: &Repo, options: &Options) -> Result<(Tally, Vec<String>)> {
    if std::env::consts::ARCH != "x86_64" {
        bail!(
            "the guest is an x86-64 machine, and the programs here are built for {}",
            std::env::consts::ARCH
        );
    }
    setup::ensure(setup::FOR_GUEST)?;
    let place = repo.target.join("guest");
    fs::create_dir_all(&place).with_context(|| format!("cannot make `{}`", place.display()))?;
    let kernel = debian::kernel(&place, options.kernel.as_deref())?;
    let emulator = debian::emulator(&place)?;
    let programs = programs(repo)?;
    let chosen: Vec<&Scenario> = SCENARIOS.iter().filter(|scenario| options.includes(scenario)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        bail!("there is no such scenario; there are {}", names.join(", "));
    }
    let expected = expected(&programs, &chosen)?;
    let initrd = place.join("initrd");
    fs::write(&initrd, content::archive(repo, &programs, &chosen, &kernel)?)
        .context("cannot write the archive")?;
    say::step(&format!("{} scenarios in a virtual machine with Linux {}", chosen.len(), kernel.version));
    let mut report = vec![host::line(repo)?];
    let start = Instant::now();
    let said = machine::run(&emulator, &kernel.image, &initrd, Duration::from_secs(options.seconds))?;
    let judged = results::judge(&said.results, &expected);
    if !judged.complaints.is_empty() {
        say::result(&format!("{}\n{}", said.console.trim_end(), said.results.trim_end()));
    }
    judged.complaints.iter().for_each(|complaint| say::result(&format!("FAILED guest: {complaint}")));
    report.push(format!(
        "- Linux {} in {}, emulated, {} s from power on to off",
        kernel.version,
        emulator.version,
        start.elapsed().as_secs()
    ));
    report.extend(judged.by_scenario.iter().map(|line| format!("- {line}")));
    report.push(format!("- result: {}", judged.tally));
    Ok((judged.tally, report))
}

/// Builds the test programs, and the program that they start.
fn programs(repo: &Repo) -> Result<Vec<Program>> {
    let mut cargo = repo.cargo(&["build", "--locked", "--package", "fumehood", "--bin", "fumehood"]);
    run::succeed("build fumehood", &mut cargo)?;
    let mut programs = Vec::new();
    for (package, target, filter) in PROGRAMS {
        let built = artifacts::test_binaries_of(repo, &[package.to_owned()], &[])?;
        let binary = built.into_iter().find(|binary| binary.package == package && binary.target == target);
        let binary = binary.with_context(|| format!("`{package}` has no test binary `{target}`"))?;
        programs.push(Program { binary, filter });
    }
    Ok(programs)
}

/// Returns what must be seen to pass: every test that the programs list, in every scenario.
fn expected(programs: &[Program], chosen: &[&Scenario]) -> Result<Vec<Expected>> {
    let mut tests = vec![results::NOTHING_LEFT.to_owned()];
    for Program { binary, filter } in programs {
        let list = |more: &[&str]| -> Result<Vec<String>> {
            let mut command = run::command(&binary.executable);
            command.args(["--list", "--format", "terse", filter]).args(more);
            let listed = run::output("list tests", &mut command)?;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            Ok(listed.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect())
        };
        let left_out = list(&["--ignored"])?;
        let found: Vec<String> = list(&[])?.into_iter().filter(|test| !left_out.contains(test)).collect();
        if found.is_empty() {
            bail!("`{}` lists no test", binary.executable.display());
        }
        tests.extend(found);
    }
    Ok(chosen.iter().map(|scenario| Expected { scenario: scenario.name, tests: tests.clone() }).collect())
}
