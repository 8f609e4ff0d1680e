//! The way out: names are resolved once for each connection, their addresses are checked, and what was checked is what is
//! connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::net::runtime::{RuntimeProvider, TokioHandle, TokioTime};
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{Hosts, Resolver};
use model::EgressRule;
use model::egress::HostName;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::http::Host;
use crate::public::is_public;
use crate::refusal::Refusal;

/// How long a server may take to answer a question for a name, and how often it is asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
const ASKED: usize = 2;
/// How long one address of several may take to be connected to.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 6;

/// What knows the addresses of names, and connects.
pub struct Upstream {
    names: Lookup,
}

enum Lookup {
    Servers(Box<Resolver<Unbound>>),
    /// A list in the place of servers: what a test knows.
    #[cfg(test)]
    Fixed(Fixed),
}

/// What knows names by itself.
#[cfg(test)]
type Fixed = Box<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

/// Why nothing was connected to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Its addresses are not for what the rules say.
    #[error("{}", .0.why)]
    Refused(Refusal),
    /// It has no address, or nobody knows.
    #[error("no address of `{0}` is known: {1}")]
    Unknown(String, String),
    /// It cannot be connected to.
    #[error("`{0}` cannot be connected to: {1}")]
    Connect(String, io::Error),
}

impl Upstream {
    /// Takes the servers that are asked for names, and the names that the machine knows by itself.
    ///
    /// # Errors
    /// When there is no server.
    pub fn new(servers: &[SocketAddr], hosts: Hosts) -> Result<Self, String> {
        let servers = servers.iter().map(|server| at_port(*server)).collect();
        let config = ResolverConfig::from_name_servers(servers);
        let mut builder = Resolver::builder_with_config(config, Unbound::default());
        let options = builder.options_mut();
        (options.timeout, options.attempts) = (ANSWERS_WITHIN, ASKED);
        options.use_hosts_file = ResolveHosts::Never;
        let mut resolver = builder.build().map_err(|error| error.to_string())?;
        resolver.set_hosts(Arc::new(hosts));
        Ok(Self { names: Lookup::Servers(Box::new(resolver)) })
    }

