//! Takes one control away at a time and demands that the tests named beside it in `docs/guarantees.md` turn red.
//!
//! Guarantees: a test counts only if it is green as long as nothing is taken away.
//! The rest of the promises is taken away by the changes in `xtask/switches`, in a copy.
//! Leaves to others: the mutants. They are compiled in by the feature `mutants` of the crates that have one, and
//! chosen by the variable `FUMEHOOD_TEST_MUTANT`; a build without the feature has none of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;
use model::LimitKind;

use crate::artifacts::{self, TestBinary};
use crate::guarantees::{self, Guarantee, NamedTest};
use crate::repo::{Package, Repo};
use crate::switches::{self, Switch};
use crate::tally::Tally;
use crate::{run, say, scratch, setup};

/// Chooses the mutant.
const SELECTOR: &str = "FUMEHOOD_TEST_MUTANT";

/// How much to take away.
#[derive(Debug, Args)]
pub struct Options {
    /// Only the rows whose name, mutant or switch contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// One mutant of each kind, for every change
    #[arg(long)]
    sample: bool,
}

impl Options {
    /// Returns what every change runs.
    pub fn sample() -> Self {
        Self { only: None, sample: true }
    }
}

/// What was built with the mutants compiled in.
struct Built {
    root: PathBuf,
    tests: Vec<TestBinary>,
    fumehood: PathBuf,
}

/// Runs the rows of the table that have a mutant; each counts as one test.
///
/// # Errors
/// When the table cannot be read, or the mutants do not compile.
pub fn run(repo: &Repo, options: &Options) -> Result<Tally> {
    setup::ensure(setup::FOR_TESTS)?;
    let document =
        fs::read_to_string(repo.root.join("docs/guarantees.md")).context("cannot read docs/guarantees.md")?;
    let rows = chosen(guarantees::parse(&document)?, options);
    let switches = chosen_switches(switches::all(&repo.root)?, options);
    if rows.is_empty() && switches.is_empty() {
        bail!("no row of docs/guarantees.md has a mutant or a switch that was asked for");
    }
    let mut tally = switches::run(repo, &switches)?;
    if rows.is_empty() {
        return Ok(tally);
    }
    let built = build(repo, &rows)?;
    tally += every_mutant_is_noticed(&built)?;
    for row in &rows {
        match one(&built, row) {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                say::result(&format!("FAILED {}: {why:#}", row.id));
                tally.failed += 1;
            }
        }
    }
    Ok(tally)
}

fn chosen(rows: Vec<Guarantee>, options: &Options) -> Vec<Guarantee> {
    let mut kinds = BTreeSet::new();
    let mut wanted = |row: &Guarantee| {
        let Some(mutant) = &row.mutant else { return false };
        let named = options.only.as_ref().is_none_or(|only| row.id.contains(only) || mutant.contains(only));
        named && (!options.sample || kinds.insert(kind(mutant).to_owned()))
    };
    rows.into_iter().filter(|row| wanted(row)).collect()
}

/// Each change is built by itself, so a sample has none of them.
fn chosen_switches(switches: Vec<Switch>, options: &Options) -> Vec<Switch> {
    let named = |switch: &Switch| {
        let named = |only: &String| switch.row.contains(only.as_str()) || switch.name.contains(only.as_str());
        options.only.as_ref().is_none_or(named)
    };
    switches.into_iter().filter(|switch| !options.sample && named(switch)).collect()
}

/// Returns what a mutant is one of: a group of the filter, a namespace, a limit, or a thing of its own.
fn kind(mutant: &str) -> &str {
    let is_limit = LimitKind::ALL.iter().any(|limit| limit.to_string() == mutant);
    match mutant {
        _ if mutant.starts_with("seccomp-") => "seccomp",
        _ if mutant.ends_with("-namespace") => "namespace",
        _ if is_limit => "limit",
        other => other,
    }
}

