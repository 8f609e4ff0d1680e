//! Switches: small changes of the product's source, each of which takes one promise of `docs/guarantees.md` away. They are
//! made in a copy, so that no switch is in the product.
//!
//! Guarantees: a switch fits the source as it is, exactly once; the tests that it names are named by the row as well; and
//! every row has a mutant, a switch, or a reason in `switches/without.md`.
//! Leaves to others: the tests themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::guarantees::{Guarantee, NamedTest, named_test};
use crate::repo::{Package, Repo};
use crate::tally::Tally;
use crate::{run, say, scratch};

/// The reason of a row whose switch nobody has written.
const DEBT: &str = "no switch yet";
/// How many of them there may be. This number gets smaller.
const DEBT_MAX: usize = 50;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// The name of its file.
    pub name: String,
    /// The promise that it takes away.
    pub row: String,
    /// The source file, from the top of the repository.
    pub file: String,
    /// The tests that must turn red.
    pub reddens: Vec<NamedTest>,
    /// What stands in the file.
    pub instead_of: String,
    /// What stands there afterwards.
    pub there_stands: String,
}

/// The folder of the switches.
const FOLDER: &str = "xtask/switches";
/// The rows that have neither a mutant nor a switch, each with the reason.
const WITHOUT: &str = "xtask/switches/without.md";

