//! What goes, what stays, and everything that can come in between.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use model::task::TaskState;
use model::{ContentClass, Digest, Effect, OsText, TaskId};
use model::{Event, LegalScope};

use super::bench::{Bench, LONG, ada, all, config};
use super::*;
use crate::Turn;
use crate::fail_point;
use crate::store::{LayerState, StoreError};

#[test]
fn each_class_goes_at_its_own_age_and_the_record_names_what_went() {
    let bench = Bench::new();
    let (closed, open) = (bench.task("closed"), bench.task("open"));
    let (gone, stays) = (bench.act(&closed, 0, 5000), bench.act(&open, 0, 5000));
    for task in [&closed, &open] {
        fs::create_dir_all(bench.engine.places().cache(&task.id)).expect("is made");
        fs::write(bench.engine.places().cache(&task.id).join("c"), "cached").expect("is written");
        let message = serde_json::value::RawValue::from_string("{\"a\":1}".to_owned()).expect("is JSON");
        bench.engine.keep_message(&task.id, &message).expect("is kept");
        let (response, tokens) = (Digest::of(b"answer"), model::event::TokenUsage::default());
        let sent = format!("{{\"sent\":\"{}\"}}", task.id);
        let turn = Turn { model: "m", sent: &sent, response, tokens };
        bench.engine.model_turn(&task.id, &turn).expect("is kept");
    }
    bench.close(&closed);
    let long = Retention::of(LONG);
    assert_eq!(bench.collect(&long), Garbage::default());
    let outputs = bench.collect(&long.clone().with_age(KeptClass::Outputs, Duration::ZERO));
    assert_eq!(outputs.classes.keys().collect::<Vec<_>>(), [&KeptClass::Outputs]);
    assert_eq!(bench.is_there(&closed, &gone), [true, true, false]);
    let would = bench.would(&all());
    assert_eq!(bench.is_there(&closed, &gone), [true, true, false], "only looked at");
    let went = bench.collect(&all());
    assert_eq!(went, would, "it is as it was said to be");
    let classes: Vec<&str> = went.classes.keys().map(|class| class.name()).collect();
    assert_eq!(classes, ["layers", "artifacts", "contexts", "transcripts", "caches"]);
    assert!(went.classes.values().all(|of| of.number == 1 && of.bytes > 0), "{went:?}");
    assert_eq!(bench.is_there(&closed, &gone), [false; 3]);
    assert_eq!(bench.is_there(&open, &stays), [true; 3], "its task can go on");
    let removed = bench.removed();
    assert_eq!(removed[&KeptClass::Layers], [gone.to_string()]);
    assert_eq!(removed[&KeptClass::Outputs], [gone.to_string()]);
    assert_eq!(removed[&KeptClass::Transcripts], [closed.id.to_string()]);
    assert_eq!(bench.collect(&all()), Garbage::default(), "nothing is left");
    let kept = bench.engine.store().read(|reader| reader.contents(ContentClass::Context)).expect("is read");
    assert_eq!(kept.len(), 1, "what the open task was sent");
    assert!(bench.engine.store().content(ContentClass::Context, &kept[0].digest).expect("is read").is_some());
    assert_eq!(bench.engine.store().messages(&open.id).expect("is read").len(), 1);
}

#[test]
fn what_failed_or_was_denied_stays_longer() {
    let bench = Bench::new();
    let task = bench.task("w");
    let (fine, failed) = (bench.act(&task, 0, 100), bench.act(&task, 1, 100));
    bench.close(&task);
    let garbage = bench.collect(&all().with_incidents(LONG));
    assert_eq!((bench.is_there(&task, &fine), bench.is_there(&task, &failed)), ([false; 3], [true; 3]));
    assert_eq!(garbage.incidents, 3);
    assert_eq!(bench.collect(&all()).actions, [failed]);
}

