//! Runs the sandbox cases of `tests/cases` against the real program, as root and as an ordinary user.
//!
//! Guarantees: a case that broke, that did not do its work, that is "not applicable" without a committed reason,
//! that was not run at all, or that held without the layer that must hold it, is a failure.
//! Leaves to others: the cases themselves, which are a copy of ones that are kept elsewhere and stay as they are.

pub mod judge;
pub mod lists;
pub mod record;
pub mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::account::{Ordinary, is_root};
use crate::repo::Repo;
use crate::tally::Tally;
use crate::{apparmor, run, say, scratch, setup};
use judge::Judgement;
use lists::{Allowed, Holders, Who};

/// One pass over some of the cases with one profile.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// The profile that the program is asked for.
    pub profile: &'static str,
    /// Whether the program is given the network that `NETWORK` describes.
    pub network: bool,
    /// Which cases.
    pub pick: Pick,
}

/// The settings for passes with a network: the one name that the cases expect to be allowed.
const NETWORK: &str = "[network.cases]\nrules = [\"https://allowed.test\", \"http://allowed.test\"]\n";

/// Which cases of the folder.
#[derive(Debug, Clone, Copy)]
pub enum Pick {
    /// Those that begin with none of these.
    Without(&'static [&'static str]),
    /// Those that begin with one of these.
    Only(&'static [&'static str]),
}

/// The passes: `TS` needs a verification step that the program does not have yet, `PX` a way out, a compiler more than ten
/// seconds, and the default profile has other limits than the `RS` cases expect.
pub const PASSES: [Pass; 4] = [
    Pass { profile: "strict", network: false, pick: Pick::Without(&["TS", "PX", "WK-14"]) },
    Pass { profile: "strict", network: true, pick: Pick::Only(&["PX", "NET"]) },
    Pass { profile: "strict-build", network: false, pick: Pick::Only(&["WK-14"]) },
    Pass { profile: "default", network: false, pick: Pick::Without(&["TS", "PX", "RS"]) },
];

impl Pass {
    /// Returns its name, which is also that of its place.
    fn name(self) -> String {
        if self.network { format!("{}-network", self.profile) } else { self.profile.to_owned() }
    }
}

impl Pick {
    /// Returns the options by which the runner picks the same cases.
    fn options(self) -> [String; 2] {
        let (option, Self::Without(prefixes) | Self::Only(prefixes)) = match self {
            Self::Without(_) => ("-x", self),
            Self::Only(_) => ("-k", self),
        };
        [option.to_owned(), format!("^({})", prefixes.join("|"))]
    }

    fn takes(self, case: &str) -> bool {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| case.starts_with(prefix));
        match self {
            Self::Without(prefixes) => !begins(prefixes),
            Self::Only(prefixes) => begins(prefixes),
        }
    }
}

/// Sets the machine up, builds the program and runs every pass.
///
/// # Errors
/// When the machine cannot be set up, the program does not compile, or the runner cannot be started.
pub fn run(repo: &Repo) -> Result<Tally> {
    setup::ensure(setup::FOR_TESTS)?;
    apparmor::ensure(repo)?;
    let program = repo.build_fumehood()?;
    run_with(repo, &program)
}

/// Runs every pass with a program that is built already.
///
/// # Errors
/// When the lists cannot be read or the runner cannot be started.
pub fn run_with(repo: &Repo, program: &Path) -> Result<Tally> {
    let scratch = scratch::directory("fumehood-cases.")?;
    let own_place = |name: &str| {
        let place = scratch.path().join(name);
        fs::create_dir_all(&place)?;
        Ok(place)
    };
    if !is_root() {
        return Runner::new(repo, program, Who::User, &own_command)?.all(&own_place);
    }
    let mut tally = Runner::new(repo, program, Who::Root, &own_command)?.all(&own_place)?;
    let user = Ordinary::ready(repo)?;
    let as_user = |argv: &[String]| user.command(argv);
    tally += Runner::new(repo, program, Who::User, &as_user)?.all(&|name| user.directory(name))?;
    tally += judge::leftovers(&user.leave()?);
    Ok(tally)
}

/// Returns a command that runs `argv` as whoever runs this task.
pub fn own_command(argv: &[String]) -> Command {
    let mut command = run::command(&argv[0]);
    command.args(&argv[1..]);
    command
}

