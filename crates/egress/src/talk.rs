//! The socket between a supervisor and a gateway: one message a packet, as JSON, with descriptors beside it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use launcher::wire;
use serde::{Serialize, de::DeserializeOwned};

/// The most descriptors beside one message.
pub const FDS_MAX: usize = wire::FDS_MAX;

/// Says one message.
///
/// # Errors
/// When the other end is gone, or the message is too large for a packet.
pub fn say<T: Serialize>(socket: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    wire::send_bytes(socket, &serde_json::to_vec(message)?, fds)
}

/// Hears one message; `None` when the other end is gone.
///
/// # Errors
/// When it was cut, or is none of ours.
pub fn hear<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let Some((bytes, fds)) = wire::receive_bytes(socket)? else { return Ok(None) };
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

#[cfg(test)]
mod tests {
    use model::egress::{Attempt, Begin, Bounds, Door, Entrance, FromGateway, Ranges, ToGateway, Verdict};
    use model::units::{Bytes, Timestamp};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn arrives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        message: &T,
        fds: &[BorrowedFd<'_>],
    ) {
        let (one, two) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket pair");
        say(&one, message, fds).expect("says");
        let (heard, along): (T, _) = hear(&two).expect("hears").expect("is there");
        assert_eq!((&heard, along.len()), (message, fds.len()));
    }

    #[test]
    fn every_message_arrives_as_it_was_said() {
        let (one, _two) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket pair");
        let begin = Begin { ranges: Ranges::default(), resolvers: Vec::new(), bounds: Bounds::default() };
        arrives(&ToGateway::Begin(Box::new(begin)), &[]);
        let rule = "GET https://*.example.com/v1/**".parse().expect("a rule");
        arrives(&ToGateway::Rule(Box::new(rule)), &[]);
        let authority = crate::tls::Authority::make(Timestamp::from_nanos(1)).expect("an authority");
        let shown = format!("{authority:?}");
        let told = ToGateway::Authority(Box::new(authority.into()));
        assert!(!shown.contains("PRIVATE") && !format!("{told:?}").contains("PRIVATE"));
        arrives(&told, &[]);
        arrives(
            &ToGateway::Entrances(vec![Entrance::DnsDatagrams, Entrance::Port(443)]),
            &[one.as_fd(), one.as_fd()],
        );
        let refused = Verdict::Refused { reason: "r".to_owned(), why: "w".to_owned(), needs: None };
        let attempt = Attempt {
            at: Timestamp::from_nanos(1),
            door: Door::Dns,
            name: Some("a.test".to_owned()),
            port: None,
            address: None,
            method: None,
            path: None,
            package: None,
            verdict: refused,
            sent: Bytes::new(0),
            received: Bytes::new(0),
            continued: false,
        };
        arrives(&FromGateway::Attempts(vec![attempt]), &[]);
    }
}
