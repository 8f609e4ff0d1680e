//! Every system call of the launcher fails once: then nothing runs, and nothing stays.
//!
//! The list of calls is the trace of a real start. A few calls may fail without harm; they are in `harmless.txt`, each
//! with its reason, and then the start must be whole. For every change a sample is tried; `FUMEHOOD_SOAK_FAULTS=all`
//! tries all of them, each with two errors.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::disallowed_methods, reason = "the tests start themselves and read their own variables")]

#[path = "../bench/mod.rs"]
mod bench;
#[path = "../fake_gateway/mod.rs"]
mod fake_gateway;
mod trace;

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bench::{Bench, silent};
use model::{ActionId, OsText, Profile, Tool};
use sandbox::seccomp::{Arch, Call};
use sandbox::{Io, Joined};
use trace::{Fault, Made, Role, Seen, follow};

/// Tells the driver where to write what became of its start.
const DRIVER: &str = "FUMEHOOD_TEST_FAULT_DRIVER";
/// Tells the driver the directory of a run whose network its start joins.
const JOINS: &str = "FUMEHOOD_TEST_FAULT_JOINS";
/// Tells the driver that its start has a way out.
const REACHES: &str = "FUMEHOOD_TEST_FAULT_REACHES";
/// Tells a process that is joined where to write the directory of its run.
const SERVES: &str = "FUMEHOOD_TEST_FAULT_SERVES";
/// Chooses more calls than a sample.
const MODE: &str = "FUMEHOOD_SOAK_FAULTS";
/// How many calls the sample has.
const SAMPLE: usize = 30;
/// What a call fails with: one error that is about rights and one that is about means.
const ERRORS: [i32; 2] = [libc::EPERM, libc::ENOMEM];

/// What the driver says of a start in which nothing failed.
const WHOLE: &str = "RAN ended: exited with 0";

/// Calls that may fail: role (or `*`), call, reason.
const HARMLESS: &str = include_str!("harmless.txt");

/// Makes one start: builds a sandbox, runs a command that leaves a file in its layer, and writes down what became of it
/// and what is left. The test below starts this in a process of its own, to follow all that it starts.
#[test]
#[ignore = "is started by the test below"]
fn driver() {
    let Some(outcome) = std::env::var_os(DRIVER) else { return };
    let mut bench = Bench::under(Profile::default_profile());
    bench.file("secret.env", "TOKEN=x");
    bench.masks.push(model::WorkspacePath::parse("secret.env").expect("a path"));
    if let Some(run_directory) = std::env::var_os(JOINS).map(PathBuf::from) {
        bench.join(&Joined { action: ActionId::from_random([7; 10]), run_directory });
    }
    if std::env::var_os(REACHES).is_some() {
        bench.reach(&["https://allowed.test", "tcp://allowed.test:8080"], "gateway");
    }
    let said = run(&bench);
    let ran = if ran_below(&bench.state()) { "RAN " } else { "" };
    let left = left_behind(&bench);
    let left = if left.is_empty() { String::new() } else { format!(" LEFT {}", left.join(", ")) };
    fs::write(outcome, format!("{ran}{said}{left}")).expect("writes");
}

fn run(bench: &Bench) -> String {
    let argv = ["sh", "-c", "echo ran > ran"].map(OsText::literal).to_vec();
    match bench.prepare() {
        Err(error) => format!("refused: {error}"),
        Ok(prepared) => match prepared.run(bench.permit(Tool::Run { argv }), silent()) {
            Err(error) => format!("lost: {error}"),
            Ok(execution) => format!("ended: {}", execution.ending),
        },
    }
}

/// Tells whether any layer holds the file that the command leaves.
fn ran_below(state: &Path) -> bool {
    let layers = fs::read_dir(state).into_iter().flatten().flatten();
    layers.into_iter().any(|layer| layer.path().join("upper/ran").exists())
}

