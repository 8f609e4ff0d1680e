//! The chain of receipts of a task: each stage names the record of the one before it, so that none can be skipped, repeated or
//! taken from another task, and anybody who has the records can check that without the engine.
//!
//! Leaves to others: whether the records themselves are as they were written ([`verify`]).
//!
//! [`verify`]: crate::verify()

use std::collections::BTreeMap;
use std::fmt;

use model::event::Event;
use model::stage::{Stage, StageWork};
use model::{Digest, TaskId};

use crate::error::AuditError;
use crate::record::Record;
use crate::storage::ReadError;

/// Where the chain of a task stands. Only the check of records makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainEnd {
    task: TaskId,
    stage: Stage,
    round: u32,
    receipt: Digest,
    works: BTreeMap<Stage, StageWork>,
}

/// The chains of all tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chains(BTreeMap<TaskId, ChainEnd>);

/// The first record that breaks the chain of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// The number of the record.
    pub record: u64,
    /// What is wrong with it.
    pub flaw: ChainFlaw,
}

/// What is wrong with a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainFlaw {
    /// It is about no task, or about one of its actions.
    NoTask,
    /// It does not follow on the stage before it.
    Order {
        /// The stage before it, with its round.
        before: Option<(Stage, u32)>,
        /// The stage, with its round.
        found: (Stage, u32),
    },
    /// It names another record than that of the stage before it.
    OtherReceipt,
    /// It was given what its stage never has.
    TooMuch(Stage),
    /// It holds no event that this build knows.
    Event(String),
}

impl ChainEnd {
    /// Returns the task.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// Returns the stage that was passed last.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns how often the task came to a proposal.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the digest of the record of that stage: what the next one has to name.
    pub fn receipt(&self) -> Digest {
        self.receipt
    }

    /// Returns what was done in a stage of this round, or before the first; nothing when it was not passed.
    pub fn work(&self, stage: Stage) -> Option<StageWork> {
        self.works.get(&stage).copied()
    }

    /// Returns the stages that were passed without their work.
    pub fn without_work(&self) -> Vec<Stage> {
        let empty = self.works.iter().filter(|(_, work)| **work == StageWork::Nothing);
        empty.map(|(stage, _)| *stage).collect()
    }
}

