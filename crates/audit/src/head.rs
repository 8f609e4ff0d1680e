//! Heads: the name of a log's last record, which stands for all before it.

use std::fmt;
use std::str::FromStr;

use model::digest::Canonical;
use model::{Digest, LogId};
use serde::{Deserialize, Serialize};

/// The last record of a log at some time. Kept where the log's writer cannot reach it, it anchors all that came
/// before: nothing up to it can be changed or cut unnoticed.
///
/// A signed one is a [`Checkpoint`](crate::Checkpoint).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The log.
    pub log: LogId,
    /// The number of the last record, or zero while there is none.
    pub seq: u64,
    /// The digest of the last record, or the log's first value while there is none.
    pub digest: Digest,
}

impl Head {
    /// Returns the head of a log without records: a value that only this log starts from.
    pub fn genesis(log: LogId) -> Self {
        let digest = Canonical::new("fumehood log").field(log.as_str().as_bytes()).digest();
        Self { log, seq: 0, digest }
    }
}

impl fmt::Display for Head {
    /// Writes the head as one word, `LOG:NUMBER:DIGEST`, as [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.log, self.seq, self.digest)
    }
}

/// Says that a text is not a head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not the head of a log: expected `LOG:NUMBER:DIGEST`, as `audit show --head` prints it", model::text::escape(.0))]
pub struct HeadError(String);

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let parts: Vec<&str> = text.trim().split(':').collect();
        let [log, seq, digest] = parts[..] else { return Err(HeadError(text.to_owned())) };
        let wrong = || HeadError(text.to_owned());
        Ok(Self {
            log: log.parse().map_err(|_| wrong())?,
            seq: seq.parse().map_err(|_| wrong())?,
            digest: digest.parse().map_err(|_| wrong())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_logs_start_from_different_values() {
        let one = Head::genesis(LogId::from_random([1; 10]));
        let two = Head::genesis(LogId::from_random([2; 10]));
        assert_ne!(one.digest, two.digest);
    }

    #[test]
    fn a_head_is_read_back_as_it_was_written() {
        let head = Head { seq: 42, ..Head::genesis(LogId::from_random([7; 10])) };
        assert_eq!(head.to_string().parse(), Ok(head));
        for wrong in ["", "a:b:c", "log-aaaaaaaaaaaaaaaa:1", "log-aaaaaaaaaaaaaaaa:-1:00"] {
            assert!(wrong.parse::<Head>().is_err(), "{wrong}");
        }
    }
}
