//! Runs whose supervisor is killed: at every named step, and at random times.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use engine::store::ActionState;
use sandbox::fail_point;

use crate::bench::Bench;
use crate::identities::{Identities, NEED_RECOVERY};
use crate::{KILLS, alone, rounds, say};

/// Every named step, by its part of the path.
const STEPS: [&str; 21] = [
    "decision: the action has its place",
    "build: its directories are made",
    "build: its control groups are made",
    "build: its store is made",
    "build: the launcher is started",
    "build: the prober has tried everything",
    "decision: it is about to be on the record",
    "decision: it is on the record",
    "run: the start is on the record",
    "run: the command is told to start",
    "run: the command has ended",
    "run: everything inside has ended",
    "teardown: the layer is kept",
    "teardown: the descriptors are closed",
    "teardown: the control groups are removed",
    "teardown: the directories are removed",
    "inspection: the layer is read",
    "inspection: what the run saw below is kept",
    "inspection: it is judged",
    "inspection: the output is kept",
    "inspection: the end is on the record",
];

/// The command of a run that is killed: it writes a layer, and takes long enough to be met.
const COMMAND: &str =
    "echo new > made; mkdir -p deep/er; echo more >> src/file; sleep 0.03; echo end > deep/er/last";

#[test]
fn killed_anywhere_nothing_is_left_and_every_action_comes_to_a_recorded_state() {
    let _turn = alone();
    assert!(fail_point::is_compiled_in(), "a release build needs the feature `fail-points` for this");
    let bench = Bench::new();
    let kills = rounds("FUMEHOOD_SOAK_KILLS", KILLS);
    // What only the first start makes, below the home and the state directory.
    bench.run(&["run", "--quiet", "--", "true"]);
    let before = Identities::now(bench.top());
    let (steps, whole) = whole_run(&bench);
    assert_eq!(sorted(&steps), sorted(&STEPS.map(str::to_owned)), "each named step is reached");
    let mut dice = Dice::new();
    let mut hit = BTreeMap::<String, u32>::new();
    let mut at_random = 0;
    for kill in 0..kills {
        let named = STEPS.get(kill as usize % (STEPS.len() * 2)).copied();
        let last = match named {
            Some(step) => at_step(&bench, step),
            None => {
                at_random += 1;
                at_time(&bench, dice.below(whole))
            }
        };
        let when = format!("killed after `{last}`, {named:?}");
        before.are_back(bench.top(), &NEED_RECOVERY, &when);
        // Any verb looks for what the dead left.
        bench.run(&["log", "--quiet"]);
        before.are_back(bench.top(), &[], &when);
        assert_eq!(bench.half_done(), Vec::<PathBuf>::new(), "{when}");
        *hit.entry(last).or_default() += 1;
    }
    let after = bench.command(&["run", "--quiet", "--", "sh", "-c", "cat src/file"]).status();
    assert!(after.expect("it starts").success(), "the task goes on");
    bench.run(&["audit", "verify"]);
    report(kills, at_random, &dice, &hit, &bench.states());
}

/// Runs to the end; returns the steps on the way, and how long that took.
fn whole_run(bench: &Bench) -> (Vec<String>, Duration) {
    let trace = bench.path("state/steps");
    let start = Instant::now();
    let mut command = bench.command(&["run", "--quiet", "--", "sh", "-c", COMMAND]);
    assert!(command.env("FUMEHOOD_TEST_STEPS", &trace).status().expect("it starts").success());
    (lines(&trace), start.elapsed())
}

/// Returns the steps that were reached, and forgets them.
fn lines(trace: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap_or_default();
    let _ = fs::remove_file(trace);
    text.lines().map(str::to_owned).collect()
}

fn sorted(steps: &[String]) -> Vec<&str> {
    let mut sorted: Vec<&str> = steps.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted
}

fn at_step(bench: &Bench, step: &str) -> String {
    let mut command = bench.command(&["run", "--quiet", "--", "sh", "-c", COMMAND]);
    let status = command.env("FUMEHOOD_TEST_DIE_AT", step).status().expect("it starts");
    assert_eq!(status.signal(), Some(9), "it did not die at `{step}`: {status:?}");
    step.to_owned()
}

/// Kills after some time; returns the last step before that.
fn at_time(bench: &Bench, after: Duration) -> String {
    let trace = bench.path("state/steps");
    let mut command = bench.command(&["run", "--quiet", "--", "sh", "-c", COMMAND]);
    let mut child = command.env("FUMEHOOD_TEST_STEPS", &trace).spawn().expect("it starts");
    std::thread::sleep(after);
    child.kill().expect("it can be killed, or has ended");
    child.wait().expect("it has ended");
    lines(&trace).pop().unwrap_or_else(|| "start: nothing yet".to_owned())
}

fn report(
    kills: u32,
    at_random: u32,
    dice: &Dice,
    hit: &BTreeMap<String, u32>,
    states: &BTreeMap<ActionState, u32>,
) {
    let named = kills - at_random;
    say(&format!(
        "{kills} supervisors killed: {named} at named steps, {at_random} at random times (seed {})",
        dice.seed
    ));
    say("after each kill the same sets are back; control groups when the program is started again");
    for (step, times) in hit {
        say(&format!("killed {times} times after the step `{step}`"));
    }
    let reached = STEPS.iter().filter(|step| hit.contains_key(**step)).count();
    say(&format!("{reached} of {} named steps hit", STEPS.len()));
    let states: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {}", state.name())).collect();
    say(&format!("the actions are on record as: {}", states.join(", ")));
    assert!(named < u32::try_from(STEPS.len()).unwrap_or(0) || reached == STEPS.len());
}

/// Numbers that nobody chose, from a seed that is said (xorshift).
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    fn new() -> Self {
        let asked = std::env::var("FUMEHOOD_SOAK_SEED").ok().and_then(|seed| seed.parse().ok());
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seed = asked.unwrap_or_else(|| u64::from(time.subsec_nanos()) | 1);
        Self { seed, state: seed }
    }

    fn below(&mut self, most: Duration) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX).max(1);
        Duration::from_nanos(self.state % nanos)
    }
}