#[test]
fn what_was_refused_or_tried_again_in_other_words_makes_an_incident_of_what_ended_well() {
    let bench = Bench::new();
    let task = bench.task("w");
    let actions = [0; 4].map(|status| bench.act(&task, status, 10));
    let attempt = |verdict: serde_json::Value| {
        let attempt = serde_json::json!({
            "at": 1, "door": "dns", "name": "a.test", "port": null, "address": null, "method": null, "path": null,
            "verdict": verdict, "sent": 0, "received": 0,
        });
        let attempts = vec![serde_json::from_value(attempt).expect("an attempt")];
        Event::NetworkAttempts { attempts, dropped: 0 }
    };
    let refused = serde_json::json!({"verdict": "refused", "reason": "r", "why": "w"});
    let met = Event::DenialMet {
        effect: Effect::Unknown { why: "w".to_owned() },
        reason: "r".to_owned(),
        first: actions[3].clone(),
        observed: true,
        ways: 1,
    };
    let allowed = serde_json::json!({"verdict": "allowed", "rule": "tcp://a.test:1"});
    for (action, event) in actions.iter().zip([attempt(refused), met, attempt(allowed)]) {
        bench.note(&task, Some(action), &event);
    }
    bench.close(&task);
    let went: BTreeSet<_> = bench.collect(&all().with_incidents(LONG)).actions.into_iter().collect();
    assert_eq!(went, actions[2..].iter().cloned().collect());
}

#[test]
fn a_legal_hold_keeps_what_it_covers_until_it_is_lifted() {
    let bench = Bench::new();
    let (one, two) = (bench.task("one"), bench.task("two"));
    let actions = [bench.act(&one, 0, 10), bench.act(&one, 0, 10), bench.act(&one, 0, 10)];
    let other = bench.act(&two, 0, 10);
    let scope = LegalScope::Action { task: one.id.clone(), action: actions[1].clone(), ordinal: 2 };
    let hold = bench.hold(scope);
    [&one, &two].iter().for_each(|task| bench.close(task));
    let garbage = bench.collect(&all());
    let there = actions.each_ref().map(|action| bench.is_there(&one, action));
    assert_eq!(there, [[true; 3], [true; 3], [false; 3]], "what came before it stays with it");
    assert_eq!(bench.is_there(&two, &other), [false; 3]);
    assert_eq!(garbage.held, 6);
    bench.engine.lift_legally(&hold.id, &ada(), "it is over").expect("is written");
    assert!(bench.engine.lift_legally(&hold.id, &ada(), "again").is_err());
    assert_eq!(bench.collect(&all()).actions.len(), 2);
}

#[test]
fn a_legal_hold_on_a_directory_covers_its_tasks_wherever_that_goes() {
    let bench = Bench::new();
    let task = bench.task("held");
    let action = bench.act(&task, 0, 10);
    let place = OsText::try_from(task.workspace.path.as_path().to_str().expect("is text")).expect("no NUL");
    bench.hold(LegalScope::Directory(place));
    bench.close(&task);
    fs::remove_dir_all(task.workspace.path.as_path()).expect("is gone");
    assert!(bench.collect(&all()).held > 0);
    assert_eq!(bench.is_there(&task, &action), [true; 3]);
}

#[test]
fn a_layer_that_a_held_fork_stands_on_stays() {
    let bench = Bench::new();
    let task = bench.task("w");
    let action = bench.act(&task, 0, 10);
    let fork = bench.engine.fork(&task, None).expect("forks");
    bench.hold(LegalScope::Task(fork.id.clone()));
    [&task, &fork].iter().for_each(|task| bench.close(task));
    bench.collect(&all());
    assert_eq!(
        bench.is_there(&task, &action),
        [true, false, false],
        "artifacts and output are not the fork's"
    );
}

