//! Edits of the host in a directory while an action ran on it: what the action read may be from before or after.
//!
//! Guarantees: an edit is told of for every file that the action changed, too, for the directories that such files are in
//! (where a name came, went or was replaced), and for the current commit. Leaves to others: edits in places that the action
//! did not change, which nobody watches; and not to take such a run for evidence.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use inspect::tree::{Stack, Time};
use inspect::{Report, Tree};
use model::{OsText, WorkspacePath};
use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::apply::BaseStats;
use crate::error::EngineError;

/// Files of git that say where the current commit is. Others change when somebody only looks.
const COMMIT: [&str; 2] = [".git/HEAD", ".git/logs/HEAD"];

/// Lists what the host edited in a base since `started`; `.` is its top.
pub(crate) fn since(
    started: Time,
    report: &Report,
    seen: &BaseStats,
    base: &Tree,
) -> Result<Vec<OsText>, EngineError> {
    let mut edited: BTreeSet<OsText> =
        seen.edited().filter(|path| !is_git(path)).cloned().map(OsText::from).collect();
    if !report.changes.is_empty() && changed_of_top(base)? > started {
        edited.insert(OsText::literal("."));
    }
    let mut finder = Stack::new(Vec::new(), vec![base.clone()]).before();
    let directories = directories_around(report);
    let below = directories.into_iter().filter_map(|path| WorkspacePath::parse(OsStr::from_bytes(path)).ok());
    let commit = COMMIT.iter().filter_map(|path| WorkspacePath::parse(path).ok());
    for path in below.filter(|path| !is_git(path)).chain(commit) {
        // A directory that may not be entered tells nothing.
        let Ok(Some(entry)) = finder.find(&path) else { continue };
        if entry.node.changed > started {
            edited.insert(path.into());
        }
    }
    Ok(edited.into_iter().collect())
}

/// Returns the directories that changes are in, but for the top, in their order.
fn directories_around(report: &Report) -> BTreeSet<&[u8]> {
    let mut directories = BTreeSet::new();
    for change in &report.changes {
        let mut path = change.path.as_bytes();
        // What is around a directory that was met was met with it.
        while let Some(end) = path.iter().rposition(|byte| *byte == b'/')
            && directories.insert(&path[..end])
        {
            path = &path[..end];
        }
    }
    directories
}

fn is_git(path: &WorkspacePath) -> bool {
    path.as_path().starts_with(".git")
}

fn changed_of_top(base: &Tree) -> Result<Time, EngineError> {
    let found = statx(base, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)
        .map_err(|errno| EngineError::file("look at", "the workspace")(errno.into()))?;
    Ok(Time { seconds: found.stx_ctime.tv_sec, nanos: found.stx_ctime.tv_nsec })
}

#[cfg(test)]
mod tests {
    use inspect::layer::{self, Bounds};

    use super::*;

    #[test]
    fn each_directory_around_a_change_is_looked_at_once() {
        let place = tempfile::tempdir().expect("a directory");
        let (upper, base) = (place.path().join("upper"), place.path().join("base"));
        std::fs::create_dir_all(upper.join("a/b/c")).expect("makes directories");
        std::fs::create_dir_all(&base).expect("makes a directory");
        for file in ["a/b/c/x", "a/b/y", "z"] {
            std::fs::write(upper.join(file), "x").expect("writes");
        }
        let tree = |path| Tree::open(path).expect("opens");
        let stack = Stack::new(vec![tree(&upper)], vec![tree(&base)]);
        let report = layer::read(&stack, Bounds::default()).expect("is read");
        let found: Vec<&[u8]> = directories_around(&report).into_iter().collect();
        assert_eq!(found, [&b"a"[..], b"a/b", b"a/b/c"]);
    }
}
