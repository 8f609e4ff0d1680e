//! Connections to ports that programs inside may take themselves: the kernel turns those that go to a destination of the
//! plan to a socket of ours, so that no server of the command is in the way, nor in its own.
//!
//! Guarantees: the rules are in a table of their own; what goes from loopback to loopback is not tracked; what is tracked
//! is bounded, and a connection above that is refused with a reset.
//! Leaves to others: which ports (the plan), and reading where a connection was to go (`SO_ORIGINAL_DST`, the gateway).
//!
//! Numbers are those of `linux/netfilter/nf_tables.h`.

use launcher::plan::{TURNED_PORT, WayOut};
use rustix::net::netlink;

use crate::failure::{Context, Done};
use crate::netlink::{Attributes, Message, Netlink};

/// The table, and its three chains in the order of the kernel's hooks.
const TABLE: &str = "fumehood";
const BEFORE_TRACKING: &str = "before-tracking";
const TURNING: &str = "turning";
const BOUNDING: &str = "bounding";

/// How long the kernel remembers a connection that has ended, in seconds. Its default is two minutes.
const REMEMBERED: (&str, &str) = ("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", "1");

const SUBSYSTEM: u16 = 10 << 8;
const NEW_TABLE: u16 = SUBSYSTEM;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
/// NFPROTO_INET: a table for both.
const BOTH: u8 = 1;
/// NF_INET_LOCAL_OUT
const OUTPUT: u32 = 3;
/// NFT_REG_1, and NFT_REG_VERDICT.
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
const ACCEPT: u32 = 1;
const EQUAL: u32 = 0;
const OTHER: u32 = 1;
/// The bit of a new connection in the state of tracking (NF_CT_STATE_BIT of IP_CT_NEW).
const STATE_NEW: u32 = 1 << 3;

/// Makes the rules, all at once.
pub(crate) fn turn(way_out: &WayOut) -> Done {
    let mut messages = vec![Message::marks(BATCH_BEGIN, &header(0, 10)), table()];
    messages.extend([
        chain(BEFORE_TRACKING, "filter", -300),
        chain(TURNING, "nat", -100),
        chain(BOUNDING, "filter", 0),
    ]);
    messages.push(rule(BEFORE_TRACKING, [tcp(), port(0, TURNED_PORT), vec![accept()]]));
    for (turned, is_v4) in way_out.turned.iter().flat_map(|port| [(*port, true), (*port, false)]) {
        let matched = || [elsewhere(is_v4), tcp(), port(2, turned)].concat();
        messages.push(rule(BEFORE_TRACKING, [matched(), vec![accept()]]));
        messages.push(rule(TURNING, [matched(), redirect()]));
    }
    messages.push(rule(BEFORE_TRACKING, [vec![expression("notrack", Attributes::default())]]));
    messages
        .push(rule(BOUNDING, [tcp(), port(2, TURNED_PORT), is_new(), above(way_out.connections), reset()]));
    messages.push(Message::marks(BATCH_END, &header(0, 10)));
    let kernel = Netlink::open(Some(netlink::NETFILTER)).during("turned ports", "netlink")?;
    kernel.carry_out(messages).during("turned ports", "rules")?;
    let (setting, value) = REMEMBERED;
    std::fs::write(setting, value).during("turned ports", setting)
}

