//! The tables of `data/`: what is shown and why, as data with a reason on each line.

use std::sync::LazyLock;

/// A place with the reason why it is treated as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The place.
    pub path: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// Entries of `/proc` that are covered so that they cannot be read. A host may lack some of them.
pub static PROC_MASKED: LazyLock<Vec<Entry>> = LazyLock::new(|| proc_entries("masked"));

/// Entries of `/proc` that are made read-only. A host may lack some of them.
pub static PROC_READ_ONLY: LazyLock<Vec<Entry>> = LazyLock::new(|| proc_entries("read-only"));

pub(crate) const SYSTEM: &str = include_str!("../../data/system.txt");
pub(crate) const PRIVATE: &str = include_str!("../../data/private.txt");
pub(crate) const ETC: &str = include_str!("../../data/etc.txt");
pub(crate) const PROC: &str = include_str!("../../data/proc.txt");
pub(crate) const CREDENTIALS: &str = include_str!("../../data/credentials.txt");
pub(crate) const TOOLCHAINS: &str = include_str!("../../data/toolchains.txt");
pub(crate) const PREFIXES: &str = include_str!("../../data/prefixes.txt");
pub(crate) const SETTINGS: &str = include_str!("../../data/settings.txt");
pub(crate) const VARIABLES: &str = include_str!("../../data/variables.txt");
pub(crate) const RUNTIMES: &str = include_str!("../../data/runtimes.txt");
pub(crate) const INTERPRETERS: &str = include_str!("../../data/interpreters.txt");

/// Returns the rows of a table: `#` starts a comment line, ` | ` parts the columns. The tests hold that no line has
/// another number of columns.
pub(crate) fn rows<const COLUMNS: usize>(
    table: &'static str,
) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    lines(table).filter_map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        columns.try_into().ok()
    })
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn proc_entries(wanted: &str) -> Vec<Entry> {
    let of_kind = rows::<3>(PROC).filter(|[_, how, _]| *how == wanted);
    of_kind.map(|[path, _, why]| Entry { path, why }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_table<const COLUMNS: usize>(name: &str, table: &'static str) {
        let mut seen = std::collections::BTreeSet::new();
        assert!(lines(table).count() > 0, "{name} is empty");
        for line in lines(table) {
            let columns: Vec<&str> = line.split(" | ").collect();
            assert_eq!(columns.len(), COLUMNS, "{name}: {line}");
            assert!(
                columns.iter().all(|column| !column.trim().is_empty()),
                "{name}: a column is empty: {line}"
            );
            assert!(columns[COLUMNS - 1].len() >= 6, "{name}: no reason: {line}");
            assert!(seen.insert(columns[..COLUMNS - 1].join("|")), "{name}: twice: {line}");
        }
    }

    #[test]
    fn every_line_of_every_table_has_its_columns_and_a_reason() {
        assert_table::<2>("system.txt", SYSTEM);
        assert_table::<3>("private.txt", PRIVATE);
        assert_table::<3>("etc.txt", ETC);
        assert_table::<3>("proc.txt", PROC);
        assert_table::<2>("credentials.txt", CREDENTIALS);
        assert_table::<5>("toolchains.txt", TOOLCHAINS);
        assert_table::<2>("prefixes.txt", PREFIXES);
        assert_table::<3>("settings.txt", SETTINGS);
        assert_table::<3>("variables.txt", VARIABLES);
        assert_table::<4>("runtimes.txt", RUNTIMES);
        assert_table::<2>("interpreters.txt", INTERPRETERS);
    }

    #[test]
    fn each_entry_of_proc_is_treated_in_one_of_two_ways() {
        assert_eq!(PROC_MASKED.len() + PROC_READ_ONLY.len(), rows::<3>(PROC).count());
        assert!(PROC_MASKED.iter().any(|entry| entry.path == "/proc/kcore"));
        assert!(PROC_READ_ONLY.iter().any(|entry| entry.path == "/proc/sys"));
        assert!(PROC_MASKED.iter().chain(&*PROC_READ_ONLY).all(|entry| entry.path.starts_with("/proc/")));
    }

    #[test]
    fn no_table_shows_a_place_where_private_keys_are_kept() {
        for [path, ..] in rows::<3>(ETC) {
            assert!(!path.contains("private") && !path.contains("shadow") && path != "/etc/ssl", "{path}");
        }
    }
}