/// The packages that are built in any case: the program, and the one whose tests leave out every mutant there is.
const ALWAYS: [&str; 2] = ["fumehood", SANDBOX];
const SANDBOX: &str = "fumehood-sandbox";

/// Builds the program, and the tests that the rows name, with the mutants compiled in.
fn build(repo: &Repo, rows: &[Guarantee]) -> Result<Built> {
    say::step("build the tests and the program with the mutants compiled in");
    let metadata = repo.metadata(&["--no-deps"])?;
    let named = rows.iter().flat_map(|row| &row.tests).filter_map(|test| match test {
        NamedTest::Function { file, .. } => Some(repo.root.join(file)),
        NamedTest::Case(_) => None,
    });
    let files: Vec<PathBuf> = named.collect();
    let holds_one = |package: &&Package| {
        let directory = package.manifest_path.parent().unwrap_or(Path::new("/"));
        ALWAYS.contains(&package.name.as_str()) || files.iter().any(|file| file.starts_with(directory))
    };
    let packages: Vec<&Package> = metadata.members().filter(holds_one).collect();
    let with_mutants = packages.iter().filter(|package| package.features.contains_key("mutants"));
    let features: Vec<String> = with_mutants.map(|package| format!("{}/mutants", package.name)).collect();
    let names: Vec<String> = packages.iter().map(|package| package.name.clone()).collect();
    let tests = artifacts::test_binaries_of(repo, &names, &features)?;
    Ok(Built { root: repo.root.clone(), tests, fumehood: repo.target.join("debug/fumehood") })
}

/// Runs the tests of the builder: each layer that it can leave out is left out, and the prober must notice.
fn every_mutant_is_noticed(built: &Built) -> Result<Tally> {
    say::step("every layer that the builder can leave out");
    let is_it = |test: &&TestBinary| test.package == SANDBOX && test.target == "mutants";
    let binary = built.tests.iter().find(is_it).context("the sandbox has no test `mutants`")?;
    let mut command = run::command(&binary.executable);
    command.current_dir(&binary.package_directory).env("CARGO_MANIFEST_DIR", &binary.package_directory);
    let (status, output) = run::tee(command.env("TMPDIR", scratch::place()))?;
    Ok(Tally::of_cargo_test(&output, status.success()))
}

/// Demands of one row that its tests are green without the mutant, and that at least one of them is red with it.
fn one(built: &Built, row: &Guarantee) -> Result<()> {
    let mutant = row.mutant.as_deref().context("the row has no mutant")?;
    say::step(&format!("{}: without {mutant}", row.id));
    let mut red = Vec::new();
    for test in &row.tests {
        if !is_green(built, test, None)? {
            bail!("{test:?} is red though nothing was taken away");
        }
        red.push(!is_green(built, test, Some(mutant))?);
    }
    match red.iter().all(|red| *red) {
        true => Ok(()),
        false => bail!("not every named test turned red without {mutant}: {:?}", row.tests),
    }
}

fn is_green(built: &Built, test: &NamedTest, mutant: Option<&str>) -> Result<bool> {
    let mut command = match test {
        NamedTest::Case(case) => case_command(built, case),
        NamedTest::Function { file, name } => function_command(built, file, name)?,
    };
    match mutant {
        Some(mutant) => command.env(SELECTOR, mutant),
        None => command.env_remove(SELECTOR),
    };
    command.env("TMPDIR", scratch::place()).env("SBX_BASE", scratch::place());
    let done = command.stdin(Stdio::null()).output().context("cannot start a test")?;
    Ok(done.status.success())
}

fn case_command(built: &Built, case: &str) -> std::process::Command {
    let mut runner = run::command(built.root.join("tests/cases/run.sh"));
    runner.args(["-k", &format!("^{case}-"), "--"]).arg(&built.fumehood);
    runner.args(["run", "--profile", "strict", "--workspace", "{WS}", "--apply", "clean", "--"]);
    runner
}