#[test]
fn beyond_a_size_the_oldest_goes_and_never_what_somebody_needs() {
    let bench = Bench::new();
    let (open, closed) = (bench.task("open"), bench.task("closed"));
    let needed = bench.act(&open, 0, 100_000);
    let [old, failed, new] = [0, 1, 0].map(|status| bench.act(&closed, status, 100_000));
    bench.close(&closed);
    let most = |bytes| Retention::of(LONG).with_most(KeptClass::Layers, bytes);
    assert_eq!(bench.would(&most(1 << 30)), Garbage::default());
    assert_eq!(bench.collect(&most(350_000)).actions, [old], "the oldest alone is enough");
    assert_eq!(bench.collect(&most(1)).actions, [new], "what failed has an age of its own");
    assert!(bench.is_there(&open, &needed)[0] && bench.is_there(&closed, &failed)[0]);
}

#[test]
fn beyond_a_size_the_oldest_context_goes_and_what_another_needs_of_it_stays() {
    let bench = Bench::new();
    let tasks: Vec<Task> = ["one", "two", "open"].map(|name| bench.task(name)).into();
    let shared = "shared by all of them ".repeat(2000);
    let mut sent = Vec::new();
    for task in &tasks {
        let own: String =
            (0..2000).map(|at| Digest::of(format!("{at} {}", task.id).as_bytes()).to_string()).collect();
        let text = format!("{{\"own\":\"{own}\",\"shared\":\"{shared}\"}}");
        let (response, tokens) = (Digest::of(b"answer"), model::event::TokenUsage::default());
        let turn = Turn { model: "m", sent: &text, response, tokens };
        bench.engine.model_turn(&task.id, &turn).expect("is kept");
        sent.push(Digest::of(text.as_bytes()));
    }
    tasks[..2].iter().for_each(|task| bench.close(task));
    let bytes =
        || bench.engine.store().read(|reader| reader.content_bytes(ContentClass::Context)).expect("is read");
    let is_kept =
        |sent: &Digest| bench.engine.store().content(ContentClass::Context, sent).expect("is read").is_some();
    let most = |bytes| Retention::of(LONG).with_most(KeptClass::Contexts, bytes);
    let all_of_it = bytes();
    bench.collect(&most(all_of_it - 1));
    assert_eq!(
        sent.iter().map(is_kept).collect::<Vec<_>>(),
        [false, true, true],
        "the oldest alone is enough"
    );
    bench.hold(LegalScope::Task(tasks[1].id.clone()));
    bench.collect(&most(1));
    assert_eq!(
        sent.iter().map(is_kept).collect::<Vec<_>>(),
        [false, true, true],
        "one is held, one is needed"
    );
    assert!(bytes() < all_of_it);
}

#[test]
fn what_an_apply_overwrote_goes_when_nothing_happened_in_its_task_for_long() {
    let bench = Bench::new();
    let task = bench.task("w");
    let place = bench.engine.places().applied(&task.id);
    fs::create_dir_all(place.join("one")).expect("is made");
    fs::write(place.join("one/apply.json"), "{}").expect("is written");
    assert_eq!(bench.collect(&all()).bytes, 0, "the task can go on");
    bench.close(&task);
    assert_eq!(bench.collect(&all().with_age(KeptClass::Overwritten, LONG)).bytes, 0);
    let went = bench.collect(&all());
    assert_eq!(went.classes.keys().collect::<Vec<_>>(), [&KeptClass::Overwritten]);
    assert!(!place.exists());
}

#[test]
fn what_a_fork_came_to_stand_on_meanwhile_is_not_removed() {
    let bench = Bench::new();
    let task = bench.task("w");
    let action = bench.act(&task, 0, 10);
    bench.close(&task);
    let bench = std::rc::Rc::new(bench);
    let (other, of) = (std::rc::Rc::clone(&bench), task.clone());
    fail_point::at("gc: it is known what goes", move || drop(other.engine.fork(&of, None).expect("forks")));
    assert_eq!(bench.collect(&all()).actions, []);
    assert!(bench.is_there(&task, &action)[0]);
}

