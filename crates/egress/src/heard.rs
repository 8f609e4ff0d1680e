//! What clients say first, read without a client: for whoever feeds the readers at random.
//!
//! Guarantees: these are the readers that the entrances use, and nothing else.

use std::pin::pin;
use std::task::{Context as Task, Poll, Waker};

use crate::context::Context;
use crate::dns::{self, Transport};
use crate::hello::Hello;
use crate::{socks, tunnel};

/// Answers a question for a name, as a datagram.
pub fn question(context: &Context, bytes: &[u8]) -> Option<Vec<u8>> {
    dns::answer(context, bytes, Transport::Datagram)
}

/// Reads the first message of a TLS client: the name in it, and whether it may hide another. Nothing when it is none, or not there
/// in full.
pub fn hello(bytes: &[u8]) -> Option<(Option<String>, bool)> {
    match Hello::read(bytes) {
        Hello::Client { name, hides } => Some((name, hides)),
        Hello::Incomplete | Hello::None => None,
    }
}

/// Reads where a request for a tunnel is to go.
pub fn tunnel(bytes: &[u8]) -> Option<(String, u16)> {
    tunnel::target_of(bytes).map(|(host, port)| (host.to_string(), port))
}

/// Reads where a request of SOCKS is to go.
pub fn socks(bytes: &[u8]) -> Option<(String, u16)> {
    let asked = pin!(socks::target_of(bytes));
    match asked.poll(&mut Task::from_waker(Waker::noop())) {
        Poll::Ready(target) => target.map(|(host, port)| (host.to_string(), port)),
        // Bytes that are all there are never waited for.
        Poll::Pending => None,
    }
}
