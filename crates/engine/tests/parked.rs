//! Sandboxes that wait: an action gets one only when it is what would be built for it now, and what nobody used leaves
//! nothing. Works as root and as an ordinary user; needs git.
#![allow(clippy::disallowed_methods, reason = "the tests look at processes of the host")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::Bench;
use engine::store::ActionState;
use engine::{Engine, Finished, Io, Order, Outcome, Request, Silent};
use model::grant::{Network, WorkspaceAccess};
use model::task::Task;
use model::{Profile, Tool, WorkspacePath};

/// One test ends what this process has started, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

struct Parking {
    bench: Bench,
    task: Task,
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Parking {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bench = Bench::new();
        let path = bench.repository();
        let task = bench.live(&path);
        Self { bench, task, path, _alone: alone }
    }

    fn order(&self, script: &str) -> Order {
        self.bench.order(&Profile::default_profile(), &self.path, script)
    }

    fn read_only(&self, script: &str) -> Order {
        let mut order = self.order(script);
        order.grant.workspace = WorkspaceAccess::ReadOnly;
        order
    }

    fn park(&self, order: &Order) {
        self.bench.engine.park(&self.task, order).expect("it is built");
    }

    fn run(&self, order: Order) -> (Finished, String) {
        self.bench.take(&self.task, order)
    }

    /// Returns the names of the events about an action.
    fn recorded(&self, finished: &Finished) -> Vec<&'static str> {
        let records = self
            .bench
            .engine
            .store()
            .read(|reader| reader.records_of_action(&self.task.id, &finished.action));
        let records = records.expect("the record");
        records.iter().map(|record| record.parse_event().expect("an event").name()).collect()
    }

    /// Returns the names of what lies in directories of runs, layers and artifacts.
    fn places(&self) -> Vec<String> {
        let state = &self.bench.engine.config().state_dir;
        let task = state.join("tasks").join(self.task.id.as_str());
        let all = [state.join("run"), task.join("layers"), task.join("artifacts")];
        let names = all.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

fn waited(finished: &Finished) -> bool {
    finished.steps.iter().any(|step| step.step == "waited")
}

#[test]
fn a_like_order_gets_the_one_that_waits_and_it_is_used_once() {
    let parking = Parking::new();
    assert!(!waited(&parking.run(parking.order("echo one > made")).0), "nothing waits yet");
    parking.park(&parking.order("true"));
    let (first, said) = parking.run(parking.order("cat made; echo two > made; echo x > /artifacts/x"));
    assert!(waited(&first), "{:?}", first.steps);
    assert_eq!(said, "one\n");
    assert!(first.probes.iter().all(|probe| probe.held) && first.teardown.is_clean());
    assert!(!waited(&parking.run(parking.order("true")).0), "it was used");
    assert_eq!(parking.run(parking.order("cat made")).1, "two\n", "its layer is kept");
}

#[test]
fn one_waits_for_each_of_two_grants() {
    let parking = Parking::new();
    parking.park(&parking.order("true"));
    parking.park(&parking.read_only("true"));
    let (reads, said) = parking.run(parking.read_only("cat a.txt; echo x > a.txt || echo refused"));
    assert!(waited(&reads));
    assert!(said.starts_with("committed\nrefused\n"), "{said}");
    assert!(waited(&parking.run(parking.order("echo x > a.txt")).0));
}

#[test]
fn what_changed_meanwhile_is_seen_because_another_one_is_built() {
    let parking = Parking::new();
    parking.park(&parking.order("true"));
    let mut other = parking.order("echo new > made");
    other.grant.profile.limits.processes -= 1;
    assert!(!waited(&parking.run(other).0), "another grant was asked for");
    let (after, said) = parking.run(parking.order("cat made"));
    assert_eq!((waited(&after), said.as_str()), (false, "new\n"), "there is a layer more");

    parking.park(&parking.order("true"));
    fs::write(parking.path.join(".env"), "API_TOKEN=abcdef0123456789\n").expect("a file");
    let (after, said) = parking.run(parking.order("cat .env"));
    assert!(!waited(&after) && !said.contains("abcdef"), "what is to be covered came after: {said}");
}

#[test]
fn one_that_was_ended_from_outside_is_not_given_out() {
    let parking = Parking::new();
    let before = launchers();
    parking.park(&parking.order("true"));
    end_all_but(&before);
    let (after, said) = parking.run(parking.order("echo here"));
    assert_eq!((waited(&after), said.as_str()), (false, "here\n"));
}

#[test]
fn one_that_is_ended_after_it_was_looked_at_is_replaced_before_the_start() {
    assert!(sandbox::fail_point::is_compiled_in(), "this needs a build with fail points");
    for (step, starts) in [
        ("decision: the action has its place", 1),
        ("decision: it is on the record", 2),
        ("run: the start is on the record", 2),
    ] {
        let parking = Parking::new();
        let before = launchers();
        parking.park(&parking.order("true"));
        sandbox::fail_point::act(step, move || end_all_but(&before));
        let (after, said) = parking.run(parking.order("echo here; echo x > made"));
        assert_eq!((waited(&after), said.as_str()), (false, "here\n"), "{step}");
        assert!(after.probes.iter().all(|probe| probe.held) && after.teardown.is_clean(), "{step}");
        let names = parking.recorded(&after);
        let times = |name: &str| names.iter().filter(|recorded| **recorded == name).count();
        assert_eq!((times("decided"), times("started"), times("ended")), (1, starts, 1), "{step}: {names:?}");
        assert_eq!(parking.run(parking.order("cat made")).1, "x\n", "{step}: its layer is kept");
        assert_eq!(parking.places().len(), 2, "{step}: one layer and its artifacts: {:?}", parking.places());
    }
}

#[test]
fn one_that_was_built_for_its_action_is_replaced_too() {
    assert!(sandbox::fail_point::is_compiled_in(), "this needs a build with fail points");
    let parking = Parking::new();
    let before = launchers();
    sandbox::fail_point::act("run: the start is on the record", move || end_all_but(&before));
    assert_eq!(parking.run(parking.order("echo here")).1, "here\n");
}

#[test]
fn one_that_joins_a_running_action_is_built_ahead_and_decided_again() {
    let parking = Parking::new();
    let (handle, controller) = engine::controller().expect("a descriptor");
    let join = |action: &model::ActionId, script: &str| {
        let mut order = parking.order(script);
        order.grant.network = Network::Joined(action.clone());
        order
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let io = Io {
                stdin: None,
                stdout: Box::new(Silent),
                stderr: Box::new(Silent),
                controller: Some(controller),
            };
            parking.bench.engine.handle(&parking.task, parking.order("sleep 60"), io, || {})
        });
        let running = || {
            let actions = parking.bench.engine.store().read(|reader| reader.actions(&parking.task.id));
            actions.expect("the store").into_iter().find(|action| action.state == ActionState::Started)
        };
        let action = loop {
            match running() {
                Some(action) => break action.id,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let fork = parking.bench.engine.fork(&parking.task, None).expect("a fork");
        let park = || parking.bench.engine.park(&fork, &join(&action, "true")).expect("it is built");
        park();
        assert!(waited(&parking.bench.take(&fork, join(&action, "true")).0), "it was built ahead");
        park();
        handle.ask(Request::Stop);
        server.join().expect("no panic").expect("it ended");
        let outcome = parking.bench.handle(&fork, join(&action, "true"));
        assert!(matches!(outcome, Outcome::Denied { .. }), "what it would join has ended: {outcome:?}");
    });
}

