//! The way from a sandbox to its gateway: what comes there, what does not, and what is left when the gateway ends.

mod bench;
mod fake_gateway;

use std::sync::{Arc, Mutex};

use bench::{Bench, Run, silent};
use model::egress::{Door, NetworkUse, Verdict};
use model::{Event, OsText, Tool};
use sandbox::{Io, SandboxError};

#[test]
#[ignore = "started by the other tests as a gateway"]
fn gateway() {
    fake_gateway::serve();
}

fn reaching(rules: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.reach(rules, "gateway");
    bench
}

fn python(script: &str) -> Tool {
    Tool::Run { argv: ["python3", "-c", script].map(OsText::literal).into() }
}

/// Runs a script, with all that was recorded meanwhile.
fn recorded(bench: &Bench, script: &str, mut fails: impl FnMut(&Event) -> bool) -> (Run, Vec<Event>) {
    let mut events = Vec::new();
    let prepared = bench.prepare().expect("a sandbox that holds");
    let mut record = |event: &Event| {
        if fails(event) {
            return Err("the disk is full".to_owned());
        }
        events.push(event.clone());
        Ok(())
    };
    let started = prepared.start(bench.permit(python(script)), None).expect("starts");
    let execution = started.follow(silent(), &mut record).expect("a run");
    (Run(execution), events)
}

fn used(run: &Run) -> &NetworkUse {
    run.0.observed.network.as_ref().expect("it had a gateway")
}

const ASK: &str = "
import socket
def ask(address, family=0):
    try:
        found = socket.getaddrinfo(*address, family, socket.SOCK_STREAM)[0]
        with socket.socket(found[0], socket.SOCK_STREAM) as stream:
            stream.settimeout(10)
            stream.connect(found[4])
            print(stream.recv(100).decode().strip(), flush=True)
    except OSError as error:
        print(type(error).__name__, error.strerror, flush=True)
";

#[test]
fn a_connection_comes_to_the_gateway_with_where_it_wanted_to_go() {
    let bench = reaching(&[
        "https://allowed.test",
        "tcp://allowed.test:8080",
        "tcp://192.0.2.7:22",
        "tcp://b.test:53",
    ]);
    let script = format!(
        "{ASK}
ask(('allowed.test', 443), socket.AF_INET)
ask(('allowed.test', 443), socket.AF_INET6)
ask(('allowed.test', 8080), socket.AF_INET)
ask(('allowed.test', 8080), socket.AF_INET6)
ask(('192.0.2.7', 22))
ask(('198.18.0.1', 53))
ask(('127.0.0.1', 1021))
ask(('127.0.0.1', 53))
ask(('127.0.0.1', 443))
ask(('allowed.test', 80))
ask(('allowed.test', 9090))
"
    );
    let (run, _) = recorded(&bench, &script, |_| false);
    let expected = "Port(443) 198.18.0.1:443
Port(443) [fd66:756d:65::1]:443
Redirected 198.18.0.1:8080
Redirected [fd66:756d:65::1]:8080
Port(22) 192.0.2.7:22
Redirected 198.18.0.1:53
Proxy 127.0.0.1:1021
DnsStreams 127.0.0.1:53
Port(443) 127.0.0.1:443
ConnectionRefusedError Connection refused
ConnectionRefusedError Connection refused
";
    assert_eq!(run.stdout(), expected, "{}", run.stderr());
    assert!(run.0.teardown.left.is_empty(), "{:?}", run.0.teardown);
    assert!(run.0.teardown.gone.iter().any(|gone| gone.starts_with("gateway: ")), "{:?}", run.0.teardown);
}

