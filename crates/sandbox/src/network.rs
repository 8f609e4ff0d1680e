//! The way to the network of a sandbox that runs: a socket in the directory of its run, at which its supervisor gives a
//! descriptor of the namespace to another Fumehood of the same user.
//!
//! Guarantees: only who can enter the directory of the run, which is its owner's alone, gets the descriptor; as long as
//! the supervisor lives, and no longer. A sandbox that joined the network of another one has no such socket.
//! Leaves to others: whether the grant allows to join (`gate`), and whether the joined sandbox is where it should be (the
//! proof).

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use launcher::plan::ProbeFacts;
use launcher::wire;
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use crate::error::SandboxError;
use crate::spec::{Joined, Spec};
use crate::wait;

/// The name of the socket in the directory of a run.
const NAME: &str = "network";
/// What is said with the descriptor: an empty message would be the end of the other side.
const GIVEN: u8 = 1;
/// How many may wait at once; a supervisor answers in less than a millisecond.
const WAITING_MAX: i32 = 16;
/// How long the supervisor of a running action may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The socket at which a supervisor gives the network of its sandbox away.
#[derive(Debug)]
pub(crate) struct Door {
    listener: OwnedFd,
    network: OwnedFd,
}

impl Door {
    /// Opens the door to the network of a sandbox, when that is its own.
    pub(crate) fn of(spec: &Spec, network: Option<OwnedFd>) -> io::Result<Option<Self>> {
        let own = network.filter(|_| spec.joined.is_none() && spec.gateway.is_none());
        own.map(|network| Self::open(&spec.run_directory, network)).transpose()
    }

    fn open(run_directory: &Path, network: OwnedFd) -> io::Result<Self> {
        let place = Place::of(run_directory)?;
        let listener = socket(SocketFlags::NONBLOCK)?;
        bind(&listener, &place.address()?)?;
        listen(&listener, WAITING_MAX)?;
        Ok(Self { listener, network })
    }

    /// Returns what can be read when somebody waits.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Gives a descriptor of the network to everybody who waits. Who went away meanwhile gets none.
    pub(crate) fn serve(&self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(other) = accept_with(&self.listener, flags) {
            let _ = wire::send(&other, &GIVEN, &[self.network.as_fd()]);
        }
    }
}

/// Asks the supervisor of another action for its network; `None` when the grant is for a network of one's own.
pub(crate) fn granted(spec: &Spec) -> Result<Option<OwnedFd>, SandboxError> {
    let Some(Joined { action, run_directory }) = &spec.joined else { return Ok(None) };
    let network = ask(run_directory).map_err(|source| match source.kind() {
        ErrorKind::NotFound
        | ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::UnexpectedEof => SandboxError::JoinedEnded { action: action.clone(), source },
        _ => SandboxError::prepare("asking for the network to join")(source),
    })?;
    let (theirs, ours) = (inode(&network), host_namespace());
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) if theirs != ours => Ok(Some(network)),
        (Err(error), _) | (_, Err(error)) => Err(SandboxError::prepare("network")(error)),
        _ => Err(SandboxError::prepare("network")(io::Error::other("it is the network of the host"))),
    }
}

fn ask(run_directory: &Path) -> io::Result<OwnedFd> {
    let place = Place::of(run_directory)?;
    let socket = socket(SocketFlags::empty())?;
    connect(&socket, &place.address()?)?;
    wait::readable(socket.as_fd(), Instant::now() + PATIENCE)?;
    let answer = wire::receive::<u8>(&socket)?.filter(|(said, _)| *said == GIVEN);
    let network = answer.and_then(|(_, descriptors)| descriptors.into_iter().next());
    network.ok_or_else(|| ErrorKind::UnexpectedEof.into())
}

/// Adds to the facts for the prober in which network it must find itself.
pub(crate) fn add_facts(facts: ProbeFacts, joined: Option<&OwnedFd>) -> io::Result<ProbeFacts> {
    let Some(joined) = joined else { return Ok(facts) };
    Ok(ProbeFacts {
        joined_network_namespace: Some(inode(joined)?),
        listener_outside_landlock: Some([facts.listener_abstract.as_slice(), b"-in"].concat()),
        ..facts
    })
}

/// Returns the inode of the network namespace of the host.
pub(crate) fn host_namespace() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/net")?.st_ino)
}

/// Returns the inode by which a namespace is known.
fn inode(namespace: &OwnedFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(namespace)?.st_ino)
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | flags;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// The socket of a run, through its directory: an address holds 107 bytes, and a state directory can lie deep.
struct Place(OwnedFd);

impl Place {
    fn of(run_directory: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(run_directory, flags, Mode::empty())?))
    }

    fn address(&self) -> io::Result<SocketAddrUnix> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd())).join(NAME);
        Ok(SocketAddrUnix::new(path)?)
    }
}
