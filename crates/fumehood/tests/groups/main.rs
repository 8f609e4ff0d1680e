//! What control groups hold of a run of the real program, and what is left of them.
//!
//! On the machine of whoever runs this the host decides which limits the kernel holds, and what the program says of them is
//! compared with what happens. `cargo xtask guest` runs the same tests in a virtual machine that has only version 2, under
//! several users, and says by `FUMEHOOD_TEST_GROUPS` what must be found there: `hard` or `watched`. With
//! `FUMEHOOD_TEST_SCOPES`, a delegated directory, each test starts the program alone in a new group below it, as
//! `systemd-run --scope` does.
#![allow(clippy::disallowed_methods, reason = "the tests start the program")]

mod bench;

use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use bench::{Bench, Demanded, demanded, text_of, until};

const VERSION_2: &str = "a control group (version 2)";
/// The strict profile keeps its files in memory, so the group may hold both.
const STRICT_MEMORY: u64 = (96 + 32) << 20;
/// Those of the strict profile, and the first process.
const STRICT_PROCESSES: &str = "129";

#[test]
fn what_holds_memory_processes_and_processor_time_is_on_the_record() {
    let bench = Bench::new();
    for profile in ["default", "strict"] {
        let shown = bench.shown(&["--profile", profile], &["cat", "README"]);
        assert_eq!(shown["exit_code"], 0, "{shown:#}");
        let memory = Bench::held(&shown, "memory");
        let (processes, cpu) = (Bench::held(&shown, "processes"), Bench::held(&shown, "cpu"));
        let probe = Bench::probe(&shown, "control-group-members");
        match demanded() {
            Some(Demanded::Hard) => {
                for (level, by) in [&memory, &processes, &cpu] {
                    assert!(level == "hard" && by.contains(VERSION_2), "{by}: {shown:#}");
                }
                assert_eq!(probe, Some(true), "{shown:#}");
            }
            Some(Demanded::Watched) => {
                assert!(memory.0 == "watched" && memory.1.contains("not given to this user"), "{memory:?}");
                assert!(processes.0 == "hard" && !processes.1.contains("group"), "{processes:?}");
                assert_eq!((cpu, probe), (("hard".into(), "no limit was asked for".into()), None));
            }
            None => assert_eq!(memory.0 == "hard", probe == Some(true), "{shown:#}"),
        }
    }
}

#[test]
fn a_command_that_takes_too_much_memory_ends_by_that_limit() {
    let bench = Bench::new();
    let shown = bench.strict("dd if=/dev/zero of=/dev/null bs=400M count=100");
    let ending = &shown["end"]["ending"];
    assert_eq!((&ending["ended"], &ending["limit"]), (&"limit".into(), &"memory".into()), "{shown:#}");
    assert_eq!(shown["exit_code"], 137);
    if demanded() == Some(Demanded::Hard) {
        let peak = shown["end"]["usage"]["memory_peak"].as_u64().expect("a number");
        assert!((STRICT_MEMORY / 2..=STRICT_MEMORY).contains(&peak), "{peak}");
    }
    assert_eq!(bench.left(&shown), Vec::<String>::new());
}

#[test]
fn a_command_that_makes_too_many_processes_comes_up_against_that_limit() {
    let bench = Bench::new();
    // A shell gives up as soon as it cannot fork, and those that it made say so. The outer one then meets the limit for
    // as long as a sample takes.
    let many = "exec 2> /dev/null; i=0; while [ $i -lt 60 ]; do sleep 9 & i=$((i+1)); done";
    let stays = format!("({many}); sleep 2; true");
    let is_named = |line: &str| {
        let shown = bench.shown(&["--profile", "strict", "--pids", "40"], &["sh", "-c", line]);
        let touched = shown["end"]["observed"]["limits_touched"].to_string();
        assert!(touched.contains("processes"), "{line}: {touched} {:#}", shown["end"]["usage"]);
        assert_eq!(bench.left(&shown), Vec::<String>::new());
        shown
    };
    let shown = is_named(&stays);
    // The kernel counts every refusal, so the limit is named even when it was met for a moment only.
    if Bench::held(&shown, "processes").1.contains("control group") {
        is_named(many);
    }
}

