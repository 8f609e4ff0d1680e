//! Measures what policy costs a run, for `cargo xtask bench --only figures`: loading the shipped bundle, and deciding.
//!
//! `cargo run --release -p fumehood-gate --example cost`
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use gate::{DEFAULT_BUNDLE, Facts, Gate, Policy};
use model::action::{Base, Principal, StartingPoint};
use model::grant::Network;
use model::{
    Action, ActionId, ActionRequest, Grant, OsText, Profile, TaskId, Timestamp, Tool, WorkspacePath,
};

fn main() -> Result<(), Box<dyn Error>> {
    // The first in a process is what a one-shot run pays: tables that are made on first use are in it.
    let start = Instant::now();
    let gate = Gate::new(Policy::default_bundle()?);
    say("load the shipped bundle, the first in a process", start.elapsed(), "1 ms");
    let facts = Facts::new(Profile::default_profile(), Timestamp::from_nanos(1));
    let (run, write) = (run()?, write()?);
    let start = Instant::now();
    black_box(gate.decide(action(&run, Network::Loopback)?, &facts)).record();
    say("decide about a command, the first in a process", start.elapsed(), "");

    report("load the shipped bundle", "1 ms", 200, || black_box(Policy::default_bundle()).is_ok());
    report("load it and check it against the schema", "", 50, || {
        black_box(Policy::parse(DEFAULT_BUNDLE)).is_ok()
    });
    let (plain, wide) = (action(&run, Network::Loopback)?, action(&run, Network::Host)?);
    report("decide about a command", "", 2000, || decides(&gate, &plain, &facts));
    report("decide about a command, narrowed", "", 2000, || decides(&gate, &wide, &facts));
    let (deep, mut facts) = (action(&write, Network::Loopback)?, facts);
    facts.classes = write.writes().iter().map(|path| (path.clone(), gate::Classes::new())).collect();
    report("decide about a write, four directories deep", "", 2000, || decides(&gate, &deep, &facts));
    let two = "decide with 200 rules and 50 entities (two questions)";
    many(&facts, two, |number| format!("secret-{number}"))?;
    let named = "decide with 200 rules that name each of the 50 entities";
    many(&facts, named, |number| vec!["d"; number % 49 + 1].join("/"))
}

/// Decides by two hundred rules about a path among fifty entities, its directories. `named` is what a rule names.
fn many(facts: &Facts, what: &str, named: impl Fn(usize) -> String) -> Result<(), Box<dyn Error>> {
    let shipped = DEFAULT_BUNDLE.matches("@id(").count();
    let rules = (shipped..200).map(|number| {
        format!(
            "@id(\"no-{number}\") @reason(\"no\") @advice(\"no\") @person_may_allow(\"false\")\n\
             forbid (principal == Agent::\"other-{number}\", action == Action::\"read-path\", resource)\n\
             when {{ resource is Path && resource in Path::\"{}\" }};\n",
            named(number)
        )
    });
    let gate = Gate::new(Policy::parse(&format!("{DEFAULT_BUNDLE}\n{}", rules.collect::<String>()))?);
    // The workspace, and a path in directories; reading it is two questions.
    let path = WorkspacePath::parse(vec!["d"; 49].join("/"))?;
    let deep = action(&Tool::Read { path }, Network::Loopback)?;
    report(what, "50 µs", 2000, || decides(&gate, &deep, facts));
    Ok(())
}

fn decides(gate: &Gate, action: &Action, facts: &Facts) -> bool {
    black_box(gate.decide(action.clone(), facts)).record().grant.is_some()
}

/// Does the work many times, and prints the median and the slow end.
fn report(name: &str, goal: &str, times: usize, mut work: impl FnMut() -> bool) {
    let mut samples: Vec<Duration> = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        assert!(work(), "{name}: the work failed");
        samples.push(start.elapsed());
    }
    samples.sort();
    let (median, slow) = (samples[times / 2], samples[times - 1 - times / 100]);
    println!("figure: {name} | {median:.1?} at the median, {slow:.1?} at p99 | {goal}");
}

fn say(name: &str, took: Duration, goal: &str) {
    println!("figure: {name} | {took:.1?} | {goal}");
}

fn run() -> Result<Tool, Box<dyn Error>> {
    let argv = ["cargo", "test"].into_iter().map(OsText::try_from).collect::<Result<_, _>>()?;
    Ok(Tool::Run { argv })
}

fn write() -> Result<Tool, Box<dyn Error>> {
    Ok(Tool::Write { path: WorkspacePath::parse("a/b/c/d/e.rs")?, content: String::new() })
}

fn action(tool: &Tool, network: Network) -> Result<Action, Box<dyn Error>> {
    let request = ActionRequest {
        principal: Principal::Agent("cost".to_owned()),
        tool: tool.clone(),
        directory: None,
        environment: BTreeMap::new(),
        purpose: None,
    };
    let grant = Grant { network, ..Grant::under(Profile::default_profile()) };
    let start = StartingPoint { workspace: OsText::try_from("/ws")?, base: Base::Live, layers: Vec::new() };
    Ok(Action::parse(ActionId::from_random([1; 10]), TaskId::from_random([2; 10]), request, grant, start)?)
}
