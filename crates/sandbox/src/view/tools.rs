//! Finds the tools of `data/toolchains.txt` and shows what that table says of each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::assembly::{Assembly, Manner, Shown};
use super::clean::Format;
use super::credentials::looks_secret;
use super::data::{TOOLCHAINS, rows};
use super::piece::Piece;
use super::reach::{Reach, reach};
use super::{clean_maven, host};

/// Settings files are small; a larger one is not what it seems.
const SETTINGS_MAX: u64 = 64 * 1024;

/// The rows of the table.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| rows::<5>(TOOLCHAINS).filter_map(Row::parse).collect());

/// One row of the table.
struct Row {
    tool: &'static str,
    places: Vec<Place>,
    part: &'static str,
    how: How,
}

/// A place where a tool may have its home.
#[derive(Clone, Copy)]
struct Place {
    /// The variable that the place begins with; the home of the user when missing.
    variable: Option<&'static str>,
    below: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    ReadOnly,
    Overlay,
    Private,
    Copy,
    Cleaned(Format),
    Scanned,
}

/// What is known about the tools after all of them were looked for.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Tools of which something is shown.
    pub(crate) tools: Vec<&'static str>,
    /// Variables that chose a tool's home, with the caller's value.
    pub(crate) variables: BTreeMap<&'static str, OsString>,
}

/// Shows every tool that is found.
pub(crate) fn show_tools(assembly: &mut Assembly<'_>) -> Found {
    let mut found = Found::default();
    for row in ROWS.iter() {
        for (home, variable) in row.homes(assembly.host) {
            let shown = show_row(assembly, row, &home);
            if shown && !found.tools.contains(&row.tool) {
                found.tools.push(row.tool);
            }
            if let Some(variable) = variable.filter(|_| shown || exists_inside(assembly, &home)) {
                let value = assembly.host.environment.get(std::ffi::OsStr::new(variable));
                found.variables.extend(value.map(|value| (variable, value.clone())));
            }
        }
    }
    if assembly.host.offline {
        tell_java_tools(assembly);
    }
    found
}

/// Returns the variables that choose a tool's home; the caller hands over those that it has.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| &row.places).filter_map(|place| place.variable)
}

