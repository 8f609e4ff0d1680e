//! Runs every test, and counts them all into one closing line.
//!
//! Guarantees: as root, what depends on privileges is tested a second time as an ordinary user, with the very
//! binaries that were tested as root; what that user leaves running is a failure.

use anyhow::Result;

use crate::account::{Ordinary, is_root};
use crate::artifacts::{self, TestBinary};
use crate::cases::{self, judge};
use crate::repo::Repo;
use crate::tally::Tally;
use crate::{apparmor, disarm, run, say, scratch, setup};

/// The packages whose tests say different things as root and as an ordinary user.
const PRIVILEGED: [&str; 6] = [
    "fumehood-sandbox",
    "fumehood-launcher",
    "fumehood-inspect",
    "fumehood-engine",
    "fumehood-agent",
    "fumehood",
];

/// Sets the machine up and runs every test there is. A part that cannot run counts as one failure, and the others
/// still run.
///
/// # Errors
/// When the machine cannot be set up.
pub fn run(repo: &Repo) -> Result<Tally> {
    setup::ensure(setup::FOR_TESTS)?;
    apparmor::ensure(repo)?;
    let mut tally = counted("the tests of the workspace", as_this_user(repo));
    if is_root() {
        tally += counted("the tests as an ordinary user", as_ordinary_user(repo));
    }
    // With the program of the tests: building it for release takes longer than all cases. `cargo xtask cases` does that.
    tally += counted("the cases", cases::run_with(repo, &repo.tested_fumehood()));
    // Last, because it leaves a program with the mutants compiled in where the tests have theirs.
    tally += counted("one mutant of each kind", disarm::run(repo, &disarm::Options::sample()));
    Ok(tally)
}

fn counted(part: &str, result: Result<Tally>) -> Tally {
    result.unwrap_or_else(|error| {
        say::result(&format!("FAILED {part}: {error:#}"));
        Tally::ONE_FAILURE
    })
}

fn as_this_user(repo: &Repo) -> Result<Tally> {
    say::step("cargo test --workspace");
    let mut cargo = repo.cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    let (status, output) = run::tee(cargo.env("TMPDIR", scratch::place()))?;
    Ok(Tally::of_cargo_test(&output, status.success()))
}

fn as_ordinary_user(repo: &Repo) -> Result<Tally> {
    // A build that broke was counted when the tests ran as root.
    let Ok(binaries) = artifacts::test_binaries(repo) else { return Ok(Tally::default()) };
    let user = Ordinary::ready(repo)?;
    let mut tally = Tally::default();
    for binary in binaries.iter().filter(|binary| PRIVILEGED.contains(&binary.package.as_str())) {
        tally += one_binary(&user, binary)?;
    }
    tally += judge::leftovers(&user.leave()?);
    Ok(tally)
}

fn one_binary(user: &Ordinary, binary: &TestBinary) -> Result<Tally> {
    say::step(&format!("{} {} as the ordinary user `{}`", binary.package, binary.target, user.name()));
    let mut command = user.command([&binary.executable]);
    command.current_dir(&binary.package_directory).env("CARGO_MANIFEST_DIR", &binary.package_directory);
    command.env("TMPDIR", scratch::place());
    let (status, output) = run::tee(&mut command)?;
    Ok(Tally::of_cargo_test(&output, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_privileged_packages_exist() {
        let repo = Repo::find().expect("the repository");
        let metadata = repo.metadata(&["--no-deps"]).expect("its manifests are read");
        for name in PRIVILEGED {
            assert!(metadata.members().any(|package| package.name == name), "{name}");
        }
    }
}
