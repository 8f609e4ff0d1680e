//! Carrying bytes both ways, counted, until both sides have said their last.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::attempts::Ticket;
use crate::context::Context;
use crate::refusal::Refusal;

/// What is carried at once in one direction: two of these are most of what a connection costs.
const PIECE: usize = 16 << 10;

/// Carries bytes between a client and its server. `first` is what the client said already.
///
/// # Errors
/// When one of them breaks off, or what may be carried is used up.
pub(crate) async fn carry<C>(
    context: &Context,
    ticket: &Ticket,
    client: C,
    mut server: TcpStream,
    first: &[u8],
) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let sent = |bytes| {
        ticket.sent(bytes);
        context.sends(bytes)
    };
    let received = |bytes| {
        ticket.received(bytes);
        context.receives(bytes)
    };
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = server.split();
    if !first.is_empty() {
        sent(first.len() as u64).map_err(used_up)?;
        to_server.write_all(first).await?;
    }
    let out = one_way(&mut from_client, &mut to_server, sent);
    let back = one_way(&mut from_server, &mut to_client, received);
    tokio::try_join!(out, back).map(|_| ())
}

/// Carries bytes from one end to the other, each piece counted before it passes.
///
/// # Errors
/// When an end breaks off, or no more may pass.
pub(crate) async fn one_way(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    count: impl Fn(u64) -> Result<(), Refusal>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        count(read as u64).map_err(used_up)?;
        to.write_all(&piece[..read]).await?;
        to.flush().await?;
    }
}

fn used_up(refusal: Refusal) -> io::Error {
    io::Error::new(io::ErrorKind::QuotaExceeded, refusal.why)
}
