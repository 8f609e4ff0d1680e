//! The way to a gateway outside: routes by which what is granted stays in the namespace and all else is refused, and the
//! listening sockets that it comes to.
//!
//! Guarantees: when this returns, every address but the loopback's and the plan's destinations fails at once, for TCP and
//! UDP; the sockets are below the ports that a program without capabilities may take.
//! Leaves to others: accepting at the sockets (the gateway), and what is answered there.
//!
//! A destination is a local address of the namespace, so a connection to it comes to a socket that listens at all
//! addresses, and `getsockname(2)` of what is accepted says where it was to go. No packet ever leaves the namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use launcher::message::FromSandbox;
use launcher::plan::{DNS_PORT, Destination, Entrance, PROXY_PORT, Plan, TURNED_PORT, WayOut};
use launcher::wire;
use rustix::net::sockopt::set_ipv6_v6only;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::failure::{Context, Done, Failure};
use crate::mutant::leaves_out;
use crate::netlink::{Message, Netlink};
use crate::turned;

/// How many connections may wait to be accepted, at each socket.
const WAITING_MAX: i32 = 512;
/// The loopback is the first interface of every namespace.
const LOOPBACK: u32 = 1;

/// linux/rtnetlink.h and linux/if_addr.h
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
const BY_HAND: u8 = 4;
const SCOPE_EVERYWHERE: u8 = 0;
const SCOPE_HOST: u8 = 254;
const KIND_LOCAL: u8 = 2;
const KIND_PROHIBIT: u8 = 8;

/// Opens the way out of a plan, and gives its sockets to the supervisor. The loopback is up.
pub(crate) fn open(plan: &Plan, control: &OwnedFd) -> Done {
    let Some(way_out) = &plan.way_out else { return Ok(()) };
    let v6 = has_ipv6();
    let mut routes = local_routes(way_out, v6);
    routes.extend(way_out.own.iter().filter(|own| v6 || own.is_ipv4()).map(|own| own_address(*own)));
    if !leaves_out(plan, "prohibited-routes") {
        routes.extend(prohibited_routes(v6));
    }
    let kernel = Netlink::open(None).during("routes", "netlink")?;
    kernel.carry_out(routes).during("routes", "make")?;
    if leaves_out(plan, "low-ports") {
        std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
            .during("network", "low ports")?;
    }
    if way_out.entrances.contains(&Entrance::Turned) {
        turned::turn(way_out)?;
    }
    hand_over(way_out, v6, control)
}

/// Tells whether the namespace has IPv6. Where it has none, nothing of it needs to be refused: there is no route at all.
fn has_ipv6() -> bool {
    std::fs::read("/proc/sys/net/ipv6/conf/lo/disable_ipv6").is_ok_and(|off| off.starts_with(b"0"))
}

fn local_routes(way_out: &WayOut, v6: bool) -> Vec<Message> {
    let there = way_out.destinations.iter().filter(|destination| v6 || destination.address.is_ipv4());
    there
        .map(|Destination { address, length }| {
            let route = route(address.is_ipv4(), *length, TABLE_LOCAL, SCOPE_HOST, KIND_LOCAL);
            let route = match address {
                IpAddr::V4(address) => route.with(RTA_DST, &address.octets()),
                IpAddr::V6(address) => route.with(RTA_DST, &address.octets()),
            };
            route.with(RTA_OIF, &LOOPBACK.to_ne_bytes())
        })
        .collect()
}

/// Makes an address of the loopback, `struct ifaddrmsg`.
fn own_address(address: IpAddr) -> Message {
    let (family, length, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, 128, address.octets().to_vec()),
    };
    let [a, b, c, d] = LOOPBACK.to_ne_bytes();
    let address = Message::makes(RTM_NEWADDR, &[number(family), length, 0, SCOPE_EVERYWHERE, a, b, c, d]);
    address.with(IFA_LOCAL, &octets).with(IFA_ADDRESS, &octets)
}

fn number(family: AddressFamily) -> u8 {
    u8::try_from(family.as_raw()).unwrap_or(0)
}

fn prohibited_routes(v6: bool) -> Vec<Message> {
    let default = |is_v4| route(is_v4, 0, TABLE_MAIN, SCOPE_EVERYWHERE, KIND_PROHIBIT);
    std::iter::once(default(true)).chain(v6.then(|| default(false))).collect()
}

/// Makes the fixed part of a route, `struct rtmsg`.
fn route(is_v4: bool, length: u8, table: u8, scope: u8, kind: u8) -> Message {
    let family = if is_v4 { AddressFamily::INET } else { AddressFamily::INET6 };
    Message::makes(RTM_NEWROUTE, &[number(family), length, 0, 0, table, BY_HAND, scope, kind, 0, 0, 0, 0])
}

/// Makes the sockets and gives them to the supervisor, as many with one message as it can carry.
fn hand_over(way_out: &WayOut, v6: bool, control: &OwnedFd) -> Done {
    let mut made = Vec::new();
    for entrance in &way_out.entrances {
        for socket in sockets(*entrance, v6).during("entrance", format!("{entrance:?}"))? {
            made.push((*entrance, socket));
        }
    }
    let mut left = made.chunks(wire::FDS_MAX).peekable();
    while let Some(some) = left.next() {
        let entrances = some.iter().map(|(entrance, _)| *entrance).collect();
        let message = FromSandbox::Entrances { entrances, v6, last: left.peek().is_none() };
        let sockets: Vec<_> = some.iter().map(|(_, socket)| socket.as_fd()).collect();
        wire::send(control, &message, &sockets).during("control socket", "entrances")?;
    }
    if made.is_empty() { Err(Failure::new("entrance", "the plan has none")) } else { Ok(()) }
}

fn sockets(entrance: Entrance, v6: bool) -> io::Result<Vec<OwnedFd>> {
    let here = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let everywhere = |port| match v6 {
        true => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        false => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
    };
    match entrance {
        Entrance::DnsDatagrams => Ok(vec![bound(SocketType::DGRAM, here(DNS_PORT))?]),
        Entrance::DnsStreams => Ok(vec![listener(here(DNS_PORT))?]),
        Entrance::Proxy => Ok(vec![listener(here(PROXY_PORT))?]),
        Entrance::Port(port) => Ok(vec![listener(everywhere(port))?]),
        Entrance::Turned => {
            let turned = std::iter::once(here(TURNED_PORT));
            let turned = turned.chain(v6.then(|| SocketAddr::from((Ipv6Addr::LOCALHOST, TURNED_PORT))));
            turned.map(listener).collect()
        }
    }
}

fn listener(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = bound(SocketType::STREAM, address)?;
    listen(&socket, WAITING_MAX)?;
    Ok(socket)
}

fn bound(kind: SocketType, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if address.is_ipv6() {
        // One socket for both: a connection by IPv4 shows a mapped address.
        set_ipv6_v6only(&socket, !address.ip().is_unspecified())?;
    }
    bind(&socket, &address)?;
    Ok(socket)
}

/// Tries to make a route, as the prober does.
pub(crate) fn try_to_route(address: Ipv4Addr) -> io::Result<()> {
    let route = route(true, 32, TABLE_LOCAL, SCOPE_HOST, KIND_LOCAL).with(RTA_DST, &address.octets());
    let route = route.with(RTA_OIF, &LOOPBACK.to_ne_bytes());
    Netlink::open(None)?.carry_out(vec![route])
}