/// Names what a start left behind, outside the directories that were made for it: children, mounts, control groups, and
/// anything in those directories that cannot be removed.
fn left_behind(bench: &Bench) -> Vec<String> {
    let children = fs::read_to_string("/proc/thread-self/children").expect("the children");
    let mut left: Vec<String> = children.split_whitespace().map(|pid| format!("process {pid}")).collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    let here = bench.workspace().parent().expect("a parent").to_string_lossy().into_owned();
    left.extend(mounts.lines().filter(|line| line.contains(&here)).map(|line| format!("mount {line}")));
    left.extend(groups_of(std::process::id()).into_iter().map(|path| format!("group {}", path.display())));
    left.extend(sandbox::remove_tree(&bench.state()).err().map(|error| format!("directory: {error}")));
    left
}

/// Returns the control groups that a process made for its runs; the one for itself stays as long as it does.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(directory) = places.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let owner = name.split('-').nth(1).and_then(|pid| pid.parse().ok());
            if owner == Some(pid) && name.ends_with("-run") {
                found.push(path.clone());
            }
            places.push(path);
        }
    }
    found
}

/// What became of one start, and what was seen of it.
struct Start {
    said: String,
    seen: Seen,
}

/// In which network a start is.
#[derive(Clone, Copy)]
enum Network<'a> {
    Own,
    Joined(&'a Joined),
    WithAWayOut,
}

fn start(directory: &Path, fault: Option<Fault>, network: Network<'_>) -> Start {
    let outcome = directory.join("outcome");
    let _ = fs::remove_file(&outcome);
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["driver", "--exact", "--ignored", "--test-threads=1"]).env(DRIVER, &outcome);
    match network {
        Network::Own => {}
        Network::Joined(joined) => drop(command.env(JOINS, &joined.run_directory)),
        Network::WithAWayOut => drop(command.env(REACHES, "yes")),
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let seen = follow(&mut command, fault).expect("it is followed");
    Start { said: fs::read_to_string(&outcome).unwrap_or_default(), seen }
}

fn name(call: u64) -> String {
    let known = Call::ALL.iter().find(|known| known.number(Arch::NATIVE).map(u64::from) == Some(call));
    known.map_or_else(|| call.to_string(), |known| format!("{known:?}"))
}

/// Returns the reason for which a call may fail.
fn harmless(role: Role, call: &str) -> Option<&'static str> {
    let rows = HARMLESS.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(" | "));
    let rows = rows.filter_map(|mut row| Some([row.next()?, row.next()?, row.next()?]));
    rows.into_iter()
        .find(|[of, known, _]| (*of == "*" || *of == role.name()) && *known == call)
        .map(|[.., why]| why)
}

/// Returns the calls to try: all that did not fail in the real start anyway. A probe that the kernel refuses stays
/// refused when it is refused otherwise, and a path that is not there is not there.
///
/// What the first process does after the word to start is no part of the start: it samples and records.
fn worth_trying(made: &[Made]) -> Vec<Made> {
    let is = |made: &Made, role, call: i64| made.role == role && made.call == call.cast_unsigned();
    let begun = made.iter().position(|made| is(made, Role::Runner, libc::SYS_umask)).unwrap_or(made.len());
    let word = made[..begun].iter().rposition(|made| is(made, Role::FirstProcess, libc::SYS_sendmsg));
    let fails_anyway = |made: &Made| made.result.is_some_and(|result| (-4095..0).contains(&result));
    let of_start =
        |at: usize, made: &Made| made.role != Role::FirstProcess || word.is_none_or(|word| at <= word);
    made.iter()
        .enumerate()
        .filter(|(at, made)| of_start(*at, made) && !fails_anyway(made))
        .map(|(_, made)| *made)
        .collect()
}

