//! Messages to the kernel over netlink: what the routes and the rules of a network are set by.
//!
//! Guarantees: what is asked for is done when this returns, or the error of the kernel is told; nothing is waited for.
//! Leaves to others: what is asked for (`way_out.rs`, `turned.rs`).
//!
//! The form is that of `linux/netlink.h`. One encoder serves routes and packet rules: the crates that are kept for the
//! first do not know the second, and the launcher is started for every action.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL and NLM_F_CREATE.
const REQUEST: u16 = 0x1;
const ANSWERED: u16 = 0x4;
const NEW: u16 = 0x200 | 0x400;
/// NLM_F_APPEND: for rules, after those that are there.
const APPENDED: u16 = 0x800;
/// NLMSG_ERROR: an answer; its error number is zero when all went well.
const ANSWER: u16 = 2;
/// NLA_F_NESTED.
const NESTED: u16 = 0x8000;
/// The length of `struct nlmsghdr`, and that of `struct nlattr`.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;

/// One message.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Makes a message that makes something, with its fixed part.
    pub(crate) fn makes(kind: u16, fixed: &[u8]) -> Self {
        Self::new(kind, REQUEST | ANSWERED | NEW, fixed)
    }

    /// Makes a message that adds something to a list.
    pub(crate) fn appends(kind: u16, fixed: &[u8]) -> Self {
        Self::new(kind, REQUEST | ANSWERED | NEW & !0x200 | APPENDED, fixed)
    }

    /// Makes a message that gets no answer.
    pub(crate) fn marks(kind: u16, fixed: &[u8]) -> Self {
        Self::new(kind, REQUEST, fixed)
    }

    fn new(kind: u16, flags: u16, fixed: &[u8]) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(fixed);
        Self(bytes)
    }

    /// Adds an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.0, kind, value);
        self
    }

    /// Adds an attribute that holds a text, with its end.
    pub(crate) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &[text.as_bytes(), b"\0"].concat())
    }

    /// Adds an attribute that holds others.
    pub(crate) fn with_nested(self, kind: u16, nested: &Attributes) -> Self {
        self.with(kind | NESTED, &nested.0)
    }

    fn is_answered(&self) -> bool {
        self.0[6] & ANSWERED.to_ne_bytes()[0] != 0
    }

    fn finished(mut self, number: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&number.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0
    }
}

/// Attributes that stand in another one.
#[derive(Clone, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Adds an attribute.
    pub(crate) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.0, kind, value);
        self
    }

    /// Adds a number in the order of the network, as packet rules have it.
    pub(crate) fn with_number(self, kind: u16, value: u32) -> Self {
        self.with(kind, &value.to_be_bytes())
    }

    /// Adds a text, with its end.
    pub(crate) fn with_text(self, kind: u16, text: &str) -> Self {
        self.with(kind, &[text.as_bytes(), b"\0"].concat())
    }

    /// Adds an attribute that holds others.
    pub(crate) fn with_nested(self, kind: u16, nested: &Self) -> Self {
        self.with(kind | NESTED, &nested.0)
    }
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE + value.len()).unwrap_or(u16::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A socket to one part of the kernel.
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens a socket. The part without a number of its own is that of routes.
    pub(crate) fn open(part: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, part)?;
        Ok(Self(socket))
    }

    /// Has all of it done, in this order. The kernel does it, and has answered, before sending returns.
    pub(crate) fn carry_out(&self, messages: Vec<Message>) -> io::Result<()> {
        let mut answers = messages.iter().filter(|message| message.is_answered()).count();
        let bytes: Vec<u8> =
            (1..).zip(messages).flat_map(|(number, message)| message.finished(number)).collect();
        send(&self.0, &bytes, SendFlags::empty())?;
        let mut buffer = vec![0; 64 << 10];
        while answers > 0 {
            let (read, _) = recv(&self.0, buffer.as_mut_slice(), RecvFlags::DONTWAIT)?;
            let heard = hear(&buffer[..read])?;
            answers = answers.saturating_sub(heard);
            if heard == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }
}

/// Counts the answers in what was received.
fn hear(mut bytes: &[u8]) -> io::Result<usize> {
    let mut answers = 0;
    while let Some((header, rest)) = bytes.split_at_checked(HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        if u16::from_ne_bytes([header[4], header[5]]) == ANSWER {
            let error = rest.get(..4).and_then(|error| error.try_into().ok()).map_or(-5, i32::from_ne_bytes);
            if error != 0 {
                return Err(Errno::from_raw_os_error(-error).into());
            }
            answers += 1;
        }
        bytes = bytes.get(length.next_multiple_of(4).max(HEADER)..).unwrap_or_default();
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_its_length_its_number_and_room_to_the_next() {
        let nested = Attributes::default().with_number(1, 7).with_text(2, "ab");
        let bytes = Message::makes(24, &[1, 2, 3, 4]).with_nested(3, &nested).with(4, &[9]).finished(5);
        let expected: Vec<u8> = [
            &48u32.to_ne_bytes()[..],
            &24u16.to_ne_bytes(),
            &0x605u16.to_ne_bytes(),
            &5u32.to_ne_bytes(),
            &[0; 4],
            &[1, 2, 3, 4],
            &20u16.to_ne_bytes(),
            &0x8003u16.to_ne_bytes(),
            &8u16.to_ne_bytes(),
            &1u16.to_ne_bytes(),
            &7u32.to_be_bytes(),
            &7u16.to_ne_bytes(),
            &2u16.to_ne_bytes(),
            b"ab\0\0",
            &5u16.to_ne_bytes(),
            &4u16.to_ne_bytes(),
            &[9, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn answers_are_counted_and_an_error_is_told() {
        let answer = |error: i32| {
            let header =
                [&36u32.to_ne_bytes()[..], &2u16.to_ne_bytes(), &[0; 10], &error.to_ne_bytes()].concat();
            [header, vec![0; 16]].concat()
        };
        assert_eq!(hear(&[answer(0), answer(0)].concat()).expect("two"), 2);
        let refused = hear(&[answer(0), answer(-libc::EPERM)].concat()).expect_err("refused");
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        for length in 0..20 {
            assert!(hear(&answer(0)[..length]).map_or(true, |heard| heard == 0), "{length}");
        }
    }
}
