//! What looks at requests and responses of a rule that names a kind of registry, after the rule took the request.
//!
//! Guarantees: a hook can only narrow. It sees a request after a rule took it, and what it changed is decided again by the
//! same rule; a refusal of a body that is read whole reaches the client as an answer, and one of a body that passes while
//! it is read cuts it before its last piece, so that no client has all of it.
//! Leaves to others: what is refused (`packages`), and which hook serves a rule (`Outside::hook`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{request, response};
use model::egress::{EgressRule, PackageUse, Place};

use super::Target;
use crate::Refusal;

/// Something that is there later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What looks at the requests of rules with one kind of registry.
pub trait Hook: Send + Sync {
    /// Looks at a request before anything of it goes out. It may change the head, but not to another host.
    ///
    /// # Errors
    /// With why it does not go out.
    fn request<'a>(
        &'a self,
        asked: Asked<'a>,
        head: &'a mut request::Parts,
    ) -> Later<'a, Result<Box<dyn Exchange>, Refusal>>;
}

/// What a hook is told beside the head.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The rule that took the request.
    pub rule: &'a EgressRule,
    /// The host that is asked.
    pub target: &'a Target,
    /// Asks the registry for something else.
    pub fetch: &'a dyn Fetch,
    /// What is told of the request.
    pub notes: &'a Arc<dyn Notes>,
}

/// Takes what is found out about a request, to tell it with the rest.
pub trait Notes: Send + Sync {
    /// Notes which package it is about.
    fn package(&self, package: PackageUse);
}

/// Asks a registry for something that the decision needs. It is decided and told like a request of the client.
pub trait Fetch: Send + Sync {
    /// Gets a path at a place, by a rule of the same registry, and at most this many bytes of it.
    ///
    /// # Errors
    /// When no rule takes it, it cannot be had, or is larger.
    fn get<'a>(
        &'a self,
        place: &'a Place,
        path_and_query: &'a str,
        accept: Option<&'a str>,
        bytes_max: usize,
    ) -> Later<'a, Result<http::Response<Bytes>, Refusal>>;
}

/// One request that went out, and the response that comes.
pub trait Exchange: Send {
    /// Looks at the head of the response, and says how its body is read. It may change the head.
    ///
    /// # Errors
    /// With why it does not come in.
    fn response(&mut self, head: &mut response::Parts) -> Result<Reading, Refusal> {
        let _ = head;
        Ok(Reading::Pass)
    }

    /// Looks at a body that was read whole, and returns what the client gets in its place.
    ///
    /// # Errors
    /// With why the client gets none of it.
    fn whole(&mut self, body: Bytes) -> Result<Bytes, Refusal> {
        Ok(body)
    }

    /// Looks at a piece of a body while it passes.
    ///
    /// # Errors
    /// With why the rest does not come in.
    fn piece(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        let _ = piece;
        Ok(())
    }

    /// Looks back when all pieces were seen; the last of them has not been passed on yet.
    ///
    /// # Errors
    /// With why the last piece does not come in.
    fn end(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

/// How the body of a response is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By the client alone.
    Pass,
    /// Whole, by `Exchange::whole`, before the client gets any of it; a larger one is refused.
    Whole {
        /// The most bytes that it may have.
        bytes_max: usize,
    },
    /// Piece by piece, by `Exchange::piece` and `Exchange::end`.
    Pieces,
}
