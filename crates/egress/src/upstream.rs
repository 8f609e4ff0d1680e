//! The way out: names are resolved once for each connection, their addresses are checked, and what was checked is what is
//! connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::time::Duration;

use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::net::runtime::{RuntimeProvider, TokioHandle, TokioTime};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, Resolver};
use model::EgressRule;
use model::egress::HostName;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::http::Host;
use crate::public::is_public;
use crate::refusal::Refusal;

/// How long a server may take to answer a question for a name, and how often it is asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
const ASKED: usize = 2;
/// How long the addresses of one kind are waited for when those of the other are known (RFC 8305, section 3).
const OTHER_KIND_WITHIN: Duration = Duration::from_millis(50);
/// How long one address may take to be connected to, and when the next one is tried beside it (RFC 8305, section 5).
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);
const NEXT_AFTER: Duration = Duration::from_millis(250);
/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 6;

/// What knows the addresses of names, and connects.
pub struct Upstream {
    names: Lookup,
}

enum Lookup {
    Servers {
        /// What asks them.
        resolver: Box<Resolver<Unbound>>,
        /// What the machine knows by itself.
        hosts: Hosts,
    },
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
        let resolver = Box::new(builder.build().map_err(|error| error.to_string())?);
        Ok(Self { names: Lookup::Servers { resolver, hosts } })
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
        let servers = addresses.into_iter().map(|address| SocketAddr::new(address, port));
        first_connected(servers).await.map_err(|error| UpstreamError::Connect(target.to_string(), error))
    }

    async fn addresses(&self, name: &HostName) -> Result<Vec<IpAddr>, UpstreamError> {
        match &self.names {
            Lookup::Servers { resolver, hosts } => looked_up(resolver, hosts, name).await,
            #[cfg(test)]
            Lookup::Fixed(names) => Ok(names(name.as_str())),
        }
    }
}

/// Looks a name up: what the machine says by itself is all, as for its own programs; else its servers are asked.
async fn looked_up(
    resolver: &Resolver<Unbound>,
    hosts: &Hosts,
    name: &HostName,
) -> Result<Vec<IpAddr>, UpstreamError> {
    let unknown = |why: String| UpstreamError::Unknown(name.to_string(), why);
    // With a dot at its end it is whole, and no domain of the machine is added to it.
    let whole = Name::from_ascii(format!("{name}.")).map_err(|error| unknown(error.to_string()))?;
    let own = KINDS.iter().filter_map(|kind| hosts.lookup_static_host(&Query::query(whole.clone(), *kind)));
    let own: Vec<IpAddr> = own.flat_map(|lookup| addresses_in(&lookup)).collect();
    if !own.is_empty() {
        return Ok(own);
    }
    let asked = |kind| {
        let asked = resolver.lookup(whole.clone(), kind);
        async { asked.await.map(|found| addresses_in(&found)) }
    };
    let [one, other] = KINDS;
    both(asked(one), asked(other)).await.map_err(|error| unknown(error.to_string()))
}

/// The kinds of addresses.
const KINDS: [RecordType; 2] = [RecordType::A, RecordType::AAAA];

fn addresses_in(lookup: &hickory_resolver::lookup::Lookup) -> Vec<IpAddr> {
    lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect()
}

/// Asks for both kinds at once. When one is known, the other is not waited for long: a question that gets lost costs no connection
/// its time.
async fn both<E>(
    one: impl Future<Output = Result<Vec<IpAddr>, E>> + Send,
    other: impl Future<Output = Result<Vec<IpAddr>, E>> + Send,
) -> Result<Vec<IpAddr>, E> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (first, rest): (_, Pin<&mut (dyn Future<Output = _> + Send)>) = tokio::select! {
        first = &mut one => (first, other),
        first = &mut other => (first, one),
    };
    match first {
        Ok(found) if !found.is_empty() => {
            let more = timeout(OTHER_KIND_WITHIN, rest).await;
            Ok([found, more.ok().and_then(Result::ok).unwrap_or_default()].concat())
        }
        Ok(_) => rest.await,
        Err(error) => rest.await.map_err(|_| error),
    }
}

