//! Secrets: no row and no record holds one.

use std::collections::BTreeSet;

use audit::{Entry, Log};
use engine::store::{Evidence, Store, StoredDenial};
use gate::Remembered;
use model::event::{DecisionRecord, Event, Verdict};
use model::evidence::{Observed, ProgramStart};
use model::task::Task;
use model::{Effect, OsText, TaskId};
use tempfile::TempDir;

use super::fixture::{action, at, checked_length, decision, event, os, place, subject, task};

fn store() -> (TempDir, Store) {
    let (directory, state) = place();
    let store = Store::open(&state).unwrap();
    (directory, store)
}

#[test]
fn no_text_that_is_written_has_a_secret_in_it() {
    let (directory, store) = store();
    let secret = "q8Zr2L\"xP0vN5";
    store.learn_secrets([("KEY".to_owned(), secret.as_bytes().to_vec())]);
    let task = Task { title: Some(format!("use {secret}")), ..task(1, 1, 1) };
    let action = action(1, &task.id, &[]);
    let ruled = DecisionRecord { advice: format!("not {secret}"), ..decision(Verdict::Deny) };
    let denial = StoredDenial {
        first: action.id().clone(),
        remembered: Remembered {
            effect: Effect::Connect { host: secret.to_owned() },
            reason: "no".to_owned(),
            rules: Vec::new(),
            advice: secret.to_owned(),
            person_may_allow: false,
        },
        ways: BTreeSet::new(),
    };
    let argv = vec![os("curl"), os(secret), OsText::new([b"\xff", secret.as_bytes()].concat()).unwrap()];
    let programs = vec![ProgramStart { file: os("curl"), argv, pid: 2 }];
    let seen =
        Evidence { observed: Some(Observed { programs, ..Observed::default() }), ..Evidence::default() };
    let message =
        serde_json::json!({ "role": "tool", "content": format!("it printed {secret}") }).to_string();
    let message = serde_json::value::RawValue::from_string(message).unwrap();
    let log = Log::open(&store).unwrap();
    let about = subject(1);
    let events = [event(secret)];
    let entries = events.each_ref().map(|event| Entry { subject: &about, event, time: at(3) });
    let receipts = log.append_all(&entries, |rows| {
        rows.insert_task(&task)?;
        rows.insert_action(&action, "action", at(2))?;
        rows.set_decision(action.id(), &ruled, at(3))?;
        rows.keep_denial(&task.id, &denial)?;
        rows.keep_evidence(action.id(), &seen)
    });
    assert_eq!(receipts.unwrap().len(), 1);
    store.add_message(&task.id, &message).unwrap();
    let token = String::from_utf8(store.without_secrets(secret.as_bytes()).into_owned()).unwrap();
    let found = store.read(|rows| rows.task(&task.id)).unwrap();
    let messages = store.messages(&task.id).unwrap();
    assert_eq!(found.unwrap().title, Some(format!("use {token}")));
    assert_eq!(
        messages[0].get(),
        serde_json::json!({ "role": "tool", "content": format!("it printed {token}") }).to_string()
    );
    assert_eq!(checked_length(&store), 1);
    drop(store);
    let inside = secret.replace('"', "\\\"");
    let in_hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    for entry in std::fs::read_dir(directory.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        // The keys of classes are in a directory of their own.
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for form in [secret, &inside, &in_hex] {
            assert!(
                !bytes.windows(form.len()).any(|part| part == form.as_bytes()),
                "{form}: {}",
                path.display()
            );
        }
    }
}

#[test]
fn a_secret_that_is_a_word_of_ours_is_refused_where_nobody_could_read_the_rest() {
    let (_directory, store) = store();
    // More than a word, and free text of an event.
    store.learn_secrets([("KEY".to_owned(), b"task-opened-and-more-than-a-word".to_vec())]);
    let log = Log::open(&store).unwrap();
    assert!(log.append(&subject(1), &event("task-opened-and-more-than-a-word"), at(1)).is_ok());
    let id = TaskId::from_random([1; 10]);
    store.learn_secrets([("KEY".to_owned(), id.as_str().as_bytes().to_vec())]);
    let forked = Event::Forked { from: id, layers: Vec::new() };
    let error = log.append(&subject(2), &forked, at(2)).expect_err("it cannot be read back");
    let cause = std::error::Error::source(&error).expect("has a cause").to_string();
    assert!(cause.contains("cannot be written down without a secret of yours"), "{cause}");
    assert_eq!(checked_length(&store), 1);
}