#[test]
fn a_base_that_a_legal_hold_came_to_cover_meanwhile_is_not_removed() {
    let bench = Bench::new();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let base = model::action::Base::Commit { commit: commit.to_owned() };
    let task =
        Task { id: TaskId::from_random([7; 10]), base, state: TaskState::Discarded, ..bench.task("w") };
    bench.engine.store().write(|rows| rows.insert_task(&task)).expect("is written");
    let place = bench.engine.places().base(&task.workspace, commit);
    fs::create_dir_all(&place).expect("is made");
    let bench = std::rc::Rc::new(bench);
    let (other, scope) = (std::rc::Rc::clone(&bench), LegalScope::Task(task.id.clone()));
    fail_point::at("gc: it is known which base goes", move || drop(other.hold(scope)));
    let garbage = bench.collect(&all());
    assert_eq!((garbage.classes.get(&KeptClass::Bases), garbage.held), (None, 1));
    assert!(place.is_dir() && !bench.removed().contains_key(&KeptClass::Bases));
    for hold in bench.engine.store().read(|reader| reader.legal_holds()).expect("is read").all() {
        bench.engine.lift_legally(&hold.id, &ada(), "it is over").expect("is written");
    }
    assert_eq!(bench.collect(&all()).classes[&KeptClass::Bases].number, 1);
    assert!(!place.exists());
}

#[test]
fn nobody_comes_to_stand_on_what_is_gone() {
    let bench = Bench::new();
    let task = bench.task("w");
    let action = bench.act(&task, 0, 10);
    bench.close(&task);
    bench.collect(&all());
    let added = bench.engine.store().write(|rows| {
        let fork = Task { id: TaskId::from_random([7; 10]), state: TaskState::Open, ..task.clone() };
        rows.insert_task(&fork)?;
        rows.add_layer(&fork.id, &action)
    });
    assert!(matches!(added, Err(StoreError::Gone { .. })), "{added:?}");
}

#[test]
fn killed_anywhere_it_is_on_the_record_first_and_the_next_one_takes_the_rest() {
    for after in 0.. {
        let bench = Bench::new();
        let task = bench.task("w");
        let action = bench.act(&task, 0, 10);
        bench.close(&task);
        fail_point::arm(Some(after));
        let died = catch_unwind(AssertUnwindSafe(|| bench.collect(&all()))).is_err();
        let reached = fail_point::trace();
        fail_point::arm(None);
        let bench = bench.again();
        let missing = bench.is_there(&task, &action).contains(&false);
        let state = bench.engine.store().read(|reader| reader.layers(&task.id)).expect("is read")[0].state;
        assert_eq!(state == LayerState::Removed, !bench.removed().is_empty(), "{reached:?}");
        assert!(!missing || state == LayerState::Removed, "{reached:?}");
        bench.collect(&all());
        assert_eq!(bench.is_there(&task, &action), [false; 3], "{reached:?}");
        if !died {
            assert!(after >= 5, "{reached:?}");
            return;
        }
    }
}

#[test]
fn two_at_once_remove_everything_once() {
    let bench = Bench::new();
    let tasks: Vec<Task> = (0..6).map(|number| bench.task(&format!("w{number}"))).collect();
    for task in &tasks {
        bench.act(task, 0, 1000);
        bench.close(task);
    }
    let other = Engine::open(config(&bench.directory)).expect("opens");
    let collect = |engine: &Engine| engine.collect_garbage(&all(), false, &|_, _| {}).expect("collects");
    let [one, two] = std::thread::scope(|scope| {
        [&bench.engine, &other]
            .map(|engine| scope.spawn(|| collect(engine)))
            .map(|thread| thread.join().expect("ends"))
    });
    assert_eq!(one.actions.len() + two.actions.len(), tasks.len());
    assert_eq!(bench.removed()[&KeptClass::Layers].len(), tasks.len());
}
