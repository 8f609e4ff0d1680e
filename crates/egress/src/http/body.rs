//! Bodies that pass: counted, and looked at where a hook asked for it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

use super::Way;
use super::cover::Covered;
use super::hook::Exchange;
use super::told::Told;

/// Why a body ends before its end.
pub(crate) type Cut = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Cut>;

/// A body as it comes, or one that is looked through for a credential.
pub(crate) enum Source {
    Plain(Incoming),
    Covered(Box<Covered>),
}

impl http_body::Body for Source {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Plain(body) => Pin::new(body).poll_frame(cx).map_err(Cut::from),
            Self::Covered(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain(body) => body.is_end_stream(),
            Self::Covered(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain(body) => body.size_hint(),
            Self::Covered(body) => body.size_hint(),
        }
    }
}

/// A body that passes, and is counted before it does.
pub(crate) struct Counted {
    pub(crate) inner: Source,
    pub(crate) way: Way,
    pub(crate) told: Arc<Told>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.and_then(|frame| {
            self.told.count(self.way, frame.data_ref().map_or(0, Bytes::len))?;
            Ok(frame)
        });
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A body that a hook looks at while it passes. Each piece waits for the next one, and the last for the end of the look.
pub(crate) struct Looked {
    pub(crate) inner: Counted,
    pub(crate) exchange: Box<dyn Exchange>,
    pub(crate) waits: Option<Frame<Bytes>>,
    /// Whether the last of the data was looked at.
    pub(crate) ended: bool,
    pub(crate) over: bool,
}

impl Looked {
    /// Looks at what came, and returns what may pass now, if anything.
    fn look(&mut self, came: Option<Frame<Bytes>>) -> Result<Option<Frame<Bytes>>, Cut> {
        let looked = match came.as_ref().and_then(Frame::data_ref) {
            Some(piece) => self.exchange.piece(piece),
            // After the data come trailers, or nothing.
            None if std::mem::replace(&mut self.ended, true) => Ok(()),
            None => self.exchange.end(),
        };
        looked.inspect_err(|refusal| self.inner.told.is(refusal.clone().into()))?;
        self.over = came.is_none();
        Ok(std::mem::replace(&mut self.waits, came))
    }
}

impl http_body::Body for Looked {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        while !self.over {
            let came = ready!(Pin::new(&mut self.inner).poll_frame(cx)).transpose()?;
            let looked = self.look(came);
            // After a refusal nothing more passes, also when it is asked for again.
            if looked.is_err() {
                (self.over, self.waits) = (true, None);
            }
            if let Some(passes) = looked.transpose() {
                return Poll::Ready(Some(passes));
            }
        }
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
