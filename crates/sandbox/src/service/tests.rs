//! The process that speaks with a model, confined for real: each test starts this program again as one.
#![allow(clippy::disallowed_methods, reason = "the tests choose a part by an environment of their own")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use model::Layer;
use model::evidence::Probe;

use super::confine::{Part, Who, confine};
use super::spawn_agent;

/// What a confined process of the tests says.
#[derive(serde::Serialize, serde::Deserialize)]
struct Said {
    probes: Vec<Probe>,
    uid: u32,
    reached: bool,
}

/// Starts this program again, confines it without one part, and returns what it said.
fn confined_without(part: &str) -> Said {
    confined("agent", part)
}

/// The same for one of the processes.
fn confined(who: &str, part: &str) -> Said {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let program = std::env::current_exe().expect("our own file");
    let test = "service::tests::inside";
    let arguments = ["--exact", test, "--ignored", "--nocapture"].map(std::ffi::OsStr::new);
    let mut started =
        spawn_agent(&program, &arguments, Some(std::process::Stdio::inherit())).expect("starts");
    let port = server.local_addr().expect("an address").port();
    writeln!(started.stdin, "{port} {who} {part}").expect("it reads");
    let mut text = String::new();
    started.stdout.read_to_string(&mut text).expect("it writes");
    started.child.wait().expect("it ends");
    let line = text.lines().find_map(|line| line.split_once("SAID ")).expect("it said something").1;
    serde_json::from_str(line).expect("as agreed")
}

#[test]
#[ignore = "started by the other tests, in a process of its own"]
fn inside() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    let mut words = line.split_whitespace();
    let mut word = || words.next().expect("a port, a process and a part");
    let (port, who, part) = (word(), word(), word());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().expect("a number")));
    // The harness has a thread beside this one. That only matters for what it could still do, which nobody asks it for.
    let part = match part {
        "descriptors" => Some(Part::Descriptors),
        "capabilities" => Some(Part::Capabilities),
        "landlock" => Some(Part::Landlock),
        "filter" => Some(Part::Filter),
        _ => None,
    };
    let addresses = [address];
    let who = if who == "gateway" { Who::Gateway } else { Who::Agent(&addresses) };
    let probes = confine(who, part).expect("confines itself");
    let said = Said {
        probes,
        uid: rustix::process::geteuid().as_raw(),
        reached: TcpStream::connect(address).is_ok(),
    };
    println!("SAID {}", serde_json::to_string(&said).expect("JSON"));
}

fn failed(said: &Said) -> Vec<(&str, Layer)> {
    said.probes.iter().filter(|probe| !probe.held).map(|probe| (probe.name.as_str(), probe.layer)).collect()
}

#[test]
fn the_process_with_the_key_reaches_the_model_and_nothing_else() {
    let said = confined_without("nothing");
    assert_eq!(failed(&said), [], "{:?}", said.probes);
    assert!(said.reached, "the model's server must be in reach");
    assert_ne!(said.uid, 0, "root becomes nobody");
    let names: Vec<&str> = said.probes.iter().map(|probe| probe.name.as_str()).collect();
    for name in ["start-program", "make-process", "open-file", "connect-elsewhere", "trace", "local-socket"] {
        assert!(names.contains(&name), "{name} was not tried: {names:?}");
    }
}

#[test]
fn without_the_filter_the_tries_notice() {
    let said = confined_without("filter");
    let names: Vec<&str> = failed(&said).iter().map(|(name, _)| *name).collect();
    let expected = ["start-program", "make-process", "trace", "signal-others", "local-socket", "write-file"];
    assert_eq!(names, expected);
}

#[test]
fn without_landlock_the_tries_notice() {
    let said = confined_without("landlock");
    assert_eq!(failed(&said), [("open-file", Layer::Landlock), ("connect-elsewhere", Layer::Landlock)]);
}

