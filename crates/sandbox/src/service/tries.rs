//! What a confined process tries, each by the act itself, and what it saw.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use model::enforcement::Layer;
use model::evidence::Probe;
use rustix::fs::{Access, CWD, Mode, OFlags, access};
use rustix::net::{AddressFamily, SocketType, socket};

use super::calls;
use super::confine::Who;

/// A file that every system has and everybody may read.
const FILE: &str = "/etc/passwd";
/// A program that nearly every system has; where there is none, the filter answers before the kernel looks for it.
const PROGRAM: &CStr = c"/bin/true";
/// Descriptors that are looked for.
const DESCRIPTORS: std::ops::Range<i32> = 3..1024;

/// What was seen before anything was taken away: the positive controls.
pub(super) struct Before {
    file: io::Result<()>,
    /// A listener of our own on a port that is none of the model's, and what a connection to it met.
    other: TcpListener,
    other_answers: io::Result<()>,
    descriptors: usize,
}

impl Before {
    /// Looks at what must be out of reach later. The listener stays open until the tries are made.
    pub(super) fn new(addresses: &[SocketAddr]) -> io::Result<Self> {
        let descriptors = DESCRIPTORS.filter(|fd| calls::is_open(*fd)).count();
        let other = listener_elsewhere(addresses)?;
        let other_answers = TcpStream::connect(other.local_addr()?).and_then(|_| other.accept()).map(drop);
        other.set_nonblocking(true)?;
        Ok(Self { file: File::open(FILE).map(drop), other, other_answers, descriptors })
    }

    /// Tries what Landlock and the missing capabilities must stop. The filter is not on yet, so it is them that answer.
    pub(super) fn tries(self, who: Who<'_>, holds_ports: bool) -> Vec<Probe> {
        let mut probes = vec![
            number("descriptors", Layer::Descriptors, self.descriptors),
            number("environment", Layer::Environment, variables()),
            number("capabilities", Layer::Capabilities, capabilities()),
            refused(
                "change-root",
                Layer::Capabilities,
                rustix::process::chroot("/").map_err(Into::into),
                &[libc::EPERM],
            ),
            number("gain-privilege", Layer::NoNewPrivs, usize::from(!no_new_privs())),
            Probe {
                control: Some(control("the file is there and can be read", &self.file)),
                ..refused("open-file", Layer::Landlock, File::open(FILE).map(drop), &[libc::EACCES])
            },
        ];
        // Where the kernel cannot hold this it is not claimed, and so not tried.
        probes.extend(holds_ports.then(|| match who {
            Who::Agent(_) => self.connect_elsewhere(),
            Who::Gateway => self.take_port(),
        }));
        probes
    }

    /// The listener that was made before is the positive control.
    fn take_port(&self) -> Probe {
        let tried = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop);
        let before = self.other.local_addr().map(drop);
        Probe {
            control: Some(control("a port could be taken before", &before)),
            ..refused("take-port", Layer::Landlock, tried, &[libc::EACCES])
        }
    }

    fn connect_elsewhere(&self) -> Probe {
        let tried = self.other.local_addr().and_then(|address| TcpStream::connect(address).map(drop));
        let mut probe = refused("connect-elsewhere", Layer::Landlock, tried, &[libc::EACCES]);
        let heard = self.other.accept().is_ok();
        let seen = if heard { "saw a connection" } else { "saw nothing more" };
        probe.control =
            Some(format!("{} and {seen}", control("the listener answered before", &self.other_answers)));
        probe.held &= !heard && self.other_answers.is_ok();
        probe
    }
}

/// Tries what the filter must stop.
pub(super) fn after_the_filter(who: Who<'_>) -> Vec<Probe> {
    let filter = |name, tried, expected: &[i32]| refused(name, Layer::Seccomp, tried, expected);
    let there = if access(PROGRAM, Access::EXISTS).is_ok() { "is there" } else { "cannot be seen from here" };
    let eperm = &[libc::EPERM];
    let mut probes = vec![
        Probe {
            control: Some(format!("`/bin/true` {there}")),
            ..filter("start-program", calls::try_to_execute(PROGRAM), eperm)
        },
        filter("make-process", calls::try_to_fork(), eperm),
        filter("trace", calls::try_to_trace(), eperm),
        filter("signal-others", calls::try_to_signal(), eperm),
        filter("local-socket", local_socket(), &[libc::EAFNOSUPPORT]),
        filter("write-file", write_file(), eperm),
    ];
    probes.extend(matches!(who, Who::Gateway).then(|| filter("listen", listen_unbound(), eperm)));
    probes
}

fn local_socket() -> io::Result<()> {
    Ok(socket(AddressFamily::UNIX, SocketType::STREAM, None).map(drop)?)
}

/// Listens at a socket that was bound to nothing: the kernel would choose a port.
fn listen_unbound() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(rustix::net::listen(&socket, 1)?)
}

fn write_file() -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, "/tmp/fumehood-agent", flags, Mode::RUSR).map(drop)?)
}

/// Listens on the loopback, on a port that no address of the model has.
fn listener_elsewhere(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    // One more than there are addresses: the kernel gives each listener a port of its own.
    let mut listeners = Vec::new();
    for _ in 0..=addresses.len() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if addresses.iter().all(|address| address.port() != port) {
            return Ok(listener);
        }
        listeners.push(listener);
    }
    Err(io::ErrorKind::AddrInUse.into())
}

/// Counts the capabilities in the sets that act.
fn capabilities() -> usize {
    rustix::thread::capabilities(None).map_or(usize::MAX, |sets| {
        let bits = [sets.effective, sets.permitted, sets.inheritable].map(|set| set.bits().count_ones());
        bits.iter().sum::<u32>() as usize
    })
}

#[allow(clippy::disallowed_methods, reason = "counts variables, to show that there are none")]
fn variables() -> usize {
    std::env::vars_os().count()
}

fn no_new_privs() -> bool {
    rustix::thread::no_new_privs().unwrap_or(false)
}

/// Judges an act that must fail with one of these errors.
fn refused(name: &str, layer: Layer, tried: io::Result<()>, expected: &[i32]) -> Probe {
    let held =
        matches!(&tried, Err(error) if error.raw_os_error().is_some_and(|errno| expected.contains(&errno)));
    let observed = tried.map_or_else(|error| error.to_string(), |()| "it succeeded".to_owned());
    Probe { name: name.to_owned(), layer, held, observed, control: None }
}

/// Judges a count that must be zero.
fn number(name: &str, layer: Layer, count: usize) -> Probe {
    Probe { name: name.to_owned(), layer, held: count == 0, observed: count.to_string(), control: None }
}

fn control(what: &str, seen: &io::Result<()>) -> String {
    match seen {
        Ok(()) => what.to_owned(),
        Err(error) => format!("failed: {error}"),
    }
}