impl Chains {
    /// Checks every stage in records, in order. Records of other events are passed by.
    ///
    /// # Errors
    /// When the records cannot be read; that says nothing about the chains.
    pub fn check(
        records: impl IntoIterator<Item = Result<Record, ReadError>>,
    ) -> Result<Result<Self, BrokenChain>, AuditError> {
        let mut chains = Self::default();
        let mut seq = 0;
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(ReadError::Malformed(malformed)) => {
                    let flaw = ChainFlaw::Event(malformed.to_string());
                    return Ok(Err(BrokenChain { record: seq + 1, flaw }));
                }
                Err(ReadError::Source(source)) => return Err(AuditError::Unreadable(source)),
            };
            seq = record.seq;
            if let Err(flaw) = chains.follow(&record) {
                return Ok(Err(BrokenChain { record: seq, flaw }));
            }
        }
        Ok(Ok(chains))
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// When it is a stage that does not follow on the one before it.
    pub fn follow(&mut self, record: &Record) -> Result<(), ChainFlaw> {
        let event = record.parse_event().map_err(|error| ChainFlaw::Event(error.to_string()))?;
        let Event::Stage { stage, round, work, grant, previous } = event else { return Ok(()) };
        let task = match &record.subject {
            model::Subject { task: Some(task), action: None } => task.clone(),
            _ => return Err(ChainFlaw::NoTask),
        };
        let before = self.0.get(&task);
        if before.map(ChainEnd::receipt) != previous {
            return Err(ChainFlaw::OtherReceipt);
        }
        let last = before.map(|end| (end.stage, end.round));
        if !Stage::may_follow(last, stage, round) {
            return Err(ChainFlaw::Order { before: last, found: (stage, round) });
        }
        if !grant.is_within(&stage.most()) {
            return Err(ChainFlaw::TooMuch(stage));
        }
        let mut works = before.map(|end| end.works.clone()).unwrap_or_default();
        works.retain(|passed, _| *passed < stage);
        works.insert(stage, work);
        let end = ChainEnd { task: task.clone(), stage, round, receipt: record.digest, works };
        self.0.insert(task, end);
        Ok(())
    }

    /// Returns where the chain of a task stands; nothing when it has none.
    pub fn of(&self, task: &TaskId) -> Option<&ChainEnd> {
        self.0.get(task)
    }

    /// Returns where all chains stand.
    pub fn ends(&self) -> impl Iterator<Item = &ChainEnd> {
        self.0.values()
    }
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, flaw } = self;
        match flaw {
            ChainFlaw::NoTask => write!(f, "record {record} is a stage of no task"),
            ChainFlaw::Order { before: Some((last, round)), found } => write!(
                f,
                "record {record} is the stage {} of round {}, and {last} of round {round} is before it",
                found.0, found.1
            ),
            ChainFlaw::Order { before: None, found } => {
                write!(f, "record {record} is the stage {}, and nothing is before it", found.0)
            }
            ChainFlaw::OtherReceipt => {
                write!(
                    f,
                    "record {record} is a stage that names another record than that of the one before it"
                )
            }
            ChainFlaw::TooMuch(stage) => {
                write!(f, "record {record} gives the stage {stage} what it never has")
            }
            ChainFlaw::Event(why) => {
                write!(f, "record {record} holds no event that is known: {}", model::text::escape(why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Subject, Timestamp};

    use super::*;
    use crate::head::Head;

    fn task(number: u8) -> TaskId {
        TaskId::from_random([number; 10])
    }

    fn event(stage: Stage, round: u32, previous: Option<Digest>) -> Event {
        Event::Stage { stage, round, work: StageWork::Nothing, grant: stage.most(), previous }
    }

    /// Makes records one after the other.
    struct Writer {
        head: Head,
    }

    impl Writer {
        fn new() -> Self {
            Self { head: Head::genesis(model::LogId::from_random([1; 10])) }
        }

        fn write(&mut self, about: &TaskId, event: &Event) -> Record {
            let subject = Subject { task: Some(about.clone()), action: None };
            let text = serde_json::to_string(event).expect("can be written");
            let record = Record::following(&self.head, subject, text, Timestamp::from_nanos(1));
            self.head = Head { seq: record.seq, digest: record.digest, ..self.head.clone() };
            record
        }
    }

    /// Writes stages of one task, each on top of the one before it, and tells whether they are a chain.
    fn is_chain(stages: &[(Stage, u32)]) -> bool {
        let (mut writer, mut chains, mut previous) = (Writer::new(), Chains::default(), None);
        stages.iter().all(|(stage, round)| {
            let record = writer.write(&task(1), &event(*stage, *round, previous));
            previous = Some(record.digest);
            chains.follow(&record).is_ok()
        })
    }

    fn all_in_order() -> Vec<(Stage, u32)> {
        Stage::ALL.map(|stage| (stage, 1)).to_vec()
    }

    #[test]
    fn every_stage_that_is_skipped_or_repeated_breaks_the_chain() {
        let whole = all_in_order();
        assert!(is_chain(&whole));
        for at in 0..whole.len() {
            let mut repeated = whole.clone();
            repeated.insert(at, whole[at]);
            assert!(!is_chain(&repeated), "{} twice", whole[at].0);
            let mut skipped = whole.clone();
            skipped.remove(at);
            // Without its last stage it is a chain that goes no further.
            assert_eq!(is_chain(&skipped), at == whole.len() - 1, "without {}", whole[at].0);
            for other in at + 1..whole.len() {
                let mut swapped = whole.clone();
                swapped.swap(at, other);
                assert!(!is_chain(&swapped), "{} and {}", whole[at].0, whole[other].0);
            }
        }
    }

    #[test]
    fn of_all_short_sequences_exactly_those_in_order_are_chains() {
        let start = [(Stage::Intake, 1), (Stage::Workspace, 1), (Stage::Inspection, 1)];
        let steps: Vec<(Stage, u32)> =
            Stage::ALL.iter().flat_map(|stage| [(*stage, 1), (*stage, 2)]).collect();
        let mut chains = Vec::new();
        for one in &steps {
            for two in &steps {
                for three in &steps {
                    let sequence = [&start[..], &[*one, *two, *three]].concat();
                    if is_chain(&sequence) {
                        chains.push([*one, *two, *three]);
                    }
                }
            }
        }
        let (p, e, v) = (Stage::Proposal, Stage::Execution, Stage::Verification);
        let expected = [[(p, 1), (p, 2), (e, 2)], [(p, 1), (e, 1), (p, 2)], [(p, 1), (e, 1), (v, 1)]];
        chains.sort();
        assert_eq!(chains, expected);
    }

    #[test]
    fn the_chains_of_two_tasks_may_lie_between_each_other_and_lend_each_other_nothing() {
        let (mut writer, mut chains) = (Writer::new(), Chains::default());
        let mut previous = [None, None];
        for stage in Stage::ALL {
            for (at, number) in [(0, 1), (1, 2)] {
                let record = writer.write(&task(number), &event(stage, 1, previous[at]));
                assert_eq!(chains.follow(&record), Ok(()), "{stage} of {number}");
                previous[at] = Some(record.digest);
            }
        }
        assert_eq!(chains.ends().count(), 2);
        // With the receipt of the other one.
        let (mut writer, mut chains) = (Writer::new(), Chains::default());
        let first = writer.write(&task(1), &event(Stage::Intake, 1, None));
        let second = writer.write(&task(2), &event(Stage::Intake, 1, None));
        let borrowed = writer.write(&task(1), &event(Stage::Workspace, 1, Some(second.digest)));
        assert_eq!((chains.follow(&first), chains.follow(&second)), (Ok(()), Ok(())));
        assert_eq!(chains.follow(&borrowed), Err(ChainFlaw::OtherReceipt));
        let without = writer.write(&task(1), &event(Stage::Workspace, 1, None));
        assert_eq!(chains.follow(&without), Err(ChainFlaw::OtherReceipt));
    }

    #[test]
    fn what_a_stage_never_has_and_what_is_about_no_task_is_found() {
        let (mut writer, mut chains) = (Writer::new(), Chains::default());
        let mut greedy = event(Stage::Intake, 1, None);
        if let Event::Stage { grant, .. } = &mut greedy {
            grant.writes_outside = true;
        }
        assert_eq!(chains.follow(&writer.write(&task(1), &greedy)), Err(ChainFlaw::TooMuch(Stage::Intake)));
        let mut record = writer.write(&task(1), &event(Stage::Intake, 1, None));
        record.subject = Subject::default();
        assert_eq!(chains.follow(&record), Err(ChainFlaw::NoTask));
    }

    #[test]
    fn a_new_round_forgets_what_was_done_in_the_one_before() {
        let (mut writer, mut chains, mut previous) = (Writer::new(), Chains::default(), None);
        let done = StageWork::Done(Digest::of(b"x"));
        let stages = [all_in_order(), vec![(Stage::Proposal, 2), (Stage::Execution, 2)]].concat();
        for (stage, round) in stages {
            let grant = stage.most();
            let record = writer.write(&task(1), &Event::Stage { stage, round, work: done, grant, previous });
            previous = Some(record.digest);
            chains.follow(&record).expect("is in order");
        }
        let end = chains.of(&task(1)).expect("has a chain");
        assert_eq!((end.stage(), end.round(), end.work(Stage::Review)), (Stage::Execution, 2, None));
        assert_eq!((end.work(Stage::Intake), end.without_work()), (Some(done), Vec::new()));
    }
}
