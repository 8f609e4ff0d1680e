//! As whom the tests run in the guest, where in the tree of groups, and what they must find.

/// One of the ways in which people start the program.
#[derive(Debug)]
pub(super) struct Scenario {
    /// Its name on the serial line.
    pub(super) name: &'static str,
    user: &'static str,
    /// Whether the user gets a part of the tree, as a service manager gives it: the directory, its `cgroup.procs`,
    /// `cgroup.threads` and `cgroup.subtree_control`, with the controllers handed on.
    delegated: bool,
    /// Whether each start is alone in a group, so that the program has to leave it before it can hand controllers on.
    /// Otherwise somebody else is in the group, as in a session.
    alone: bool,
    /// What the tests must find: `hard` or `watched`.
    groups: &'static str,
}

/// All of them.
pub(super) const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "user", user: "user", delegated: false, alone: false, groups: "watched" },
    Scenario { name: "root-in-a-session", user: "root", delegated: false, alone: false, groups: "hard" },
    Scenario { name: "root-in-a-scope", user: "root", delegated: false, alone: true, groups: "hard" },
    Scenario {
        name: "user-in-a-delegated-tree",
        user: "user",
        delegated: true,
        alone: false,
        groups: "hard",
    },
    Scenario {
        name: "user-in-a-delegated-scope",
        user: "user",
        delegated: true,
        alone: true,
        groups: "hard",
    },
];

impl Scenario {
    /// Returns the line of the guest's script that runs it.
    pub(super) fn line(&self) -> String {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let Self { name, user, delegated, alone, groups } = self;
        format!("scenario {name} {user} {} {} {groups}\n", yes(*delegated), yes(*alone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words_and_differ() {
        let names: std::collections::BTreeSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }
}
