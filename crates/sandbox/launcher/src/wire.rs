//! Framing: one message a packet on a `SOCK_SEQPACKET` socket, with descriptors beside it.

use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Serialize, de::DeserializeOwned};

/// The largest message: far above what any message needs, and below what a socket buffer takes by default.
pub const MESSAGE_MAX: usize = 64 * 1024;
/// The most descriptors beside one message.
pub const FDS_MAX: usize = 10;

/// Sends one message.
///
/// # Errors
/// When the other end is gone, or the message is larger than [`MESSAGE_MAX`].
pub fn send<T: Serialize>(socket: impl AsFd, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    send_bytes(socket, &postcard::to_allocvec(message).map_err(invalid)?, fds)
}

/// Sends one packet.
///
/// # Errors
/// When the other end is gone, or the packet is larger than [`MESSAGE_MAX`].
pub fn send_bytes(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() > MESSAGE_MAX || fds.len() > FDS_MAX {
        return Err(invalid("the message is too large"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message; `None` when the other end is gone.
///
/// # Errors
/// When the message is not one of ours or was cut.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let Some((bytes, fds)) = receive_bytes(socket)? else { return Ok(None) };
    Ok(Some((postcard::from_bytes(&bytes).map_err(invalid)?, fds)))
}

/// Receives one packet; `None` when the other end is gone.
///
/// # Errors
/// When it was cut.
pub fn receive_bytes(socket: impl AsFd) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MESSAGE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(invalid("the message was cut"));
    }
    bytes.truncate(received.bytes);
    Ok(Some((bytes, fds)))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FromSandbox, ToSandbox};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket pair")
    }

    #[test]
    fn a_message_arrives_whole_with_its_descriptors() {
        let (one, two) = pair();
        send(&one, &FromSandbox::Started, &[one.as_fd()]).expect("sends");
        let (message, fds): (FromSandbox, _) = receive(&two).expect("receives").expect("is there");
        assert_eq!((message, fds.len()), (FromSandbox::Started, 1));
    }

    #[test]
    fn the_end_of_the_other_side_is_not_an_error() {
        let (one, two) = pair();
        drop(one);
        assert!(receive::<ToSandbox>(&two).expect("no error").is_none());
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        let (one, two) = pair();
        rustix::net::send(&one, &[0xff; 40], SendFlags::empty()).expect("sends");
        assert!(receive::<ToSandbox>(&two).is_err());
    }
}