impl Row {
    fn parse([tool, places, part, how, _]: [&'static str; 5]) -> Option<Self> {
        let how = match how.split_once(' ').unwrap_or((how, "")) {
            ("read-only", _) => How::ReadOnly,
            ("overlay", _) => How::Overlay,
            ("private", _) => How::Private,
            ("copy", _) => How::Copy,
            ("scanned", _) => How::Scanned,
            ("cleaned", format) => How::Cleaned(Format::named(format)?),
            _ => return None,
        };
        let places: Option<Vec<Place>> = places.split(", ").map(Place::parse).collect();
        Some(Self { tool, places: places?, part, how })
    }

    /// Returns where the tool has its home, with the variable that alone chose it. A list gives several homes.
    fn homes(&self, host: &host::Host) -> Vec<(PathBuf, Option<&'static str>)> {
        for place in &self.places {
            let Some(variable) = place.variable else {
                return vec![(host.home.join(place.below), None)];
            };
            let Some(value) = host.environment.get(std::ffi::OsStr::new(variable)).filter(|v| !v.is_empty())
            else {
                continue;
            };
            let chosen = place.below.is_empty().then_some(variable);
            let homes = std::env::split_paths(value).filter(|home| home.is_absolute());
            return homes.map(|home| (join(&home, place.below), chosen)).collect();
        }
        Vec::new()
    }
}

impl Place {
    fn parse(text: &'static str) -> Option<Self> {
        if let Some(below) = text.strip_prefix("~/") {
            return Some(Self { variable: None, below });
        }
        let (variable, below) = text.strip_prefix('$')?.split_once('/').unwrap_or((&text[1..], ""));
        Some(Self { variable: Some(variable), below })
    }
}

fn join(home: &Path, below: &str) -> PathBuf {
    if matches!(below, "" | ".") { home.to_owned() } else { home.join(below) }
}

/// Shows what one row says, below one home; tells whether anything is shown.
fn show_row(assembly: &mut Assembly<'_>, row: &Row, home: &Path) -> bool {
    let walk = assembly.files.walk(home);
    if walk.stopped {
        assembly.add_links(&walk);
        return true;
    }
    if walk.end.is_none() {
        return false;
    }
    let parts = match row.part.contains('*') {
        true => assembly.files.matching(&walk.real.join(row.part)),
        false => vec![join(home, row.part)],
    };
    if row.how == How::Scanned {
        parts.iter().for_each(|part| scan(assembly, part));
        return false;
    }
    let exists = |part: &PathBuf| assembly.files.walk(part).end.is_some();
    // The tool writes beside what is shown (locks, logs, new settings), so its home is a writable place of its own.
    // This comes first: what is shown below it must not count on a read-only place around it.
    if row.part != "." && parts.iter().any(exists) {
        make_writable(assembly, home);
    }
    parts.iter().filter(|part| show_part(assembly, row.how, part)).count() > 0
}

fn show_part(assembly: &mut Assembly<'_>, how: How, part: &Path) -> bool {
    match how {
        How::ReadOnly => was_shown(&assembly.show(part, Manner::ReadOnly)),
        How::Overlay => was_shown(&assembly.show(part, Manner::Overlay)),
        How::Private => make_private(assembly, part),
        How::Copy => copy(assembly, part, |file| {
            let is_harmless = std::str::from_utf8(file).is_ok_and(|text| !looks_secret(text));
            is_harmless.then(|| (file.to_owned(), None)).ok_or("it holds something that looks like a secret")
        }),
        How::Cleaned(format) => copy(assembly, part, |file| {
            let cleaned = format
                .clean(file)
                .ok_or("it cannot be read for certain, so secrets in it could be missed")?;
            let reason = cleaned.reason();
            Ok((cleaned.text.into_bytes(), reason))
        }),
        How::Scanned => false,
    }
}

fn was_shown(shown: &Shown) -> bool {
    matches!(shown, Shown::At(_) | Shown::InWorkspace)
}

/// What is written in place of a file, with the reason why it differs; or why nothing is.
type Written = Result<(Vec<u8>, Option<String>), &'static str>;

/// Writes a file inside that is made from one of the host.
pub(crate) fn copy(assembly: &mut Assembly<'_>, path: &Path, write: impl FnOnce(&[u8]) -> Written) -> bool {
    let walk = assembly.files.walk(path);
    if !walk.is_file() {
        return false;
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let directory = assembly.files.walk(directory);
    if reach(&walk, assembly.host.caller, assembly.host.inside) == Reach::Not {
        assembly.hide(path, "neither its owner nor everyone can read it");
        return false;
    }
    let Some(file) = assembly.files.read(&walk.real, SETTINGS_MAX) else {
        assembly.hide(path, "it is too large to be a settings file");
        return false;
    };
    match write(&file) {
        Ok((contents, reason)) => {
            assembly.add_links(&directory);
            // The copy stands where the file's name does: a link to the original would lead to what is not shown.
            let target = directory.real.join(name);
            if matches!(assembly.covering(&target), Some(Piece::ReadOnly { .. })) {
                // It is seen already, and no copy can be put there.
                if reason.is_some() {
                    assembly.mask(&target, "it holds something that looks like a secret");
                }
                return true;
            }
            reason.map(|reason| assembly.hide(path, reason));
            assembly.insert(Piece::Generated { target, contents, mode: 0o644 });
            true
        }
        Err(why) => {
            assembly.hide(path, why);
            false
        }
    }
}

/// Masks a file of a shown directory when it holds something that looks like a secret.
fn scan(assembly: &mut Assembly<'_>, path: &Path) {
    if !assembly.is_seen(path) {
        return;
    }
    let Some(file) = assembly.files.read(path, SETTINGS_MAX) else { return };
    if looks_secret(&String::from_utf8_lossy(&file)) {
        assembly.mask(path, "it holds something that looks like a secret");
    }
}

fn make_private(assembly: &mut Assembly<'_>, path: &Path) -> bool {
    let walk = assembly.files.walk(path);
    if walk.end.is_some() {
        assembly.add_links(&walk);
        make_writable(assembly, path);
    }
    walk.end.is_some()
}

/// Makes a tool's home an empty writable place, when it does not lie in one and holds nothing else of importance.
pub(crate) fn make_writable(assembly: &mut Assembly<'_>, home: &Path) {
    let walk = assembly.files.walk(home);
    let host = assembly.host;
    let holds_more =
        [&assembly.home, &host.workspace, &host.state_dir].iter().any(|it| it.starts_with(&walk.real));
    if walk.stopped || assembly.is_private(&walk.real) || holds_more || walk.real.parent().is_none() {
        return;
    }
    assembly.add_links(&walk);
    assembly.insert(Piece::Private { target: walk.real.clone(), mode: 0o755 });
}

fn exists_inside(assembly: &Assembly<'_>, home: &Path) -> bool {
    let walk = assembly.files.walk(home);
    walk.stopped || walk.end.is_some() && (assembly.is_private(&walk.real) || assembly.is_seen(&walk.real))
}

/// Tells Maven and Gradle that there is no network. They know no variable for it, only settings.
fn tell_java_tools(assembly: &mut Assembly<'_>) {
    let maven = assembly.files.walk(&assembly.home.join(".m2")).real.clone();
    if assembly.is_seen(&maven.join("repository")) {
        assembly.replace_text(&maven.join("settings.xml"), clean_maven::offline);
    }
    let gradle = tool_home(assembly, "GRADLE_USER_HOME", ".gradle");
    if assembly.is_seen(&gradle.join("caches")) {
        let line = "gradle.startParameter.offline = true\n".to_owned();
        assembly.replace_text(&gradle.join("init.d/offline.gradle"), |_| line);
    }
}

fn tool_home(assembly: &Assembly<'_>, variable: &str, below: &str) -> PathBuf {
    let chosen = assembly.host.environment.get(std::ffi::OsStr::new(variable)).map(PathBuf::from);
    let home = chosen.unwrap_or_else(|| assembly.home.join(below));
    assembly.files.walk(&home).real.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood() {
        for row in rows::<5>(TOOLCHAINS) {
            assert!(Row::parse(row).is_some(), "{row:?}");
            assert!(!row[2].starts_with('/') && !row[2].contains(".."), "{row:?}");
        }
        assert!(variables().any(|name| name == "CARGO_HOME"));
    }

    #[test]
    fn scanned_files_come_after_what_they_lie_in() {
        let all = &*ROWS;
        for (at, row) in all.iter().enumerate().filter(|(_, row)| row.how == How::Scanned) {
            let shown_before = |earlier: &Row| {
                earlier.tool == row.tool && (earlier.part == "." || row.part.starts_with(earlier.part))
            };
            assert!(all[..at].iter().any(shown_before), "{} {}", row.tool, row.part);
        }
    }
}
