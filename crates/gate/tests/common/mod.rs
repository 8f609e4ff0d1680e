//! Actions, facts and a log for the tests of the gate.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, BTreeSet};

use audit::{Log, MemoryStorage, Receipt};
use gate::{Apply, ApplyMode, ApplySource, Classes, Facts};
use model::action::{Base, Principal, StartingPoint};
use model::id::LogId;
use model::{
    Action, ActionId, ActionRequest, Change, ChangeKind, Event, FileKind, Grant, OsText, Profile, Quorum,
    Subject, TaskId, Timestamp, Tool, WorkspacePath,
};

pub const NOW: Timestamp = Timestamp::from_nanos(1_800_000_000_000_000_000);

/// The number of the account whose task it is.
pub const ADA: u32 = 1000;

pub fn owners() -> BTreeSet<u32> {
    BTreeSet::from([ADA])
}

pub fn quorums(texts: &[&str]) -> BTreeSet<Quorum> {
    texts.iter().map(|text| text.parse().expect("a quorum")).collect()
}

pub fn user() -> Principal {
    Principal::User("ada".to_owned())
}

pub fn agent() -> Principal {
    Principal::Agent("deepseek-flash".to_owned())
}

pub fn text(text: &str) -> OsText {
    OsText::try_from(text).expect("no NUL")
}

pub fn path(path: &str) -> WorkspacePath {
    WorkspacePath::parse(path).expect("inside the workspace")
}

pub fn run(argv: &[&str]) -> Tool {
    Tool::Run { argv: argv.iter().map(|part| text(part)).collect() }
}

pub fn write(name: &str) -> Tool {
    Tool::Write { path: path(name), content: "x".to_owned() }
}

pub fn patch(names: &[&str]) -> Tool {
    let diff =
        names.iter().map(|name| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n")).collect();
    Tool::Patch { paths: names.iter().map(|name| path(name)).collect(), diff }
}

pub fn request(principal: Principal, tool: Tool) -> ActionRequest {
    ActionRequest { principal, tool, directory: None, environment: BTreeMap::new(), purpose: None }
}

pub fn grant() -> Grant {
    Grant::under(Profile::default_profile())
}

pub fn facts() -> Facts {
    Facts { owners: owners(), ..Facts::new(Profile::default_profile(), NOW) }
}

pub fn parse(request: ActionRequest, grant: Grant) -> Action {
    let start = StartingPoint { workspace: text("/home/ada/project"), base: Base::Live, layers: Vec::new() };
    let (id, task) = (ActionId::from_random([1; 10]), TaskId::from_random([2; 10]));
    Action::parse(id, task, request, grant, start).expect("parses")
}

pub fn action(principal: Principal, tool: Tool) -> Action {
    parse(request(principal, tool), grant())
}

pub fn classes(names: &[&str]) -> Classes {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Facts in which every path of the tool was looked at, and belongs to these classes.
pub fn facts_with(tool: &Tool, names: &[&str]) -> Facts {
    let mut facts = facts();
    facts.classes = tool.writes().iter().map(|path| (path.clone(), classes(names))).collect();
    facts
}

pub fn change(name: &str, file: FileKind) -> Change {
    Change { path: path(name), kind: ChangeKind::Modified, file, mode: 0o644, size: 1, ignored: false }
}

pub fn apply(principal: Principal, mode: ApplyMode, changes: &[Change], names: &[&str]) -> Apply {
    let (task, workspace) = (TaskId::from_random([2; 10]), text("/home/ada/project"));
    let layers = [ActionId::from_random([1; 10])];
    let source = ApplySource { task: &task, workspace: &workspace, layers: &layers };
    Apply::new(principal, mode, source, changes, classes(names))
}

/// Appends an event about the action that [`parse`] makes to a log in memory.
pub fn record(event: &Event) -> Receipt {
    let about =
        Subject { task: Some(TaskId::from_random([2; 10])), action: Some(ActionId::from_random([1; 10])) };
    record_about(&about, event)
}

pub fn record_about(about: &Subject, event: &Event) -> Receipt {
    let log = Log::open(MemoryStorage::new(LogId::from_random([3; 10]))).expect("an empty log opens");
    log.append(about, event, NOW).expect("memory takes records")
}
