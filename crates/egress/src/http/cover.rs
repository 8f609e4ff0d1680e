//! Bodies and heads of requests with a credential: what comes back is looked through for its value, and what goes out for what
//! stands for it and for canaries.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header, response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use model::egress::{AlertKind, CredentialAlert};

use super::body::{Counted, Cut};
use super::told::Told;
use crate::Refusal;
use crate::credentials::{Credentials, Given, Held};

/// What looks through the response to one request with a credential.
#[derive(Clone)]
pub(crate) struct Cover {
    pub(crate) given: Arc<Given>,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) told: Arc<Told>,
    pub(crate) host: String,
}

impl Cover {
    /// Looks through the head of a response.
    ///
    /// # Errors
    /// When its body could not be looked through.
    pub(crate) fn head(&self, parts: &mut response::Parts) -> Result<(), Refusal> {
        let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
        if !parts.headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
            let why = "the answer is compressed although it was asked not to be, so nobody can tell whether the credential is in it";
            return Err(Refusal::new("not-legible", why));
        }
        self.headers(&mut parts.headers);
        Ok(())
    }

    fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let Some(covered) = self.given.scan.cover(value.as_bytes()) else { continue };
            // INVARIANT: what stands in the place of the value is a sign that a header can have.
            if let Ok(covered) = HeaderValue::from_bytes(&covered) {
                *value = covered;
            }
            self.raise();
        }
    }

    fn raise(&self) {
        let credential = self.given.about.name.clone();
        let alert = CredentialAlert { kind: AlertKind::ValueCameBack, credential, host: self.host.clone() };
        self.credentials.raise(alert);
    }

    /// Takes the body of the response.
    pub(crate) fn body(self, inner: Incoming) -> Covered {
        Covered { inner, cover: self, held: Held::default(), trailers: None, over: false }
    }
}

/// The body of a response in which the value is illegible.
pub(crate) struct Covered {
    inner: Incoming,
    cover: Cover,
    held: Held,
    trailers: Option<HeaderMap>,
    over: bool,
}

impl Covered {
    /// Looks through what came, and returns what may pass now, if anything.
    fn look(&mut self, came: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        let passes = match came.map(Frame::into_data) {
            Some(Ok(piece)) => {
                let (passes, found) = self.cover.given.scan.piece(&mut self.held, &piece);
                if found {
                    self.cover.raise();
                }
                passes
            }
            // After the data come trailers, or nothing.
            other => {
                self.over = true;
                self.trailers = other.and_then(|frame| frame.err()?.into_trailers().ok());
                self.held.rest()
            }
        };
        if passes.is_empty() { self.last() } else { Some(Frame::data(passes.into())) }
    }

    fn last(&mut self) -> Option<Frame<Bytes>> {
        let mut trailers = self.trailers.take()?;
        self.cover.headers(&mut trailers);
        Some(Frame::trailers(trailers))
    }

    /// Says why the rest does not come in.
    fn cut(&mut self) -> Cut {
        self.over = true;
        let refusal = self.cover.given.over();
        self.cover.told.is(refusal.clone().into());
        refusal.into()
    }
}

impl http_body::Body for Covered {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        while !self.over {
            if self.cover.given.has_ended() {
                return Poll::Ready(Some(Err(self.cut())));
            }
            let came = match ready!(Pin::new(&mut self.inner).poll_frame(cx)).transpose() {
                Ok(came) => came,
                // Its connection was closed for that.
                Err(_) if self.cover.given.has_ended() => return Poll::Ready(Some(Err(self.cut()))),
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            };
            if let Some(passes) = self.look(came) {
                return Poll::Ready(Some(Ok(passes)));
            }
        }
        Poll::Ready(self.last().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.trailers.is_none() && (self.over || self.inner.is_end_stream())
    }

    /// As many bytes pass as come.
    fn size_hint(&self) -> SizeHint {
        if self.held.is_empty() { self.inner.size_hint() } else { SizeHint::default() }
    }
}

/// The body of a request in which marks are looked for. The piece that completes one does not go out.
pub(crate) struct Watched {
    inner: Counted,
    credentials: Arc<Credentials>,
    own: Option<String>,
    host: String,
    last: Vec<u8>,
    over: bool,
}

impl Watched {
    /// Watches a body on its way to a host, by a rule with this credential.
    pub(crate) fn new(
        inner: Counted,
        credentials: Arc<Credentials>,
        own: Option<String>,
        host: String,
    ) -> Self {
        Self { inner, credentials, own, host, last: Vec::new(), over: false }
    }

    fn look(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        self.last.extend_from_slice(piece);
        self.credentials.check(&self.last, self.own.as_deref(), &self.host)?;
        let all = self.last.len();
        self.last.drain(..all.saturating_sub(self.credentials.overlap()));
        Ok(())
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx)).transpose()?;
        let Some(frame) = frame else { return Poll::Ready(None) };
        let looked = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(piece), _) => self.look(piece),
            (None, Some(trailers)) => trailers.values().try_for_each(|value| self.look(value.as_bytes())),
            (None, None) => Ok(()),
        };
        Poll::Ready(Some(match looked {
            Ok(()) => Ok(frame),
            Err(refusal) => {
                self.over = true;
                self.inner.told.is(refusal.clone().into());
                Err(refusal.into())
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
