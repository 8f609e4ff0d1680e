//! SOCKS, version 5 (RFC 1928): a client says where its connection is to go before it begins.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use model::egress::Door;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::attempts::{attempt, refused};
use crate::context::Context;
use crate::converse::{Place, converse};
use crate::decide::host as host_in;
use crate::http::Host;
use crate::refusal::Refusal;
use crate::stream::Client;

/// The version, as the first byte of a client says it.
pub(crate) const VERSION: u8 = 5;
/// How long a client may take to say where to.
const SPEAKS_WITHIN: Duration = Duration::from_secs(30);
/// The methods of proving who one is: none, and that none of the offered will do (RFC 1928, section 3).
const NO_PROOF: u8 = 0;
const NONE_WILL_DO: u8 = 0xff;
/// The command to connect (section 4).
const CONNECT: u8 = 1;

/// Answers (section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Succeeded = 0,
    NotAllowed = 2,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    Connect { host: Given, port: u16 },
    Other(Reply),
}

/// A host as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Given {
    Name(Vec<u8>),
    Address(IpAddr),
}

/// Serves a client of the SOCKS proxy.
pub(crate) async fn serve(context: Arc<Context>, mut client: Client) {
    let asked = match timeout(SPEAKS_WITHIN, hear(&mut client)).await {
        Ok(Ok(asked)) => asked,
        // It went away, or speaks something else.
        Ok(Err(_)) | Err(_) => return,
    };
    let (host, port) = match asked {
        Asked::Connect { host, port } => (host, port),
        Asked::Other(reply) => return say(&mut client, reply).await,
    };
    let (shown, target) = host.target();
    let decided = target.and_then(|target| context.rules.connection(&target, port).map(|_| target));
    match decided {
        Ok(target) => {
            say(&mut client, Reply::Succeeded).await;
            converse(context, Place { door: Door::Socks, host: target, port }, client).await;
        }
        Err(refusal) => {
            context.attempts.note(attempt(Door::Socks, shown, Some(port), refused(&refusal)));
            say(&mut client, Reply::NotAllowed).await;
        }
    }
}

impl Given {
    fn target(&self) -> (String, Result<Host, Refusal>) {
        match self {
            Self::Address(address) => (address.to_string(), Ok(Host::Address(*address))),
            Self::Name(name) => {
                let shown = String::from_utf8_lossy(name).into_owned();
                let target = host_in(&shown).filter(|target| matches!(target, Host::Name(_)));
                let why = || {
                    Refusal::new("no-name", format!("`{}` is no name of a host", model::text::escape(&shown)))
                };
                let target = target.ok_or_else(why);
                (shown, target)
            }
        }
    }
}

/// Reads where a request is to go; nothing when that is nowhere.
pub(crate) async fn target_of(mut bytes: &[u8]) -> Option<(Host, u16)> {
    match request(&mut bytes).await.ok()? {
        Asked::Connect { host, port } => Some((host.target().1.ok()?, port)),
        Asked::Other(_) => None,
    }
}

async fn hear(client: &mut Client) -> io::Result<Asked> {
    let mut head = [0; 2];
    client.read_exact(&mut head).await?;
    let [version, methods] = head;
    let mut offered = vec![0; usize::from(methods)];
    client.read_exact(&mut offered).await?;
    if version != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if !offered.contains(&NO_PROOF) {
        client.write_all(&[VERSION, NONE_WILL_DO]).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    client.write_all(&[VERSION, NO_PROOF]).await?;
    request(client).await
}

async fn request(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Asked> {
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, command, reserved, kind] = head;
    if version != VERSION || reserved != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        1 => {
            let mut address = [0; 4];
            client.read_exact(&mut address).await?;
            Given::Address(Ipv4Addr::from(address).into())
        }
        3 => {
            let length = client.read_u8().await?;
            let mut name = vec![0; usize::from(length)];
            client.read_exact(&mut name).await?;
            Given::Name(name)
        }
        4 => {
            let mut address = [0; 16];
            client.read_exact(&mut address).await?;
            Given::Address(Ipv6Addr::from(address).into())
        }
        _ => return Ok(Asked::Other(Reply::AddressNotSupported)),
    };
    let port = client.read_u16().await?;
    Ok(match command {
        CONNECT => Asked::Connect { host, port },
        _ => Asked::Other(Reply::CommandNotSupported),
    })
}

async fn say(client: &mut Client, reply: Reply) {
    // The address that it is told is of no use to anybody: it is ours.
    let bytes = [VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0];
    // A client that is gone needs no answer.
    let _ = client.write_all(&bytes).await;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Option<Asked> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { request(&mut &*bytes).await.ok() })
    }

    #[test]
    fn requests_are_read_as_they_are_written() {
        let name = [&[5, 1, 0, 3, 6][..], b"a.test", &[1, 187]].concat();
        assert_eq!(read(&name), Some(Asked::Connect { host: Given::Name(b"a.test".to_vec()), port: 443 }));
        let v4 = Given::Address(Ipv4Addr::new(127, 0, 0, 1).into());
        assert_eq!(read(&[5, 1, 0, 1, 127, 0, 0, 1, 0, 80]), Some(Asked::Connect { host: v4, port: 80 }));
        assert_eq!(read(&[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]), Some(Asked::Other(Reply::CommandNotSupported)));
        assert_eq!(read(&[5, 1, 0, 9]), Some(Asked::Other(Reply::AddressNotSupported)));
        for bytes in [&[4, 1, 0, 1][..], &[5, 1, 1, 1], &[5, 1, 0, 3, 200, 1], &[]] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_that_programs_read_as_an_address_is_no_name() {
        for name in ["127.0.0.1", "127.1", "2130706433", "localhost.", "::1", "a.test\0"] {
            let (shown, target) = Given::Name(name.as_bytes().to_vec()).target();
            assert_eq!((shown.as_str(), target.map_err(|refusal| refusal.reason)), (name, Err("no-name")));
        }
        assert!(Given::Name(b"a.test".to_vec()).target().1.is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes);
        }
    }
}
