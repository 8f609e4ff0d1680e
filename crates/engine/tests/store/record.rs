//! The record in the database: one chain, also for whoever edits the file.

use audit::{
    Anchors, Broken, Entry, Flaw, Log, Malformed, Storage as _, Verification, export, verify_export,
};
use engine::store::{ActionState, Store, StoreError};
use model::event::{Event, Verdict};
use proptest::prelude::*;

use super::fixture::{action, append, at, checked_length, decision, event, place, subject, task};

fn edited(sql: &str) -> Verification {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    for n in 0..9 {
        append(&log, &format!("event {n}"));
    }
    rusqlite::Connection::open(state.join("fumehood.db")).unwrap().execute_batch(sql).unwrap();
    log.verify(&Anchors::default()).unwrap()
}

fn broken(record: u64, flaw: Flaw) -> Verification {
    Verification::Broken(Broken { record, flaw })
}

#[test]
fn whoever_edits_the_file_is_found_out() {
    let edits = [
        ("UPDATE records SET event = replace(event, '3', '7') WHERE seq = 4", 4, Flaw::Edited),
        ("UPDATE records SET task = NULL WHERE seq = 2", 2, Flaw::Edited),
        ("UPDATE records SET time = 5 WHERE seq = 9", 9, Flaw::Edited),
        ("DELETE FROM records WHERE seq = 5", 5, Flaw::Dropped { next: 6 }),
        ("DELETE FROM records WHERE seq < 3", 1, Flaw::Dropped { next: 3 }),
        ("UPDATE records SET seq = seq + 100 WHERE seq = 5", 5, Flaw::Dropped { next: 6 }),
        ("UPDATE records SET format = 7 WHERE seq = 5", 5, Flaw::Format { format: 7 }),
        (
            "UPDATE records SET event = CAST(x'ff00fe' AS TEXT) WHERE seq = 6",
            6,
            Flaw::Malformed(Malformed::NotUtf8),
        ),
    ];
    for (sql, record, flaw) in edits {
        assert_eq!(edited(sql), broken(record, flaw), "{sql}");
    }
}

#[test]
fn columns_that_no_record_has_are_named_and_never_a_panic() {
    for (sql, record) in [
        ("UPDATE records SET seq = -5 WHERE seq = 3", 1),
        ("UPDATE records SET digest = x'00' WHERE seq = 3", 3),
        ("UPDATE records SET previous = zeroblob(33) WHERE seq = 4", 4),
        ("UPDATE records SET task = 'task-../..' WHERE seq = 5", 5),
        ("UPDATE records SET action = 'x' WHERE seq = 6", 6),
        ("UPDATE records SET format = -1 WHERE seq = 7", 7),
    ] {
        let found = edited(sql);
        let Verification::Broken(Broken { record: at, flaw: Flaw::Malformed(_) }) = found else {
            panic!("{sql}: {found}");
        };
        assert_eq!(at, record, "{sql}");
    }
}

#[test]
fn a_tail_that_was_cut_is_found_against_a_head() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    for n in 0..5 {
        append(&log, &format!("event {n}"));
    }
    let head = log.head().unwrap();
    assert!(matches!(
        log.verify(&Anchors::default().and_head(head.clone())).unwrap(),
        Verification::Anchored { anchored: 5, .. }
    ));
    let sql = "DELETE FROM records WHERE seq > 3";
    rusqlite::Connection::open(state.join("fumehood.db")).unwrap().execute_batch(sql).unwrap();
    assert!(matches!(log.verify(&Anchors::default()).unwrap(), Verification::Consistent { .. }));
    assert_eq!(
        log.verify(&Anchors::default().and_head(head.clone())).unwrap(),
        broken(4, Flaw::Cut { ends: 5 })
    );
}

