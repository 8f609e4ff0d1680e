//! Classes of what is kept, each with a retention of its own.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A class of what is kept beside the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptClass {
    /// What actions wrote to the workspace.
    Layers,
    /// Layers of requests for a person's yes that ended without one.
    Trials,
    /// What commands printed.
    Outputs,
    /// What actions left as artifacts.
    Artifacts,
    /// What an `apply` overwrote on the host, by which it is taken back.
    Overwritten,
    /// What models were sent.
    Contexts,
    /// The conversations of agents, by which a task is resumed.
    Transcripts,
    /// What can be made again: caches of tasks, and what was found in files that have not changed.
    Caches,
    /// Commits that were checked out for tasks.
    Bases,
}

impl KeptClass {
    /// Every class.
    pub const ALL: [Self; 9] = [
        Self::Layers,
        Self::Trials,
        Self::Outputs,
        Self::Artifacts,
        Self::Overwritten,
        Self::Contexts,
        Self::Transcripts,
        Self::Caches,
        Self::Bases,
    ];

    /// Returns the word that stands for it, in settings, on the record and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::Trials => "trials",
            Self::Outputs => "outputs",
            Self::Artifacts => "artifacts",
            Self::Overwritten => "overwritten",
            Self::Contexts => "contexts",
            Self::Transcripts => "transcripts",
            Self::Caches => "caches",
            Self::Bases => "bases",
        }
    }
}

impl fmt::Display for KeptClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was removed of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedOf {
    /// The class.
    pub class: KeptClass,
    /// What, by its names: those of actions, of tasks, of directories, or digests of content.
    pub names: Vec<String>,
    /// Bytes that it held.
    pub bytes: u64,
}

/// A class of events whose content can be taken out of the record once its time is over. What was decided, who answered and
/// who stopped something, what reached the host, what was denied, and what was removed is in none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventClass {
    /// What was asked for: arguments, purpose, environment by digests.
    Requests,
    /// What ran: walls, programs, files that were read and changed, digests of output.
    Runs,
    /// What was tried over the network.
    Network,
}

impl EventClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Requests, Self::Runs, Self::Network];

    /// Returns the word that stands for it, in settings, on the record and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Runs => "runs",
            Self::Network => "network",
        }
    }

    /// Returns the names of its events.
    pub fn events(self) -> &'static [&'static str] {
        match self {
            Self::Requests => &["requested"],
            Self::Runs => &["started", "ended", "inspected", "torn-down"],
            Self::Network => &["gateway-started", "network-attempts", "gateway-ended"],
        }
    }

    /// Returns the class of an event by its name; nothing when its content always stays.
    pub fn of(event: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.events().contains(&event))
    }
}

impl fmt::Display for EventClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Says that a word names no class of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no class of events that can be pruned: `requests`, `runs` and `network` are", crate::text::escape(.0))]
pub struct EventClassError(String);

impl std::str::FromStr for EventClass {
    type Err = EventClassError;

    fn from_str(word: &str) -> Result<Self, EventClassError> {
        let class = Self::ALL.into_iter().find(|class| class.name() == word);
        class.ok_or_else(|| EventClassError(word.to_owned()))
    }
}

/// Records that follow on each other without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordRange {
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
}

impl RecordRange {
    /// Returns the ranges of numbers that only grow.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(range) if range.last.checked_add(1) == Some(number) => range.last = number,
                _ => ranges.push(Self { first: number, last: number }),
            }
        }
        ranges
    }
}

impl fmt::Display for RecordRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first} to {last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn every_class_has_one_word_everywhere() {
        for class in KeptClass::ALL {
            assert_eq!(serde_json::to_string(&class).expect("is written"), format!("\"{class}\""));
        }
        for class in EventClass::ALL {
            assert_eq!(serde_json::to_string(&class).expect("is written"), format!("\"{class}\""));
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert!("decided".parse::<EventClass>().is_err());
    }

    #[test]
    fn nothing_that_answers_for_what_was_done_can_be_pruned() {
        let can: Vec<&str> =
            Event::NAMES.iter().copied().filter(|name| EventClass::of(name).is_some()).collect();
        let listed: Vec<&str> = EventClass::ALL.iter().flat_map(|class| class.events()).copied().collect();
        assert_eq!(can.len(), listed.len(), "each is an event, and in one class");
        for name in [
            "task-opened",
            "intake",
            "stage",
            "decided",
            "trial-decided",
            "denial-remembered",
            "denial-met",
            "task-frozen",
            "held",
            "hold-lifted",
            "legal-hold-given",
            "legal-hold-lifted",
            "approval-asked",
            "approval-answered",
            "approval-closed",
            "not-started",
            "applied",
            "commits-imported",
            "model-turn",
            "record-read",
            "recovered",
            "anchor-failed",
            "removed",
            "record-pruned",
            "pruned",
        ] {
            assert!(Event::NAMES.contains(&name), "{name}");
            assert_eq!(EventClass::of(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_become_ranges() {
        let ranges = RecordRange::of([1, 2, 3, 7, 9, 10]);
        let shown: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["1 to 3", "7", "9 to 10"]);
        assert_eq!(RecordRange::of([]), []);
    }
}