/// Connects to the first server that answers: each is tried a little after the one before it.
async fn first_connected(servers: impl ExactSizeIterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let (mut servers, mut trying) = (servers, JoinSet::new());
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(server) = servers.next() {
            trying.spawn(timeout(CONNECTS_WITHIN, connect(server)));
        }
        let is_last = servers.len() == 0;
        tokio::select! {
            ended = trying.join_next() => match ended {
                None => return Err(last),
                Some(Ok(Ok(Ok(stream)))) => return Ok(stream),
                Some(Ok(Ok(Err(error)))) => last = error,
                Some(Ok(Err(_))) => last = io::ErrorKind::TimedOut.into(),
                Some(Err(error)) => last = io::Error::other(error),
            },
            () = tokio::time::sleep(NEXT_AFTER), if !is_last => {}
        }
    }
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
    use std::sync::Arc;

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

    #[test]
    fn a_question_that_gets_lost_costs_a_connection_no_time_and_one_that_failed_is_made_up_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let address = |last: u8| vec![IpAddr::from([192, 0, 2, last])];
        let never = || std::future::pending::<Result<Vec<IpAddr>, &str>>();
        let soon = |found: Result<Vec<IpAddr>, &'static str>| async move { found };
        runtime.block_on(async {
            assert_eq!(both(soon(Ok(address(1))), never()).await, Ok(address(1)));
            assert_eq!(both(never(), soon(Ok(address(2)))).await, Ok(address(2)));
            let found = both(soon(Ok(address(1))), soon(Ok(address(2)))).await.expect("both are there");
            assert_eq!(found.len(), 2);
            assert_eq!(both(soon(Err("no")), soon(Ok(address(2)))).await, Ok(address(2)));
            assert_eq!(both(soon(Ok(Vec::new())), soon(Ok(address(2)))).await, Ok(address(2)));
            assert!(both(soon(Err("no")), soon(Err("no"))).await.is_err());
            assert_eq!(both(soon(Ok(Vec::new())), soon(Ok(Vec::new()))).await, Ok(Vec::new()));
        });
    }

    #[test]
    fn the_next_address_is_tried_beside_one_that_does_not_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let there = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a server");
            let there = there.local_addr().expect("an address");
            // A backlog that is full: what comes then gets no answer.
            let full = TcpSocket::new_v4().expect("a socket");
            full.bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
            let full = full.listen(0).expect("listens");
            let silent = full.local_addr().expect("an address");
            let _first = connect(silent).await.expect("takes the only place");
            let refused = SocketAddr::from(([127, 0, 0, 1], 1));
            for servers in [vec![silent, there], vec![refused, there], vec![there, silent]] {
                let connected = timeout(CONNECTS_WITHIN / 2, first_connected(servers.into_iter())).await;
                let stream = connected.expect("in time").expect("connects");
                assert_eq!(stream.peer_addr().expect("is connected"), there);
            }
            assert!(first_connected([refused].into_iter()).await.is_err());
            assert!(first_connected([].into_iter()).await.is_err());
        });
    }

    #[test]
    fn what_the_machine_says_of_a_name_is_all_that_is_said_of_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            // A server that answers nothing: what is asked of it takes seconds.
            let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
            let mut hosts = Hosts::default();
            hosts.read_hosts_conf(&b"192.0.2.7 a.test\n2001:db8::7 b.test\n"[..]).expect("is read");
            let server = silent.local_addr().expect("an address");
            let upstream = Upstream::new(&[server], hosts).expect("has a server");
            for (name, address) in [("a.test", "192.0.2.7"), ("b.test", "2001:db8::7")] {
                let found =
                    upstream.addresses(&HostName::parse(name).expect("a name")).await.expect("is known");
                assert_eq!(found, [address.parse::<IpAddr>().expect("an address")]);
            }
            let asked = timeout(Duration::from_millis(50), silent.recv_from(&mut [0; 512])).await;
            assert!(asked.is_err(), "nobody was asked");
        });
    }
}
