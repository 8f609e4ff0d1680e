//! Parting changes into those that may leave and those that stay, with what depends on them.

use std::collections::BTreeMap;
use std::ops::Bound;

use model::{Change, ChangeKind, FileKind, WorkspacePath};

use super::reason::{Held, Reason};

/// Parts changes, sorted by path. A directory that is to go stays when something in it stays, and nothing happens
/// below a path that should become something else and may not.
pub(super) fn sort(changes: Vec<(Change, Vec<Reason>)>) -> (Vec<Change>, Vec<Held>) {
    let mut all: BTreeMap<WorkspacePath, (Change, Vec<Reason>)> =
        changes.into_iter().map(|(change, reasons)| (change.path.clone(), (change, reasons))).collect();
    hold_what_contains(&mut all);
    hold_what_is_within(&mut all);
    let (held, free): (Vec<_>, Vec<_>) = all.into_values().partition(|(_, reasons)| !reasons.is_empty());
    let held = held.into_iter().map(|(change, reasons)| Held { change, reasons });
    (free.into_iter().map(|(change, _)| change).collect(), held.collect())
}

type All = BTreeMap<WorkspacePath, (Change, Vec<Reason>)>;

/// Holds each directory that is to go, or to become something else, and has something in it that stays.
fn hold_what_contains(all: &mut All) {
    let held: Vec<WorkspacePath> =
        all.iter().filter(|(_, (_, reasons))| !reasons.is_empty()).map(|(path, _)| path.clone()).collect();
    for path in held {
        for above in path.as_path().ancestors().skip(1) {
            let Ok(above) = WorkspacePath::parse(above) else { break };
            let Some((change, reasons)) = all.get_mut(&above) else { continue };
            let goes = change.kind == ChangeKind::Deleted || change.file != FileKind::Directory;
            if goes && !reasons.iter().any(|reason| matches!(reason, Reason::Contains { .. })) {
                reasons.push(Reason::Contains { path: path.clone() });
            }
        }
    }
}

/// Holds what is below a held path that should have been made, or have become something else.
fn hold_what_is_within(all: &mut All) {
    let blocked = |(_, (change, reasons)): &(&WorkspacePath, &(Change, Vec<Reason>))| {
        !reasons.is_empty() && change.kind != ChangeKind::Deleted
    };
    let blocked: Vec<WorkspacePath> = all.iter().filter(blocked).map(|(path, _)| path.clone()).collect();
    for path in blocked {
        let above = path.as_bytes();
        let below = all.range_mut::<WorkspacePath, _>((Bound::Excluded(&path), Bound::Unbounded));
        for (name, (_, reasons)) in below.take_while(|(name, _)| name.as_bytes().starts_with(above)) {
            if name.as_bytes().get(above.len()) == Some(&b'/') && reasons.is_empty() {
                reasons.push(Reason::Within { path: path.clone() });
            }
        }
    }
}
