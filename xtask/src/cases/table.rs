//! The table that the case runner writes: case, kind, verdict, detail, separated by tabs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What the runner said about one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The control held, or ordinary work went well.
    Held,
    /// The control was passed, or ordinary work broke.
    Broke,
    /// Not applicable here.
    NotApplicable,
    /// The case did not do its work.
    Error,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number of the case, as in `FS-01`.
    pub case: String,
    /// What was said.
    pub verdict: Verdict,
    /// Why.
    pub detail: String,
}

/// Reads the runner's table.
///
/// # Errors
/// When the file is not there, or a line is not a row.
pub fn read(path: &Path) -> Result<Vec<Row>> {
    let bytes =
        fs::read(path).with_context(|| format!("the runner left no table at `{}`", path.display()))?;
    String::from_utf8_lossy(&bytes).lines().map(row).collect()
}

fn row(line: &str) -> Result<Row> {
    let fields: Vec<&str> = line.splitn(4, '\t').collect();
    let [name, _kind, verdict, detail] = fields.as_slice() else { bail!("not a row of the table: `{line}`") };
    let verdict = match *verdict {
        "HELD" => Verdict::Held,
        "BROKE" => Verdict::Broke,
        "NA" => Verdict::NotApplicable,
        "ERROR" => Verdict::Error,
        other => bail!("the runner says `{other}` of `{name}`, which means nothing"),
    };
    Ok(Row { case: number(name), verdict, detail: (*detail).to_owned() })
}

/// Returns `FS-01` of `FS-01-read-outside`.
pub fn number(name: &str) -> String {
    name.splitn(3, '-').take(2).collect::<Vec<_>>().join("-")
}

/// Returns the numbers of the cases in a folder, sorted.
///
/// # Errors
/// When the folder cannot be read.
pub fn cases_in(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("there are no cases at `{}`", folder.display()))?;
    let mut cases = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".sh").filter(|stem| is_case(stem)) {
            cases.push(number(stem));
        }
    }
    cases.sort();
    Ok(cases)
}

fn is_case(stem: &str) -> bool {
    stem.starts_with(|c: char| c.is_ascii_uppercase()) && stem.contains('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read() {
        let read = row("FS-01-read-outside\tsecurity\tHELD\tnothing\tto see").expect("it is a row");
        assert_eq!(
            read,
            Row { case: "FS-01".into(), verdict: Verdict::Held, detail: "nothing\tto see".into() }
        );
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for line in ["", "FS-01\tHELD", "FS-01-x\tsecurity\tFINE\tso they say"] {
            assert!(row(line).is_err(), "{line}");
        }
    }
}
