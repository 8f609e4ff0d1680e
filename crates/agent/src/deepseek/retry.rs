//! When to try again, and how long to wait before it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often and how patiently a request is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many tries there are, the first one included.
    pub attempts: u32,
    /// About how long to wait after the first try; it doubles with each further one.
    pub first_wait: Duration,
    /// The longest wait that we choose.
    pub longest_wait: Duration,
    /// The longest wait that the server may choose; when it asks for more, we give up and say so.
    pub longest_asked: Duration,
}

impl Default for Retry {
    /// Seven tries over about a minute, which outlasts a restart of a server and a short wave of load.
    fn default() -> Self {
        Self {
            attempts: 7,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            longest_asked: Duration::from_secs(300),
        }
    }
}

impl Retry {
    /// Returns how long to wait after this try (from 1), or nothing when there is no other.
    pub(super) fn wait_after(&self, attempt: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        match asked {
            Some(asked) => (asked <= self.longest_asked).then_some(asked),
            None => Some(self.jittered(attempt)),
        }
    }

    /// Returns between half and all of the doubled wait, so that clients that failed together do not come back
    /// together.
    fn jittered(&self, attempt: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1u32.checked_shl(attempt - 1).unwrap_or(u32::MAX));
        let whole = doubled.min(self.longest_wait);
        whole / 2 + whole.mul_f64(f64::from(random_byte()) / 512.0)
    }
}

/// Returns a byte that differs from call to call. It need not be unpredictable.
fn random_byte() -> u8 {
    RandomState::new().build_hasher().finish().to_le_bytes()[0]
}

/// Returns how long a server asks to wait, given its `Retry-After` in seconds. The form with a date is not read:
/// our own wait is used then.
pub(super) fn asked_wait(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_within_their_bounds_and_end() {
        let retry = Retry::default();
        for attempt in 1..retry.attempts {
            let whole = Duration::from_secs(1 << (attempt - 1)).min(retry.longest_wait);
            let wait = retry.wait_after(attempt, None).expect("there is another try");
            assert!(wait >= whole / 2 && wait <= whole, "{attempt}: {wait:?}");
        }
        assert_eq!(retry.wait_after(retry.attempts, None), None);
        assert_eq!(retry.wait_after(retry.attempts, Some(Duration::ZERO)), None);
    }

    #[test]
    fn waits_differ_from_client_to_client() {
        let retry = Retry::default();
        let waits: std::collections::BTreeSet<_> = (0..32).map(|_| retry.wait_after(4, None)).collect();
        assert!(waits.len() > 4, "{waits:?}");
    }

    #[test]
    fn what_the_server_asks_for_is_honoured_within_reason() {
        let retry = Retry::default();
        assert_eq!(asked_wait(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(asked_wait("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(asked_wait("-1"), None);
        assert_eq!(retry.wait_after(1, asked_wait("7")), Some(Duration::from_secs(7)));
        assert_eq!(retry.wait_after(1, asked_wait("86400")), None);
    }
}
