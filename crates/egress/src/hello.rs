//! What a TLS client says first, in the clear: for which host its connection is.

use model::egress::HostName;
use tls_parser::{
    TlsExtension, TlsExtensionType, TlsMessage, TlsMessageHandshake, parse_tls_extensions,
    parse_tls_message_handshake,
};

use crate::http::Host;
use crate::refusal::Refusal;

/// The type of a record with a handshake, and its header (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
const RECORD_HEADER: usize = 5;
/// The type of the first message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
/// The longest first message that is read, in bytes. Keys of the future make them longer than a packet, not than this.
pub(crate) const HELLO_MAX: usize = 64 << 10;
/// The extension that hides for which host a connection is (RFC 9849).
const ENCRYPTED_CLIENT_HELLO: TlsExtensionType = TlsExtensionType(0xfe0d);
const ESNI: TlsExtensionType = TlsExtensionType(0xffce);

/// What stands at the beginning of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    /// Not enough to say.
    Incomplete,
    /// No TLS, or none that is understood.
    None,
    /// The first message of a client.
    Client {
        /// The host, as it is named.
        name: Option<String>,
        /// Whether another name may be hidden.
        hides: bool,
    },
}

impl Hello {
    /// Reads what a client said until now.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let message = match message_in(bytes) {
            Ok(Some(message)) => message,
            Ok(None) if bytes.len() < HELLO_MAX => return Self::Incomplete,
            Ok(None) | Err(()) => return Self::None,
        };
        let Ok((_, TlsMessage::Handshake(TlsMessageHandshake::ClientHello(hello)))) =
            parse_tls_message_handshake(&message)
        else {
            return Self::None;
        };
        let extensions = match hello.ext.map(parse_tls_extensions) {
            None => Vec::new(),
            Some(Ok(([], extensions))) => extensions,
            Some(_) => return Self::None,
        };
        let mut names = Vec::new();
        let mut hides = false;
        for extension in &extensions {
            match extension {
                TlsExtension::SNI(list) => names.extend(list.iter().map(|(_, name)| *name)),
                TlsExtension::EncryptedServerName { .. } => hides = true,
                other => {
                    let kind = TlsExtensionType::from(other);
                    hides |= kind == ENCRYPTED_CLIENT_HELLO || kind == ESNI;
                }
            }
        }
        match names.as_slice() {
            [] => Self::Client { name: None, hides },
            [name] => Self::Client { name: Some(String::from_utf8_lossy(name).into_owned()), hides },
            // More than one is not allowed (RFC 6066, section 3), and servers would differ in which they take.
            _ => Self::None,
        }
    }
}

/// Takes the first message out of its records; nothing when it is not there in full.
fn message_in(bytes: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let (mut message, mut rest) = (Vec::new(), bytes);
    loop {
        match rest {
            [HANDSHAKE, 3, _, high, low, after @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 {
                    return Err(());
                }
                message.extend_from_slice(&after[..length.min(after.len())]);
                if let [CLIENT_HELLO, a, b, c, ..] = message[..] {
                    let whole = 4 + (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c));
                    if whole > HELLO_MAX {
                        return Err(());
                    }
                    if message.len() >= whole {
                        message.truncate(whole);
                        return Ok(Some(message));
                    }
                } else if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
                    return Err(());
                }
                if after.len() < length {
                    return Ok(None);
                }
                rest = &after[length..];
            }
            rest if rest.len() < RECORD_HEADER && is_beginning(rest) => return Ok(None),
            _ => return Err(()),
        }
    }
}

fn is_beginning(rest: &[u8]) -> bool {
    matches!(rest, [] | [HANDSHAKE] | [HANDSHAKE, 3, ..])
}

/// Tells whether a first message is for the host that a connection was decided for.
///
/// # Errors
/// When it names another host, none, or may hide another.
pub(crate) fn agrees(name: Option<&str>, hides: bool, target: &Host) -> Result<(), Refusal> {
    if hides {
        return Err(Refusal::new(
            "hidden-name",
            format!(
                "the connection to {target} may hide another name (encrypted client hello), which nobody could decide about"
            ),
        ));
    }
    match (target, name) {
        (Host::Address(_), None) => Ok(()),
        (Host::Name(own), Some(name)) if HostName::parse(name).as_ref() == Ok(own) => Ok(()),
        (_, Some(name)) => Err(Refusal::new(
            "name-mismatch",
            format!("the connection is to {target}, and TLS in it is for `{}`", model::text::escape(name)),
        )),
        (Host::Name(_), None) => Err(Refusal::new(
            "name-mismatch",
            format!("the connection is to {target}, and TLS in it names no host"),
        )),
    }
}