/// Ends what this process has started since.
fn end_all_but(before: &[i32]) {
    let mut own = launchers();
    own.retain(|pid| !before.contains(pid));
    assert!(!own.is_empty());
    for pid in own {
        let process = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(process, rustix::process::Signal::KILL).expect("it is ours");
        // It ends after everything inside, and stays as a zombie until somebody asks for it.
        while stat(pid).first().is_some_and(|state| state != "Z") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns the first processes of sandboxes that this process has started.
fn launchers() -> Vec<i32> {
    let own = std::process::id().to_string();
    let numbers = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
    numbers.filter(|pid| stat(*pid).get(1) == Some(&own)).collect()
}

/// Returns the state of a process, its parent, and what else follows its name; nothing when it is gone.
fn stat(pid: i32) -> Vec<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn what_policy_refuses_ends_the_one_that_waited() {
    let parking = Parking::new();
    parking.park(&parking.order("true"));
    let mut hook = parking.order("true");
    let path = WorkspacePath::parse(".git/hooks/pre-commit").expect("a path");
    hook.request.tool = Tool::Write { path, content: "x".to_owned() };
    let outcome = parking.bench.handle(&parking.task, hook);
    assert!(matches!(outcome, Outcome::Denied { .. }), "{outcome:?}");
    assert_eq!(parking.places(), [] as [&str; 0]);
}

#[test]
fn what_nobody_used_leaves_nothing() {
    let parking = Parking::new();
    parking.park(&parking.order("true"));
    parking.park(&parking.order("true"));
    assert_eq!(parking.places().len(), 3, "one run, its layer and its artifacts: {:?}", parking.places());
    parking.bench.engine.unpark();
    assert_eq!(parking.places(), [] as [&str; 0]);
    parking.park(&parking.order("true"));
    let Parking { bench: Bench { directory, engine }, task, path, _alone } = parking;
    drop(engine);
    let engine = Engine::open(common::config(&directory)).expect("opens again");
    let parking = Parking { bench: Bench { directory, engine }, task, path, _alone };
    assert_eq!(parking.places(), [] as [&str; 0], "what waited went with the engine");
}