fn function_command(built: &Built, file: &str, name: &str) -> Result<std::process::Command> {
    let binary = binary_of(&built.root.join(file), &built.tests)
        .with_context(|| format!("`{file}` belongs to no test binary"))?;
    let listed =
        run::output("list tests", run::command(&binary.executable).args(["--list", "--format", "terse"]))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let full =
        full_name(&listed, name).with_context(|| format!("`{}` has no test `{name}`", binary.target))?;
    let mut command = run::command(&binary.executable);
    command.args(["--exact", full]).current_dir(&binary.package_directory);
    command.env("CARGO_MANIFEST_DIR", &binary.package_directory);
    Ok(command)
}

/// Finds the binary that a source file is compiled into: its own target, else the nearest one above it.
fn binary_of<'t>(file: &Path, tests: &'t [TestBinary]) -> Option<&'t TestBinary> {
    let own = tests.iter().find(|test| test.source == file);
    let around = || {
        let holds =
            |test: &&TestBinary| test.source.parent().is_some_and(|directory| file.starts_with(directory));
        // In a folder with several targets (`tests/`), a file that is none of them belongs to nobody we know.
        let inner = tests.iter().filter(holds).max_by_key(|test| test.source.as_os_str().len())?;
        let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| inner.source.ends_with(name));
        is_root.then_some(inner)
    };
    own.or_else(around)
}

/// Finds `module::tests::name` among the lines `…: test`.
fn full_name<'l>(listed: &'l str, name: &str) -> Option<&'l str> {
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    names.into_iter().find(|full| full.rsplit("::").next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarantee(id: &str, mutant: Option<&str>) -> Guarantee {
        Guarantee { id: id.to_owned(), tests: Vec::new(), mutant: mutant.map(str::to_owned) }
    }

    #[test]
    fn a_sample_has_one_mutant_of_each_kind() {
        let rows = vec![
            guarantee("G-01", Some("seccomp-mount")),
            guarantee("G-02", Some("seccomp-keys")),
            guarantee("G-03", None),
            guarantee("G-04", Some("pid-namespace")),
            guarantee("G-05", Some("network-namespace")),
            guarantee("G-06", Some("disk")),
            guarantee("G-07", Some("session")),
        ];
        let ids = |options: &Options| {
            chosen(rows.clone(), options).into_iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&Options { only: None, sample: true }), ["G-01", "G-04", "G-06", "G-07"]);
        assert_eq!(ids(&Options { only: Some("keys".into()), sample: false }), ["G-02"]);
        assert_eq!(ids(&Options { only: None, sample: false }).len(), 6);
    }

    #[test]
    fn a_source_file_finds_its_binary() {
        let binary = |source: &str| TestBinary {
            package: "x".into(),
            target: source.into(),
            source: source.into(),
            executable: "/t".into(),
            package_directory: "/r".into(),
        };
        let tests =
            [binary("/r/x/src/lib.rs"), binary("/r/x/tests/walls.rs"), binary("/r/x/tests/deep/main.rs")];
        let found = |file: &str| binary_of(Path::new(file), &tests).map(|test| test.target.as_str());
        assert_eq!(found("/r/x/src/deep/inner.rs"), Some("/r/x/src/lib.rs"));
        assert_eq!(found("/r/x/tests/walls.rs"), Some("/r/x/tests/walls.rs"));
        assert_eq!(found("/r/x/tests/deep/part.rs"), Some("/r/x/tests/deep/main.rs"));
        assert_eq!(found("/r/y/src/lib.rs"), None);
    }

    #[test]
    fn the_full_name_of_a_test_is_found_by_its_last_part() {
        let listed = "a::tests::one_more: test\na::tests::one: test\nb: benchmark\n";
        assert_eq!(full_name(listed, "one"), Some("a::tests::one"));
        assert_eq!(full_name(listed, "two"), None);
    }
}
