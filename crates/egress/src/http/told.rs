//! What is told of one request: when the last of it is gone, and however that came about.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use http::request::Parts;
use model::egress::{Attempt, Verdict};
use model::units::{Bytes, Timestamp};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Outside, Serving, Stream, Way};
use crate::Refusal;

/// The longest method and path that are told, in letters.
const SHOWN_MAX: usize = 2048;
/// How many bytes are carried at once after a switch.
const PIECE: usize = 16 * 1024;

/// One request; told when this is dropped, by the bodies of the request and of the response too.
pub(crate) struct Told {
    outside: Arc<dyn Outside>,
    attempt: Mutex<Option<Attempt>>,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Told {
    /// Begins to tell of a request, as one that was not decided.
    pub(crate) fn begin(serving: &Serving, parts: &Parts) -> Arc<Self> {
        let shown = |text: &str| Some(text.chars().take(SHOWN_MAX).collect());
        let target = serving.meant.target.as_ref();
        let attempt = Attempt {
            at: now(),
            door: serving.meant.door,
            name: target.map(|target| target.host.to_string()),
            port: target.map(|target| target.port),
            address: None,
            method: shown(parts.method.as_str()),
            path: shown(parts.uri.path()),
            verdict: Refusal::new("not-decided", "the client left before it was decided").into(),
            sent: Bytes::new(0),
            received: Bytes::new(0),
            continued: false,
        };
        Arc::new(Self {
            outside: serving.outside.clone(),
            attempt: Mutex::new(Some(attempt)),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        })
    }

    pub(crate) fn names(&self, name: String, port: u16) {
        self.with(|attempt| (attempt.name, attempt.port) = (Some(name), Some(port)));
    }

    pub(crate) fn reached(&self, address: IpAddr) {
        self.with(|attempt| attempt.address = Some(address));
    }

    pub(crate) fn is(&self, verdict: Verdict) {
        self.with(|attempt| attempt.verdict = verdict);
    }

    /// Counts bytes before they pass.
    pub(crate) fn count(&self, way: Way, bytes: usize) -> Result<(), Refusal> {
        self.outside.count(way, bytes).inspect_err(|refusal| self.is(refusal.clone().into()))?;
        let counter = match way {
            Way::Sent => &self.sent,
            Way::Received => &self.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Carries bytes both ways until each end has said its last, or no more may pass.
    pub(crate) async fn carry(&self, inside: impl Stream, outside: impl Stream) {
        let (from_inside, to_inside) = tokio::io::split(inside);
        let (from_outside, to_outside) = tokio::io::split(outside);
        let out = self.pump(Way::Sent, from_inside, to_outside);
        let back = self.pump(Way::Received, from_outside, to_inside);
        // An error at one end is the end of both: nobody is left to tell it to.
        let _ = tokio::try_join!(out, back);
    }

    async fn pump(
        &self,
        way: Way,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).await?;
            if read == 0 {
                return to.shutdown().await;
            }
            self.count(way, read).map_err(io::Error::other)?;
            to.write_all(&piece[..read]).await?;
            to.flush().await?;
        }
    }

    fn with(&self, change: impl FnOnce(&mut Attempt)) {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = attempt.as_mut() {
            change(attempt);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let (sent, received) = (*self.sent.get_mut(), *self.received.get_mut());
        let attempt = self.attempt.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(attempt) = attempt {
            let (sent, received) = (Bytes::new(sent), Bytes::new(received));
            self.outside.tell(Attempt { sent, received, ..attempt });
        }
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(since.as_nanos().try_into().unwrap_or_default())
}
