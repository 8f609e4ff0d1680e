//! The process of a gateway, from its first word to its last.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::Hosts;
use model::EgressRule;
use model::egress::{Begin, Canary, Entrance, FromGateway, GivenCredential, Registry, ToGateway};
use model::evidence::Probe;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio_rustls::rustls;

use crate::context::{Context, Tls};
use crate::credentials::Credentials;
use crate::decide::Rules;
use crate::packages::{Known, Packages};
use crate::tls::{self, Authority, Interceptor};
use crate::upstream::Upstream;
use crate::{entrances, talk};

/// The port of servers that know names (RFC 1035, section 4.2).
const DNS: u16 = 53;
/// How often what was tried is told.
const TELLS_EVERY: Duration = Duration::from_millis(50);
/// Why it ends when a credential is taken back.
const NO_CREDENTIAL: &str = "a credential was taken back that this gateway never had";
/// How many attempts are told in one message; each has texts of at most a few kilobytes.
const TOLD_AT_ONCE: usize = 8;

/// What a gateway reads of the machine before it can read no more.
#[derive(Debug, Default)]
pub struct Machine {
    /// The servers that know names.
    pub servers: Vec<SocketAddr>,
    /// The names that the machine knows by itself, as in `hosts(5)`.
    pub hosts: Vec<u8>,
    /// The certificates that it verifies servers by.
    pub roots: Vec<CertificateDer<'static>>,
}

impl Machine {
    /// Reads the two files of the machine, and its roots. One that is missing says nothing.
    pub fn read(resolv_conf: &[u8], hosts: &[u8]) -> Self {
        Self { servers: servers_of(resolv_conf), hosts: hosts.to_vec(), roots: tls::system_roots() }
    }

    fn upstream(&self) -> Result<Upstream, String> {
        let mut hosts = Hosts::default();
        hosts
            .read_hosts_conf(self.hosts.as_slice())
            .map_err(|error| format!("the names of the machine: {error}"))?;
        Upstream::new(&self.servers, hosts)
    }
}

/// Returns the servers of `resolv.conf(5)`.
fn servers_of(text: &[u8]) -> Vec<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        // What stands behind a percent sign is an interface.
        let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
        let address: IpAddr = address.split('%').next()?.parse().ok()?;
        Some(SocketAddr::new(address, DNS))
    };
    text.lines().filter_map(server).collect()
}

/// Is the gateway of a sandbox, for the supervisor at the other end of a socket, which is a standard stream. `confine` takes
/// everything from this process that it does not need, all other descriptors too, and says what it then tried; it is called
/// before anything from inside is looked at.
///
/// # Errors
/// When the supervisor says something else than agreed, or what was agreed cannot be done. It is told first.
pub fn serve(
    socket: BorrowedFd<'_>,
    machine: &Machine,
    confine: impl FnOnce() -> Result<Vec<Probe>, String>,
) -> Result<(), String> {
    let served = prepared(socket, machine, confine);
    if let Err(why) = &served {
        // When it is gone, nobody is to be told.
        let _ = talk::say(socket, &FromGateway::Failed(why.clone()), &[]);
    }
    served
}

fn prepared(
    socket: BorrowedFd<'_>,
    machine: &Machine,
    confine: impl FnOnce() -> Result<Vec<Probe>, String>,
) -> Result<(), String> {
    let probes = confine()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let Some((told, entrances)) = agreed(socket)? else { return Ok(()) };
        let Told { begin, rules, registries, known, authority, roots, given, canaries } = told;
        let upstream = if begin.resolvers.is_empty() {
            machine.upstream()?
        } else {
            Machine { servers: begin.resolvers.clone(), hosts: machine.hosts.clone(), roots: Vec::new() }
                .upstream()?
        };
        let credentials = Arc::new(Credentials::new(given, canaries)?);
        let mut context = Context::new(Rules::new(rules), upstream, begin.ranges, begin.bounds)
            .with_credentials(credentials);
        context.packages = Packages::new(registries, known);
        if let Some(authority) = authority {
            let roots = machine.roots.iter().cloned().chain(roots);
            context.tls =
                Some(Tls { clients: Interceptor::new(authority), servers: tls::Upstream::new(roots)? });
        }
        let context = Arc::new(context);
        for (entrance, socket) in entrances {
            entrances::open(&context, entrance, socket)
                .map_err(|error| format!("waiting at {entrance:?}: {error}"))?;
        }
        let socket = watched(socket).map_err(|error| format!("watching the supervisor: {error}"))?;
        say(&socket, &FromGateway::Ready(probes)).await?;
        until_the_end(&socket, &context).await
    })
}

/// What was agreed before the first client.
struct Told {
    begin: Begin,
    rules: Vec<EgressRule>,
    registries: Vec<Registry>,
    known: Known,
    authority: Option<Authority>,
    roots: Vec<CertificateDer<'static>>,
    given: Vec<GivenCredential>,
    canaries: Vec<Canary>,
}

