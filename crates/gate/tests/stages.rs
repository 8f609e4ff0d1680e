//! The stages of a task: each exists on the receipt of its own event alone, and the chain that they leave is one.

use audit::{Chains, Entry, Log, MemoryStorage};
use gate::stages::{self, Pending, StageType, Standing};
use model::grant::WorkspaceAccess;
use model::intake::{Ceiling, WorkLevel};
use model::stage::{Stage, StageWork};
use model::{Profile, TaskId, Timestamp};

fn ceiling() -> Ceiling {
    Ceiling {
        level: WorkLevel::BUILD,
        workspace: WorkspaceAccess::ReadWrite,
        network: false,
        limits: Profile::strict().limits,
    }
}

fn log() -> Log<MemoryStorage> {
    Log::open(MemoryStorage::new(audit::LogId::from_random([1; 10]))).expect("opens")
}

fn task(number: u8) -> TaskId {
    TaskId::from_random([number; 10])
}

fn record<S: StageType>(log: &Log<MemoryStorage>, pending: &Pending<S>) -> audit::Receipt {
    let (subject, event) = (pending.about(), pending.event(&ceiling()));
    let entry = Entry { subject: &subject, event: &event, time: Timestamp::from_nanos(1) };
    log.append_all(&[entry], |_| Ok(())).expect("appends").pop().expect("a receipt")
}

#[test]
fn a_stage_is_passed_by_the_receipt_of_its_own_event_alone() {
    let (log, nothing) = (log(), StageWork::Nothing);
    let of_another_task = record(&log, &stages::begin(task(2), nothing));
    assert!(stages::begin(task(1), nothing).recorded(&of_another_task, &ceiling()).is_err());
    let with_work = StageWork::Done(model::Digest::of(b"x"));
    let of_other_work = record(&log, &stages::begin(task(3), with_work));
    assert!(stages::begin(task(3), nothing).recorded(&of_other_work, &ceiling()).is_err());
    let wider = Ceiling { network: true, ..ceiling() };
    let first = stages::begin(task(1), nothing);
    let receipt = record(&log, &first);
    let at = first.recorded(&receipt, &wider).expect("an intake touches nothing, whatever the ceiling");
    let next = at.done(nothing);
    assert!(next.recorded(&receipt, &ceiling()).is_err(), "the receipt of the stage before it");
}

#[test]
fn a_task_goes_all_the_way_and_back_to_a_proposal_and_its_chain_is_one() {
    let (log, ceiling, work) = (log(), ceiling(), StageWork::Nothing);
    macro_rules! pass {
        ($pending:expr) => {{
            let pending = $pending;
            let receipt = record(&log, &pending);
            pending.recorded(&receipt, &ceiling).expect("is its own")
        }};
    }
    let at = pass!(stages::begin(task(1), work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let at = pass!(at.again(work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let at = pass!(at.done(work));
    let release = pass!(at.done(work));
    let chains = Chains::check(log.records(0)).expect("can be read").expect("is a chain");
    let end = chains.of(&task(1)).expect("has one");
    assert_eq!((end.stage(), end.round()), (Stage::Release, 2));
    assert!(matches!(Standing::of(end), Standing::Release(_)));
    let _again = pass!(release.again(work));
    assert_eq!(Chains::check(log.records(0)).expect("can be read").expect("is a chain").ends().count(), 1);
}
