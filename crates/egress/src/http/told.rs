//! What is told of one request: when the last of it is gone, and however that came about.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::request::Parts;
use model::egress::{Attempt, PackageUse, Verdict};
use model::units::Bytes;

use super::hook::Notes;
use super::{Outside, Serving, Stream, Way};
use crate::Refusal;
use crate::attempts::now;
use crate::carry::one_way;

/// The longest method and path that are told, in letters.
const SHOWN_MAX: usize = 2048;

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
            package: None,
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
        let (mut from_inside, mut to_inside) = tokio::io::split(inside);
        let (mut from_outside, mut to_outside) = tokio::io::split(outside);
        let count = |way| move |bytes: u64| self.count(way, usize::try_from(bytes).unwrap_or(usize::MAX));
        let out = one_way(&mut from_inside, &mut to_outside, count(Way::Sent));
        let back = one_way(&mut from_outside, &mut to_inside, count(Way::Received));
        // An error at one end is the end of both: nobody is left to tell it to.
        let _ = tokio::try_join!(out, back);
    }

    fn with(&self, change: impl FnOnce(&mut Attempt)) {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = attempt.as_mut() {
            change(attempt);
        }
    }
}

impl Notes for Told {
    fn package(&self, package: PackageUse) {
        self.with(|attempt| attempt.package = Some(Box::new(package)));
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
