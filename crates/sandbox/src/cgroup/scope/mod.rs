//! Asks the service manager of a user for a scope: a control group that is delegated to this process.
//!
//! A login session gives its processes no group of their own, but systemd makes one for whoever asks
//! (`org.freedesktop.systemd1(5)`, `StartTransientUnit`; "Control Group APIs and Delegation"). This process is moved into
//! it, alone, and makes the groups of its actions below, as in any other delegated group. A scope ends with its last
//! process, however that ends, so there is nothing to give back. Guarantees: a process asks once. Leaves to others: using
//! the group, and deciding what a profile accepts where there is none.

mod wire;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use model::text::escape;

use super::{CgroupError, Owner};
use wire::{Address, Kind, Writer};

/// How long the manager may take for all of it.
const WITHIN: Duration = Duration::from_secs(2);
/// How long to wait before looking again whether this process was moved.
const PAUSE: Duration = Duration::from_millis(2);
/// The longest line of the greeting.
const LINE_MAX: u64 = 512;

const BUS: Address<'_> = Address {
    name: "org.freedesktop.DBus",
    path: "/org/freedesktop/DBus",
    interface: "org.freedesktop.DBus",
    member: "Hello",
};
const START: Address<'_> = Address {
    name: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "StartTransientUnit",
};

/// Why there is no scope.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NoScope {
    /// There is nobody to ask.
    #[error("no service manager answers at `{}` ({why})", escape(&bus.to_string_lossy()))]
    Silent {
        /// Where one was looked for.
        bus: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// The manager refused.
    #[error("the service manager refused a scope: {}", escape(.0))]
    Refused(String),
    /// The manager said yes, and nothing came of it.
    #[error("the service manager promised a scope, and this process is not in it after {0:?}")]
    NotMoved(Duration),
}

/// Asks for a scope, once in the life of this process, and waits until this process is in it.
pub(crate) fn ask_once(bus: &Path) -> Result<(), NoScope> {
    static ANSWER: OnceLock<Result<(), NoScope>> = OnceLock::new();
    let own = || fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    ANSWER.get_or_init(|| ask(bus, WITHIN, own)).clone()
}

/// Asks for a scope, and waits until the groups that `own` returns say that this process is in it.
fn ask(bus: &Path, within: Duration, own: impl Fn() -> String) -> Result<(), NoScope> {
    let until = Instant::now() + within;
    let silent = |why: String| NoScope::Silent { bus: bus.to_owned(), why };
    let unit = unit_name().map_err(|error| silent(error.to_string()))?;
    let mut manager = Manager::connect(bus, until).map_err(|error| silent(error.to_string()))?;
    manager.call(1, &BUS, "", &Writer::default())?;
    manager.call(2, &START, "ssa(sv)a(sa(sv))", &scope(&unit, std::process::id()))?;
    while !is_in(&own(), &unit) {
        if Instant::now() > until {
            return Err(NoScope::NotMoved(within));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Names the scope after this process, so that two never have the same name.
fn unit_name() -> Result<String, CgroupError> {
    let owner =
        Owner::current().map_err(|error| super::files::failed("read", "/proc/self".as_ref(), error))?;
    Ok(format!("fumehood-{}.scope", owner.own_name()))
}

/// Writes what is asked for: the unit, what to do when there is one of that name, what it is like, and no other units.
fn scope(unit: &str, process: u32) -> Writer {
    let mut body = Writer::default();
    body.text(unit);
    body.text("fail");
    body.array(8, |properties| {
        property(properties, "Description", "s", |value| value.text("Actions under Fumehood"));
        property(properties, "PIDs", "au", |value| value.array(4, |processes| processes.number(process)));
        property(properties, "Delegate", "b", |value| value.number(1));
        property(properties, "CollectMode", "s", |value| value.text("inactive-or-failed"));
    });
    body.array(8, |_| ());
    body
}

fn property(to: &mut Writer, name: &str, kind: &str, value: impl FnOnce(&mut Writer)) {
    to.align(8);
    to.text(name);
    to.signature(kind);
    value(to);
}

/// Tells whether the text of `/proc/self/cgroup` says that this process is in a unit, by version 2.
fn is_in(groups: &str, unit: &str) -> bool {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    own.and_then(|group| group.rsplit('/').next()) == Some(unit)
}

/// A connection to the manager of this user.
struct Manager {
    stream: BufReader<UnixStream>,
    bus: PathBuf,
    until: Instant,
}

impl Manager {
    /// Connects and says who we are: the kernel vouches for it (D-Bus specification, "EXTERNAL").
    fn connect(bus: &Path, until: Instant) -> io::Result<Self> {
        let stream = BufReader::new(UnixStream::connect(bus)?);
        let mut manager = Self { stream, bus: bus.to_owned(), until };
        let id = rustix::process::geteuid().as_raw().to_string();
        let hex: String = id.bytes().map(|byte| format!("{byte:02x}")).collect();
        manager.send(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes())?;
        let mut answer = String::new();
        io::Read::take(&mut manager.stream, LINE_MAX).read_line(&mut answer)?;
        if !answer.starts_with("OK ") {
            return Err(wire::nonsense("it does not let this user in"));
        }
        manager.send(b"BEGIN\r\n")?;
        Ok(manager)
    }

    /// Calls something, and waits for its answer. Whatever else comes in is passed over.
    fn call(&mut self, serial: u32, to: &Address<'_>, signature: &str, body: &Writer) -> Result<(), NoScope> {
        let silent =
            |error: io::Error, bus: &Path| NoScope::Silent { bus: bus.to_owned(), why: error.to_string() };
        let message = wire::call(serial, to, signature, body);
        self.send(&message).map_err(|error| silent(error, &self.bus))?;
        loop {
            self.limit_wait().map_err(|error| silent(error, &self.bus))?;
            let message = wire::receive(&mut self.stream).map_err(|error| silent(error, &self.bus))?;
            match message.kind {
                _ if message.answers != Some(serial) => {}
                Kind::Return => return Ok(()),
                Kind::Error => {
                    let said = [message.error, message.text].into_iter().flatten().collect::<Vec<_>>();
                    return Err(NoScope::Refused(said.join(": ")));
                }
                Kind::Other => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.limit_wait()?;
        self.stream.get_mut().write_all(bytes)
    }

    /// Lets the next step wait only as long as there is time.
    fn limit_wait(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(left))?;
        stream.set_write_timeout(Some(left))
    }
}

/// Reads a message as one from a service manager, for the fuzz target.
///
/// # Errors
/// When it makes no sense.
#[doc(hidden)]
pub fn read_message(bytes: &[u8]) -> io::Result<String> {
    wire::receive(&mut &*bytes).map(|message| format!("{message:?}"))
}

#[cfg(test)]
mod tests;
