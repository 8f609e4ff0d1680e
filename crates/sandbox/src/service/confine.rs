//! What the processes that run beside a sandbox take away from themselves: the one that speaks with a model, and the
//! gateway.

use std::fs;
use std::io;
use std::net::SocketAddr;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, NetPort, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use model::evidence::Probe;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Uid, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::calls;
use super::tries::{Before, after_the_filter};
use crate::seccomp::{self, Service, Threads, service_filter};

/// Whom root becomes: the user of whom nothing is expected, as whom nothing of ours is run otherwise.
const NOBODY: u32 = 65534;
/// The highest number of a capability that any kernel knows, with room (`linux/capability.h`: 40).
const CAPABILITIES: u32 = 64;
/// How many files the gateway may have open, where it may have so many.
const OPEN_FILES: u64 = 16384;
/// The first version of Landlock that can keep a process from connecting to other ports (Linux 6.7).
const ABI_OF_PORTS: ABI = ABI::V4;

/// A part that a test leaves out, to see whether the tries notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Closing descriptors.
    Descriptors,
    /// Giving up capabilities.
    Capabilities,
    /// Landlock.
    Landlock,
    /// The filter.
    Filter,
}

/// Takes everything from this process that speaking with a model does not need, and returns what it then tried.
///
/// It is to be called once, early, by a process that has one thread and no open file. `addresses` are those of the
/// model's server: where the kernel can hold that (Landlock, Linux 6.7), TCP connections go to their ports alone.
///
/// # Errors
/// When one of the steps fails. The process must not go on then, and must not be given the key.
pub fn confine_agent(addresses: &[SocketAddr]) -> Result<Vec<Probe>, String> {
    refuse_threads()?;
    confine(Who::Agent(addresses), None)
}

/// Takes everything from this process that being the way out of a sandbox does not need, and returns what it then tried.
///
/// It is to be called once, by a process that has one thread and no other open file than its standard streams, when it
/// has read what it needs of the host. Later it can take descriptors that it is handed, accept at them, and connect to
/// any port, by TCP and UDP; it can bind and listen nowhere itself. To what it connects is decided by its rules.
///
/// # Errors
/// When one of the steps fails. The process must not go on then.
pub fn confine_gateway() -> Result<Vec<Probe>, String> {
    refuse_threads()?;
    confine(Who::Gateway, None)
}

/// Which of the processes it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who<'a> {
    /// The one that speaks with a model, at these addresses.
    Agent(&'a [SocketAddr]),
    /// The gateway.
    Gateway,
}

impl<'a> Who<'a> {
    fn addresses(self) -> &'a [SocketAddr] {
        match self {
            Self::Agent(addresses) => addresses,
            Self::Gateway => &[],
        }
    }

    fn service(self) -> Service {
        match self {
            Self::Agent(_) => Service::Agent,
            Self::Gateway => Service::Gateway,
        }
    }
}

pub(super) fn confine(who: Who<'_>, without: Option<Part>) -> Result<Vec<Probe>, String> {
    let step = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    if without != Some(Part::Descriptors) {
        calls::close_all_but_streams().map_err(step("closing descriptors"))?;
    }
    let before = Before::new(who.addresses()).map_err(step("making the things that must be out of reach"))?;
    forbid_dumps().map_err(step("forbidding core dumps"))?;
    if matches!(who, Who::Gateway) {
        raise_open_files().map_err(step("raising the limit of open files"))?;
    }
    if without != Some(Part::Capabilities) {
        drop_capabilities().map_err(step("dropping capabilities"))?;
    }
    // Changing the user has made the process as the kernel's setting for that says.
    forbid_dumps().map_err(step("forbidding core dumps"))?;
    seccomp::set_no_new_privs().map_err(step("giving up new privileges"))?;
    let holds_ports = without == Some(Part::Landlock) || enter_landlock(who)?;
    let mut probes = before.tries(who, holds_ports);
    end_with_parent().map_err(step("watching the parent"))?;
    if without != Some(Part::Filter) {
        seccomp::load(&service_filter(who.service()).0, Threads::All)
            .map_err(step("loading the filter for system calls"))?;
    }
    probes.extend(after_the_filter(who));
    Ok(probes)
}

/// Privileges belong to threads: one that exists already would keep its own.
fn refuse_threads() -> Result<(), String> {
    let threads =
        fs::read_dir("/proc/self/task").map_err(|error| format!("counting threads: {error}"))?.count();
    if threads == 1 { Ok(()) } else { Err(format!("it has {threads} threads already, and must have one")) }
}

/// Keeps the key out of core files, and other processes of the same user out of this memory (`ptrace(2)`).
fn forbid_dumps() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Lets the gateway have two descriptors for each of its connections: the usual limit is for other programs.
fn raise_open_files() -> io::Result<()> {
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.unwrap_or(OPEN_FILES).min(OPEN_FILES);
    let current = now.current.map(|current| current.max(most));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, ..now })?)
}

/// Gives up every capability. Root becomes nobody first, where it may.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..CAPABILITIES {
        // An ordinary user may not, and need not: without new privileges nothing of it can be gained.
        let _ =
            rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number));
    }
    if rustix::process::geteuid().is_root() {
        become_nobody();
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}

/// Becomes nobody. In a container root may lack the right to, and then stays root without capabilities.
fn become_nobody() {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    let _ = rustix::thread::set_thread_groups(&[]);
    let _ = rustix::thread::set_thread_res_gid(gid, gid, gid);
    let _ = rustix::thread::set_thread_res_uid(uid, uid, uid);
}

/// Denies every file, connections to other ports, and ports of its own; the gateway may connect to all, since a port says
/// nothing about whom it reaches there. Tells whether the kernel can hold what is about ports.
fn enter_landlock(who: Who<'_>) -> Result<bool, String> {
    let wrong = |error: landlock::RulesetError| format!("Landlock: {error}");
    let held = match who {
        Who::Agent(_) => AccessNet::from_all(ABI::V10),
        Who::Gateway => AccessNet::BindTcp.into(),
    };
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))
        .map(|ruleset| ruleset.set_compatibility(CompatLevel::BestEffort))
        .and_then(|ruleset| ruleset.handle_access(AccessFs::from_all(ABI::V10)))
        .and_then(|ruleset| ruleset.handle_access(held))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI::V10)))
        .and_then(|ruleset| ruleset.create())
        .map_err(wrong)?;
    for address in who.addresses() {
        ruleset = ruleset.add_rule(NetPort::new(address.port(), AccessNet::ConnectTcp)).map_err(wrong)?;
    }
    let status = ruleset.restrict_self().map_err(wrong)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("Landlock: the kernel does not enforce it".to_owned());
    }
    Ok(
        matches!(status.landlock, LandlockStatus::Available { effective_abi, .. } if effective_abi >= ABI_OF_PORTS),
    )
}

/// Ends this process when nobody holds the other end of its standard input any longer.
///
/// A signal on the death of the parent would follow the thread that started us, which may end before its process.
fn end_with_parent() -> io::Result<()> {
    let watch = || {
        let stdin = io::stdin();
        // No event is asked for: the end of the other side is always told (`poll(2)`).
        while let Err(rustix::io::Errno::INTR) = poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None) {}
        std::process::exit(0);
    };
    std::thread::Builder::new().name("end-with-parent".to_owned()).spawn(watch).map(drop)
}
