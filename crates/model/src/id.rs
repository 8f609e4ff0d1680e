//! Identifiers, one type for each kind of thing, so that one is never passed for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Says what is wrong with a written identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not {kind}: expected `{prefix}-` and {LENGTH} of the characters a-z and 2-7",
    crate::text::escape(.given)
)]
pub struct IdError {
    given: String,
    kind: &'static str,
    prefix: &'static str,
}

/// Characters after the prefix: 80 bits, enough that two ids made by chance never meet in one store.
const LENGTH: usize = 16;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Makes an id out of random bytes that the caller supplies.
            pub fn from_random(random: [u8; 10]) -> Self {
                Self(format!(concat!($prefix, "-{}"), base32(random)))
            }

            /// Returns the id as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let rest = text.strip_prefix(concat!($prefix, "-"));
                match rest {
                    Some(rest) if rest.len() == LENGTH && rest.bytes().all(|b| ALPHABET.contains(&b)) => {
                        Ok(Self(text.to_owned()))
                    }
                    _ => Err(IdError { given: text.to_owned(), kind: $kind, prefix: $prefix }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

id!(
    /// Names one task: a workspace, the actions that were run on it and their layers.
    TaskId,
    "task",
    "a task id"
);
id!(
    /// Names one action of one task. The layer that the action wrote has the same name.
    ActionId,
    "act",
    "an action id"
);
id!(
    /// Names one audit log, so that the records of two logs are never taken for one.
    LogId,
    "log",
    "a log id"
);

id!(
    /// Names one request for a person's yes.
    ApprovalId,
    "apr",
    "an approval id"
);

id!(
    /// Names one order of a person that nothing starts.
    HoldId,
    "hold",
    "the id of a hold"
);

id!(
    /// Names one order of a person that something stays whatever its retention.
    LegalHoldId,
    "legal",
    "the id of a legal hold"
);

fn base32(random: [u8; 10]) -> String {
    let mut text = String::with_capacity(LENGTH);
    for chunk in random.chunks(5) {
        let bits = chunk.iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        for place in (0..8).rev() {
            text.push(char::from(ALPHABET[(bits >> (place * 5)) as usize & 31]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_it_was_written() {
        let id = TaskId::from_random([0xff; 10]);
        assert_eq!(id.as_str(), "task-7777777777777777");
        assert_eq!(id.as_str().parse::<TaskId>(), Ok(id));
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let action = ActionId::from_random([1; 10]);
        assert!(action.as_str().parse::<TaskId>().is_err());
        for wrong in ["", "task-", "task-short", "task-AAAAAAAAAAAAAAAA", "task-aaaaaaaaaaaaaaaa/.."] {
            assert!(wrong.parse::<TaskId>().is_err(), "{wrong}");
        }
    }
}
