//! What all parts of one gateway share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::EgressRule;
use model::egress::{Attempt, Bounds, Protocol, Ranges};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::attempts::Attempts;
use crate::credentials::Credentials;
use crate::decide::Rules;
use crate::http::hook::{Hook, Later};
use crate::http::{Outside, Reached, Speaks, Target, Unreached, Way};
use crate::names::Names;
use crate::packages::Packages;
use crate::refusal::Refusal;
use crate::tls::{self, Interceptor};
use crate::upstream::{Upstream, UpstreamError};

/// Why nothing is looked into.
pub(crate) const NO_TLS: &str = "this gateway was given no authority of its own, so it cannot look into TLS";

/// Both sides of TLS.
pub struct Tls {
    /// Towards clients inside.
    pub clients: Interceptor,
    /// Towards servers.
    pub servers: tls::Upstream,
}

/// What all parts of one gateway share.
pub struct Context {
    /// The rules of the action.
    pub rules: Rules,
    /// The way out.
    pub upstream: Upstream,
    /// What is told to the supervisor.
    pub attempts: Attempts,
    /// What may be used at most.
    pub bounds: Bounds,
    /// The credentials of the action.
    pub credentials: Arc<Credentials>,
    /// What looks into TLS, and speaks it with servers; without it no rule that looks inside is served.
    pub tls: Option<Tls>,
    /// The registries that rules name.
    pub packages: Packages,
    pub(crate) questions: AtomicU64,
    names: Mutex<Names>,
    connections: Arc<Semaphore>,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Context {
    /// Puts a gateway together.
    pub fn new(rules: Rules, upstream: Upstream, ranges: Ranges, bounds: Bounds) -> Self {
        Self {
            rules,
            upstream,
            attempts: Attempts::default(),
            bounds,
            credentials: Arc::default(),
            tls: None,
            packages: Packages::default(),
            questions: AtomicU64::new(0),
            names: Mutex::new(Names::new(ranges)),
            connections: Arc::new(Semaphore::new(bounds.connections as usize)),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of one more connection; nothing when all are taken, or more cannot be told of.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        if self.attempts.is_full() {
            return None;
        }
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// Counts bytes that go out.
    ///
    /// # Errors
    /// When it is more than the action may send.
    pub(crate) fn sends(&self, bytes: u64) -> Result<(), Refusal> {
        within(&self.sent, bytes, self.bounds.sent.get(), "sent")
    }

    /// Counts bytes that come in.
    ///
    /// # Errors
    /// When it is more than the action may receive.
    pub(crate) fn receives(&self, bytes: u64) -> Result<(), Refusal> {
        within(&self.received, bytes, self.bounds.received.get(), "received")
    }

    /// Gives it credentials, for which its rules look out too.
    pub(crate) fn with_credentials(mut self, credentials: Arc<Credentials>) -> Self {
        self.rules.look_out(credentials.clone());
        Self { credentials, ..self }
    }

    /// A gateway with these rules that reaches nothing.
    #[cfg(test)]
    pub(crate) fn for_tests(rules: &[&str]) -> Self {
        let rules = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
        Self::new(Rules::new(rules), Upstream::fixed(|_| Vec::new()), Ranges::default(), Bounds::default())
    }
}

impl Outside for Context {
    fn rules(&self) -> &[EgressRule] {
        self.rules.all()
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        rule: &'a EgressRule,
    ) -> Later<'a, Result<Reached, Unreached>> {
        Box::pin(async move {
            let stream = self.upstream.connect(&target.host, target.port, &[rule]).await.map_err(
                |error| match error {
                    UpstreamError::Refused(refusal) => Unreached::Refused(refusal),
                    error => Unreached::Failed(error.to_string()),
                },
            )?;
            let failed = |error: io::Error| Unreached::Failed(error.to_string());
            let address = stream.peer_addr().map_err(failed)?.ip();
            if rule.protocol != Protocol::Https {
                return Ok(Reached { stream: Box::new(stream), speaks: Speaks::Http1, address });
            }
            let tls = self.tls.as_ref().ok_or_else(|| Unreached::Failed(NO_TLS.to_owned()))?;
            let (stream, speaks) =
                tls.servers.connect(stream, &target.host).await.map_err(Unreached::Failed)?;
            Ok(Reached { stream: Box::new(stream), speaks, address })
        })
    }

    fn hook(&self, registry: &str) -> Option<Arc<dyn Hook>> {
        self.packages.hook(registry)
    }

    fn credentials(&self) -> Option<Arc<Credentials>> {
        Some(self.credentials.clone())
    }

    fn count(&self, way: Way, bytes: usize) -> Result<(), Refusal> {
        match way {
            Way::Sent => self.sends(bytes as u64),
            Way::Received => self.receives(bytes as u64),
        }
    }

    fn tell(&self, attempt: Attempt) {
        self.attempts.note(attempt);
    }
}

fn within(counted: &AtomicU64, bytes: u64, most: u64, what: &str) -> Result<(), Refusal> {
    let all = counted.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if all <= most {
        return Ok(());
    }
    let most = model::Bytes::new(most);
    Err(Refusal::new("volume", format!("this action has {what} more than the {most} that it may")))
}
