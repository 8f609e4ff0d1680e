//! The sockets inside the sandbox at which the gateway waits.
//!
//! Guarantees: who connects gets a place among those of its action or is refused at once; a destination that no name was given is
//! closed and told.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use model::egress::{Door, Entrance, Protocol};
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::attempts::{attempt, refused};
use crate::context::Context;
use crate::converse::{Place, converse};
use crate::dns::{self, Transport};
use crate::http::Host;
use crate::http::{self, Meant, Speaks};
use crate::refusal::Refusal;
use crate::socks;
use crate::stream::Client;
use crate::tunnel;

/// The longest question as a datagram.
const QUESTION_MAX: usize = 4096;
/// How long a stream with questions may be silent.
const ASKS_WITHIN: Duration = Duration::from_secs(10);
/// How long a client of the proxy may take to say in which way it speaks.
const SPEAKS_WITHIN: Duration = Duration::from_secs(30);
/// What is waited after accepting failed, for example when there is no descriptor left.
const REST: Duration = Duration::from_millis(20);

/// Waits at a socket until the gateway ends.
///
/// # Errors
/// When the socket is none that can be waited at.
pub(crate) fn open(context: &Arc<Context>, entrance: Entrance, socket: OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    let context = Arc::clone(context);
    if entrance == Entrance::DnsDatagrams {
        let socket = UdpSocket::from_std(socket.into())?;
        tokio::spawn(async move { datagrams(&context, &socket).await });
    } else {
        let listener = TcpListener::from_std(socket.into())?;
        tokio::spawn(async move { accept_all(&context, entrance, &listener).await });
    }
    Ok(())
}

async fn datagrams(context: &Context, socket: &UdpSocket) {
    let mut question = vec![0; QUESTION_MAX];
    loop {
        match socket.recv_from(&mut question).await {
            Ok((length, client)) => {
                if let Some(reply) = dns::answer(context, &question[..length], Transport::Datagram) {
                    // Who asks again gets another one.
                    let _ = socket.send_to(&reply, client).await;
                }
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

async fn accept_all(context: &Arc<Context>, entrance: Entrance, listener: &TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        // Where all places are taken, the client is refused and does not wait.
        let Some(place) = context.place() else {
            context.attempts.miss();
            continue;
        };
        let context = Arc::clone(context);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            serve(context, entrance, stream).await;
            drop(place);
        });
    }
}

async fn serve(context: Arc<Context>, entrance: Entrance, stream: TcpStream) {
    match entrance {
        Entrance::DnsStreams => questions(&context, stream).await,
        Entrance::Proxy => proxy(context, stream).await,
        Entrance::Port(_) => match stream.local_addr() {
            Ok(to) => direct(context, to, stream).await,
            Err(_) => drop(stream),
        },
        Entrance::Redirected => match turned_from(&stream) {
            Ok(to) => direct(context, to, stream).await,
            Err(_) => drop(stream),
        },
        // There are no connections to it.
        Entrance::DnsDatagrams => {}
    }
}

/// Returns where a connection was to go before the kernel turned it here.
fn turned_from(stream: &TcpStream) -> io::Result<SocketAddr> {
    let to = if stream.local_addr()?.is_ipv4() {
        sockopt::ip_original_dst(stream)?.into()
    } else {
        match sockopt::ipv6_original_dst(stream) {
            Ok(to) => to.into(),
            // A connection of IPv4 at a socket for both.
            Err(_) => sockopt::ip_original_dst(stream)?.into(),
        }
    };
    Ok(to)
}

/// Serves a connection that was made as if to the host itself.
async fn direct(context: Arc<Context>, to: SocketAddr, stream: TcpStream) {
    let address = to.ip().to_canonical();
    let is_inside = context.names().has(address);
    let name = context.names().name_of(address).cloned();
    let host = match name {
        Some(name) => Host::Name(name),
        None if is_inside => return unknown(&context, to),
        // A rule that names it has led it here; anything else is our own port.
        None => Host::Address(address),
    };
    let place = Place { door: Door::Direct, host, port: to.port() };
    converse(context, place, Client::new(Vec::new(), stream)).await;
}

fn unknown(context: &Context, to: SocketAddr) {
    let refusal = Refusal::new("no-name", format!("{to} was given to no name: ask for the name first"));
    context.attempts.note(attempt(Door::Direct, to.ip().to_string(), Some(to.port()), refused(&refusal)));
}

/// Answers questions for names on a stream, each with its length in front (RFC 1035, section 4.2.2).
async fn questions(context: &Context, mut stream: TcpStream) {
    let answered = async {
        loop {
            let length = timeout(ASKS_WITHIN, stream.read_u16()).await??;
            let mut question = vec![0; usize::from(length)];
            timeout(ASKS_WITHIN, stream.read_exact(&mut question)).await??;
            let Some(reply) = dns::answer(context, &question, Transport::Stream) else { return Ok(()) };
            let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
            stream.write_all(&[&length.to_be_bytes(), reply.as_slice()].concat()).await?;
        }
    };
    // It ends when the client does, or says nothing more.
    let _: io::Result<()> = answered.await;
}

/// Serves a client of the proxy: SOCKS by its first byte, a tunnel by its first word, else HTTP.
async fn proxy(context: Arc<Context>, mut stream: TcpStream) {
    let Ok(Ok(first)) = timeout(SPEAKS_WITHIN, beginning(&mut stream)).await else { return };
    let client = Client::new(first.clone(), stream);
    match first.as_slice() {
        [] => {}
        [socks::VERSION, ..] => socks::serve(context, client).await,
        tunnel::BEGINNING => tunnel::serve(context, client).await,
        _ => {
            let meant = Meant { target: None, protocol: Protocol::Http, door: Door::Proxy };
            // An error here is a client that went away or spoke no HTTP; it got its answer.
            let _ = http::serve(client, Speaks::Http1, meant, context).await;
        }
    }
}

/// Reads as much as shows in which way a client speaks.
async fn beginning(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    while said.len() < tunnel::BEGINNING.len() && tunnel::BEGINNING.starts_with(&said) {
        let mut byte = [0; 1];
        if stream.read(&mut byte).await? == 0 {
            break;
        }
        said.extend(byte);
    }
    Ok(said)
}
