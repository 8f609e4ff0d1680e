//! Tasks, actions, layers, messages and scans: they are read back as they were written.

use engine::store::{ActionState, Evidence, FileKey, LayerState, Store, StoreError};
use model::action::{Base, Principal};
use model::event::Verdict;
use model::evidence::{Observed, Probe};
use model::outcome::{Ending, Usage};
use model::task::{Task, TaskState};
use model::{ActionId, Digest, Layer, TaskId};
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::fixture::{action, at, decision, os, place, task, workspace};

fn store() -> (TempDir, Store) {
    let (directory, state) = place();
    let store = Store::open(&state).unwrap();
    (directory, store)
}

/// A store with a task of this seed and finished actions of these seeds, each with a layer.
fn with_layers(seed: u8, actions: &[u8]) -> (TempDir, Store, Task) {
    let (directory, store) = store();
    let task = task(seed, 1, 1);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    actions.iter().for_each(|seed| finish(&store, &task.id, *seed));
    (directory, store, task)
}

fn finish(store: &Store, task: &TaskId, seed: u8) {
    let action = action(seed, task, &[]);
    store
        .write(|rows| {
            rows.insert_action(&action, "action", at(10))?;
            rows.set_decision(action.id(), &decision(Verdict::Allow), at(11))?;
            rows.set_started(action.id(), at(12))?;
            rows.set_ended(
                action.id(),
                ActionState::Ended,
                (&Ending::Exited { status: 0 }, &Usage::default()),
                at(13),
            )?;
            rows.add_layer(task, action.id())
        })
        .unwrap();
}

fn layer(seed: u8) -> ActionId {
    ActionId::from_random([seed; 10])
}

fn kept(store: &Store, task: &TaskId) -> Vec<ActionId> {
    let layers = store.read(|rows| rows.kept_layers(task)).unwrap();
    layers.into_iter().map(|layer| layer.action).collect()
}

#[test]
fn a_task_is_read_back_as_it_was_written() {
    let (_directory, store) = store();
    let mut odd = task(2, u64::MAX, 5);
    odd.workspace.path = model::OsText::new(vec![b'/', 0xff, b'\n']).unwrap();
    odd.base = Base::Commit { commit: "a".repeat(40) };
    odd.owner = Principal::Agent("m\u{202e}odel".to_owned());
    odd.title = None;
    for task in [task(1, 1, 1), odd] {
        store.write(|rows| rows.insert_task(&task)).unwrap();
        assert_eq!(store.read(|rows| rows.task(&task.id)).unwrap(), Some(task));
    }
}

#[test]
fn the_open_task_of_a_workspace_is_the_one_that_was_opened_or_resumed_last() {
    let (_directory, store) = store();
    let (one, two, elsewhere) = (task(1, 1, 1), task(2, 1, 2), task(3, 2, 3));
    store
        .write(|rows| [&one, &two, &elsewhere].into_iter().try_for_each(|task| rows.insert_task(task)))
        .unwrap();
    let open = || store.read(|rows| rows.open_task(&workspace(1))).unwrap().map(|task| task.id);
    let set = |task: &Task, state, now| {
        store.write(|rows| rows.set_task_state(&task.id, state, at(now))).unwrap();
    };
    assert_eq!(open(), Some(two.id.clone()));
    set(&two, TaskState::Stopped, 4);
    assert_eq!(open(), Some(one.id.clone()));
    set(&two, TaskState::Open, 5);
    assert_eq!(open(), Some(two.id.clone()), "resumed");
    set(&one, TaskState::Open, 6);
    assert_eq!(open(), Some(one.id.clone()), "resumed later");
    set(&one, TaskState::Applied, 7);
    set(&two, TaskState::Discarded, 8);
    assert_eq!(open(), None);
    assert_eq!(store.read(|rows| rows.open_task(&workspace(2))).unwrap(), Some(elsewhere));
}

#[test]
fn tasks_are_listed_newest_first_with_their_figures() {
    let (_directory, store, first) = with_layers(1, &[1, 2]);
    let second = task(2, 2, 9);
    store.write(|rows| rows.insert_task(&second)).unwrap();
    store.write(|rows| rows.set_layer_state(&first.id, &layer(2), LayerState::Undone)).unwrap();
    let listed = store.read(|rows| rows.tasks()).unwrap();
    let figures: Vec<_> =
        listed.iter().map(|one| (&one.task.id, one.actions, one.layers, one.last_action)).collect();
    assert_eq!(figures, [(&second.id, 0, 0, None), (&first.id, 2, 1, Some(at(10)))]);
}