#[test]
fn names_have_addresses_also_for_programs_that_ask_for_what_the_machine_has() {
    let script = "
import socket
for family in [socket.AF_INET, socket.AF_INET6, 0]:
    found = socket.getaddrinfo('allowed.test', 443, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    print(sorted(one[4][0] for one in found))
";
    let (run, _) = recorded(&reaching(&["https://allowed.test"]), script, |_| false);
    let (v4, v6) = ("198.18.0.1", "fd66:756d:65::1");
    assert_eq!(run.stdout(), format!("['{v4}']\n['{v6}']\n['{v4}', '{v6}']\n"), "{}", run.stderr());
}

#[test]
fn more_ports_than_one_message_can_carry_have_a_socket_each() {
    let rules: Vec<String> = (1..=25).map(|port| format!("tcp://allowed.test:{port}")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let script = format!(
        "{ASK}
for port in range(1, 27):
    ask(('198.18.0.1', port))
"
    );
    let (run, _) = recorded(&reaching(&rules), &script, |_| false);
    let expected: String = (1..=25).map(|port| format!("Port({port}) 198.18.0.1:{port}\n")).collect();
    assert_eq!(run.stdout(), expected + "ConnectionRefusedError Connection refused\n", "{}", run.stderr());
}

#[test]
fn turned_connections_are_bounded_and_forgotten_and_those_of_the_loopback_are_not_counted() {
    let mut bench = reaching(&["tcp://allowed.test:8080"]);
    bench.gateway.as_mut().expect("it has one").begin.bounds.connections = 3;
    let script = format!(
        "{ASK}
import threading, time
server = socket.create_server(('127.0.0.1', 9000))
def serve():
    kept = []
    while True:
        kept.append(server.accept()[0])
        kept[-1].sendall(b'own')
threading.Thread(target=serve, daemon=True).start()
def hold(address):
    stream = socket.create_connection(address, 10)
    stream.recv(100)
    return stream
held = [hold(('198.18.0.1', 8080)) for _ in range(3)]
start = time.monotonic()
ask(('198.18.0.1', 8080))
ask(('fd66:756d:65::1', 8080))
print(time.monotonic() - start < 0.5)
own = [hold(('127.0.0.1', 9000)) for _ in range(20)]
print(len(own))
for stream in held:
    stream.close()
time.sleep(1.5)
ask(('198.18.0.1', 8080))
for _ in range(50):
    hold(('198.18.0.1', 8080)).close()
    time.sleep(0.05)
print('all')
"
    );
    let (run, _) = recorded(&bench, &script, |_| false);
    let refused = "ConnectionRefusedError Connection refused\n".repeat(2);
    let expected = format!("{refused}True\n20\nRedirected 198.18.0.1:8080\nall\n");
    assert_eq!(run.stdout(), expected, "{}", run.stderr());
}

#[test]
fn every_other_address_and_name_is_refused_at_once() {
    let bench = reaching(&["https://allowed.test"]);
    let script = format!(
        "{ASK}
import time
start = time.monotonic()
for address in ['192.0.2.1', '169.254.169.254', '10.0.0.1', '2001:db8::1', '::ffff:192.0.2.1']:
    ask((address, 443))
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
        try:
            print(datagrams.sendto(b'x', (address, 53)))
        except OSError as error:
            print(error.strerror)
ask(('other.test', 443))
print(time.monotonic() - start < 1)
"
    );
    let (run, events) = recorded(&bench, &script, |_| false);
    let refused = "PermissionError Permission denied\nPermission denied\n".repeat(5);
    let printed = run.stdout();
    let lines: Vec<&str> = printed.lines().collect();
    let (addresses, rest) = lines.split_at(10.min(lines.len()));
    // Without IPv6 there is no route at all, which has another name.
    let plain =
        addresses.join("\n").replace("OSError Network is unreachable", "PermissionError Permission denied");
    let plain = plain.replace("Network is unreachable", "Permission denied") + "\n";
    assert_eq!(plain, refused, "{}", run.stderr());
    assert_eq!(rest, ["gaierror Name or service not known", "True"]);
    let told = used(&run).attempts.iter().find(|told| told.attempt.door == Door::Dns).expect("it was told");
    assert_eq!(told.attempt.name.as_deref(), Some("other.test"));
    assert!(matches!(&told.attempt.verdict, Verdict::Refused { reason, .. } if reason == "no-rule"));
    assert!(told.times >= 1 && events.iter().any(|event| matches!(event, Event::NetworkAttempts { .. })));
}

#[test]
fn servers_of_the_command_are_not_in_the_way_and_the_entrances_are_not_for_it() {
    let bench = reaching(&["https://allowed.test", "tcp://allowed.test:8080"]);
    let script = format!(
        "{ASK}
import threading
def serve(address):
    server = socket.create_server(address)
    threading.Thread(target=lambda: server.accept()[0].sendall(b'own'), daemon=True).start()
serve(('', 8080))
ask(('127.0.0.1', 8080))
ask(('allowed.test', 8080), socket.AF_INET)
for port in [443, 53, 1021, 1022, 80]:
    try:
        socket.create_server(('127.0.0.1', port))
        print('taken')
    except OSError as error:
        print(error.strerror.split(' (')[0])
"
    );
    let (run, _) = recorded(&bench, &script, |_| false);
    let expected = "own\nRedirected 198.18.0.1:8080\n".to_owned() + &"Permission denied\n".repeat(5);
    assert_eq!(run.stdout(), expected, "{}", run.stderr());
}

#[test]
fn a_sandbox_is_told_apart_from_one_without_a_gateway() {
    let held = |bench: &Bench| {
        let prepared = bench.prepare().expect("a sandbox that holds");
        let report = prepared.report().clone();
        let by = report.held.into_iter().find(|held| held.layer == model::Layer::NetworkNamespace);
        let tried = report.probes.iter().any(|probe| probe.name == "other-address");
        (by.map(|held| held.by).unwrap_or_default(), tried, report.gateway)
    };
    let (by, tried, serves) = held(&Bench::new());
    assert_eq!((by.as_str(), tried, serves), ("a network namespace with only its loopback", false, None));
    let (by, tried, serves) = held(&reaching(&["https://allowed.test"]));
    assert!(by.contains("names lead to the gateway") && tried, "{by}");
    let Some(Event::GatewayStarted { rules, probes }) = serves else { panic!("{serves:?}") };
    assert_eq!((rules, probes.len()), (vec!["https://allowed.test".to_owned()], 1));
}

#[test]
fn nothing_starts_without_a_gateway_that_serves() {
    let error = |rule: &str| reaching(&[rule]).prepare().expect_err("it does not serve");
    let text = |rule: &str| error(rule).to_string();
    assert_eq!(text("https://fails.test"), "cannot give the sandbox its gateway: there is no resolver");
    assert!(text("https://ends.test").contains("exit status: 3"), "{}", text("https://ends.test"));
    assert!(matches!(error("https://open.test"), SandboxError::NotProved(probes) if probes.len() == 1));
    let mut gone = reaching(&["https://allowed.test"]);
    gone.gateway.as_mut().expect("it has one").program = "/no/such/program".into();
    assert!(matches!(gone.prepare(), Err(SandboxError::Gateway(_))));
    let mut without = reaching(&["https://allowed.test"]);
    without.gateway = None;
    assert!(matches!(without.prepare(), Err(SandboxError::Gateway(_))));
    let mut ungranted = reaching(&["https://allowed.test"]);
    ungranted.grant.network = model::grant::Network::Loopback;
    assert!(matches!(ungranted.prepare(), Err(SandboxError::OtherGrant)));
}

#[test]
fn another_gateway_takes_the_place_of_one_that_ended_and_both_are_on_record() {
    let bench = reaching(&["https://allowed.test", "tcp://allowed.test:666"]);
    let script = format!(
        "{ASK}
ask(('allowed.test', 443), socket.AF_INET)
ask(('allowed.test', 666), socket.AF_INET)
ask(('allowed.test', 443), socket.AF_INET)
"
    );
    let (run, events) = recorded(&bench, &script, |_| false);
    let lines = run.stdout();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[2]),
        (3, "Port(443) 198.18.0.1:443", lines[0]),
        "{}",
        run.stderr()
    );
    assert_eq!((used(&run).restarts, &used(&run).closed), (1, &None));
    let ended = |event: &Event| matches!(event, Event::GatewayEnded { again: true, .. });
    let at = events.iter().position(ended).expect("its end is on record");
    assert!(events[at..].iter().any(|event| matches!(event, Event::GatewayStarted { .. })), "{events:?}");
}