/// Returns the calls to try and the errors to try each with: a sample, the first and the last of each kind of call of
/// each role (`kinds`), or all of them (`all`).
fn chosen(calls: &[Made]) -> (Vec<&Made>, &'static [i32]) {
    let (mut first, mut last) = (BTreeSet::new(), BTreeSet::new());
    let mut kinds: Vec<&Made> = calls.iter().filter(|made| first.insert((made.role, made.call))).collect();
    kinds.extend(calls.iter().rev().filter(|made| last.insert((made.role, made.call))));
    match std::env::var(MODE).as_deref() {
        Ok("all") => (calls.iter().collect(), &ERRORS),
        Ok("kinds") => (kinds, &ERRORS),
        _ => {
            // What may fail has less to show.
            let matters = |made: &&Made| harmless(made.role, &name(made.call)).is_none();
            let matter: Vec<&Made> = calls.iter().filter(matters).collect();
            let stride = matter.len().div_ceil(SAMPLE).max(1);
            (matter.into_iter().step_by(stride).collect(), &ERRORS[..1])
        }
    }
}

/// Says what is wrong with a start in which a call failed.
fn judge(made: &Made, errno: i32, start: &Start) -> Result<(), String> {
    let call = name(made.call);
    let place = format!("{} {} `{call}` with error {errno}", made.role.name(), made.at);
    if !start.seen.left.is_empty() {
        return Err(format!("{place}: processes stay: {:?}", start.seen.left));
    }
    let said = start.said.as_str();
    match said {
        "" => Err(format!("{place}: the supervisor did not get to an end")),
        _ if said.contains(" LEFT ") => Err(format!("{place}: {said}")),
        WHOLE if harmless(made.role, &call).is_some() => Ok(()),
        _ if said.starts_with("RAN") => Err(format!("{place}: the command ran: {said}")),
        _ => Ok(()),
    }
}

#[test]
fn every_call_of_the_launcher_fails_once_and_nothing_runs_and_nothing_stays() {
    let _alone = one_at_a_time();
    let directory = tempfile::tempdir().expect("a directory");
    let whole = start(directory.path(), None, Network::Own);
    assert_eq!(whole.said, WHOLE, "the start without a fault");
    let calls = worth_trying(&whole.seen.made);
    let (chosen, errors) = chosen(&calls);
    let (mut tried, mut gone, mut killed, mut wrong) = (0, 0, 0, Vec::new());
    let planned = chosen.iter().flat_map(|made| errors.iter().map(move |errno| (made, *errno)));
    for (made, errno) in planned {
        let fault = Fault { role: made.role, at: made.at, errno };
        let start = start(directory.path(), Some(fault), Network::Own);
        match start.seen.failed {
            Some(call) => {
                tried += 1;
                let judged = judge(&Made { call, ..**made }, errno, &start);
                wrong.extend(judged.err().inspect(|why| println!("wrong: {why}")));
            }
            // It is killed as soon as its namespace was taken, and may not have come that far.
            None if made.role == Role::IdMap => killed += 1,
            // Who waits for what differs between two starts: this one made fewer calls of this role.
            None => {
                println!("not made: {} {} {}", made.role.name(), made.at, name(made.call));
                gone += 1;
            }
        }
    }
    let planned = tried + gone + killed;
    println!(
        "soak: {tried} of {planned} calls of the launcher failed once, of {} in a start, {} of which fail anyway or are no part of it; \
         {gone} were not made that time, and {killed} because their process was not needed any longer",
        whole.seen.made.len(),
        whole.seen.made.len() - calls.len()
    );
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(gone * 20 <= planned, "too many calls were not made: {gone} of {planned}");
}

/// What joining a network adds to the calls of a start.
const OF_JOINING: [(Role, i64); 4] = [
    (Role::FirstStage, libc::SYS_ioctl),
    (Role::FirstStage, libc::SYS_setns),
    (Role::FirstProcess, libc::SYS_bind),
    (Role::FirstProcess, libc::SYS_listen),
];

/// A sandbox to join, in a process of its own: what follows a start would take its processes for those of the start.
struct Server(Child);