#[test]
fn an_id_may_be_shortened_as_long_as_only_one_starts_so() {
    let (_directory, store) = store();
    let mut twin = task(1, 2, 2);
    let mut random = [1; 10];
    random[9] = 2;
    twin.id = TaskId::from_random(random);
    for task in [&task(1, 1, 1), &twin, &task(0xff, 3, 3)] {
        store.write(|rows| rows.insert_task(task)).unwrap();
    }
    let find = |given: &str| store.read(|rows| rows.find_task(given));
    let last = task(0xff, 3, 3).id;
    for given in ["7", "task-7", "task-7777777777777777", "7777777777777777"] {
        assert_eq!(find(given).unwrap().id, last, "{given}");
    }
    assert_eq!(find(twin.id.as_str()).unwrap(), twin);
    let ambiguous = find("a").unwrap_err().to_string();
    assert!(
        ambiguous.contains(twin.id.as_str()) && ambiguous.contains("give more of the task"),
        "{ambiguous}"
    );
    for given in ["", "task-", "zz", "%", "_", "'; DROP TABLE tasks; --", "act-7", "TASK-7", "7\n", "é"] {
        let told = find(given).unwrap_err().to_string();
        assert!(
            told.starts_with("there is no task `") && told.ends_with("`fumehood task list` names them"),
            "{told}"
        );
        assert!(!told.contains('\n'));
    }
}

#[test]
fn an_action_goes_from_state_to_state_and_never_back() {
    let (_directory, store) = store();
    let task = task(1, 1, 1);
    let action = action(1, &task.id, &[]);
    let id = action.id();
    store.write(|rows| rows.insert_task(&task)).unwrap();
    assert_eq!(store.write(|rows| rows.insert_action(&action, "action", at(2))).unwrap(), 1);
    assert!(store.write(|rows| rows.set_started(id, at(3))).is_err(), "not without a decision");
    store.write(|rows| rows.set_decision(id, &decision(Verdict::Narrow), at(3))).unwrap();
    assert!(
        store.write(|rows| rows.set_decision(id, &decision(Verdict::Allow), at(3))).is_err(),
        "decided once"
    );
    store.write(|rows| rows.set_started(id, at(4))).unwrap();
    let unfinished = store.read(|rows| rows.unfinished_actions()).unwrap();
    assert_eq!(
        unfinished.iter().map(|one| (&one.id, one.state)).collect::<Vec<_>>(),
        [(id, ActionState::Started)]
    );
    let ending = Ending::Signaled { signal: 9 };
    store.write(|rows| rows.set_ended(id, ActionState::Ended, (&ending, &Usage::default()), at(5))).unwrap();
    let late = store.write(|rows| rows.set_unknown(id, at(6))).unwrap_err();
    assert!(matches!(late, StoreError::State { from: "ended", to: "unknown", .. }), "{late}");

    let found = store.read(|rows| rows.find_action(id.as_str())).unwrap();
    assert_eq!((found.task, found.ordinal, found.digest), (task.id, 1, action.digest()));
    assert_eq!(
        (found.state, found.ending, found.usage),
        (ActionState::Ended, Some(ending), Some(Usage::default()))
    );
    assert_eq!((found.created, found.finished, found.layer), (at(2), Some(at(5)), None));
    assert_eq!((&found.grant, &found.start), (action.grant(), action.start()));
    assert_eq!(found.decision, Some(decision(Verdict::Narrow)));
    assert!(store.read(|rows| rows.unfinished_actions()).unwrap().is_empty());
}

