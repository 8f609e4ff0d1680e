//! Holds: what a person stopped, so that nothing new starts in it until a person lifts that again.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::action::Principal;
use crate::id::HoldId;
use crate::os_text::OsText;
use crate::text::escape;
use crate::units::Timestamp;

/// One order of a person that nothing starts, until it is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its name.
    pub id: HoldId,
    /// What it covers.
    pub scope: HoldScope,
    /// Why, in the words of who gave it.
    pub reason: String,
    /// Who gave it.
    pub by: Principal,
    /// When.
    pub since: Timestamp,
}

/// What a hold covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldScope {
    /// Everything of this state directory.
    All,
    /// What this user asks for, and what is asked for in the tasks of this user.
    User(String),
    /// Tasks in this directory, in a part of it or in what it is a part of, and in linked worktrees of its repository.
    Directory(OsText),
}

impl HoldScope {
    /// Tells whether it covers an action: by who owns the task, who asks, and the directories that the work is in.
    pub fn covers<'p>(
        &self,
        owner: &Principal,
        asker: &Principal,
        places: impl IntoIterator<Item = &'p Path>,
    ) -> bool {
        match self {
            Self::All => true,
            Self::User(name) => {
                [owner, asker].iter().any(|who| matches!(who, Principal::User(is) if is == name))
            }
            Self::Directory(held) => {
                let held = held.as_path();
                places.into_iter().any(|place| place.starts_with(held) || held.starts_with(place))
            }
        }
    }
}

impl fmt::Display for HoldScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("everything"),
            Self::User(name) => write!(f, "what {} works on", escape(name)),
            Self::Directory(path) => write!(f, "work in `{}`", escape(&path.as_path().to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(scope: &HoldScope, owner: &str, place: &str) -> bool {
        let agent = Principal::Agent("m".to_owned());
        scope.covers(&Principal::User(owner.to_owned()), &agent, [Path::new(place)])
    }

    #[test]
    fn a_hold_covers_what_it_names_and_its_neighbours_go_on() {
        assert!(covers(&HoldScope::All, "ada", "/w"));
        let user = HoldScope::User("ada".to_owned());
        assert!(covers(&user, "ada", "/w") && !covers(&user, "bob", "/w"));
        assert!(user.covers(&Principal::Engine, &Principal::User("ada".to_owned()), []));
        let agent = Principal::Agent("ada".to_owned());
        assert!(
            !user.covers(&Principal::User("bob".to_owned()), &agent, []),
            "an agent of that name is no user"
        );
        let directory = HoldScope::Directory(OsText::literal("/src/project"));
        for (place, is) in [
            ("/src/project", true),
            ("/src/project/part", true),
            ("/src", true),
            ("/src/project-2", false),
            ("/other", false),
        ] {
            assert_eq!(covers(&directory, "ada", place), is, "{place}");
        }
    }
}
