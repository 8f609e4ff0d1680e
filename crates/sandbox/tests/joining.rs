//! Two sandboxes in one network namespace: what the one that joins reaches, and what it does not.

mod bench;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use bench::{Bench, Run, silent};
use model::enforcement::Layer;
use model::{Ending, OsText, Tool};
use sandbox::{Controller, Handle, Io, Joined, Request, SandboxError, Sink, Stream, controller};

fn python(script: &str) -> Tool {
    Tool::Run { argv: ["python3", "-c", script].map(OsText::literal).into() }
}

/// Says `hello` to everybody, and what it was asked last when it ends.
const SERVER: &str = "
import socket
server = socket.create_server(('127.0.0.1', 8000))
print('ready', flush=True)
while True:
    server.accept()[0].sendall(b'hello')
";
const CLIENT: &str = "
import socket
print(socket.create_connection(('127.0.0.1', 8000)).recv(9).decode())
";

/// Tells a test what is printed, when it is.
struct Tell(Sender<Vec<u8>>);

impl Sink for Tell {
    fn print(&mut self, _: Stream, bytes: &[u8]) {
        let _ = self.0.send(bytes.to_vec());
    }
}

/// A sandbox in which a script runs until it is told to end.
struct Server {
    joined: Joined,
    handle: Handle,
    thread: JoinHandle<Run>,
}

impl Server {
    fn start(script: &'static str) -> Self {
        let bench = Bench::new();
        let (prepared, joined) = bench.prepare_to_be_joined();
        let (handle, controller): (Handle, Controller) = controller().expect("a controller");
        let (said, hear): (Sender<_>, Receiver<_>) = channel();
        let thread = std::thread::spawn(move || {
            let io = Io { stdout: Box::new(Tell(said)), controller: Some(controller), ..silent() };
            Run(prepared.run(bench.permit(python(script)), io).expect("a run"))
        });
        assert_eq!(hear.recv().expect("it runs"), b"ready\n");
        Self { joined, handle, thread }
    }

    fn end(self) -> (Joined, Run) {
        self.handle.ask(Request::Kill);
        (self.joined, self.thread.join().expect("it ended"))
    }
}

#[test]
fn a_server_answers_who_joined_its_network_and_nobody_else() {
    let server = Server::start(SERVER);
    let mut joining = Bench::new();
    joining.join(&server.joined);
    let prepared = joining.prepare().expect("a sandbox that holds");
    let report = prepared.report().clone();
    let joined = Run(prepared.run(joining.permit(python(CLIENT)), silent()).expect("a run"));
    assert_eq!(joined.stdout(), "hello\n", "{}", joined.stderr());
    assert!(report.probes.iter().all(|probe| probe.held), "{:?}", report.probes);
    let by = |layer| report.held.iter().find(|held| held.layer == layer).map(|held| held.by.clone());
    let said = by(Layer::NetworkNamespace).unwrap_or_default();
    assert!(said.contains(server.joined.action.as_str()), "{said}");
    let seen = report.probes.iter().find(|probe| probe.name == "foreign-abstract-socket");
    assert!(seen.is_some_and(|probe| probe.observed.starts_with("Operation not permitted")), "{seen:?}");

    let alone = Bench::new().run_tool(python(CLIENT));
    assert!(alone.stderr().contains("ConnectionRefusedError"), "{}", alone.stderr());
    let (_, ended) = server.end();
    assert_eq!(ended.0.ending, Ending::Stopped);
    assert!(ended.0.teardown.left.is_empty(), "{:?}", ended.0.teardown);
    assert!(joined.0.teardown.left.is_empty(), "{:?}", joined.0.teardown);
}

#[test]
fn what_joins_reaches_nothing_else_of_the_other_sandbox() {
    // A listener in the abstract name space, and everything that could be seen of its processes.
    let server = Server::start(
        "
import os, socket
server = socket.socket(socket.AF_UNIX)
server.bind('\\0of-the-server')
server.listen()
open('/tmp/mine', 'w').write('x')
print('ready', flush=True)
server.accept()
",
    );
    let mut joining = Bench::new();
    joining.join(&server.joined);
    let run = joining.run_tool(python(
        "
import os, socket
try:
    socket.socket(socket.AF_UNIX).connect('\\0of-the-server')
    print('connected')
except PermissionError as error:
    print(error.strerror)
print(sorted(name for name in os.listdir('/proc') if name.isdigit())[:3] == ['1', '2'])
print(os.path.exists('/tmp/mine'))
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    print('raw')
except PermissionError as error:
    print(error.strerror)
try:
    socket.create_connection(('192.0.2.1', 80), 1)
except OSError as error:
    print(error.strerror)
print([name for _, name in socket.if_nameindex()])
",
    ));
    let expected =
        "Operation not permitted\nTrue\nFalse\nPermission denied\nNetwork is unreachable\n['lo']\n";
    assert_eq!(run.stdout(), expected, "{}", run.stderr());
    server.end();
}

#[test]
fn an_action_that_ended_cannot_be_joined_and_is_named() {
    let (gone, _) = Server::start(SERVER).end();
    let mut joining = Bench::new();
    joining.join(&gone);
    let refused = joining.prepare().expect_err("there is nothing to join");
    assert!(
        matches!(&refused, SandboxError::JoinedEnded { action, .. } if *action == gone.action),
        "{refused:?}"
    );
    assert!(refused.to_string().contains(gone.action.as_str()), "{refused}");
}

#[test]
fn a_sandbox_that_joined_gives_the_network_to_nobody() {
    let server = Server::start(SERVER);
    let mut joining = Bench::new();
    joining.join(&server.joined);
    let (_prepared, through) = joining.prepare_to_be_joined();
    let mut further = Bench::new();
    further.join(&through);
    assert!(matches!(further.prepare(), Err(SandboxError::JoinedEnded { .. })));
    server.end();
}

#[test]
fn a_network_that_was_not_granted_is_not_joined() {
    let server = Server::start(SERVER);
    let mut joining = Bench::new();
    joining.joined = Some(server.joined.clone());
    assert!(matches!(joining.prepare(), Err(SandboxError::OtherGrant)));
    server.end();
}
