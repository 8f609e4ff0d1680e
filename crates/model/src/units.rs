//! Quantities that carry their unit in the type.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// Makes a quantity of this many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Makes a quantity of this many mebibytes (2^20 bytes each).
    pub const fn mib(mebibytes: u64) -> Self {
        Self(mebibytes << 20)
    }

    /// Makes a quantity of this many gibibytes (2^30 bytes each).
    pub const fn gib(gibibytes: u64) -> Self {
        Self(gibibytes << 30)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Adds, stopping at the largest number there is.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STEPS: [(u64, &str); 4] =
            [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (size, unit) in STEPS {
            if self.0 >= size {
                let tenths = u128::from(self.0) * 10 / u128::from(size);
                return match tenths % 10 {
                    0 => write!(f, "{} {unit}", tenths / 10),
                    tenth => write!(f, "{}.{tenth} {unit}", tenths / 10),
                };
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// Says that a text is not a size or a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not {what}: write a whole number and a unit, for example {example}", crate::text::escape(.given))]
pub struct UnitError {
    given: String,
    what: &'static str,
    example: &'static str,
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            || UnitError { given: text.to_owned(), what: "a size", example: "`512MiB`, `4GiB` or `65536`" };
        let (number, unit) = split_number(text).ok_or_else(wrong)?;
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

/// Reads a time such as `90s`, `10m`, `2h`, `30d` or `250ms`.
///
/// # Errors
/// When the text is not a whole number with one of the units ms, s, m, h or d, or is too large to count in milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError { given: text.to_owned(), what: "a time", example: "`90s`, `10m` or `250ms`" };
    let (number, unit) = split_number(text).ok_or_else(wrong)?;
    let milliseconds = match unit {
        "ms" => Some(number),
        "" | "s" => number.checked_mul(1_000),
        "m" | "min" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => None,
    };
    milliseconds.map(Duration::from_millis).ok_or_else(wrong)
}

/// Writes a time the way [`parse_duration`] reads it.
pub fn display_duration(time: Duration) -> String {
    let ms = time.as_millis();
    match ms {
        0..1_000 => format!("{ms}ms"),
        _ if ms.is_multiple_of(86_400_000) => format!("{}d", ms / 86_400_000),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{}.{:03}s", ms / 1_000, ms % 1_000),
    }
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// A moment: nanoseconds since the start of 1970 in UTC, by the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Makes a moment out of nanoseconds since the start of 1970.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the start of 1970.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns how long after `earlier` this is, or nothing at all when it is before.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        assert_eq!("32MiB".parse(), Ok(Bytes::mib(32)));
        assert_eq!("4g".parse(), Ok(Bytes::gib(4)));
        assert_eq!("4096".parse(), Ok(Bytes::new(4096)));
        for wrong in ["", "MiB", "-1", "1.5G", "99999999999999999999", "1XB", "16777216T"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_with_one_decimal() {
        assert_eq!(Bytes::mib(32).to_string(), "32 MiB");
        assert_eq!(Bytes::new(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes::new(7).to_string(), "7 B");
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(parse_duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(parse_duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        for wrong in ["", "s", "1 day", "-5s", "1e3"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_that_is_shown_can_be_read_again() {
        for ms in [0, 250, 10_000, 90_000, 1_800_000, 7_200_000, 2_592_000_000] {
            let time = Duration::from_millis(ms);
            assert_eq!(parse_duration(&display_duration(time)), Ok(time));
        }
    }
}
