//! How long what is kept stays, and how much of it.

use std::collections::BTreeMap;
use std::time::Duration;

use model::KeptClass;

/// How long what is kept stays, and how much of it, by classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    ages: BTreeMap<KeptClass, Duration>,
    most: BTreeMap<KeptClass, u64>,
    incidents: Duration,
}

impl Retention {
    /// Keeps everything for this long, what failed or was denied too.
    pub fn of(age: Duration) -> Self {
        Self { ages: KeptClass::ALL.map(|class| (class, age)).into(), most: BTreeMap::new(), incidents: age }
    }

    /// Keeps a class for this long.
    #[must_use]
    pub fn with_age(mut self, class: KeptClass, age: Duration) -> Self {
        self.ages.insert(class, age);
        self
    }

    /// Keeps no more than so many bytes of a class: the oldest go first, of what nobody needs.
    #[must_use]
    pub fn with_most(mut self, class: KeptClass, bytes: u64) -> Self {
        self.most.insert(class, bytes);
        self
    }

    /// Keeps what failed, was denied or tried what is not allowed for this long at least.
    #[must_use]
    pub fn with_incidents(mut self, age: Duration) -> Self {
        self.incidents = age;
        self
    }

    /// Returns how long a class stays.
    pub fn age(&self, class: KeptClass) -> Duration {
        self.ages.get(&class).copied().unwrap_or(Duration::MAX)
    }

    /// Returns how long what failed, was denied or tried what is not allowed stays at least.
    pub fn incidents(&self) -> Duration {
        self.incidents
    }

    /// Returns how many bytes of a class stay at most, when that is bounded.
    pub fn most(&self, class: KeptClass) -> Option<u64> {
        self.most.get(&class).copied()
    }
}
