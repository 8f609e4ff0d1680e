//! What a person stopped starts nothing, however close the start and the stop come to each other. Works as root and as an
//! ordinary user; needs git.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use common::{Bench, config};
use engine::store::ActionState;
use engine::{Engine, Io, Order, Outcome, Silent};
use model::action::Principal;
use model::event::Event;
use model::task::{Task, TaskState};
use model::{HoldScope, OsText, Profile};

/// A step that a test acts at belongs to the whole process, so the tests run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn quiet() -> Io {
    Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None }
}

fn ada() -> Principal {
    Principal::User("ada".to_owned())
}

fn handle(engine: &Engine, task: &Task, order: Order) -> Outcome {
    engine.handle(task, order, quiet(), || {}).expect("an answer")
}

fn order(bench: &Bench, script: &str) -> Order {
    bench.order(&Profile::default_profile(), &bench.repository(), script)
}

/// Opens the same state once more, as another process does.
fn another(bench: &Bench) -> Engine {
    Engine::open(config(&bench.directory)).expect("opens")
}

/// Returns the places in the record of the hold and of every start, in order.
fn held_and_started(engine: &Engine) -> (Option<usize>, Vec<usize>) {
    let records: Vec<_> = engine.log().records(0).map(|record| record.expect("a record")).collect();
    let events: Vec<Event> = records.iter().map(|record| record.parse_event().expect("an event")).collect();
    let held = events.iter().position(|event| matches!(event, Event::Held { .. }));
    let starts = events.iter().enumerate().filter(|(_, event)| matches!(event, Event::Started { .. }));
    (held, starts.map(|(at, _)| at).collect())
}

#[test]
fn a_stop_at_any_step_before_the_start_lets_nothing_start() {
    let _turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(sandbox::fail_point::is_compiled_in(), "this needs a build with fail points");
    for (step, is_denied) in [
        ("decision: the action has its place", true),
        ("decision: it is about to be on the record", true),
        ("decision: it is on the record", false),
    ] {
        let bench = Bench::new();
        let task = bench.live(&bench.repository());
        let other = another(&bench);
        let hold = move || drop(other.hold(HoldScope::All, &ada(), "a key has leaked", None).expect("holds"));
        sandbox::fail_point::act(step, hold);
        let outcome = handle(&bench.engine, &task, order(&bench, "echo ran > made"));
        match outcome {
            Outcome::Denied { denial, .. } if is_denied => {
                assert_eq!(denial.reason(), "held", "{step}");
                assert!(
                    denial.record().advice.contains("ada stopped everything: a key has leaked"),
                    "{step}"
                );
            }
            Outcome::NotStarted(not_started) if !is_denied => {
                assert!(
                    not_started.reason.starts_with("held: ada stopped"),
                    "{step}: {}",
                    not_started.reason
                );
            }
            other => panic!("{step}: {other:?}"),
        }
        let (held, starts) = held_and_started(&bench.engine);
        assert!(held.is_some() && starts.is_empty(), "{step}: {starts:?}");
        let layers = bench.engine.store().read(|reader| reader.kept_layers(&task.id)).expect("can be read");
        assert!(layers.is_empty(), "{step}");
        let runs = bench.engine.config().state_dir.join("run");
        assert_eq!(std::fs::read_dir(runs).expect("is there").count(), 0, "{step}: nothing is left");
        let verified = bench.engine.log().verify(&audit::Anchors::default()).expect("can be read");
        assert!(verified.end().is_some(), "{step}: {verified}");
    }
}

#[test]
fn of_many_starts_at_once_none_comes_after_the_stop() {
    let _turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = Bench::new();
    let (over, ran) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let tasks: Vec<Task> = (0..3).map(|_| bench.live(&bench.repository())).collect();
    let engines: Vec<Engine> = tasks.iter().map(|_| another(&bench)).collect();
    std::thread::scope(|scope| {
        for (engine, task) in engines.iter().zip(&tasks) {
            let (over, ran, bench) = (Arc::clone(&over), Arc::clone(&ran), &bench);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match handle(engine, task, order(bench, "true")) {
                        Outcome::Finished(_) => drop(ran.fetch_add(1, Ordering::Relaxed)),
                        Outcome::Denied { denial, .. } => assert_eq!(denial.reason(), "held"),
                        Outcome::NotStarted(not_started) => {
                            assert!(not_started.reason.starts_with("held: "), "{}", not_started.reason);
                        }
                        Outcome::NeedsApproval { .. } => panic!("nobody is asked"),
                    }
                }
            });
        }
        let wait = |until: u32| {
            while ran.load(Ordering::Relaxed) < until {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        };
        wait(4);
        let hold = bench.engine.hold(HoldScope::All, &ada(), "enough", None).expect("holds");
        std::thread::sleep(std::time::Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        assert_eq!(hold.reason, "enough");
    });
    let (held, starts) = held_and_started(&bench.engine);
    let held = held.expect("is on the record");
    assert!(starts.len() >= 4 && starts.iter().all(|start| *start < held), "{held}: {starts:?}");
}

#[test]
fn a_hold_survives_a_restart_and_covers_trials_and_parked_sandboxes_until_it_is_lifted() {
    let _turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = Bench::new();
    let task = bench.live(&bench.repository());
    bench.engine.park(&task, &order(&bench, "true")).expect("it is built");
    let path = OsText::try_from(bench.repository().into_os_string()).expect("a path");
    let scope = HoldScope::Directory(path);
    let hold = bench.engine.hold(scope, &ada(), "look at this first", None).expect("holds");
    let denied = |engine: &Engine| match handle(engine, &task, order(&bench, "echo x > made")) {
        Outcome::Denied { denial, .. } => assert_eq!(denial.reason(), "held"),
        other => panic!("{other:?}"),
    };
    denied(&bench.engine);
    denied(&another(&bench));
    // Nothing is built ahead, either.
    bench.engine.park(&task, &order(&bench, "true")).expect("it is no error");
    let places = std::fs::read_dir(bench.engine.config().state_dir.join("run")).expect("is there");
    assert_eq!(places.count(), 0, "no sandbox waits");
    let refused = bench.engine.at_work(&task.id).expect_err("no agent begins").to_string();
    assert!(refused.contains("look at this first"), "{refused}");

    bench.engine.lift(&hold, &ada(), "looked at").expect("lifts");
    assert!(matches!(handle(&another(&bench), &task, order(&bench, "true")), Outcome::Finished(_)));
    let again = bench.engine.lift(&hold, &ada(), "again").expect_err("once").to_string();
    assert!(again.contains("was lifted already"), "{again}");
}

#[test]
fn a_task_that_is_stopped_meanwhile_starts_nothing_and_what_is_beside_it_goes_on() {
    let _turn = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = Bench::new();
    let (task, beside) = (bench.live(&bench.repository()), bench.live(&bench.repository()));
    let other = another(&bench);
    let id = task.id.clone();
    sandbox::fail_point::act("decision: the action has its place", move || {
        other.set_task_state(&id, TaskState::Stopped).expect("is written");
    });
    let Outcome::Denied { action, denial } = handle(&bench.engine, &task, order(&bench, "true")) else {
        panic!("it was stopped")
    };
    assert_eq!(denial.reason(), "task-not-open");
    let stored = bench.engine.store().read(|reader| reader.find_action(action.as_str())).expect("is there");
    assert_eq!(stored.state, ActionState::Denied);
    assert!(matches!(handle(&bench.engine, &beside, order(&bench, "true")), Outcome::Finished(_)));
}
