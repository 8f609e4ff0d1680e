//! The filter of the process that speaks with a model: what it needs works, and it starts nothing and writes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that starts itself, and tries to start others"
)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::process::Command;
use std::thread;

use sandbox::seccomp::{Service, Threads, load, service_filter, set_no_new_privs};

fn inside(test: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["--exact", test, "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn confine(service: Service) {
    set_no_new_privs().unwrap();
    load(&service_filter(service).0, Threads::All).unwrap();
}

fn refused<T>(result: std::io::Result<T>) {
    let error = result.err().and_then(|error| error.raw_os_error());
    assert!(matches!(error, Some(libc::EPERM | libc::EAFNOSUPPORT)), "{error:?}");
}

#[test]
fn the_agent_speaks_with_a_server_and_starts_nothing() {
    inside("agent_inside");
}

#[test]
fn a_replayed_model_answers_from_the_same_process() {
    inside("replay_inside");
}

#[test]
#[ignore = "started by another test, in a process of its own"]
fn agent_inside() {
    // A second thread from before the filter: it must be confined as well.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let early = thread::spawn(move || {
        wait.recv().unwrap();
        refused(Command::new("true").spawn());
    });
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let file = std::env::current_exe().unwrap();
    let new = std::env::temp_dir().join(format!("fumehood-agent-{}", std::process::id()));
    confine(Service::Agent);
    go.send(()).unwrap();
    early.join().unwrap();
    thread::spawn(move || {
        let address =
            ("localhost", port).to_socket_addrs().unwrap().find(|address| address.is_ipv4()).unwrap();
        TcpStream::connect(address).unwrap().write_all(b"hello").unwrap();
    })
    .join()
    .unwrap();
    File::open(&file).unwrap();
    assert!(fs::metadata(&file).is_ok());
    refused(Command::new("true").spawn());
    refused(server.accept());
    refused(File::create(&new));
    refused(File::options().append(true).open(&file));
    refused(std::os::unix::net::UnixStream::connect("/run/nobody"));
    // SAFETY: refused before anything happens; signal 0 would only ask.
    assert_eq!(unsafe { libc::kill(1, 0) }, -1);
    // SAFETY: refused before anything happens.
    assert_eq!(unsafe { libc::fork() }, -1);
}

#[test]
fn a_gateway_accepts_where_it_was_told_to_and_waits_nowhere_else() {
    inside("gateway_inside");
}

#[test]
#[ignore = "started by another test, in a process of its own"]
fn gateway_inside() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let file = std::env::current_exe().unwrap();
    confine(Service::Gateway);
    let client = thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"hello").unwrap());
    let mut text = String::new();
    server.accept().unwrap().0.read_to_string(&mut text).unwrap();
    client.join().unwrap();
    assert_eq!(text, "hello");
    refused(TcpListener::bind("127.0.0.1:0"));
    refused(std::net::UdpSocket::bind("127.0.0.1:0"));
    refused(File::open(&file));
    refused(Command::new("true").spawn());
    refused(std::os::unix::net::UnixStream::connect("/run/nobody"));
}

#[test]
#[ignore = "started by another test, in a process of its own"]
fn replay_inside() {
    confine(Service::AgentWithReplay);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let client = thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"hello").unwrap());
    let mut text = String::new();
    server.accept().unwrap().0.read_to_string(&mut text).unwrap();
    client.join().unwrap();
    assert_eq!(text, "hello");
    refused(Command::new("true").spawn());
}