#[test]
fn what_is_refused_or_fails_to_start_is_finished() {
    let (_directory, store) = store();
    let task = task(1, 1, 1);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    for (seed, verdict) in [(1, Verdict::Deny), (2, Verdict::RequireApproval), (3, Verdict::Allow)] {
        let action = action(seed, &task.id, &[]);
        store
            .write(|rows| {
                rows.insert_action(&action, "action", at(2))?;
                rows.set_decision(action.id(), &decision(verdict), at(3))
            })
            .unwrap();
    }
    store.write(|rows| rows.set_not_started(&layer(3), at(4))).unwrap();
    let actions = store.read(|rows| rows.actions(&task.id)).unwrap();
    let states: Vec<_> = actions.iter().map(|one| (one.ordinal, one.state, one.finished)).collect();
    assert_eq!(
        states,
        [
            (1, ActionState::Denied, Some(at(3))),
            (2, ActionState::Denied, Some(at(3))),
            (3, ActionState::NotStarted, Some(at(4)))
        ]
    );
    let newest = store.read(|rows| rows.newest_actions(2)).unwrap();
    assert_eq!(newest.iter().map(|one| one.ordinal).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn values_of_the_environment_are_nowhere_in_the_state_directory() {
    let (_directory, store) = store();
    let task = task(1, 1, 1);
    let action = action(1, &task.id, &[("MODE", "very-private-value"), ("OTHER", "x")]);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    store.write(|rows| rows.insert_action(&action, "action", at(2))).unwrap();
    let found = store.read(|rows| rows.action(action.id())).unwrap().unwrap();
    let digest = |value: &str| store.value_digest(value.as_bytes());
    assert_eq!(
        found.request.environment,
        [("MODE".to_owned(), digest("very-private-value")), ("OTHER".to_owned(), digest("x"))]
    );
    for entry in std::fs::read_dir(store.directory()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let value = b"very-private-value";
        assert!(!bytes.windows(value.len()).any(|window| window == value), "{}", path.display());
    }
}

#[test]
fn evidence_is_kept_piece_by_piece() {
    let (_directory, store, _task) = with_layers(1, &[1]);
    let probe = Probe {
        name: "mount".to_owned(),
        layer: Layer::Seccomp,
        held: true,
        observed: "EPERM".to_owned(),
        control: None,
    };
    let started = Evidence {
        held: Some(Vec::new()),
        probes: Some(vec![probe]),
        masked: Some(vec![os(".env")]),
        ..Evidence::default()
    };
    let ended = Evidence { observed: Some(Observed::default()), ..Evidence::default() };
    let read = |seed| store.read(|rows| rows.evidence(&layer(seed))).unwrap();
    assert_eq!(read(1), Evidence::default());
    store.write(|rows| rows.keep_evidence(&layer(1), &started)).unwrap();
    assert_eq!(read(1), started);
    store.write(|rows| rows.keep_evidence(&layer(1), &ended)).unwrap();
    assert_eq!(read(1), Evidence { observed: ended.observed, ..started });
    let nobody = store.write(|rows| {
        rows.keep_evidence(&layer(9), &Evidence { held: Some(Vec::new()), ..Evidence::default() })
    });
    assert!(nobody.is_err(), "evidence belongs to an action");
}

#[test]
fn undone_layers_are_no_longer_stood_on_and_new_ones_come_on_top() {
    let (_directory, store, task) = with_layers(1, &[1, 2, 3]);
    assert_eq!(kept(&store, &task.id), [layer(1), layer(2), layer(3)]);
    store
        .write(|rows| {
            [2, 3]
                .iter()
                .try_for_each(|seed| rows.set_layer_state(&task.id, &layer(*seed), LayerState::Undone))
        })
        .unwrap();
    finish(&store, &task.id, 4);
    assert_eq!(kept(&store, &task.id), [layer(1), layer(4)]);
    let all = store.read(|rows| rows.layers(&task.id)).unwrap();
    let states: Vec<LayerState> = all.iter().map(|layer| layer.state).collect();
    assert_eq!(states, [LayerState::Kept, LayerState::Undone, LayerState::Undone, LayerState::Kept]);
    assert!(store.write(|rows| rows.set_layer_state(&task.id, &layer(9), LayerState::Kept)).is_err());
}

#[test]
fn a_fork_shares_layers_and_undoes_only_its_own() {
    let (_directory, store, origin) = with_layers(1, &[1, 2, 3]);
    let fork = task(2, 1, 2);
    store.write(|rows| rows.insert_task(&fork)).unwrap();
    let shared = store.write(|rows| rows.share_layers(&origin.id, &fork.id, Some(&layer(2)))).unwrap();
    assert_eq!(shared, [layer(1), layer(2)]);
    store.write(|rows| rows.set_layer_state(&fork.id, &layer(2), LayerState::Undone)).unwrap();
    assert_eq!(kept(&store, &fork.id), [layer(1)]);
    assert_eq!(kept(&store, &origin.id), [layer(1), layer(2), layer(3)]);
    let homes = store.read(|rows| rows.kept_layers(&fork.id)).unwrap();
    assert_eq!(homes[0].home, origin.id, "the files stay where they were written");
    let unknown = store.write(|rows| rows.share_layers(&origin.id, &fork.id, Some(&layer(9))));
    assert!(unknown.is_err());
}

#[test]
fn only_what_no_task_can_go_on_with_is_spent() {
    let (_directory, store, origin) = with_layers(1, &[1, 2]);
    let fork = task(2, 1, 2);
    store.write(|rows| rows.insert_task(&fork)).unwrap();
    store.write(|rows| rows.share_layers(&origin.id, &fork.id, Some(&layer(1)))).unwrap();
    let spent = || -> Vec<ActionId> {
        let retained = store.read(|rows| rows.retained(&origin.id)).unwrap().unwrap();
        [1, 2].map(layer).into_iter().filter(|action| retained.spent(action).is_some()).collect()
    };
    let set = |task: &Task, state| store.write(|rows| rows.set_task_state(&task.id, state, at(20))).unwrap();
    assert_eq!(spent(), []);
    set(&origin, TaskState::Discarded);
    assert_eq!(spent(), [layer(2)], "the fork still stands on the first");
    set(&fork, TaskState::Applied);
    assert_eq!(spent(), [layer(1), layer(2)]);
    let retained = store.read(|rows| rows.retained(&origin.id)).unwrap().unwrap();
    assert_eq!(retained.actions[&layer(1)].finished, Some(at(13)));
    assert_eq!(retained.actions[&layer(1)].shared_with, std::slice::from_ref(&fork.id));
    store.write(|rows| rows.set_layer_removed(&layer(1))).unwrap();
    let states = store.read(|rows| rows.layers(&fork.id)).unwrap();
    assert_eq!(states[0].state, LayerState::Removed, "for every task that had it");
    let action = store.read(|rows| rows.action(&layer(1))).unwrap().unwrap();
    assert_eq!(action.layer, Some(LayerState::Removed));
}

#[test]
fn messages_are_read_back_in_order_byte_for_byte() {
    let (_directory, store) = store();
    let task = task(1, 1, 1);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    let bodies = [r#"{"role":"user","content":"a\nb"}"#, r#"{ "z": 1, "a": 18446744073709551615 }"#];
    for (body, place) in bodies.iter().zip(1..) {
        let body: &RawValue = serde_json::from_str(body).unwrap();
        assert_eq!(store.add_message(&task.id, body).unwrap(), place);
    }
    let read = store.messages(&task.id).unwrap();
    assert_eq!(read.iter().map(|body| body.get()).collect::<Vec<_>>(), bodies);
}

#[test]
fn messages_are_sealed_in_their_places_and_gone_with_their_key() {
    let (directory, store) = store();
    let task = task(1, 1, 1);
    store.write(|rows| rows.insert_task(&task)).unwrap();
    for word in ["first", "second"] {
        let body = RawValue::from_string(format!("{{\"said\":\"a-{word}-word\"}}")).unwrap();
        store.add_message(&task.id, &body).unwrap();
    }
    let database = directory.path().join("state/fumehood.db");
    let edit = |sql: &str| rusqlite::Connection::open(&database).unwrap().execute_batch(sql).unwrap();
    for file in ["fumehood.db", "fumehood.db-wal"] {
        let bytes = std::fs::read(directory.path().join("state").join(file)).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("-word"), "{file}");
    }
    // An older build kept them as they are.
    edit("INSERT INTO messages (task, ordinal, body) SELECT task, 3, '{\"old\":1}' FROM messages LIMIT 1");
    assert_eq!(store.messages(&task.id).unwrap()[2].get(), "{\"old\":1}");
    edit("UPDATE messages SET sealed = (SELECT sealed FROM messages WHERE ordinal = 2) WHERE ordinal = 1");
    assert!(store.messages(&task.id).unwrap_err().to_string().contains("it was changed"));
    edit("DELETE FROM messages WHERE ordinal = 1");
    assert_eq!(store.messages(&task.id).unwrap().len(), 2);
    std::fs::remove_file(directory.path().join("state/keys/transcript")).unwrap();
    assert!(store.messages(&task.id).unwrap_err().to_string().contains("its key was removed"));
}

#[test]
fn a_file_that_changed_is_looked_at_again() {
    let (_directory, store) = store();
    let file = FileKey { device: u64::MAX, inode: 7, ctime_ns: 5, size: 3 };
    let (rules, newer) = (Digest::of(b"rules"), Digest::of(b"newer rules"));
    store.write(|rows| rows.keep_scans(&rules, &[(file, b"found".to_vec())], at(1))).unwrap();
    let scan =
        |rules: &Digest, file: FileKey| store.read(|rows| rows.scans(rules, &[file])).unwrap().remove(0);
    assert_eq!(scan(&rules, file), Some(b"found".to_vec()));
    assert_eq!(scan(&newer, file), None);
    for changed in [
        FileKey { ctime_ns: 6, ..file },
        FileKey { size: 4, ..file },
        FileKey { inode: 8, ..file },
        FileKey { device: 1, ..file },
    ] {
        assert_eq!(scan(&rules, changed), None, "{changed:?}");
    }
    let changed = FileKey { ctime_ns: 6, ..file };
    store.write(|rows| rows.keep_scans(&rules, &[(changed, Vec::new())], at(2))).unwrap();
    assert_eq!((scan(&rules, file), scan(&rules, changed)), (None, Some(Vec::new())));
    assert_eq!(store.write(|rows| rows.forget_scans(at(2))).unwrap(), 0);
    assert_eq!(store.write(|rows| rows.forget_scans(at(3))).unwrap(), 1);
}
