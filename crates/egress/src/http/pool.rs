//! The connections to servers that serve one connection from inside.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::egress::EgressRule;
use tokio::sync::watch;

use super::body::Body;
use super::{Outside, Reached, Speaks, Target, Unreached};

/// How many of them wait for the next request; what is above is closed.
const IDLE_MAX: usize = 8;

/// Connections that wait for the next request, each with whose it is and the rule that it was made by.
#[derive(Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Idle>>>);

struct Idle {
    target: Target,
    rule: EgressRule,
    connection: Connection,
}

/// A connection that takes requests.
pub(crate) struct Connection {
    sender: Sender,
    pub(crate) address: std::net::IpAddr,
}

enum Sender {
    One(http1::SendRequest<Body>),
    Two(http2::SendRequest<Body>),
}

impl Pool {
    /// Returns a connection to a host, made by this very rule: another one may lead to other addresses. It is closed when
    /// `ends` comes true.
    pub(crate) async fn get(
        &self,
        outside: &dyn Outside,
        target: &Target,
        rule: &EgressRule,
        ends: Option<watch::Receiver<bool>>,
    ) -> Result<Connection, Unreached> {
        while let Some(connection) = self.idle(target, rule) {
            if connection.is_ready() {
                return Ok(connection);
            }
        }
        let reached = outside.connect(target, rule).await?;
        Connection::begin(reached, ends)
            .await
            .map_err(|error| Unreached::Failed(format!("no HTTP is spoken: {error}")))
    }

    fn idle(&self, target: &Target, rule: &EgressRule) -> Option<Connection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|idle| idle.target == *target && idle.rule == *rule)?;
        Some(all.swap_remove(at).connection)
    }

    /// Sends a request, and keeps the connection for the next one when it can take it.
    pub(crate) async fn send(
        &self,
        mut connection: Connection,
        request: Request<Body>,
        target: &Target,
        rule: &EgressRule,
    ) -> hyper::Result<Response<Incoming>> {
        let response = match &mut connection.sender {
            Sender::One(one) => one.send_request(request).await,
            Sender::Two(two) => two.send_request(request).await,
        }?;
        let (all, idle) = (self.0.clone(), Idle { target: target.clone(), rule: rule.clone(), connection });
        tokio::spawn(keep(all, idle));
        Ok(response)
    }
}

/// Serves a connection, until its credential ends.
async fn until(ends: Option<watch::Receiver<bool>>, served: impl Future<Output = ()>) {
    let Some(mut ends) = ends else { return served.await };
    let ended = async move {
        // A credential that can no longer end is as good as ended.
        let _ = ends.wait_for(|ended| *ended).await;
    };
    tokio::select! {
        () = ended => {}
        () = served => {}
    }
}

/// Waits until the last response has been read.
async fn keep(all: Arc<Mutex<Vec<Idle>>>, mut idle: Idle) {
    let ready = match &mut idle.connection.sender {
        Sender::One(one) => one.ready().await,
        Sender::Two(two) => two.ready().await,
    };
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if ready.is_ok() && all.len() < IDLE_MAX {
        all.push(idle);
    }
}

impl Connection {
    async fn begin(reached: Reached, ends: Option<watch::Receiver<bool>>) -> hyper::Result<Self> {
        let stream = TokioIo::new(reached.stream);
        let sender = match reached.speaks {
            Speaks::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                // It ends when its sender is gone, or the server has closed it; requests then say why.
                tokio::spawn(until(ends, async move { drop(connection.with_upgrades().await) }));
                Sender::One(sender)
            }
            Speaks::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(until(ends, async move { drop(connection.await) }));
                Sender::Two(sender)
            }
        };
        Ok(Self { sender, address: reached.address })
    }

    /// Tells whether HTTP/2 is spoken on it.
    pub(crate) fn is_two(&self) -> bool {
        matches!(self.sender, Sender::Two(_))
    }

    fn is_ready(&self) -> bool {
        match &self.sender {
            Sender::One(one) => one.is_ready(),
            Sender::Two(two) => two.is_ready(),
        }
    }
}
