//! A connection of which something was read already.

use std::io;
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection of a client, with what it said and nobody took yet.
pub(crate) struct Client {
    said: Bytes,
    stream: TcpStream,
}

impl Client {
    pub(crate) fn new(said: impl Into<Bytes>, stream: TcpStream) -> Self {
        Self { said: said.into(), stream }
    }

    /// Puts back what was read, to be read again.
    pub(crate) fn unread(&mut self, said: impl Into<Bytes>) {
        let said = said.into();
        self.said = if self.said.is_empty() { said } else { [said, self.said.split_off(0)].concat().into() };
    }

    /// Takes it apart.
    pub(crate) fn into_parts(self) -> (Bytes, TcpStream) {
        (self.said, self.stream)
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.said.is_empty() {
            return Pin::new(&mut self.stream).poll_read(task, room);
        }
        let length = self.said.len().min(room.remaining());
        room.put_slice(&self.said[..length]);
        self.said.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
