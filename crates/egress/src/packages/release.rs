//! What a registry says of one file of a release.

use std::collections::BTreeSet;

use model::egress::Checksum;
use model::units::Timestamp;

/// What a registry says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// The version that it belongs to.
    pub(crate) version: String,
    /// The name of the file, where a release has several.
    pub(crate) file: Option<String>,
    /// Its address, where the registry says it: what is before its name could say anything otherwise.
    pub(crate) at: Option<String>,
    /// What it must be.
    pub(crate) checksums: BTreeSet<Checksum>,
    /// What the metadata beside it must be.
    pub(crate) beside: BTreeSet<Checksum>,
    /// When it was published.
    pub(crate) published: Option<Timestamp>,
    /// What of it runs when it is installed, for people.
    pub(crate) runs: Option<String>,
}

/// Reads a moment as RFC 3339 has it.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_nanosecond()).ok().map(Timestamp::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_zone() {
        assert_eq!(moment("1970-01-01T01:00:01+01:00"), Some(Timestamp::from_nanos(1_000_000_000)));
        assert_eq!((moment("2020-01-01"), moment("1960-01-01T00:00:00Z"), moment("")), (None, None, None));
    }
}