#[test]
fn an_event_and_the_rows_that_it_is_about_change_together_or_not_at_all() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    let task = task(1, 1, 1);
    let action = action(1, &task.id, &[]);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    let receipt = log
        .append_with(&subject(1), &event("asked"), at(2), |rows| {
            rows.insert_action(&action, "action", at(2)).map(drop)
        })
        .unwrap();
    assert_eq!(receipt.seq(), 1);

    let refused = log.append_with(&subject(1), &event("denied"), at(3), |rows| {
        rows.set_decision(action.id(), &decision(Verdict::Deny), at(3))?;
        rows.set_started(action.id(), at(3))
    });
    assert!(refused.is_err());
    assert_eq!(checked_length(&store), 1, "the event went with the rows");
    let found = store.read(|rows| rows.action(action.id())).unwrap().unwrap();
    assert_eq!((found.state, found.decision), (ActionState::Requested, None), "and so did the decision");
}

#[test]
fn a_batch_is_appended_whole() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    let events: Vec<Event> = (0..10).map(|n| event(&n.to_string())).collect();
    let subject = subject(1);
    let entries: Vec<Entry<'_>> =
        events.iter().map(|event| Entry { subject: &subject, event, time: at(1) }).collect();
    let receipts = log.append_all(&entries, |_| Ok(())).unwrap();
    assert_eq!(receipts.iter().map(audit::Receipt::seq).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    let failing = log.append_all(&entries, |_| Err(StoreError::Foreign));
    assert!(failing.is_err());
    assert_eq!(checked_length(&store), 10);
}

#[test]
fn the_records_of_a_task_and_of_an_action_are_found() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    for (n, about) in [subject(1), subject(2), subject(1)].iter().enumerate() {
        let _receipt = log.append(about, &event(&n.to_string()), at(1)).unwrap();
    }
    let task_only = model::Subject { action: None, ..subject(1) };
    let _receipt = log.append(&task_only, &event("task"), at(1)).unwrap();
    let (task, action) = (subject(1).task.unwrap(), subject(1).action.unwrap());
    let places = |records: Vec<audit::Record>| records.iter().map(|record| record.seq).collect::<Vec<_>>();
    assert_eq!(places(store.read(|rows| rows.records_of_task(&task)).unwrap()), [1, 3, 4]);
    assert_eq!(places(store.read(|rows| rows.records_of_action(&task, &action)).unwrap()), [1, 3]);
}

#[test]
fn more_than_a_page_is_read_in_order_and_exported_whole() {
    let (_directory, state) = place();
    let store = Store::open(&state).unwrap();
    let log = Log::open(&store).unwrap();
    let large = event(&"x".repeat(3 << 20));
    let small = event("small");
    let subject = subject(1);
    let entries: Vec<Entry<'_>> = (0..600)
        .map(|n| if n % 150 == 0 { &large } else { &small })
        .map(|event| Entry { subject: &subject, event, time: at(1) })
        .collect();
    drop(log.append_all(&entries, |_| Ok(())).unwrap());
    let places: Vec<u64> = store.records(0).map(|record| record.unwrap().seq).collect();
    assert_eq!(places, (1..=600).collect::<Vec<_>>());
    assert_eq!(store.records(599).count(), 2);
    let mut text = Vec::new();
    let head = export(store.records(0), store.log(), &mut text).unwrap();
    assert_eq!(head, log.head().unwrap());
    assert!(matches!(
        verify_export(&text[..], &Anchors::default().and_head(head.clone())).unwrap(),
        Verification::Anchored { anchored: 600, .. }
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_the_events_say_they_are_read_back_and_chained(texts in prop::collection::vec(any::<String>(), 1..20)) {
        let (_directory, state) = place();
        let store = Store::open(&state).unwrap();
        let log = Log::open(&store).unwrap();
        for text in &texts {
 append(&log, text);
}
        prop_assert_eq!(checked_length(&store), texts.len() as u64);
        let read: Vec<Event> = log.records(0).map(|record| record.unwrap().parse_event().unwrap()).collect();
        prop_assert_eq!(read, texts.iter().map(|text| event(text)).collect::<Vec<_>>());
    }
}
