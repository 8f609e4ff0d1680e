//! The life of a command: what it can do to the first process, how it ends, and what is left.

mod bench;

use std::time::{Duration, Instant};

use bench::{Bench, silent};
use model::enforcement::Layer;
use model::{Bytes, Ending, LimitKind, OsText, Profile, Tool};
use sandbox::{Io, Request, SandboxError, controller};

fn run_tool(argv: &[&str]) -> Tool {
    Tool::Run { argv: argv.iter().map(|argument| OsText::literal(argument)).collect() }
}

#[test]
fn the_first_process_cannot_be_read_traced_or_robbed() {
    let mut bench = Bench::new();
    let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(result):
    return result != 0 and os.strerror(ctypes.get_errno()) or "done"
print(refused(libc.ptrace(0x4206, 1, None, None)))
for name in ["mem", "environ", "fd"]:
    try:
        path = "/proc/1/" + name
        os.listdir(path) if name == "fd" else open(path, "rb").read(1)
        print("done")
    except PermissionError as error:
        print(error.strerror)
pidfd = os.pidfd_open(1)
print(refused(libc.syscall(438, pidfd, 0, 0)))
"#;
    let run = bench.run(&["python3", "-c", script]);
    let allowed = ["Operation not permitted", "Permission denied"];
    let lines = run.stdout();
    assert_eq!(lines.lines().count(), 5, "{lines}{}", run.stderr());
    assert!(lines.lines().all(|line| allowed.contains(&line)), "{lines}");
}

#[test]
fn killing_the_first_process_from_inside_does_nothing() {
    let mut bench = Bench::new();
    let run = bench.shell("kill -9 1; kill -15 1; echo still here");
    assert_eq!(run.stdout(), "still here\n");
}

#[test]
fn a_background_process_that_keeps_the_output_open_does_not_keep_the_run_open() {
    let mut bench = Bench::new();
    let start = Instant::now();
    let run = bench.shell("(setsid sleep 100 &) ; echo done");
    assert_eq!(run.stdout(), "done\n");
    assert!(start.elapsed() < Duration::from_secs(8), "it waited for the background process");
}

#[test]
fn each_ending_is_told_apart() {
    let mut bench = Bench::new();
    assert_eq!(bench.shell("kill -SEGV $$").0.ending, Ending::Signaled { signal: 11 });
    assert_eq!(bench.run(&["no-such-program"]).0.ending, Ending::NotFound);
    bench.file("plain.txt", "text");
    assert_eq!(bench.run(&["./plain.txt"]).0.ending, Ending::NotExecutable { errno: 13 });
}

#[test]
fn a_stop_ends_the_command_and_says_so() {
    let bench = Bench::new();
    let prepared = bench.prepare().expect("a sandbox that holds");
    let (handle, controller) = controller().expect("a controller");
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        handle.ask(Request::Stop);
    });
    let io = Io { controller: Some(controller), ..silent() };
    let execution = prepared.run(bench.permit(run_tool(&["sleep", "60"])), io).expect("a run");
    stopper.join().expect("the stopper ends");
    assert_eq!(execution.ending, Ending::Stopped);
}

#[test]
fn the_memory_limit_ends_the_command_and_is_named() {
    let mut bench = Bench::new();
    let run = bench.run(&["python3", "-c", "x = b'x' * (1 << 30); print(len(x))"]);
    assert_eq!(
        run.0.ending,
        Ending::Limit { limit: LimitKind::Memory },
        "{:?} {}",
        run.0.usage,
        run.stderr()
    );
}

#[test]
fn processes_that_share_their_memory_are_not_counted_twice() {
    let mut bench = Bench::new();
    let script = r#"
import os, time
x = b"x" * (40 << 20)
kids = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        time.sleep(1); os._exit(0)
    kids.append(pid)
for pid in kids: os.waitpid(pid, 0)
print("fine")
"#;
    let run = bench.run(&["python3", "-c", script]);
    assert_eq!(run.stdout(), "fine\n", "{:?}", run.0.ending);
}

#[test]
fn output_beyond_its_limit_is_dropped_and_counted() {
    let mut bench = Bench::new();
    bench.grant.profile.limits.output = Bytes::new(1000);
    let run = bench.shell("seq 1 5000; echo the end");
    let (_, printed) = &run.0.printed[0];
    assert!(printed.dropped > 0 && printed.kept().len() < 1200);
    assert!(run.stdout().starts_with("1\n2\n") && run.stdout().ends_with("the end\n"));
    assert!(run.0.observed.limits_touched.contains(&LimitKind::Output));
}

#[test]
fn programs_and_connections_are_seen() {
    let mut bench = Bench::new();
    let run = bench.shell("ls >/dev/null; bash -c 'echo > /dev/tcp/192.0.2.1/443' 2>/dev/null; true");
    let programs: Vec<String> = run
        .0
        .observed
        .programs
        .iter()
        .map(|p| p.argv.first().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert_eq!(programs, ["sh", "ls", "bash"]);
    assert!(
        run.0.observed.connections.iter().any(|c| c.address == "192.0.2.1:443"),
        "{:?}",
        run.0.observed.connections
    );
}

#[test]
fn a_terminal_of_its_own_is_given_when_the_grant_says_so() {
    let mut bench = Bench::new();
    bench.grant.terminal = true;
    let run = bench.shell("test -t 0 && test -t 1 && tty && stty size >/dev/null && echo yes");
    assert_eq!(run.stdout(), "/dev/pts/0\r\nyes\r\n");
}

#[test]
fn a_permit_for_another_grant_starts_nothing() {
    let mut bench = Bench::new();
    let prepared = bench.prepare().expect("a sandbox that holds");
    bench.grant.profile.limits.processes = 7;
    let permit = bench.permit(run_tool(&["true"]));
    assert!(matches!(prepared.run(permit, silent()), Err(SandboxError::OtherGrant)));
}

#[test]
fn nothing_is_left_when_a_run_is_over() {
    let mut bench = Bench::under(Profile::default_profile());
    let run = bench.shell("mkdir -p /tmp/a/b; chmod 000 /tmp/a; (sleep 50 &); true");
    assert!(run.0.teardown.is_clean(), "{:?}", run.0.teardown);
}

#[test]
fn a_sandbox_that_was_never_used_leaves_nothing() {
    let bench = Bench::new();
    let prepared = bench.prepare().expect("a sandbox that holds");
    assert!(prepared.report().held.iter().any(|held| held.layer == Layer::Seccomp));
    drop(prepared);
    let ours = std::fs::read_to_string("/proc/thread-self/children").expect("the children");
    assert_eq!(ours.trim(), "", "a child is left");
}

#[test]
fn two_hundred_sandboxes_start_at_once() {
    for profile in [Profile::strict(), Profile::default_profile()] {
        // For root, the second is as many images.
        let start = || {
            let profile = profile.clone();
            std::thread::spawn(move || Bench::under(profile).shell("exit 3").0.ending)
        };
        let starts: Vec<_> = (0..200).map(|_| start()).collect();
        for start in starts {
            assert_eq!(start.join().expect("a start"), Ending::Exited { status: 3 });
        }
    }
}