/// `struct nfgenmsg`.
fn header(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn table() -> Message {
    Message::makes(NEW_TABLE, &header(BOTH, 0)).with_text(1, TABLE)
}

fn chain(name: &str, kind: &str, priority: i32) -> Message {
    let hook = Attributes::default().with_number(1, OUTPUT).with_number(2, priority.cast_unsigned());
    let chain = Message::makes(NEW_CHAIN, &header(BOTH, 0)).with_text(1, TABLE).with_text(3, name);
    chain.with_nested(4, &hook).with_text(7, kind)
}

fn rule<const PARTS: usize>(chain: &str, parts: [Vec<Attributes>; PARTS]) -> Message {
    let list = parts.iter().flatten().fold(Attributes::default(), |list, one| list.with_nested(1, one));
    let rule = Message::appends(NEW_RULE, &header(BOTH, 0)).with_text(1, TABLE).with_text(2, chain);
    rule.with_nested(4, &list)
}

fn expression(name: &str, data: Attributes) -> Attributes {
    Attributes::default().with_text(1, name).with_nested(2, &data)
}

/// Loads a fact about the packet (NFT_META_NFPROTO is 15, NFT_META_L4PROTO 16) and compares it.
fn fact(key: u32, value: u8) -> Vec<Attributes> {
    let load = Attributes::default().with_number(1, REGISTER).with_number(2, key);
    vec![expression("meta", load), compare(EQUAL, &[value])]
}

fn tcp() -> Vec<Attributes> {
    fact(16, 6)
}

/// Matches a port: of the sender at offset 0 of the header, of the receiver at 2.
fn port(offset: u32, port: u16) -> Vec<Attributes> {
    vec![payload(2, offset, 2), compare(EQUAL, &port.to_be_bytes())]
}

/// Matches what goes to another address than the loopback's. Only destinations of the plan can be reached then.
fn elsewhere(is_v4: bool) -> Vec<Attributes> {
    let mut all = fact(15, if is_v4 { 2 } else { 10 });
    if is_v4 {
        // The first byte is the whole network, 127.0.0.0/8.
        all.extend([payload(1, 16, 1), compare(OTHER, &[127])]);
    } else {
        let loopback = std::net::Ipv6Addr::LOCALHOST.octets();
        all.extend([payload(1, 24, 16), compare(OTHER, &loopback)]);
    }
    all
}

/// Loads a part of a header: of the network's at 1, of the transport's at 2.
fn payload(base: u32, offset: u32, length: u32) -> Attributes {
    let load = Attributes::default().with_number(1, REGISTER).with_number(2, base);
    expression("payload", load.with_number(3, offset).with_number(4, length))
}

fn compare(how: u32, value: &[u8]) -> Attributes {
    let value = Attributes::default().with(1, value);
    let test = Attributes::default().with_number(1, REGISTER).with_number(2, how);
    expression("cmp", test.with_nested(3, &value))
}

fn accept() -> Attributes {
    let code = Attributes::default().with_number(1, ACCEPT);
    let verdict = Attributes::default().with_nested(2, &code);
    expression("immediate", Attributes::default().with_number(1, VERDICT).with_nested(2, &verdict))
}

fn redirect() -> Vec<Attributes> {
    let port = Attributes::default().with(1, &TURNED_PORT.to_be_bytes());
    let load = Attributes::default().with_number(1, REGISTER).with_nested(2, &port);
    let turn = Attributes::default().with_number(1, REGISTER).with_number(2, REGISTER);
    vec![expression("immediate", load), expression("redir", turn)]
}

/// Matches a connection that tracking has not seen yet. The state is loaded in the order of this machine.
fn is_new() -> Vec<Attributes> {
    let load = Attributes::default().with_number(1, REGISTER).with_number(2, 0);
    let mask = |bits: u32| Attributes::default().with(1, &bits.to_ne_bytes());
    let bits = Attributes::default().with_number(1, REGISTER).with_number(2, REGISTER).with_number(3, 4);
    let bits = bits.with_nested(4, &mask(STATE_NEW)).with_nested(5, &mask(0));
    vec![expression("ct", load), expression("bitwise", bits), compare(OTHER, &[0; 4])]
}

/// Matches when more connections than this are tracked.
fn above(connections: u32) -> Vec<Attributes> {
    vec![expression("connlimit", Attributes::default().with_number(1, connections).with_number(2, 1))]
}

fn reset() -> Vec<Attributes> {
    vec![expression("reject", Attributes::default().with_number(1, 1).with(2, &[0]))]
}