/// A socket inside, and what for.
type Opened = (Entrance, OwnedFd);

/// Hears what the supervisor says until all is said; nothing when it is gone.
fn agreed(socket: BorrowedFd<'_>) -> Result<Option<(Told, Vec<Opened>)>, String> {
    let (mut begin, mut rules, mut entrances) = (None, Vec::new(), Vec::new());
    let (mut authority, mut roots) = (None, Vec::new());
    let (mut given, mut canaries) = (Vec::new(), Vec::new());
    let (mut registries, mut known) = (Vec::new(), Known::default());
    loop {
        let heard =
            talk::hear(socket).map_err(|error| format!("the supervisor is not understood: {error}"))?;
        let Some((message, sockets)) = heard else { return Ok(None) };
        match message {
            ToGateway::Begin(all) => begin = Some(*all),
            ToGateway::Rule(rule) => rules.push(*rule),
            ToGateway::Registry(registry) => registries.push(*registry),
            ToGateway::Locked(some) => known.lock(some),
            ToGateway::Used { kind, names } => known.use_before(kind, names),
            ToGateway::Authority(signing) => authority = Some(Authority::from(*signing)),
            ToGateway::Credential(credential) => given.push(*credential),
            ToGateway::Canary(canary) => canaries.push(*canary),
            ToGateway::Root(text) => {
                let root = CertificateDer::from_pem_slice(text.as_bytes());
                roots.push(root.map_err(|error| format!("a root of the settings is none: {error}"))?);
            }
            ToGateway::Entrances(named) if named.len() == sockets.len() => {
                entrances.extend(named.into_iter().zip(sockets));
            }
            ToGateway::Entrances(_) => return Err("a socket of the sandbox did not arrive".to_owned()),
            ToGateway::Open => {
                let begin = begin.ok_or_else(|| "nothing was said of what holds for all rules".to_owned())?;
                return Ok(Some((
                    Told { begin, rules, registries, known, authority, roots, given, canaries },
                    entrances,
                )));
            }
            ToGateway::Finish => return Ok(None),
            // It would go on to be used: better nothing goes on.
            ToGateway::Revoke { credential } if given.iter().all(|one| one.name != credential) => {
                return Err(NO_CREDENTIAL.to_owned());
            }
            ToGateway::Revoke { credential } => given.retain(|one| one.name != credential),
        }
    }
}

/// Tells what is tried, until the supervisor wants no more or is gone.
async fn until_the_end(socket: &UnixDatagram, context: &Context) -> Result<(), String> {
    let mut tick = tokio::time::interval(TELLS_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => tell(socket, context).await?,
            heard = socket.async_io(Interest::READABLE, || talk::hear::<ToGateway>(socket)) => match heard {
                Ok(Some((ToGateway::Finish, _))) => return tell(socket, context).await,
                Ok(None) => return Ok(()),
                Ok(Some((ToGateway::Revoke { credential }, _))) if context.credentials.end(&credential) => {}
                Ok(Some((ToGateway::Revoke { .. }, _))) => return Err(NO_CREDENTIAL.to_owned()),
                Ok(Some(_)) => return Err("the supervisor said more than was agreed".to_owned()),
                Err(error) => return Err(format!("the supervisor is not understood: {error}")),
            },
        }
    }
}

async fn tell(socket: &UnixDatagram, context: &Context) -> Result<(), String> {
    let (attempts, dropped) = context.attempts.take();
    for some in attempts.chunks(TOLD_AT_ONCE) {
        say(socket, &FromGateway::Attempts(some.to_vec())).await?;
    }
    for alert in context.credentials.take_alerts() {
        say(socket, &FromGateway::Alert(alert)).await?;
    }
    if dropped > 0 {
        say(socket, &FromGateway::Dropped(dropped)).await?;
    }
    Ok(())
}

/// Says something. What cannot be told must not happen, so that is the end.
async fn say(socket: &UnixDatagram, message: &FromGateway) -> Result<(), String> {
    let said = socket.async_io(Interest::WRITABLE, || talk::say(socket, message, &[])).await;
    said.map_err(|error| format!("telling the supervisor: {error}"))
}

/// Makes the socket one that nobody waits at but the runtime. That it has packets instead of datagrams is all the same to it.
fn watched(socket: BorrowedFd<'_>) -> io::Result<UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::from(socket.try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_of_the_machine_are_read() {
        let text = b"# x\nsearch a.test\nnameserver 192.0.2.1\n  nameserver fe80::1%eth0 \nnameserver nonsense\noptions edns0\n";
        let expected: Vec<SocketAddr> =
            ["192.0.2.1:53", "[fe80::1]:53"].iter().map(|text| text.parse().expect("one")).collect();
        assert_eq!(servers_of(text), expected);
    }
}
