//! What is pruned and what stays, and everything that can come in between.

use std::panic::{AssertUnwindSafe, catch_unwind};

use audit::{Anchors, Verification};
use model::event::HeldBack;
use model::task::Task;
use model::{ActionId, LegalScope, OsText};

use super::*;
use crate::fail_point;
use crate::gc::bench::{Bench, LONG, ada};
use crate::store::Evidence;

fn order(age: Duration) -> PruneOrder {
    PruneOrder {
        ages: EventClass::ALL.map(|class| (class, age)).into(),
        incidents: age,
        by: ada(),
        reason: "its time is over".to_owned(),
        dry_run: false,
    }
}

fn now() -> PruneOrder {
    order(Duration::ZERO)
}

/// A closed task with one action that ended with this status.
fn closed(bench: &Bench, name: &str, status: u8) -> (Task, ActionId) {
    let task = bench.task(name);
    let action = bench.act(&task, status, 10);
    bench.tell(&task, &action);
    bench.close(&task);
    (task, action)
}

fn prune(bench: &Bench, order: &PruneOrder) -> Prune {
    bench.engine.prune(order, &|_, _| {}).expect("prunes")
}

fn stubs(bench: &Bench) -> u64 {
    match bench.engine.log().verify(&Anchors::default()).expect("is read") {
        Verification::Consistent { pruned, .. } => pruned.number,
        other => panic!("{other}"),
    }
}

/// Whether a word stands anywhere in the files of the database.
fn is_kept(bench: &Bench, word: &str) -> bool {
    let files = ["fumehood.db", "fumehood.db-wal"].map(|name| bench.engine.store().directory().join(name));
    let holds = |bytes: Vec<u8>| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    files.iter().any(|file| std::fs::read(file).is_ok_and(holds))
}

#[test]
fn content_goes_from_the_files_of_the_database_and_the_record_verifies() {
    let bench = Bench::new();
    closed(&bench, "w", 0);
    assert!(is_kept(&bench, "a-word-of-this-run") && is_kept(&bench, "a-word-of-its-gateway"));
    let would = prune(&bench, &PruneOrder { dry_run: true, ..now() });
    assert_eq!((would.classes.len(), stubs(&bench)), (2, 0), "only looked at");
    assert_eq!(prune(&bench, &now()), would);
    assert_eq!(stubs(&bench), 2);
    assert!(!is_kept(&bench, "a-word-of-this-run") && !is_kept(&bench, "a-word-of-its-gateway"));
    assert_eq!(prune(&bench, &now()), Prune::default(), "nothing is left to prune");
    let again = bench.again();
    assert_eq!(stubs(&again), 2);
}

#[test]
fn what_goes_on_is_held_young_or_about_a_failure_stays() {
    let bench = Bench::new();
    let (held, _) = closed(&bench, "held", 0);
    bench.hold(LegalScope::Task(held.id));
    closed(&bench, "failed", 1);
    let open = bench.task("open");
    bench.tell(&open, &bench.act(&open, 0, 10));
    let kept = prune(&bench, &PruneOrder { incidents: LONG, ..now() });
    assert_eq!((kept.held, kept.incidents, kept.records.len()), (2, 2, 0));
    closed(&bench, "young", 0);
    assert_eq!(prune(&bench, &order(LONG)), Prune::default());
    let runs = [(EventClass::Runs, Duration::ZERO)].into();
    let of_one_class = prune(&bench, &PruneOrder { ages: runs, incidents: LONG, ..now() });
    assert_eq!(of_one_class.classes.keys().collect::<Vec<_>>(), [&EventClass::Runs]);
    assert_eq!(stubs(&bench), 1);
}

#[test]
fn what_somebody_came_to_hold_meanwhile_stays_whole() {
    let bench = std::rc::Rc::new(Bench::new());
    let (task, _) = closed(&bench, "w", 0);
    let other = std::rc::Rc::clone(&bench);
    fail_point::at("prune: it is known what goes", move || drop(other.hold(LegalScope::Task(task.id))));
    let pruned = prune(&bench, &now());
    assert_eq!((pruned.records.len(), stubs(&bench)), (0, 0));
    assert!(is_kept(&bench, "a-word-of-this-run"));
}

#[test]
fn killed_anywhere_there_is_no_stub_without_the_event_that_names_it() {
    for after in 0.. {
        let bench = Bench::new();
        closed(&bench, "w", 0);
        fail_point::arm(Some(after));
        let died = catch_unwind(AssertUnwindSafe(|| prune(&bench, &now()))).is_err();
        let reached = fail_point::trace();
        fail_point::arm(None);
        let bench = bench.again();
        assert!(stubs(&bench) <= 2, "{reached:?}");
        prune(&bench, &now());
        assert_eq!(stubs(&bench), 2, "{reached:?}");
        if !died {
            assert!(after >= 4, "{reached:?}");
            return;
        }
    }
}

#[test]
fn a_record_that_was_edited_is_left_as_evidence() {
    let bench = Bench::new();
    closed(&bench, "w", 0);
    let path = bench.engine.store().directory().join("fumehood.db");
    let edit = "UPDATE records SET event = replace(event, 'a-word-of-this-run', 'another-word')";
    rusqlite::Connection::open(path).expect("opens").execute(edit, []).expect("is edited");
    let refused = bench.engine.prune(&now(), &|_, _| {}).expect_err("is refused");
    let told = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(
        told.contains("not as it was written") || refused.to_string().contains("not as it was written"),
        "{refused} {told}"
    );
    assert!(is_kept(&bench, "another-word"));
}

#[test]
fn the_rows_of_an_action_lose_the_same_and_keep_what_guards_credentials() {
    let bench = Bench::new();
    let task = bench.task("w");
    let action = bench.act(&task, 0, 10);
    let held = HeldBack {
        path: OsText::literal("a-credential"),
        reason: inspect::release::CREDENTIAL.to_owned(),
        why: "it is one".to_owned(),
    };
    let evidence = Evidence {
        masked: Some(vec![OsText::literal("a-masked-file")]),
        held_back: Some(vec![held]),
        ..Evidence::default()
    };
    bench.engine.store().write(|rows| rows.keep_evidence(&action, &evidence)).expect("is kept");
    bench.tell(&task, &action);
    bench.close(&task);
    prune(&bench, &now());
    let left = bench.engine.store().read(|rows| rows.evidence(&action)).expect("is read");
    assert_eq!((left.masked, left.held_back), (None, evidence.held_back));
    assert_eq!(bench.engine.store().read(|rows| rows.made_credentials(&task.id)).expect("is read").len(), 1);
}
