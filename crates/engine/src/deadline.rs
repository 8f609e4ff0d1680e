//! Deadlines that hold when somebody sets the clock, and when the machine was started again.
//!
//! Guarantees: within one boot the time since that boot decides, which nobody can set back; after another boot the wall
//! clock does, and never later than was promised at first.

use std::time::Duration;

use model::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::clock::now;
use crate::error::EngineError;

/// Where the kernel tells one boot from another (proc_sys_kernel(5), `random/boot_id`).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A moment, by every clock that a deadline is held by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// By the wall clock.
    pub wall: Timestamp,
    /// The name of the boot.
    pub boot: String,
    /// The time since that boot, in nanoseconds; it goes on while the machine sleeps.
    pub since_boot: u64,
}

/// When something ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// By the wall clock.
    pub wall: Timestamp,
    /// The name of the boot in which it was set.
    pub boot: String,
    /// By the time since that boot, in nanoseconds.
    pub since_boot: u64,
}

impl Moment {
    /// Asks the clocks.
    ///
    /// # Errors
    /// When the name of the boot cannot be read.
    pub fn now() -> Result<Self, EngineError> {
        let boot = std::fs::read_to_string(BOOT_ID).map_err(EngineError::file("read", BOOT_ID))?;
        let since = clock_gettime(ClockId::Boottime);
        let since_boot = u64::try_from(since.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000)
            + u64::try_from(since.tv_nsec).unwrap_or(0);
        Ok(Self { wall: now(), boot: boot.trim().to_owned(), since_boot })
    }

    /// Returns the deadline that is this much later.
    pub fn plus(&self, time: Duration) -> Deadline {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Deadline {
            wall: Timestamp::from_nanos(self.wall.as_nanos().saturating_add(nanos)),
            boot: self.boot.clone(),
            since_boot: self.since_boot.saturating_add(nanos),
        }
    }
}

impl Deadline {
    /// Tells whether it has passed. `set` is when it was set, by the wall clock: at another boot a clock that stands
    /// before that cannot be believed.
    pub fn has_passed(&self, set: Timestamp, now: &Moment) -> bool {
        if self.boot == now.boot {
            return now.since_boot >= self.since_boot;
        }
        now.wall >= self.wall || now.wall < set
    }

    /// Returns how long it is until then; nothing when it has passed.
    pub fn left(&self, set: Timestamp, now: &Moment) -> Duration {
        let end = self.by_the_clock_of(set, now).map_or(0, Timestamp::as_nanos);
        Duration::from_nanos(end.saturating_sub(now.wall.as_nanos()))
    }

    /// Returns when it ends by the wall clock as that stands now; nothing when it has passed.
    pub fn by_the_clock_of(&self, set: Timestamp, now: &Moment) -> Option<Timestamp> {
        if self.has_passed(set, now) {
            return None;
        }
        if self.boot != now.boot {
            return Some(self.wall);
        }
        let left = self.since_boot - now.since_boot;
        Some(Timestamp::from_nanos(now.wall.as_nanos().saturating_add(left)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(boot: &str, wall: u64, since_boot: u64) -> Moment {
        Moment {
            wall: Timestamp::from_nanos(wall * SECOND),
            boot: boot.to_owned(),
            since_boot: since_boot * SECOND,
        }
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nothing_last_longer() {
        let set = at("a", 1000, 10);
        let deadline = set.plus(Duration::from_secs(60));
        let passed = |now: &Moment| deadline.has_passed(set.wall, now);
        assert!(!passed(&at("a", 1059, 69)));
        assert!(passed(&at("a", 1060, 70)));
        assert!(passed(&at("a", 1, 70)), "an hour back, and still over");
        assert!(!passed(&at("a", 9999, 20)), "set forward: its time is not over");
    }

    #[test]
    fn after_another_boot_the_wall_clock_decides_and_never_later_than_promised() {
        let set = at("a", 1000, 10);
        let deadline = set.plus(Duration::from_secs(60));
        let passed = |now: &Moment| deadline.has_passed(set.wall, now);
        assert!(!passed(&at("b", 1030, 1)));
        assert!(passed(&at("b", 1060, 1)));
        assert!(passed(&at("b", 999, 1)), "a clock from before it was set tells nothing");
        assert!(!passed(&at("b", 1000, 9999)));
    }

    #[test]
    fn what_is_left_is_told_by_the_clock_of_now() {
        let set = at("a", 1000, 10);
        let deadline = set.plus(Duration::from_secs(60));
        let left = |now: &Moment| deadline.by_the_clock_of(set.wall, now).map(Timestamp::as_nanos);
        assert_eq!(left(&at("a", 500, 30)), Some(540 * SECOND));
        assert_eq!(left(&at("b", 1030, 1)), Some(1060 * SECOND));
        assert_eq!(left(&at("a", 500, 70)), None);
        assert_eq!(deadline.left(set.wall, &at("a", 500, 30)), Duration::from_secs(40));
        assert_eq!(deadline.left(set.wall, &at("b", 1030, 1)), Duration::from_secs(30));
        assert_eq!(deadline.left(set.wall, &at("a", 500, 70)), Duration::ZERO);
    }

    #[test]
    fn the_clocks_of_this_machine_can_be_asked() {
        let (first, second) = (Moment::now().expect("has clocks"), Moment::now().expect("has clocks"));
        assert_eq!(first.boot, second.boot);
        assert_eq!(first.boot.len(), 36);
        assert!(first.since_boot > 0 && first.since_boot <= second.since_boot);
    }
}