    /// Knows names as a function does.
    #[cfg(test)]
    pub(crate) fn fixed(names: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Self {
        Self { names: Lookup::Fixed(Box::new(names)) }
    }

    /// Connects to a port of what was asked for, where one of its addresses is as the rules say.
    pub(crate) async fn connect(
        &self,
        target: &Host,
        port: u16,
        rules: &[&EgressRule],
    ) -> Result<TcpStream, UpstreamError> {
        let addresses = match target {
            // A rule names this very address.
            Host::Address(address) => vec![*address],
            Host::Name(name) => checked(name, &self.addresses(name).await?, rules)?,
        };
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match timeout(CONNECTS_WITHIN, connect(SocketAddr::new(address, port))).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(UpstreamError::Connect(target.to_string(), last))
    }

    async fn addresses(&self, name: &HostName) -> Result<Vec<IpAddr>, UpstreamError> {
        match &self.names {
            Lookup::Servers(resolver) => looked_up(resolver, name).await,
            #[cfg(test)]
            Lookup::Fixed(names) => Ok(names(name.as_str())),
        }
    }
}

async fn looked_up(resolver: &Resolver<Unbound>, name: &HostName) -> Result<Vec<IpAddr>, UpstreamError> {
    let unknown = |why: String| UpstreamError::Unknown(name.to_string(), why);
    // With a dot at its end it is whole, and no domain of the machine is added to it.
    let whole = Name::from_ascii(format!("{name}.")).map_err(|error| unknown(error.to_string()))?;
    let found = resolver.lookup_ip(whole).await.map_err(|error| unknown(error.to_string()))?;
    Ok(found.iter().collect())
}

fn at_port(server: SocketAddr) -> NameServerConfig {
    let mut config = NameServerConfig::udp_and_tcp(server.ip());
    for connection in &mut config.connections {
        connection.port = server.port();
    }
    config
}

/// Returns the addresses that may be connected to. One that may not be makes the others suspicious: a name that leads inward
/// at all is refused.
fn checked(name: &HostName, found: &[IpAddr], rules: &[&EgressRule]) -> Result<Vec<IpAddr>, UpstreamError> {
    let may = |address: &IpAddr| {
        is_public(*address)
            || rules.iter().any(|rule| rule.inside.iter().any(|network| network.contains(address)))
    };
    if let Some(inward) = found.iter().find(|address| !may(address)) {
        let why = format!(
            "`{name}` leads to {inward}, which is not a public address; a rule in the settings can say `inside`"
        );
        return Err(UpstreamError::Refused(Refusal::new("address-inward", why)));
    }
    if found.is_empty() {
        return Err(UpstreamError::Unknown(name.to_string(), "there is none".to_owned()));
    }
    // IPv6 first, as most programs do; a machine without it says so at once.
    let (mut addresses, v4): (Vec<IpAddr>, Vec<IpAddr>) = found.iter().partition(|address| address.is_ipv6());
    addresses.extend(v4);
    addresses.truncate(ADDRESSES_MAX);
    Ok(addresses)
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// The sockets of the resolver. None is bound: the kernel chooses a port when the first question goes out, and a gateway
/// may not ask for one.
#[derive(Clone, Default)]
struct Unbound(TokioHandle);

impl RuntimeProvider for Unbound {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = UdpSocket;
    type Tcp = AsyncIoTokioAsStd<TcpStream>;

    fn create_handle(&self) -> Self::Handle {
        self.0.clone()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        _from: Option<SocketAddr>,
        within: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        Box::pin(async move {
            let within = within.unwrap_or(ANSWERS_WITHIN);
            timeout(within, connect(server)).await.map_err(io::Error::from)?.map(AsyncIoTokioAsStd)
        })
    }

    fn bind_udp(
        &self,
        _from: SocketAddr,
        server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Udp>>>> {
        Box::pin(std::future::ready(datagrams(server)))
    }
}

fn datagrams(server: SocketAddr) -> io::Result<UdpSocket> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    UdpSocket::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &[&str], rule: &str, inside: &[&str]) -> Result<Vec<IpAddr>, UpstreamError> {
        let mut rule: EgressRule = rule.parse().expect("a rule");
        rule.inside = inside.iter().map(|network| network.parse().expect("a network")).collect();
        let found: Vec<IpAddr> = found.iter().map(|address| address.parse().expect("an address")).collect();
        checked(&HostName::parse("a.test").expect("a name"), &found, &[&rule])
    }

    #[test]
    fn a_name_leads_to_public_addresses_alone() {
        assert_eq!(
            check(&["1.1.1.1", "2606::1"], "https://a.test", &[]).map(|found| found.len()).ok(),
            Some(2)
        );
        for inward in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1"] {
            let refused = check(&["1.1.1.1", inward], "https://a.test", &[]);
            assert!(
                matches!(refused, Err(UpstreamError::Refused(refusal)) if refusal.reason == "address-inward"),
                "{inward}"
            );
        }
        assert!(matches!(check(&[], "https://a.test", &[]), Err(UpstreamError::Unknown(..))));
    }

    #[test]
    fn a_rule_can_let_its_names_lead_to_a_network() {
        assert!(check(&["10.1.2.3"], "https://a.test", &["10.0.0.0/8"]).is_ok());
        assert!(check(&["11.0.0.1", "192.168.0.1"], "https://a.test", &["10.0.0.0/8"]).is_err());
    }

    /// A name that leads elsewhere when it is asked for again, with a server at both addresses.
    #[test]
    fn a_name_that_changes_where_it_leads_is_checked_for_each_connection_and_asked_for_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let first = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a server");
            let port = first.local_addr().expect("an address").port();
            let other = tokio::net::TcpListener::bind(("127.0.0.2", port)).await.expect("a server");
            let asked = Arc::new(std::sync::atomic::AtomicU8::new(0));
            let counted = Arc::clone(&asked);
            let upstream = Upstream::fixed(move |_| {
                let times = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                vec![IpAddr::from([127, 0, 0, 1 + times])]
            });
            let mut rule: EgressRule = format!("tcp://a.test:{port}").parse().expect("a rule");
            rule.inside.insert("127.0.0.1/32".parse().expect("a network"));
            let target = Host::Name(HostName::parse("a.test").expect("a name"));
            let connected = upstream.connect(&target, port, &[&rule]).await.expect("is checked, and there");
            assert_eq!(connected.peer_addr().expect("is connected"), first.local_addr().expect("an address"));
            assert_eq!(
                asked.load(std::sync::atomic::Ordering::SeqCst),
                1,
                "what was checked is not asked for again"
            );
            let refused = upstream.connect(&target, port, &[&rule]).await;
            assert!(
                matches!(refused, Err(UpstreamError::Refused(refusal)) if refusal.reason == "address-inward")
            );
            let reached = timeout(Duration::from_millis(50), other.accept()).await;
            assert!(reached.is_err(), "nobody comes to the other server");
        });
    }
}
