//! Reads `docs/guarantees.md`, where each promise stands with what enforces it, the tests that show it, and the
//! mutant that takes it away; and finds the named tests in the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guarantee {
    /// The name by which it is spoken of.
    pub id: String,
    /// The tests that show it.
    pub tests: Vec<NamedTest>,
    /// The selector of the build that does not keep it; none where a test cannot be made to turn red that way.
    pub mutant: Option<String>,
}

/// A test that is named in the table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedTest {
    /// A function in a source file: `crates/gate/src/gate.rs::a_denial_names_its_rule`.
    Function {
        /// The file, from the top of the repository.
        file: String,
        /// The function.
        name: String,
    },
    /// A case of the sandbox: `case FS-01`.
    Case(String),
}

/// Reads the rows of the table.
///
/// # Errors
/// When a row has another number of columns, or names a test in a form that is not known.
pub fn parse(document: &str) -> Result<Vec<Guarantee>> {
    let rows = document.lines().filter(|line| line.starts_with("| G-"));
    let guarantees: Vec<Guarantee> = rows.map(row).collect::<Result<_>>()?;
    let ids: BTreeSet<&str> = guarantees.iter().map(|guarantee| guarantee.id.as_str()).collect();
    if ids.len() != guarantees.len() {
        bail!("a name stands in two rows");
    }
    Ok(guarantees)
}

/// Reads the rows of `docs/threats.md`, which has no column for mutants.
///
/// # Errors
/// When a row has another number of columns, or names a test in a form that is not known.
pub fn parse_threats(document: &str) -> Result<Vec<Guarantee>> {
    let rows = document.lines().filter(|line| line.starts_with("| T-"));
    rows.map(|line| row(&format!("{line} - |"))).collect()
}

fn row(line: &str) -> Result<Guarantee> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [id, promise, enforcer, tests, mutant] = cells.as_slice() else {
        bail!(
            "a row has five columns: id, promise, enforced by, tests, mutant; this one has {}: {line}",
            cells.len()
        );
    };
    if promise.is_empty() || enforcer.is_empty() {
        bail!("`{id}` does not say what is promised, or what enforces it");
    }
    let tests =
        quoted(tests).map(named_test).collect::<Result<Vec<_>>>().with_context(|| format!("in `{id}`"))?;
    Ok(Guarantee { id: (*id).to_owned(), tests, mutant: quoted(mutant).next().map(str::to_owned) })
}

/// Returns what stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

pub(crate) fn named_test(text: &str) -> Result<NamedTest> {
    if let Some(case) = text.strip_prefix("case ") {
        return Ok(NamedTest::Case(case.to_owned()));
    }
    match text.split_once(".rs::") {
        Some((file, name)) => Ok(NamedTest::Function { file: format!("{file}.rs"), name: name.to_owned() }),
        None => bail!("`{text}` names neither `FILE.rs::FUNCTION` nor `case NUMBER`"),
    }
}

/// Names what the table refers to and the tree does not have.
///
/// # Errors
/// When the folder of the cases cannot be read.
pub fn missing(root: &Path, guarantees: &[Guarantee]) -> Result<Vec<String>> {
    let cases = crate::cases::table::cases_in(&root.join("tests/cases"))?;
    let mut missing = Vec::new();
    for guarantee in guarantees {
        if guarantee.tests.is_empty() {
            missing.push(format!("{} names no test", guarantee.id));
        }
        for test in &guarantee.tests {
            let there = match test {
                NamedTest::Case(case) => cases.contains(case),
                NamedTest::Function { file, name } => has_test(&root.join(file), name),
            };
            if !there {
                missing.push(format!("{}: there is no test {test:?}", guarantee.id));
            }
        }
    }
    Ok(missing)
}

/// Tells whether a source file has a test function of that name.
fn has_test(file: &Path, name: &str) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    let declared = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declarations = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.strip_prefix("async ").unwrap_or(line).starts_with(&declared));
    let mut above = declarations.map(|(at, _)| &lines[..at]);
    // Attributes and comments stand between the marker and the function.
    above.any(|above| {
        let mut attributes =
            above.iter().rev().take_while(|line| line.starts_with('#') || line.starts_with("//"));
        attributes.any(|line| matches!(*line, "#[test]" | "#[tokio::test]"))
    }) || text.contains(&format!("{declared})")) && text.contains("proptest!")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let line = "| G-01 | nothing runs undecided | `gate` | `crates/gate/tests/a.rs::b`, `case FS-01` | `seccomp-mount` |";
        let guarantee = row(line).expect("it is a row");
        assert_eq!(guarantee.id, "G-01");
        assert_eq!(guarantee.mutant.as_deref(), Some("seccomp-mount"));
        let function = NamedTest::Function { file: "crates/gate/tests/a.rs".into(), name: "b".into() };
        assert_eq!(guarantee.tests, [function, NamedTest::Case("FS-01".into())]);
    }

    #[test]
    fn rows_that_promise_nothing_or_are_doubled_are_refused() {
        assert!(row("| G-01 | | `gate` | `case FS-01` | - |").is_err());
        assert!(row("| G-01 | one | two | three |").is_err());
        assert!(row("| G-01 | one | two | `three` | - |").is_err());
        let twice = "| G-01 | one | two | `case FS-01` | - |\n".repeat(2);
        assert!(parse(&twice).is_err());
    }

    #[test]
    fn a_function_without_the_marker_is_no_test() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let file = scratch.path().join("a.rs");
        fs::write(&file, "#[test]\n// why\nfn shown() {}\n\nfn helper() {}\n").expect("it is ours");
        assert!(has_test(&file, "shown"));
        assert!(!has_test(&file, "helper"));
        assert!(!has_test(&file, "absent"));
    }
}
