//! HTTP: every request of a connection, decided by itself.
//!
//! Guarantees: a request goes out only when its method, path, host and port are those of one rule, read as the server will
//! read them; it is written anew, so that the server sees one request where one was decided. What is refused is answered
//! with the reason. Every request is told, with the bytes that passed, however it ends. Bodies pass without being kept,
//! unless a hook asks for one whole. A rule with a credential or a registry that nobody serves here takes nothing.
//! Leaves to others: the addresses of names and connecting (`Outside`), what packages may be fetched (`hook`), and where a
//! credential goes in a request (`credentials`).

mod answer;
mod body;
mod cover;
mod exchange;
mod head;
pub mod hook;
mod pool;
mod told;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use model::egress::{Attempt, Door, EgressRule, HostName, HostNameError, HostPattern, Protocol};
use model::text::escape;
use tokio::io::{AsyncRead, AsyncWrite};

use self::hook::{Hook, Later};
use self::pool::Pool;
use crate::Refusal;
use crate::credentials::Credentials;

/// How long the head of a request may take to arrive, also on a connection that is kept open for it.
const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// The largest head, in bytes: four times what common servers take.
const HEAD_MAX: usize = 64 * 1024;
/// How many requests one HTTP/2 connection may have open at once.
const STREAMS_MAX: u32 = 128;

/// A stream of bytes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A host, by its name or by an address that a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

/// A host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant {
    /// Whose connection it is; nothing when it is to the proxy, where each request names its own.
    pub target: Option<Target>,
    /// What a rule must say that takes its requests: `Https` when TLS was taken off it.
    pub protocol: Protocol,
    /// How it came in.
    pub door: Door,
}

/// Which HTTP is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1 and 1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection to a server; over TLS when the request is for `https`, with its certificate verified for the host.
pub struct Reached {
    /// The bytes.
    pub stream: Box<dyn Stream>,
    /// What the server chose to speak.
    pub speaks: Speaks,
    /// Its address.
    pub address: IpAddr,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreached {
    /// It may not be connected to, for what its name leads to.
    Refused(Refusal),
    /// It failed; a sentence for people.
    Failed(String),
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

/// What the engine needs of the gateway around it.
pub trait Outside: Send + Sync {
    /// Returns the rules of the action.
    fn rules(&self) -> &[EgressRule];

    /// Connects to a host, by a rule that reaches it.
    fn connect<'a>(
        &'a self,
        target: &'a Target,
        rule: &'a EgressRule,
    ) -> Later<'a, Result<Reached, Unreached>>;

    /// Returns what looks at the requests of a kind of registry.
    fn hook(&self, registry: &str) -> Option<Arc<dyn Hook>>;

    /// Returns the credentials of the action; most have none.
    fn credentials(&self) -> Option<Arc<Credentials>> {
        None
    }

    /// Counts bytes of bodies before they pass.
    ///
    /// # Errors
    /// When the action has no more of them; they do not pass then.
    fn count(&self, way: Way, bytes: usize) -> Result<(), Refusal>;

    /// Tells of an attempt.
    fn tell(&self, attempt: Attempt);
}

/// Serves one connection to its end.
pub async fn serve(
    stream: impl Stream + 'static,
    speaks: Speaks,
    meant: Meant,
    outside: Arc<dyn Outside>,
) -> hyper::Result<()> {
    let credentials = outside.credentials().unwrap_or_default();
    let serving = Arc::new(Serving { meant, pool: Pool::default(), credentials, outside });
    let service = service_fn(move |request| exchange::answer(serving.clone(), request));
    let stream = TokioIo::new(stream);
    match speaks {
        Speaks::Http1 => {
            let mut one = http1::Builder::new();
            one.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_MAX);
            one.serve_connection(stream, service).with_upgrades().await
        }
        Speaks::Http2 => {
            let mut two = http2::Builder::new(TokioExecutor::new());
            two.timer(TokioTimer::new()).keep_alive_interval(HEAD_WITHIN);
            two.max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEAD_MAX as u32);
            two.serve_connection(stream, service).await
        }
    }
}

/// One connection that is served.
pub(crate) struct Serving {
    meant: Meant,
    pool: Pool,
    credentials: Arc<Credentials>,
    outside: Arc<dyn Outside>,
}

impl Target {
    /// Tells whether a rule is about it.
    pub fn is_of(&self, rule: &EgressRule) -> bool {
        match &self.host {
            Host::Name(name) => rule.reaches(name, self.port),
            Host::Address(address) => rule.port == self.port && rule.host == HostPattern::Address(*address),
        }
    }
}

impl FromStr for Host {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        match text.parse()? {
            HostPattern::Name(name) => Ok(Self::Name(name)),
            HostPattern::Address(address) => Ok(Self::Address(address)),
            HostPattern::Below(_) => Err(HostNameError::Letter(text.to_owned(), '*')),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&escape(name.as_str())),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
