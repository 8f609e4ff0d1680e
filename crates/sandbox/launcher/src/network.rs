//! The network of a sandbox: a namespace with nothing but a loopback, its own or that of another sandbox.
//!
//! Guarantees: whoever is inside has no capability over the namespace. It belongs to a user namespace outside of the
//! sandbox's own: to the host's as root, else to one that is made for it here and in which nothing runs.
//! Leaves to others: which network was granted, and whether it is the one that the command sees (the prober).
//!
//! That outer user namespace is also what lets an ordinary user join later. To enter a network namespace takes
//! `CAP_SYS_ADMIN` over it and in one's own user namespace (`setns(2)`). The owner of a user namespace has all
//! capabilities over it from the outside (`user_namespaces(7)`), so a launcher of the same user can enter this one, and
//! from there the network. It could not make its own walls from within the user namespace of the other sandbox: that one
//! allows no further ones.

use std::os::fd::{AsFd, OwnedFd};

use launcher::plan::{Network, Plan};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::failure::{Context, Done, Failure};
use crate::mutant::leaves_out;
use crate::{identity, sys};

/// Enters the network of the sandbox, and returns a descriptor of it.
pub(crate) fn enter(plan: &Plan, joined: Option<OwnedFd>) -> Done<OwnedFd> {
    match (plan.network, joined) {
        (Network::Joined, None) => return Err(Failure::new("network", "its descriptor did not arrive")),
        (Network::Joined, Some(_)) if leaves_out(plan, "network-namespace") => {}
        (Network::Joined, Some(network)) if !leaves_out(plan, "joined-network") => join(plan, &network)?,
        _ => make(plan)?,
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open("/proc/self/ns/net", flags, Mode::empty()).during("network", "/proc/self/ns/net")
}

fn make(plan: &Plan) -> Done {
    if !plan.identity.switch {
        sys::unshare(libc::CLONE_NEWUSER).during("namespaces", "user namespace of the network")?;
        identity::map(plan.identity)?;
    }
    if leaves_out(plan, "network-namespace") {
        return Ok(());
    }
    sys::unshare(libc::CLONE_NEWNET).during("network", "unshare")?;
    sys::loopback_up().during("loopback", "lo")
}

fn join(plan: &Plan, network: &OwnedFd) -> Done {
    if !plan.identity.switch {
        let owner = sys::owner_of_namespace(network).during("network", "its owner")?;
        move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))
            .during("network", "enter its user namespace")?;
    }
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).during("network", "enter")
}

/// Listens in the abstract socket namespace of a joined network, before Landlock: what keeps the command from names
/// that are not its own is Landlock alone, so the prober can see it.
pub(crate) fn listen_outside_landlock(plan: &Plan) -> Done<Option<OwnedFd>> {
    let Some(name) = &plan.probe.listener_outside_landlock else { return Ok(None) };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let socket = socket.during("network", "abstract socket")?;
    let address = SocketAddrUnix::new_abstract_name(name).during("network", "abstract socket")?;
    bind(&socket, &address).during("network", "abstract socket")?;
    listen(&socket, 1).during("network", "abstract socket")?;
    Ok(Some(socket))
}
