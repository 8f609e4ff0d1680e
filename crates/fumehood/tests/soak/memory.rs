//! A supervisor that lives long: its memory, descriptors and threads after many actions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use engine::{Config, Engine, Io, Order, Outcome, Silent, TaskChoice, Workspace};
use model::action::Principal;
use model::{ActionRequest, Grant, OsText, Profile, Tool};
use sandbox::Identity;

use crate::bench::Bench;
use crate::identities::Identities;
use crate::{RUNS, alone, rounds, say};

/// Runs of the row for one action of this test.
const SHARE: u32 = 4;
/// Actions of one task.
const IN_A_TASK: u32 = 25;
/// What the database may keep in memory, and what an allocator does not give back at once.
const SLACK: i64 = 4 << 20;

#[test]
fn a_supervisor_that_lives_long_does_not_grow() {
    let _turn = alone();
    let bench = Bench::new();
    let actions = (rounds("FUMEHOOD_SOAK_RUNS", RUNS) / SHARE).max(8);
    let before = Identities::now(bench.top());
    let engine = Engine::open(config(&bench)).expect("the state is opened");
    let workspace =
        Workspace::find(Some(&bench.path("ws")), Path::new("/"), &bench.path("home"), &bench.path("state"));
    let workspace = workspace.expect("it can be one");
    let mut sizes = Vec::new();
    let mut open = BTreeSet::new();
    for number in 0..actions {
        one_action(&engine, &workspace, number);
        sizes.push(resident());
        if number == actions / 4 {
            open = own_descriptors();
        }
    }
    assert_eq!(own_descriptors(), open, "descriptors, as they were after the first quarter");
    drop(engine);
    before.are_back(bench.top(), &[], "after all actions");
    let quarter = sizes.len() / 4;
    let (early, late) = (median(&sizes[quarter..2 * quarter]), median(&sizes[3 * quarter..]));
    let growth = late - early;
    say(&format!(
        "{actions} actions in one process: {} KiB in the second quarter, {} KiB in the last: {} bytes for each action",
        early >> 10,
        late >> 10,
        growth / i64::from(actions / 2)
    ));
    assert!(growth <= SLACK, "from {early} to {late} bytes");
}

fn one_action(engine: &Engine, workspace: &Workspace, number: u32) {
    let owner = Principal::User("soak".to_owned());
    let choice = if number.is_multiple_of(IN_A_TASK) { TaskChoice::New } else { TaskChoice::Current };
    let task = engine.task_for(workspace, &choice, &owner, None).expect("there is a task");
    let line = format!("echo {number} > action-{number}");
    let profile = Profile::default_profile();
    let order = Order {
        request: ActionRequest {
            principal: owner,
            tool: Tool::Run { argv: ["sh", "-c", &line].map(OsText::literal).to_vec() },
            directory: None,
            environment: BTreeMap::new(),
            purpose: None,
        },
        grant: Grant::under(profile.clone()),
        profile,
        workspace: workspace.clone(),
        mutant: None,
    };
    let io = Io { stdin: None, stdout: Box::new(Silent), stderr: Box::new(Silent), controller: None };
    match engine.handle(&task, order, io, || {}).expect("the engine works") {
        Outcome::Finished(finished) => assert!(finished.ending.succeeded(), "{:?}", finished.ending),
        other => panic!("it did not run: {other:?}"),
    }
}

fn config(bench: &Bench) -> Config {
    Config {
        state_dir: bench.path("state"),
        run_as: Identity { uid: 61_184, gid: 61_184 },
        user: "soak".to_owned(),
        account: 1000,
        owners: [1000].into(),
        egress: Vec::new(),
        credentials: Vec::new(),
        canaries: Vec::new(),
        registries: Vec::new(),
        gateway: None,
        roles: engine::Roles::default(),
        home: bench.path("home"),
        environment: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        secrets: Vec::new(),
        anchor: None,
        service_manager: None,
        answers: None,
        policy: engine::PolicySource::Bundle("default".to_owned()),
        helper_profile: Profile::default_profile(),
    }
}

/// Returns the memory of this process that is in use, in bytes.
fn resident() -> i64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("is read");
    let pages: i64 = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * i64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Returns the open descriptors by what they are of.
fn own_descriptors() -> BTreeSet<(u64, u64)> {
    let links = fs::read_dir("/proc/self/fd").expect("is listed").flatten();
    // The directory that is being read is one of them, and gone when it is looked at.
    let files = links.filter_map(|link| fs::metadata(link.path()).ok());
    files.map(|file| (file.dev(), file.ino())).filter(|(device, _)| *device != proc_device()).collect()
}

fn proc_device() -> u64 {
    fs::metadata("/proc").map_or(0, |proc| proc.dev())
}

fn median(sizes: &[i64]) -> i64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
