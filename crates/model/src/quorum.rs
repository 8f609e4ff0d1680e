//! Quorums: how many different people in a role must say yes, and whether the owner is one of them.
//!
//! Policy names a quorum as one word, on the annotation that asks for it and in the condition that it lifts: `person`,
//! `release-manager:2`, `person:not-owner`, `release-manager:2:not-owner`. There is one way to write each, so that two
//! texts are equal when they mean the same.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::escape;

/// The role that everybody has.
pub const PERSON: &str = "person";
/// What is said of a quorum in which the owner does not count.
const NOT_OWNER: &str = "not-owner";
/// The most people that a quorum can want.
const MOST_PEOPLE: u8 = 9;

/// Different people in a role, who must say yes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Quorum {
    role: String,
    people: u8,
    not_owner: bool,
}

/// Says that a text names no quorum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` says of nobody that they must say yes: write a role in small letters, digits and `-`, then `:2` to `:9` for so \
     many different people, then `:not-owner` where whoever owns the task does not count, for example `release-manager`, \
     `release-manager:2` or `release-manager:2:not-owner`",
    escape(.0)
)]
pub struct NoQuorum(String);

impl Quorum {
    /// Returns one person in a role, whoever owns the task.
    ///
    /// # Errors
    /// When the role is not written in small letters, digits and `-`.
    pub fn of(role: &str) -> Result<Self, NoQuorum> {
        role.parse::<Self>()
            .ok()
            .filter(|quorum| quorum.role == role)
            .ok_or_else(|| NoQuorum(role.to_owned()))
    }

    /// Returns anybody.
    pub fn person() -> Self {
        Self { role: PERSON.to_owned(), people: 1, not_owner: false }
    }

    /// Returns the same, where whoever owns the task does not count.
    pub fn without_owner(&self) -> Self {
        Self { not_owner: true, ..self.clone() }
    }

    /// Returns the quorum of its kind that so many people make up; nothing for none.
    pub fn made_by(&self, people: usize) -> Option<Self> {
        let people = u8::try_from(people).unwrap_or(MOST_PEOPLE).min(MOST_PEOPLE);
        (people > 0).then(|| Self { people, ..self.clone() })
    }

    /// Returns the role.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Returns how many different people.
    pub fn people(&self) -> u8 {
        self.people
    }

    /// Tells whether whoever owns the task does not count.
    pub fn is_without_owner(&self) -> bool {
        self.not_owner
    }

    /// Tells whether the same yes also make up another quorum.
    pub fn covers(&self, other: &Self) -> bool {
        self.role == other.role && self.people >= other.people && (self.not_owner || !other.not_owner)
    }

    /// Returns every quorum that the same yes make up, this one among them.
    pub fn covered(&self) -> impl Iterator<Item = Self> + '_ {
        let with_owner = [false, true].into_iter().filter(|not_owner| self.not_owner || !not_owner);
        with_owner.flat_map(move |not_owner| {
            (1..=self.people).map(move |people| Self { role: self.role.clone(), people, not_owner })
        })
    }

    /// Returns it in words for people.
    pub fn in_words(&self) -> String {
        let who = match (self.people, self.role.as_str()) {
            (1, PERSON) => "a person".to_owned(),
            (1, role) => format!("a person with the role {role}"),
            (people, PERSON) => format!("{people} different people"),
            (people, role) => format!("{people} different people with the role {role}"),
        };
        if self.not_owner { format!("{who}, the owner of the task apart") } else { who }
    }
}

impl FromStr for Quorum {
    type Err = NoQuorum;

    fn from_str(text: &str) -> Result<Self, NoQuorum> {
        let wrong = || NoQuorum(text.to_owned());
        let (rest, not_owner) = match text.strip_suffix(NOT_OWNER).and_then(|rest| rest.strip_suffix(':')) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (role, people) = match rest.split_once(':') {
            None => (rest, 1),
            Some((role, people)) => (role, several(people).ok_or_else(wrong)?),
        };
        if !is_role(role) {
            return Err(wrong());
        }
        Ok(Self { role: role.to_owned(), people, not_owner })
    }
}

/// Reads a number of people beyond one, in its one form.
fn several(text: &str) -> Option<u8> {
    text.parse().ok().filter(|people| text.len() == 1 && (2..=MOST_PEOPLE).contains(people))
}

/// Tells whether this can be the name of a role.
pub fn is_role(text: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.split('-').all(part)
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.role)?;
        if self.people > 1 {
            write!(f, ":{}", self.people)?;
        }
        if self.not_owner { write!(f, ":{NOT_OWNER}") } else { Ok(()) }
    }
}

impl TryFrom<String> for Quorum {
    type Error = NoQuorum;

    fn try_from(text: String) -> Result<Self, NoQuorum> {
        text.parse()
    }
}

impl From<Quorum> for String {
    fn from(quorum: Quorum) -> Self {
        quorum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn quorum(text: &str) -> Quorum {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn there_is_one_way_to_write_a_quorum() {
        for text in ["person", "release-manager", "a1:9", "person:not-owner", "release-manager:2:not-owner"] {
            assert_eq!(quorum(text).to_string(), text);
        }
        for text in [
            "",
            ":",
            "a:",
            "a:1",
            "a:0",
            "a:02",
            "a:+2",
            "a:10",
            "a:2:",
            "a:2:2",
            "A",
            "a b",
            "a-",
            "-a",
            "a:not-owner:2",
            "a:owner",
            "a:not-owner:not-owner",
            ":2",
            "not-owner:",
            "a:\u{b2}",
        ] {
            assert!(text.parse::<Quorum>().is_err(), "{text:?}");
        }
        assert!(Quorum::of("a:2").is_err() && Quorum::of("a").is_ok());
    }

    #[test]
    fn what_covers_and_what_is_covered_is_the_same() {
        let all = ["a", "a:2", "a:3", "a:not-owner", "a:2:not-owner", "b", "b:2:not-owner"].map(quorum);
        for one in &all {
            let covered: BTreeSet<Quorum> = one.covered().collect();
            for other in &all {
                assert_eq!(covered.contains(other), one.covers(other), "{one} and {other}");
            }
        }
        assert!(!quorum("a:9").covers(&quorum("a:not-owner")), "all of them could be the owner's");
    }

    #[test]
    fn so_many_people_make_a_quorum() {
        assert_eq!(quorum("a").made_by(0), None);
        assert_eq!(quorum("a:3").made_by(1), Some(quorum("a")));
        assert_eq!(quorum("a:not-owner").made_by(400), Some(quorum("a:9:not-owner")));
    }
}
