//! Who may reach a file: its owner, its owner's primary group, or everyone. Never a supplementary group.
//!
//! An ordinary user cannot give up supplementary groups, so they stay effective inside. What only such a group opens
//! is therefore not shown at all.

use super::files::{Node, Walk};
use super::host::Identity;

const READ: u32 = 0o4;
const SEARCH: u32 = 0o1;

/// How a file can be reached inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As it stands.
    Plainly,
    /// Only when the caller's ids are mapped to the command's in the mount.
    Mapped,
    /// Not at all, or only through a supplementary group.
    Not,
}

/// Tells how the end of a walk can be reached by the command, on behalf of the caller.
pub(crate) fn reach(walk: &Walk, caller: Identity, inside: Identity) -> Reach {
    let Some(end) = &walk.end else { return Reach::Not };
    // The caller finds the way and hands the command what is at its end, so only the caller has to search.
    if !walk.searchable {
        return Reach::Not;
    }
    let needed = if walk.is_directory() { READ | SEARCH } else { READ };
    if allows(end, inside, needed) {
        Reach::Plainly
    } else if caller != inside && end.uid == caller.uid && allows(end, caller, needed) {
        Reach::Mapped
    } else {
        Reach::Not
    }
}

/// Tells whether a user may pass through a directory.
pub(crate) fn may_search(directory: &Node, who: Identity) -> bool {
    who.uid == 0 || allows(directory, who, SEARCH)
}

fn allows(node: &Node, who: Identity, needed: u32) -> bool {
    let shift = match () {
        () if node.uid == who.uid => 6,
        () if node.gid == who.gid => 3,
        () => 0,
    };
    (node.mode >> shift) & needed == needed
}

#[cfg(test)]
mod tests {
    use super::super::files::What;
    use super::*;

    const ADA: Identity = Identity { uid: 1000, gid: 1000 };
    const ROOT: Identity = Identity { uid: 0, gid: 0 };
    const DOCKER: u32 = 998;

    fn node(mode: u32, uid: u32, gid: u32) -> Node {
        Node { what: What::Directory, mode, uid, gid }
    }

    fn at(searchable: bool, end: Node) -> Walk {
        Walk { real: "/x".into(), links: Vec::new(), searchable, end: Some(end.into()), stopped: false }
    }

    #[test]
    fn what_only_a_supplementary_group_opens_is_out_of_reach() {
        assert!(!may_search(&node(0o750, 0, DOCKER), ADA));
        assert!(may_search(&node(0o711, 0, DOCKER), ADA));
        assert_eq!(reach(&at(false, node(0o755, 0, 0)), ADA, ADA), Reach::Not);
        assert_eq!(reach(&at(true, node(0o750, 0, DOCKER)), ADA, ADA), Reach::Not);
        assert_eq!(reach(&at(true, node(0o755, 0, DOCKER)), ADA, ADA), Reach::Plainly);
        assert_eq!(reach(&at(true, node(0o750, 0, 1000)), ADA, ADA), Reach::Plainly);
        assert_eq!(reach(&at(true, node(0o700, 1000, 1000)), ADA, ADA), Reach::Plainly);
    }

    #[test]
    fn root_lends_its_own_files_and_nobody_elses() {
        assert!(may_search(&node(0o700, 1001, 1001), ROOT));
        assert_eq!(reach(&at(true, node(0o755, 0, 0)), ROOT, ADA), Reach::Plainly);
        assert_eq!(reach(&at(true, node(0o700, 0, 0)), ROOT, ADA), Reach::Mapped);
        assert_eq!(reach(&at(true, node(0o700, 1001, 1001)), ROOT, ADA), Reach::Not);
    }
}