#[test]
fn the_gateway_connects_and_has_no_files_no_programs_and_no_ports() {
    let said = confined("gateway", "nothing");
    assert_eq!(failed(&said), [], "{:?}", said.probes);
    assert!(said.reached, "it must reach what rules name");
    assert_ne!(said.uid, 0, "root becomes nobody");
    let names: Vec<&str> = said.probes.iter().map(|probe| probe.name.as_str()).collect();
    for name in ["start-program", "make-process", "open-file", "take-port", "listen", "trace", "local-socket"]
    {
        assert!(names.contains(&name), "{name} was not tried: {names:?}");
    }
}

#[test]
fn without_its_walls_the_tries_of_the_gateway_notice() {
    let landlock = confined("gateway", "landlock");
    assert_eq!(failed(&landlock), [("open-file", Layer::Landlock), ("take-port", Layer::Landlock)]);
    let filter = confined("gateway", "filter");
    let names: Vec<&str> = failed(&filter).iter().map(|(name, _)| *name).collect();
    let expected =
        ["start-program", "make-process", "trace", "signal-others", "local-socket", "write-file", "listen"];
    assert_eq!(names, expected);
}

#[test]
fn without_giving_up_capabilities_the_tries_notice() {
    let said = confined_without("capabilities");
    if rustix::process::geteuid().is_root() {
        let expected = [("capabilities", Layer::Capabilities), ("change-root", Layer::Capabilities)];
        assert_eq!(failed(&said), expected);
    } else {
        assert_eq!(failed(&said), [], "an ordinary user has none to give up");
    }
}

#[test]
fn a_descriptor_that_was_left_open_is_noticed() {
    let said = confined_without("descriptors");
    // The tests' own harness may hold none; what is open is counted, whatever it is.
    let probe = said.probes.iter().find(|probe| probe.name == "descriptors").expect("it is counted");
    assert_eq!(probe.held, probe.observed == "0");
}

#[test]
fn it_ends_when_nobody_holds_its_standard_input() {
    let program = std::env::current_exe().expect("our own file");
    let test = "service::tests::waits";
    let arguments = ["--exact", test, "--ignored", "--nocapture"].map(std::ffi::OsStr::new);
    let mut started = spawn_agent(&program, &arguments, None).expect("starts");
    let mut text = [0; 4096];
    while !String::from_utf8_lossy(&text).contains("CONFINED") {
        let read = started.stdout.read(&mut text).expect("it writes");
        assert_ne!(read, 0, "it ended early");
    }
    drop(started.stdin);
    assert!(started.child.wait().expect("it ends").success());
}

#[test]
#[ignore = "started by another test, in a process of its own"]
fn waits() {
    confine(Who::Agent(&[]), None).expect("confines itself");
    println!("CONFINED");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn a_tool_that_answers_is_asked_and_one_that_does_not_is_ended() {
    use std::io::ErrorKind;
    use std::path::Path;
    use std::time::{Duration, Instant};

    let ask = |program: &str, arguments: &[&str], within: u64| {
        super::ask_tool(Path::new(program), arguments, b"question\n", Duration::from_secs(within), 64)
    };
    assert_eq!(ask("/bin/cat", &[], 60).expect("it answers"), "question\n");
    assert_eq!(ask("/usr/bin/env", &[], 60).expect("it answers"), "", "it has no variables");
    let kind =
        |program, arguments: &[&str], within| ask(program, arguments, within).map_err(|error| error.kind());
    assert_eq!(kind("/no/such/tool", &[], 60), Err(ErrorKind::NotFound));
    assert_eq!(kind("/bin/sh", &["-c", "yes"], 60), Err(ErrorKind::FileTooLarge));
    let started = Instant::now();
    // The second process holds the output open, and is ended as well.
    assert_eq!(kind("/bin/sh", &["-c", "sleep 600 & sleep 600"], 1), Err(ErrorKind::TimedOut));
    assert!(started.elapsed() < Duration::from_secs(300));
}