/// Reads every switch, in the order of their names.
///
/// # Errors
/// When one cannot be read.
pub fn all(root: &Path) -> Result<Vec<Switch>> {
    let mut switches = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER)).context("cannot list the switches")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{name}`"))?;
            switches.push(parse(&name, &text).with_context(|| format!("in the switch `{name}`"))?);
        }
    }
    switches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(switches)
}

fn parse(name: &str, text: &str) -> Result<Switch> {
    let part = |from: &str, to: &str| {
        let (_, rest) = text.split_once(from).with_context(|| format!("it has no `{}`", from.trim()))?;
        let (part, _) = rest.split_once(to).with_context(|| format!("it has no `{}`", to.trim()))?;
        Ok::<_, anyhow::Error>(part.to_owned())
    };
    let head = text.split("\n--- ").next().unwrap_or_default();
    let values = |key: &str| {
        let key = format!("{key}: ");
        head.lines().filter_map(move |line| line.strip_prefix(key.as_str()).map(str::to_owned))
    };
    let one = |key: &str| values(key).next().with_context(|| format!("it names no `{key}`"));
    let reddens: Vec<NamedTest> = values("reddens").map(|test| named_test(&test)).collect::<Result<_>>()?;
    if reddens.is_empty() {
        bail!("it names no test that turns red");
    }
    Ok(Switch {
        name: name.to_owned(),
        row: one("row")?,
        file: one("file")?,
        reddens,
        instead_of: part("\n--- instead of\n", "\n--- there stands\n")?,
        there_stands: part("\n--- there stands\n", "\n--- end")?,
    })
}

/// Reads why rows have no switch: `| G-… | reason |`.
///
/// # Errors
/// When the list cannot be read, or names a row without a reason.
pub fn reasons(root: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(root.join(WITHOUT)).with_context(|| format!("cannot read {WITHOUT}"))?;
    let rows = text.lines().filter(|line| line.starts_with("| G-"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        match cells.as_slice() {
            [id, reason] if reason.len() > 10 => Ok(((*id).to_owned(), (*reason).to_owned())),
            _ => bail!("a row of {WITHOUT} has an id and a reason: {line}"),
        }
    })
    .collect()
}

/// Names what is wrong with the switches and the reasons, and every row that has neither.
///
/// # Errors
/// When they cannot be read.
pub fn wrong(root: &Path, guarantees: &[Guarantee]) -> Result<Vec<String>> {
    let (switches, reasons) = (all(root)?, reasons(root)?);
    let mut wrong: Vec<String> =
        switches.iter().flat_map(|switch| misfits(root, guarantees, switch)).collect();
    let switched: BTreeSet<&str> = switches.iter().map(|switch| switch.row.as_str()).collect();
    for row in guarantees {
        let can_be_taken_away = row.mutant.is_some() || switched.contains(row.id.as_str());
        match (can_be_taken_away, reasons.contains_key(&row.id)) {
            (false, false) => wrong.push(format!(
                "{} can be switched off by nothing: add a switch to {FOLDER}, or a reason to {WITHOUT}",
                row.id
            )),
            (true, true) => wrong.push(format!("{} can be switched off: remove its reason", row.id)),
            _ => {}
        }
    }
    let debt = reasons.values().filter(|reason| *reason == DEBT).count();
    if debt > DEBT_MAX {
        wrong.push(format!(
            "{debt} rows have no switch yet, and it must not be more than {DEBT_MAX}: write one"
        ));
    }
    let known = |id: &&String| !guarantees.iter().any(|row| row.id == **id);
    wrong.extend(reasons.keys().filter(known).map(|id| format!("{id} has a reason and no row")));
    Ok(wrong)
}

fn misfits(root: &Path, guarantees: &[Guarantee], switch: &Switch) -> Vec<String> {
    let mut wrong = Vec::new();
    let source = fs::read_to_string(root.join(&switch.file)).unwrap_or_default();
    let found = source.matches(&switch.instead_of).count();
    if found != 1 {
        wrong.push(format!("{}: what it changes stands {found} times in {}", switch.name, switch.file));
    }
    match guarantees.iter().find(|row| row.id == switch.row) {
        None => wrong.push(format!("{}: there is no row {}", switch.name, switch.row)),
        Some(row) => {
            let strange = switch.reddens.iter().filter(|test| !row.tests.contains(test));
            wrong.extend(strange.map(|test| format!("{}: {} does not name {test:?}", switch.name, row.id)));
        }
    }
    wrong
}

/// A copy of the repository in which switches are thrown, one at a time.
struct Copy {
    root: PathBuf,
    target: PathBuf,
    packages: Vec<Package>,
}

/// Throws the switches that were asked for; each counts as one test.
///
/// # Errors
/// When the repository cannot be copied, or does not compile as it is.
pub fn run(repo: &Repo, chosen: &[Switch]) -> Result<Tally> {
    let mut tally = Tally::default();
    if chosen.is_empty() {
        return Ok(tally);
    }
    let place = scratch::directory("fumehood-switches.")?;
    let copy = Copy::make(repo, place.path())?;
    for switch in chosen {
        say::step(&format!("{}: {}", switch.row, switch.name));
        match copy.throw(switch) {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                say::result(&format!("FAILED {} ({}): {why:#}", switch.name, switch.row));
                tally.failed += 1;
            }
        }
    }
    place.close().context("cannot remove the copy")?;
    Ok(tally)
}

impl Copy {
    fn make(repo: &Repo, place: &Path) -> Result<Self> {
        say::step("copy the repository");
        let mut git = run::command("git");
        git.current_dir(&repo.root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = run::output("list the files", &mut git)?;
        for name in listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = std::str::from_utf8(name).context("a file has a name that is no text")?;
            let (from, to) = (repo.root.join(name), place.join(name));
            fs::create_dir_all(to.parent().context("a file has no directory")?)?;
            // A file that is deleted and still listed is no part of the copy.
            if from.is_file() {
                fs::copy(&from, &to).with_context(|| format!("cannot copy `{name}`"))?;
            }
        }
        let packages = repo.metadata(&["--no-deps"])?.members().cloned().collect();
        // What others wrote is built once for both.
        Ok(Self { root: place.to_owned(), target: repo.target.clone(), packages })
    }

    /// Demands that the named tests are green as the source stands, and each of them red with the switch thrown.
    fn throw(&self, switch: &Switch) -> Result<()> {
        if let Some(test) = self.first(switch, false)? {
            bail!("{test:?} is red though nothing was changed");
        }
        let file = self.root.join(&switch.file);
        let source = fs::read_to_string(&file)?;
        if source.matches(&switch.instead_of).count() != 1 {
            bail!("what it changes does not stand in `{}` once", switch.file);
        }
        fs::write(&file, source.replacen(&switch.instead_of, &switch.there_stands, 1))?;
        let green = self.compiles(switch).and_then(|()| self.first(switch, true));
        fs::write(&file, source)?;
        match green? {
            None => Ok(()),
            Some(test) => bail!("{test:?} stays green"),
        }
    }

    /// Returns the first named test that is green, or that is red.
    fn first<'s>(&self, switch: &'s Switch, green: bool) -> Result<Option<&'s NamedTest>> {
        for test in &switch.reddens {
            if self.test(test, &[])? == green {
                return Ok(Some(test));
            }
        }
        Ok(None)
    }

    /// A switch that does not compile would turn every test red.
    fn compiles(&self, switch: &Switch) -> Result<()> {
        for test in &switch.reddens {
            if !self.test(test, &["--no-run"])? {
                bail!("it does not compile");
            }
        }
        Ok(())
    }

    fn test(&self, test: &NamedTest, more: &[&str]) -> Result<bool> {
        let NamedTest::Function { file, name } = test else { bail!("a switch names functions alone") };
        let path = self.root.join(file);
        let mut cargo = run::cargo();
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target).env("TMPDIR", scratch::place());
        cargo.args(["test", "--locked", "--quiet"]).args(more);
        match target_of(&path) {
            // Together with the others, so that what they share is built with the same features.
            Some(target) => cargo.args(["--workspace", "--test", &target]),
            None => cargo.args(["--package", &self.package_of(file)?.name, "--lib"]),
        };
        if more.is_empty() {
            cargo.args(["--", name]);
        }
        let done = cargo.stdin(Stdio::null()).output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if more.is_empty() && done.status.success() && !said.contains(" passed") {
            bail!("no test `{name}` ran");
        }
        Ok(done.status.success())
    }

    fn package_of(&self, file: &str) -> Result<&Package> {
        let holds = |package: &&Package| {
            let directory = package.manifest_path.parent();
            let name = directory.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            file.starts_with(&format!("crates/{name}/")) || file.starts_with(&format!("{name}/"))
        };
        self.packages.iter().find(holds).with_context(|| format!("`{file}` belongs to no package"))
    }
}

/// Returns the name of the test target that a file belongs to; nothing for one of the library.
fn target_of(file: &Path) -> Option<String> {
    let words: Vec<String> =
        file.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    let at = words
        .iter()
        .rposition(|word| word == "tests")
        .filter(|at| !words[..*at].iter().any(|w| w == "src"))?;
    words.get(at + 1).map(|name| name.trim_end_matches(".rs").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "row: G-01\nfile: a.rs\nreddens: crates/x/tests/t.rs::red\n--- instead of\nif a {\n--- there stands\nif b {\n--- end\n";

    #[test]
    fn a_switch_is_read_and_one_without_a_test_is_refused() {
        let switch = parse("x", TEXT).expect("is one");
        assert_eq!((switch.instead_of.as_str(), switch.there_stands.as_str()), ("if a {", "if b {"));
        assert_eq!(switch.reddens.len(), 1);
        assert!(parse("x", &TEXT.replace("reddens", "greens")).is_err());
        assert!(parse("x", &TEXT.replace("--- end", "")).is_err());
    }

    #[test]
    fn a_switch_that_does_not_fit_is_named() {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("a.rs"), "if a {\n").expect("a file");
        let test = NamedTest::Function { file: "crates/x/tests/t.rs".into(), name: "red".into() };
        let row = |tests| Guarantee { id: "G-01".to_owned(), tests, mutant: None };
        let switch = parse("x", TEXT).expect("is one");
        assert_eq!(misfits(place.path(), &[row(vec![test.clone()])], &switch), [""; 0]);
        assert_eq!(misfits(place.path(), &[row(vec![])], &switch).len(), 1);
        assert_eq!(misfits(place.path(), &[], &switch).len(), 1);
        fs::write(place.path().join("a.rs"), "if a {\nif a {\n").expect("a file");
        assert_eq!(misfits(place.path(), &[row(vec![test])], &switch).len(), 1);
    }

    #[test]
    fn the_target_of_a_test_is_found_by_its_file() {
        let found = |file: &str| target_of(Path::new(file));
        assert_eq!(found("/r/crates/x/tests/t.rs").as_deref(), Some("t"));
        assert_eq!(found("/r/crates/x/tests/deep/main.rs").as_deref(), Some("deep"));
        assert_eq!(found("/r/crates/x/src/tests/a.rs"), None);
        assert_eq!(found("/r/crates/x/src/lib.rs"), None);
    }
}