#[test]
fn a_gateway_that_ends_again_and_again_lets_nobody_out_and_nobody_waits() {
    let bench = reaching(&["https://allowed.test", "tcp://allowed.test:666"]);
    let script = format!(
        "{ASK}
import time
for _ in range(4):
    ask(('198.18.0.1', 666))
    time.sleep(0.5)
start = time.monotonic()
ask(('198.18.0.1', 443))
ask(('127.0.0.1', 1021))
print(time.monotonic() - start < 1)
"
    );
    let (run, events) = recorded(&bench, &script, |_| false);
    let lines = run.stdout();
    let end: Vec<&str> = lines.lines().rev().take(3).collect();
    assert_eq!(
        end,
        ["True", "ConnectionRefusedError Connection refused", "ConnectionRefusedError Connection refused"]
    );
    assert!(used(&run).closed.is_some(), "{:?}", used(&run));
    assert!(matches!(events.last(), Some(Event::GatewayEnded { again: false, .. })), "{events:?}");
}

#[test]
fn a_gateway_whose_attempts_cannot_be_recorded_is_closed() {
    let bench = reaching(&["https://allowed.test"]);
    let script = format!(
        "{ASK}
import time
ask(('198.18.0.1', 443))
time.sleep(0.5)
ask(('198.18.0.1', 443))
"
    );
    let (run, _) = recorded(&bench, &script, |event| matches!(event, Event::NetworkAttempts { .. }));
    assert!(run.stdout().ends_with("ConnectionRefusedError Connection refused\n"), "{}", run.stdout());
    let why = used(&run).closed.as_deref().unwrap_or_default();
    assert!(why.contains("could not be recorded: the disk is full"), "{why}");
}

#[test]
fn a_network_with_a_gateway_is_given_to_nobody() {
    let first = reaching(&["https://allowed.test"]);
    let (prepared, joined) = first.prepare_to_be_joined();
    let mut joining = Bench::new();
    joining.join(&joined);
    assert!(matches!(joining.prepare(), Err(SandboxError::JoinedEnded { .. })));
    drop(prepared);
}

#[test]
fn what_reaches_nothing_costs_nobody_a_gateway() {
    let told = Arc::new(Mutex::new(0));
    let bench = Bench::new();
    let started =
        bench.prepare().expect("holds").start(bench.permit(python("print(1)")), None).expect("starts");
    let count = Arc::clone(&told);
    let mut record = move |_: &Event| {
        *count.lock().expect("nobody panicked") += 1;
        Ok(())
    };
    let execution = started.follow(Io { ..silent() }, &mut record).expect("a run");
    assert_eq!((execution.observed.network, *told.lock().expect("nobody panicked")), (None, 0));
}
