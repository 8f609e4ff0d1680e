//! Edits of the host in a directory while an action ran on it: what the action read may be from before or after.
//!
//! Guarantees: an edit is told of for every file that the action changed, too, for the directories that such files are in
//! (where a name came, went or was replaced), and for the current commit. Leaves to others: edits in places that the action
//! did not change, which nobody watches; and not to take such a run for evidence.

use std::collections::BTreeSet;

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
    let mut directories = BTreeSet::new();
    for change in &report.changes {
        directories.extend(change.path.as_path().ancestors().skip(1).map(std::path::Path::to_owned));
    }
    let is_top = |path: &std::path::Path| path.as_os_str().is_empty();
    if directories.iter().any(|path| is_top(path)) && changed_of_top(base)? > started {
        edited.insert(OsText::literal("."));
    }
    let mut finder = Stack::new(Vec::new(), vec![base.clone()]).before();
    let below = directories.iter().filter_map(|path| WorkspacePath::parse(path).ok());
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

fn is_git(path: &WorkspacePath) -> bool {
    path.as_path().starts_with(".git")
}

fn changed_of_top(base: &Tree) -> Result<Time, EngineError> {
    let found = statx(base, c"", AtFlags::EMPTY_PATH, StatxFlags::CTIME)
        .map_err(|errno| EngineError::file("look at", "the workspace")(errno.into()))?;
    Ok(Time { seconds: found.stx_ctime.tv_sec, nanos: found.stx_ctime.tv_nsec })
}