/// Runs cases as somebody.
pub struct Runner<'a> {
    repo: &'a Repo,
    program: &'a Path,
    who: Who,
    allowed: Allowed,
    holders: Holders,
    command: &'a dyn Fn(&[String]) -> Command,
}

impl<'a> Runner<'a> {
    /// Reads the committed lists. `command` makes a command that runs as `who`.
    ///
    /// # Errors
    /// When a list is missing or not understood.
    pub fn new(
        repo: &'a Repo,
        program: &'a Path,
        who: Who,
        command: &'a dyn Fn(&[String]) -> Command,
    ) -> Result<Self> {
        let (allowed, holders) = lists::read(&repo.root.join("tests"))?;
        Ok(Self { repo, program, who, allowed, holders, command })
    }

    fn all(&self, place: &dyn Fn(&str) -> Result<PathBuf>) -> Result<Tally> {
        let mut tally = Tally::default();
        for pass in PASSES {
            tally += judge::say(&self.pass(pass, &place(&pass.name())?)?);
        }
        Ok(tally)
    }

    /// Runs one pass, with the table and the program's state in `place`, and judges every case of it.
    ///
    /// # Errors
    /// When the runner cannot be started, leaves no table, or the program cannot be asked for its record.
    pub fn pass(&self, pass: Pass, place: &Path) -> Result<Vec<(String, Judgement)>> {
        let network = if pass.network { " and a network" } else { "" };
        say::step(&format!("cases with the {} profile{network}, as {}", pass.profile, self.who));
        let (table, state, settings) = (place.join("table"), place.join("state"), place.join("config"));
        fs::create_dir_all(settings.join("fumehood"))?;
        fs::write(settings.join("fumehood/fumehood.toml"), if pass.network { NETWORK } else { "" })?;
        let mut runner = (self.command)(&runner_line(self.repo, self.program, pass, &table));
        runner
            .current_dir(&self.repo.root)
            .env("FUMEHOOD_STATE_DIR", &state)
            .env("XDG_CONFIG_HOME", &settings)
            .env("SBX_BASE", scratch::place());
        // How the runner ends says less than its table, which is judged row by row.
        runner.status().context("cannot start the case runner")?;
        let rows = table::read(&table)?;
        let expected = table::cases_in(&self.repo.root.join("tests/cases"))?;
        let expected: Vec<String> = expected.into_iter().filter(|case| pass.pick.takes(case)).collect();
        let recorded = record::of_cases(self.program, &state, &rows, self.command)?;
        Ok(judge::rows(&expected, &rows, &recorded, self.who, &self.allowed, &self.holders))
    }
}

/// Returns the line that a person would type, with the options of the runner first.
fn runner_line(repo: &Repo, program: &Path, pass: Pass, table: &Path) -> Vec<String> {
    let mut line = vec![text(&repo.root.join("tests/cases/run.sh")), "-o".into(), text(table)];
    line.extend(pass.pick.options());
    line.push("--".into());
    line.push(text(program));
    let network: &[&str] = if pass.network { &["--allow-net", "cases"] } else { &[] };
    let words = ["run", "--profile", pass.profile, "--workspace", "{WS}", "--apply", "clean"];
    line.extend(words.iter().chain(network).chain(&["--"]).map(|word| (*word).to_owned()));
    line
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_is_called_as_a_person_would() {
        let repo = Repo { root: "/r".into(), target: "/t".into() };
        let line = |pass| runner_line(&repo, &repo.fumehood(), pass, Path::new("/o")).join(" ");
        let run = "/t/release/fumehood run --profile strict --workspace {WS} --apply clean";
        assert_eq!(line(PASSES[0]), format!("/r/tests/cases/run.sh -o /o -x ^(TS|PX|WK-14) -- {run} --"));
        let network = "--allow-net cases --";
        assert_eq!(line(PASSES[1]), format!("/r/tests/cases/run.sh -o /o -k ^(PX|NET) -- {run} {network}"));
    }

    #[test]
    fn every_case_but_ts_is_run_with_a_strict_profile() {
        for case in ["FS-01", "RS-01", "WK-14", "WK-01", "PX-01"] {
            assert!(
                PASSES.iter().any(|pass| pass.profile.starts_with("strict") && pass.pick.takes(case)),
                "{case}"
            );
        }
        assert!(!PASSES.iter().any(|pass| pass.pick.takes("TS-01")));
    }
}
