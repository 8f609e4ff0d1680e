//! What the tests put into a store, and how they start another process that works on one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use audit::{Anchors, Log, Verification};
use engine::store::Store;
use model::action::{Base, Principal, StartingPoint};
use model::event::{DecisionRecord, Event, Subject, Verdict};
use model::task::{Task, TaskState, WorkspaceKey};
use model::{Action, ActionId, ActionRequest, Digest, Grant, OsText, Profile, TaskId, Timestamp, Tool};
use tempfile::TempDir;

/// A directory that is removed at the end, and the state directory in it, which is not made yet.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let state = directory.path().join("state");
    (directory, state)
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

pub(crate) fn os(text: &str) -> OsText {
    OsText::try_from(text).unwrap()
}

pub(crate) fn workspace(inode: u64) -> WorkspaceKey {
    WorkspaceKey { path: os("/home/ada/project"), device: u64::MAX, inode }
}

pub(crate) fn task(seed: u8, inode: u64, opened: u64) -> Task {
    Task {
        id: TaskId::from_random([seed; 10]),
        workspace: workspace(inode),
        base: Base::Live,
        owner: Principal::User("ada".to_owned()),
        title: Some("fix the test".to_owned()),
        state: TaskState::Open,
        opened: at(opened),
    }
}

pub(crate) fn action(seed: u8, task: &TaskId, environment: &[(&str, &str)]) -> Action {
    let environment: BTreeMap<String, OsText> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), os(value))).collect();
    let request = ActionRequest {
        principal: Principal::User("ada".to_owned()),
        tool: Tool::Run { argv: vec![os("cargo"), os("test")] },
        directory: None,
        environment,
        purpose: None,
    };
    let start = StartingPoint { workspace: os("/home/ada/project"), base: Base::Live, layers: Vec::new() };
    let grant = Grant::under(Profile::default_profile());
    Action::parse(ActionId::from_random([seed; 10]), task.clone(), request, grant, start).unwrap()
}

pub(crate) fn decision(verdict: Verdict) -> DecisionRecord {
    DecisionRecord {
        verdict,
        rules: vec!["default/build".to_owned()],
        reason: "build".to_owned(),
        advice: "none".to_owned(),
        person_may_allow: false,
        grant: None,
        policy: Digest::of(b"policy"),
    }
}

pub(crate) fn event(text: &str) -> Event {
    Event::Recovered { removed: vec![text.to_owned()], unknown: Vec::new() }
}

pub(crate) fn subject(seed: u8) -> Subject {
    Subject { task: Some(TaskId::from_random([seed; 10])), action: Some(ActionId::from_random([seed; 10])) }
}

/// Appends one event and returns its place.
pub(crate) fn append(log: &Log<&Store>, text: &str) -> u64 {
    log.append(&subject(1), &event(text), at(1)).unwrap().seq()
}

/// Checks the chain and returns the number of its records.
pub(crate) fn checked_length(store: &Store) -> u64 {
    match Log::open(store).unwrap().verify(&Anchors::default()).unwrap() {
        Verification::Consistent { end, .. } => end.seq,
        other => panic!("{other}"),
    }
}

/// The state directory that a child of this test must work on; nothing when somebody runs all ignored tests.
pub(crate) fn given_state() -> Option<PathBuf> {
    std::env::var_os("FUMEHOOD_STORE_TEST").map(PathBuf::from)
}

/// Starts this very program again for one of its ignored tests.
pub(crate) fn child(test: &str, state: &Path) -> Child {
    child_command(test, state).stdout(Stdio::piped()).spawn().unwrap()
}

pub(crate) fn child_command(test: &str, state: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("FUMEHOOD_STORE_TEST", state);
    command
}