impl Server {
    fn start(directory: &Path) -> (Self, Joined) {
        let place = directory.join("place");
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.args(["server", "--exact", "--ignored", "--test-threads=1"]).env(SERVES, &place);
        let server = Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts"));
        while !place.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let run_directory = PathBuf::from(fs::read_to_string(place).expect("a directory"));
        (server, Joined { action: ActionId::from_random([7; 10]), run_directory })
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}

/// Runs until its standard input ends, and writes down the directory of its run.
#[test]
#[ignore = "is started by the test below"]
fn server() {
    let Some(place) = std::env::var_os(SERVES).map(PathBuf::from) else { return };
    let bench = Bench::under(Profile::default_profile());
    let (prepared, joined) = bench.prepare_to_be_joined();
    let written = place.with_extension("new");
    fs::write(&written, joined.run_directory.as_os_str().as_encoded_bytes()).expect("writes");
    fs::rename(written, place).expect("renames");
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input").into();
    let cat = Tool::Run { argv: vec![OsText::literal("cat")] };
    prepared.run(bench.permit(cat), Io { stdin: Some(stdin), ..silent() }).expect("a run");
}

#[test]
fn every_call_that_joins_a_network_fails_once_and_nothing_runs_and_nothing_stays() {
    let _alone = one_at_a_time();
    let directory = tempfile::tempdir().expect("a directory");
    let (server, joined) = Server::start(directory.path());
    let whole = start(directory.path(), None, Network::Joined(&joined));
    assert_eq!(whole.said, WHOLE, "the start without a fault");
    let calls = worth_trying(&whole.seen.made);
    let is_of_joining = |made: &&Made| {
        OF_JOINING.iter().any(|(role, call)| (made.role, made.call) == (*role, call.cast_unsigned()))
    };
    let of_joining: Vec<&Made> = calls.iter().filter(is_of_joining).collect();
    assert!(of_joining.iter().any(|made| made.call == libc::SYS_setns.cast_unsigned()), "it joins");
    for made in of_joining {
        let fault = Fault { role: made.role, at: made.at, errno: libc::EPERM };
        let start = start(directory.path(), Some(fault), Network::Joined(&joined));
        assert_eq!(start.seen.failed, Some(made.call), "{} was not made again", name(made.call));
        assert_eq!(judge(made, libc::EPERM, &start), Ok(()));
    }
    server.end();
}

/// What a way out adds to the calls of a start, all of the first stage. What is read is only whether there is IPv6, and
/// without it there is no route for it.
const OF_A_WAY_OUT: [i64; 8] = [
    libc::SYS_openat,
    libc::SYS_socket,
    libc::SYS_setsockopt,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
];

#[test]
#[ignore = "is started by the driver as a gateway"]
fn gateway() {
    fake_gateway::serve();
}

#[test]
fn every_call_that_makes_a_way_out_fails_once_and_nothing_runs_and_nothing_stays() {
    let _alone = one_at_a_time();
    let directory = tempfile::tempdir().expect("a directory");
    let whole = start(directory.path(), None, Network::WithAWayOut);
    assert_eq!(whole.said, WHOLE, "the start without a fault");
    let calls = worth_trying(&whole.seen.made);
    let of_a_way_out: Vec<&Made> = calls
        .iter()
        .filter(|made| made.role == Role::FirstStage)
        .filter(|made| OF_A_WAY_OUT.iter().any(|call| made.call == call.cast_unsigned()))
        .collect();
    // Routes, rules, and the sockets of names, the proxy, one port and the turned ones.
    assert!(of_a_way_out.len() >= 20, "{} calls", of_a_way_out.len());
    for made in of_a_way_out {
        let fault = Fault { role: made.role, at: made.at, errno: libc::EPERM };
        let start = start(directory.path(), Some(fault), Network::WithAWayOut);
        assert_eq!(start.seen.failed, Some(made.call), "{} was not made again", name(made.call));
        assert_eq!(judge(made, libc::EPERM, &start), Ok(()));
    }
}

/// What is followed is all that this process starts.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
