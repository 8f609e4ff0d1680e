//! Runs in a row, each of which writes a layer.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use engine::store::ActionState;

use crate::bench::Bench;
use crate::identities::Identities;
use crate::{RUNS, alone, rounds, say};

/// Runs of one task. The next one starts another, so that the depth of the layers is that of everyday work.
const IN_A_TASK: u32 = 25;
/// Starts at once, in the long form.
const AT_ONCE_MAX: u32 = 200;
/// Runs after which everything is compared.
const COMPARED_EACH: u32 = 100;

#[test]
fn runs_in_a_row_leave_nothing_behind() {
    let _turn = alone();
    let bench = Bench::new();
    let runs = rounds("FUMEHOOD_SOAK_RUNS", RUNS);
    let before = Identities::now(bench.top());
    let start = Instant::now();
    for run in 0..runs {
        let line = format!("echo {run} > run-{run}; echo {run} >> src/file");
        let mut words = vec!["run", "--quiet", "--", "sh", "-c", &line];
        if run % IN_A_TASK == 0 {
            words.insert(1, "--new-task");
        }
        bench.run(&words);
        if (run + 1) % COMPARED_EACH == 0 || run + 1 == runs {
            before.are_back(bench.top(), &[], &format!("after {} runs", run + 1));
            assert_eq!(bench.half_done(), Vec::<std::path::PathBuf>::new());
        }
    }
    let took = start.elapsed() / runs.max(1);
    bench.run(&["audit", "verify"]);
    assert_eq!(bench.states().into_iter().collect::<Vec<_>>(), [(ActionState::Ended, runs)]);
    let kinds = "processes, namespaces, mounts, control groups, loop devices and files";
    say(&format!("{runs} runs in a row, {took:.1?} each: the sets of {kinds} are back where they began"));
    say(&format!("{runs} actions ended on record, each with a layer; the record verifies"));
}

/// Each start looks for what the dead left, at the moment in which others make and remove their places.
#[test]
fn starts_at_once_do_not_take_each_other_for_dead() {
    let _turn = alone();
    let bench = Bench::new();
    let starts = (rounds("FUMEHOOD_SOAK_RUNS", RUNS) / 5).min(AT_ONCE_MAX);
    let before = Identities::now(bench.top());
    let words = ["run", "--new-task", "--", "sh", "-c", "echo new > made"];
    let start = || bench.command(&words).stderr(Stdio::piped()).spawn().expect("it starts");
    let children: Vec<Child> = (0..starts).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    before.are_back(bench.top(), &[], "after all of them");
    assert_eq!(bench.half_done(), Vec::<std::path::PathBuf>::new());
    assert_eq!(bench.states().into_iter().collect::<Vec<_>>(), [(ActionState::Ended, starts)]);
    say(&format!(
        "{starts} starts at once, each in a task of its own: all ended on record and nothing is left"
    ));
}

/// Without this the other tests would pass where nothing can be seen.
#[test]
fn what_runs_is_seen_while_it_runs() {
    let _turn = alone();
    let bench = Bench::new();
    let before = Identities::now(bench.top());
    let mut command = bench.command(&["run", "--", "sh", "-c", "echo ready; sleep 60"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    let stdout = child.stdout.as_mut().expect("is piped");
    std::io::Read::read_exact(stdout, &mut ready).expect("the command says that it runs");
    let during = Identities::now(bench.top());
    // The program, the first process of the sandbox, and the shell at least; and seven kinds of namespaces.
    assert!(during.of("process") >= before.of("process") + 3, "{during:?}");
    assert!(during.of("namespace") >= before.of("namespace") + 7, "{during:?}");
    std::fs::write(bench.path("home/new"), "").expect("writes");
    let found = before.differences(&Identities::now(bench.top()), &[]);
    assert!(found.iter().any(|line| line.starts_with("file") && line.contains("home/new")), "{found:#?}");
    std::fs::remove_file(bench.path("home/new")).expect("removes");
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
    std::thread::sleep(Duration::from_millis(1));
    bench.run(&["task", "list", "--quiet"]);
    before.are_back(bench.top(), &["file"], "after the kill");
}