#[test]
fn a_share_of_a_processor_is_held_or_refused() {
    let bench = Bench::new();
    let answer = bench.run(&["--json", "run", "--cpus", "0.5", "--", "cat", "README"]);
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    let document = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    match answer.status.code() {
        Some(0) => {
            let (level, by) = Bench::held(&document.expect("is JSON"), "cpu");
            assert!(level == "hard" && by.contains("control group"), "{by}");
            assert_ne!(demanded(), Some(Demanded::Watched));
        }
        code => {
            assert!(code == Some(125) && said.contains("cpu"), "{said}");
            assert_ne!(demanded(), Some(Demanded::Hard), "{said}");
        }
    }
}

#[test]
fn the_limits_stand_in_the_group_that_the_command_was_made_in() {
    let bench = Bench::new();
    if demanded() != Some(Demanded::Hard) {
        let shown = bench.strict("cat /proc/self/cgroup > seen; ! grep -v ':/$' seen");
        return assert_eq!(shown["exit_code"], 0, "{shown:#}");
    }
    let words = ["run", "--profile", "strict", "--cpus", "0.5", "--", "sh", "-c", SLEEPER];
    let mut child = bench.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    let own = until_it_prints(&mut child);
    assert_eq!(own, "0::/\n", "its own group is the top of what it sees");
    let groups = bench.groups_of(child.id());
    let [group] = groups.iter().filter(|group| group.ends_with("-run")).collect::<Vec<_>>()[..] else {
        panic!("{groups:?}")
    };
    let read = |file: &str| std::fs::read_to_string(format!("{group}/{file}")).expect("is there");
    assert_eq!(read("memory.max").trim(), STRICT_MEMORY.to_string());
    assert_eq!((read("memory.swap.max").trim(), read("pids.max").trim()), ("0", STRICT_PROCESSES));
    assert_eq!(read("cpu.max").trim(), "50000 100000");
    assert!(read("cgroup.procs").lines().count() >= 2, "the first process and the command");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it lives");
    child.wait().expect("it ends");
    assert_eq!(bench.groups_of(child.id()), Vec::<String>::new());
}

#[test]
fn one_start_after_another_finds_its_place_and_leaves_nothing() {
    let bench = Bench::new();
    for _ in 0..2 {
        let shown = bench.strict("cat README");
        assert_eq!(shown["exit_code"], 0, "{shown:#}");
        let gone = shown["teardown"].to_string();
        assert_eq!(gone.contains("control group"), Bench::held(&shown, "memory").0 == "hard", "{gone}");
        assert_eq!(bench.left(&shown), Vec::<String>::new());
    }
}

#[test]
fn several_at_once_do_not_disturb_each_other() {
    let benches: Vec<Bench> = (0..3).map(|_| Bench::new()).collect();
    let start = |bench: &Bench| {
        let words = ["run", "--profile", "strict", "--", "sh", "-c", "cat README; sleep 1"];
        bench.command(&words).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    let children: Vec<_> = benches.iter().map(|bench| (bench, start(bench))).collect();
    for (bench, child) in children {
        let pid = child.id();
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
        assert_eq!(bench.groups_of(pid), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_supervisor_leaves_is_removed_by_the_next_start() {
    let bench = Bench::new();
    let words = ["run", "--profile", "strict", "--", "sh", "-c", SLEEPER];
    let mut child = bench.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    until_it_prints(&mut child);
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it lives");
    child.wait().expect("it ends");
    until("everything inside ends", || {
        let groups = bench.groups_of(child.id());
        groups.iter().all(|group| text_of(group, "cgroup.procs").is_empty())
    });
    if bench.is_alone() {
        // Its manager removes a scope when nobody is in it any longer.
        return;
    }
    let shown = bench.strict("cat README");
    assert_eq!(shown["exit_code"], 0, "{shown:#}");
    assert_eq!(bench.groups_of(child.id()), Vec::<String>::new());
}

const SLEEPER: &str = "cat /proc/self/cgroup; exec sleep 60";

/// Returns the first piece that a command prints: it has started then.
fn until_it_prints(child: &mut std::process::Child) -> String {
    let mut text = vec![0; 4096];
    let read = child.stdout.as_mut().expect("is piped").read(&mut text).expect("it prints");
    String::from_utf8_lossy(&text[..read]).into_owned()
}
