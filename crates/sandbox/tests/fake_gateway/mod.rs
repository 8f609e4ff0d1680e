//! A gateway that is good enough to see where connections come to: it knows one name, says to everybody where they wanted
//! to go, and has decided nothing. What it is told of its manner stands in the names of the rules.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use launcher::wire;
use model::Layer;
use model::egress::{Attempt, Door, Entrance, FromGateway, ToGateway, Verdict};
use model::evidence::Probe;
use model::units::{Bytes, Timestamp};
use rustix::net::sockopt;

/// The name that it knows, with its addresses.
pub(crate) const NAME: &str = "allowed.test";
const V4: [u8; 4] = [198, 18, 0, 1];
const V6: [u8; 16] = [0xfd, 0x66, 0x75, 0x6d, 0, 0x65, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The way to the supervisor: one says, from several threads.
#[derive(Clone)]
struct Supervisor(Arc<Mutex<OwnedFd>>);

impl Supervisor {
    fn say(&self, message: &FromGateway) {
        let socket = self.0.lock().expect("nobody panicked");
        let bytes = serde_json::to_vec(message).expect("JSON");
        // A supervisor that is gone hears nothing.
        let _ = wire::send_bytes(socket.as_fd(), &bytes, &[]);
    }

    fn tried(&self, door: Door, name: &str, port: Option<u16>, verdict: Verdict) {
        let attempt = Attempt {
            at: Timestamp::from_nanos(1),
            door,
            name: Some(name.to_owned()),
            port,
            address: None,
            method: None,
            path: None,
            package: None,
            verdict,
            sent: Bytes::new(1),
            received: Bytes::new(2),
            continued: false,
        };
        self.say(&FromGateway::Attempts(vec![attempt]));
    }
}

/// Is the gateway of a sandbox, on standard input.
pub(crate) fn serve() {
    let socket = rustix::stdio::stdin().try_clone_to_owned().expect("a socket");
    let supervisor = Supervisor(Arc::new(Mutex::new(socket.try_clone().expect("another"))));
    let mut names = Vec::new();
    while let Some((bytes, sockets)) = wire::receive_bytes(&socket).expect("a message") {
        match serde_json::from_slice(&bytes).expect("as agreed") {
            ToGateway::Rule(rule) => names.push(rule.host.to_string()),
            ToGateway::Entrances(entrances) => {
                for (entrance, socket) in entrances.into_iter().zip(sockets) {
                    let supervisor = supervisor.clone();
                    std::thread::spawn(move || wait_at(entrance, socket, &supervisor));
                }
            }
            ToGateway::Open => open(&supervisor, &names),
            ToGateway::Finish => std::process::exit(0),
            _ => {}
        }
    }
}

fn open(supervisor: &Supervisor, names: &[String]) {
    let says = |name: &str| names.iter().any(|known| known == name);
    if says("fails.test") {
        return supervisor.say(&FromGateway::Failed("there is no resolver".to_owned()));
    }
    if says("ends.test") {
        std::process::exit(3);
    }
    let held = !says("open.test");
    let probe = Probe {
        name: "open-file".to_owned(),
        layer: Layer::Landlock,
        held,
        observed: "tried".to_owned(),
        control: None,
    };
    supervisor.say(&FromGateway::Ready(vec![probe]));
}

fn wait_at(entrance: Entrance, socket: OwnedFd, supervisor: &Supervisor) {
    if entrance == Entrance::DnsDatagrams {
        return answer_names(&UdpSocket::from(socket), supervisor);
    }
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(false).expect("it can wait");
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        let there = wanted(entrance, &stream);
        let rule = Verdict::Allowed { rule: format!("{entrance:?}") };
        supervisor.tried(Door::Direct, &there.ip().to_string(), Some(there.port()), rule);
        // One that ends here is what the tests of a second gateway ask for.
        if there.port() == 666 {
            std::process::exit(1);
        }
        let _ = stream.write_all(format!("{entrance:?} {there}\n").as_bytes());
    }
}

fn wanted(entrance: Entrance, stream: &TcpStream) -> SocketAddr {
    let local = stream.local_addr().expect("an address");
    let there = match (entrance, local) {
        (Entrance::Redirected, SocketAddr::V4(_)) => sockopt::ip_original_dst(stream).expect("v4").into(),
        (Entrance::Redirected, SocketAddr::V6(_)) => sockopt::ipv6_original_dst(stream).expect("v6").into(),
        _ => local,
    };
    SocketAddr::new(there.ip().to_canonical(), there.port())
}

fn answer_names(socket: &UdpSocket, supervisor: &Supervisor) {
    socket.set_nonblocking(false).expect("it can wait");
    let mut packet = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut packet) {
        let (name, kind, end) = question(&packet[..length]);
        let known = name == NAME;
        if !known {
            let why = "no rule names it".to_owned();
            supervisor.tried(
                Door::Dns,
                &name,
                None,
                Verdict::Refused { reason: "no-rule".to_owned(), why, needs: None },
            );
        }
        let address: &[u8] = match kind {
            1 => &V4,
            28 => &V6,
            _ => &[],
        };
        let answers = u8::from(known && !address.is_empty());
        let mut answer = packet[..end].to_vec();
        answer[2] = 0x81;
        answer[3] = if known { 0x80 } else { 0x83 };
        answer[4..12].copy_from_slice(&[0, 1, 0, answers, 0, 0, 0, 0]);
        if answers > 0 {
            answer.extend([0xc0, 12, 0, u8::try_from(kind).expect("1 or 28"), 0, 1, 0, 0, 0, 1, 0]);
            answer.push(u8::try_from(address.len()).expect("4 or 16"));
            answer.extend(address);
        }
        let _ = socket.send_to(&answer, from);
    }
}

/// Reads the question of a packet of the C library: its name, its type, and where it ends.
fn question(packet: &[u8]) -> (String, u16, usize) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while packet[at] != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), u16::from_be_bytes([packet[at + 1], packet[at + 2]]), at + 5)
}
