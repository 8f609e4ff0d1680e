//! Requests for a person's yes at the edges of their time, and what is left of them.

mod common;

use std::time::Duration;

use common::{Bench, config};
use engine::store::StoredApproval;
use engine::{Approver, Engine, EngineError, Outcome, PolicySource, Yes};
use model::approval::Answered;
use model::task::Task;
use model::{ApprovalState, Profile};

/// An engine under whose rules everything but reading needs a yes.
fn cautious() -> Bench {
    let Bench { directory, engine } = Bench::new();
    drop(engine);
    let policy = PolicySource::Bundle("cautious".to_owned());
    let engine = Engine::open(engine::Config { policy, ..config(&directory) }).expect("opens");
    Bench { directory, engine }
}

fn ada() -> Approver {
    Approver { name: "ada".to_owned(), account: 1000, file: None }
}

/// Asks for a script, and returns the request.
fn asks(bench: &Bench, task: &Task, script: &str) -> StoredApproval {
    let order = bench.order(&Profile::default_profile(), &bench.repository(), script);
    let Outcome::NeedsApproval { action, .. } = bench.handle(task, order) else { panic!("it needs no yes") };
    let asked = bench.engine.store().read(|reader| reader.approval_of_action(&action)).expect("reads");
    asked.expect("a person is asked")
}

fn yes(bench: &Bench, asked: &StoredApproval) -> Result<Yes, EngineError> {
    bench.engine.say_yes(asked, &ada(), None, &Profile::default_profile())
}

fn state(bench: &Bench, asked: &StoredApproval) -> ApprovalState {
    bench.engine.store().read(|reader| reader.find_approval(asked.id.as_str())).expect("reads").state
}

fn layer_is_there(bench: &Bench, asked: &StoredApproval) -> bool {
    let layers = bench.directory.path().join("state/tasks").join(asked.task.as_str()).join("layers");
    layers.join(asked.action.as_str()).exists()
}

/// Lets the time of every request be over, as the clock since the boot tells it; the wall clock says nothing of that.
fn let_time_pass(bench: &Bench) {
    let database = bench.directory.path().join("state/fumehood.db");
    let sql = "UPDATE approvals SET expires_boot = 1";
    rusqlite::Connection::open(database).and_then(|database| database.execute_batch(sql)).expect("writes");
}

#[test]
fn a_yes_that_comes_too_late_is_none_and_nothing_of_the_trial_stays() {
    let bench = cautious();
    let task = bench.live(&bench.repository());
    let script = "echo made > made";
    let asked = asks(&bench, &task, script);
    assert!(layer_is_there(&bench, &asked));
    let_time_pass(&bench);
    let late = yes(&bench, &asked).expect_err("it is too late");
    assert!(late.to_string().contains("has expired"), "{late}");
    assert_eq!(state(&bench, &asked), ApprovalState::Expired);
    assert!(!layer_is_there(&bench, &asked));
    let again = asks(&bench, &task, script);
    assert_ne!(again.id, asked.id, "it is asked for again");
    assert_eq!(yes(&bench, &again).expect("in time"), Yes::Kept);
}

#[test]
fn what_nobody_answered_is_collected() {
    let bench = cautious();
    let task = bench.live(&bench.repository());
    let asked = asks(&bench, &task, "echo made > made");
    let retention = engine::Retention::of(Duration::from_hours(1));
    let kept = bench.engine.collect_garbage(&retention, false, &|_, _| {}).expect("collects");
    assert!(kept.bytes == 0 && layer_is_there(&bench, &asked), "it can still be answered");
    let_time_pass(&bench);
    let would = bench.engine.collect_garbage(&retention, true, &|_, _| {}).expect("looks");
    assert!(would.bytes > 0 && layer_is_there(&bench, &asked), "only looked at");
    bench.engine.collect_garbage(&retention, false, &|_, _| {}).expect("collects");
    assert_eq!(state(&bench, &asked), ApprovalState::Expired);
    assert!(!layer_is_there(&bench, &asked));
}

#[test]
fn what_was_refused_or_taken_back_leaves_no_layer_and_what_was_kept_is_never_collected() {
    let bench = cautious();
    let task = bench.live(&bench.repository());
    for answer in [Answered::No, Answered::TakenBack] {
        let asked = asks(&bench, &task, &format!("echo made > '{answer}'"));
        bench.engine.say_no(&asked, &ada(), answer, Some("no")).expect("is taken");
        assert!(!layer_is_there(&bench, &asked), "{answer}");
    }
    let script = "echo made > made";
    let asked = asks(&bench, &task, script);
    assert_eq!(yes(&bench, &asked).expect("in time"), Yes::Kept);
    let_time_pass(&bench);
    bench
        .engine
        .collect_garbage(&engine::Retention::of(Duration::ZERO), false, &|_, _| {})
        .expect("collects");
    assert!(layer_is_there(&bench, &asked), "the task stands on it");
}

#[test]
fn a_yes_is_worth_nothing_when_the_task_went_on_or_ended() {
    let bench = cautious();
    let task = bench.live(&bench.repository());
    let (first, second) = ("echo one > one", "echo two > two");
    let (one, two) = (asks(&bench, &task, first), asks(&bench, &task, second));
    assert_eq!(yes(&bench, &one).expect("in time"), Yes::Kept);
    assert!(
        matches!(yes(&bench, &two).expect("is answered"), Yes::Void(why) if why.contains("other layers"))
    );
    let three = asks(&bench, &task, second);
    bench.engine.discard(&task).expect("is thrown away");
    assert_eq!(state(&bench, &three), ApprovalState::Void);
    assert!(yes(&bench, &three).expect_err("is over").to_string().contains("is void already"));
    assert!(!layer_is_there(&bench, &three));
}

#[test]
fn who_was_ended_before_a_trial_was_closed_leaves_nothing_that_waits_for_ever() {
    let bench = cautious();
    let task = bench.live(&bench.repository());
    let asked = asks(&bench, &task, "echo made > made");
    let database = bench.directory.path().join("state/fumehood.db");
    // The action has come to its end, and its request has not heard of it.
    let sql = "UPDATE approvals SET state = 'trying'";
    rusqlite::Connection::open(database).and_then(|database| database.execute_batch(sql)).expect("writes");
    drop(Engine::open(config(&bench.directory)).expect("opens"));
    assert_eq!(state(&bench, &asked), ApprovalState::Void);
    assert!(!layer_is_there(&bench, &asked));
}