/// Returns the alert that ends a handshake before it begins: fatal, and why (RFC 8446, section 6).
pub(crate) fn alert(refusal: &Refusal) -> [u8; 7] {
    let (unrecognized_name, access_denied) = (112, 49);
    let code = if refusal.reason == "name-mismatch" { unrecognized_name } else { access_denied };
    [21, 3, 3, 0, 2, 2, code]
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// What a real client says first, for a host.
    pub(crate) fn hello_for(name: &str) -> Vec<u8> {
        use tokio_rustls::rustls;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().expect("a name");
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("writes");
        bytes
    }

    fn for_name(name: &str) -> Hello {
        Hello::Client { name: Some(name.to_owned()), hides: false }
    }

    #[test]
    fn the_host_of_a_real_client_is_read_however_it_arrives() {
        let bytes = hello_for("a.test");
        assert_eq!(Hello::read(&bytes), for_name("a.test"));
        for cut in 0..bytes.len() {
            assert_eq!(Hello::read(&bytes[..cut]), Hello::Incomplete, "{cut}");
        }
        // The same message in many records, and with more behind it.
        let records = bytes[RECORD_HEADER..].chunks(7).flat_map(|part| {
            [&[HANDSHAKE, 3, 1, 0, u8::try_from(part.len()).expect("short")][..], part].concat()
        });
        let mut split: Vec<u8> = records.collect();
        assert_eq!(Hello::read(&split), for_name("a.test"));
        split.extend_from_slice(b"more");
        assert_eq!(Hello::read(&split), for_name("a.test"));
    }

    #[test]
    fn an_address_names_no_host() {
        assert_eq!(Hello::read(&hello_for("192.0.2.1")), Hello::Client { name: None, hides: false });
    }

    #[test]
    fn what_is_no_tls_is_none() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x\r\n",
            &[22, 2, 0, 0, 1, 1],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0, 1, 2],
            &[23, 3, 3, 0, 1],
        ] {
            assert_eq!(Hello::read(bytes), Hello::None, "{bytes:?}");
        }
    }

    /// Adds an extension to a first message.
    fn with_extension(bytes: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
        let body = &bytes[RECORD_HEADER + 4..];
        let session = 34 + 1 + usize::from(body[34]);
        let suites = session + 2 + usize::from(u16::from_be_bytes([body[session], body[session + 1]]));
        let extensions = suites + 1 + usize::from(body[suites]);
        let mut list = body[extensions + 2..].to_vec();
        list.extend_from_slice(&kind.to_be_bytes());
        list.extend_from_slice(&u16::try_from(data.len()).expect("short").to_be_bytes());
        list.extend_from_slice(data);
        let mut body = body[..extensions].to_vec();
        body.extend_from_slice(&u16::try_from(list.len()).expect("short").to_be_bytes());
        body.extend(list);
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        let message = [&[CLIENT_HELLO], &length[1..], &body].concat();
        let length = u16::try_from(message.len()).expect("short").to_be_bytes();
        [&[HANDSHAKE, 3, 1], &length[..], &message].concat()
    }

    #[test]
    fn a_hidden_name_and_a_second_one_are_noticed() {
        let hidden = with_extension(&hello_for("a.test"), 0xfe0d, b"\0\x01\0\x01x");
        assert_eq!(Hello::read(&hidden), Hello::Client { name: Some("a.test".to_owned()), hides: true });
        let twice = with_extension(&hello_for("a.test"), 0, b"\0\x09\0\0\x06b.test");
        assert_eq!(Hello::read(&twice), Hello::None);
    }

    #[test]
    fn the_name_must_be_that_of_the_connection() {
        let target = crate::decide::host("a.test").expect("a target");
        assert!(agrees(Some("A.Test"), false, &target).is_ok());
        for name in [Some("b.test"), Some("a.test."), Some("evila.test"), Some("a.test\0"), None] {
            assert_eq!(agrees(name, false, &target).map_err(|refusal| refusal.reason), Err("name-mismatch"));
        }
        assert_eq!(
            agrees(Some("a.test"), true, &target).map_err(|refusal| refusal.reason),
            Err("hidden-name")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..300usize) {
            Hello::read(&bytes);
            let mut hello = hello_for("a.test");
            for (offset, byte) in bytes.iter().enumerate().take(4) {
                let place = (at + offset * 31) % hello.len();
                hello[place] = *byte;
            }
            Hello::read(&hello);
        }
    }
}
