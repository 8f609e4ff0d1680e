//! What the launcher makes of the rules of a grant: where the way out of a sandbox leads to, and at which sockets.
//!
//! Guarantees: every rule has a socket to which its connections come. Leaves to others: whether a connection is one of a
//! rule's (the gateway).

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use launcher::plan::{DNS_PORT, Destination, Entrance, PROXY_PORT, TURNED_PORT, UNPRIVILEGED_PORT, WayOut};
use model::egress::{self, EgressRule, HostPattern, Ranges};

use crate::spec::Spec;

/// Returns the way out of a sandbox, when it has one.
pub(crate) fn of(spec: &Spec) -> Option<WayOut> {
    let (rules, gateway) = (spec.grant.network.egress()?, spec.gateway.as_ref()?);
    let ports: BTreeSet<u16> = rules.iter().map(|rule| rule.port).collect();
    let (low, turned): (Vec<u16>, Vec<u16>) =
        ports.into_iter().partition(|port| has_socket_of_its_own(*port));
    let mut entrances = vec![Entrance::DnsDatagrams, Entrance::DnsStreams, Entrance::Proxy];
    entrances.extend(low.into_iter().map(Entrance::Port));
    entrances.extend((!turned.is_empty()).then_some(Entrance::Turned));
    let ranges = gateway.begin.ranges;
    let (destinations, own) = (destinations(rules, ranges), own(ranges));
    Some(WayOut { destinations, own, entrances, turned, connections: gateway.begin.bounds.connections })
}

/// A socket at a port that programs inside may take would be in their way, and they in its own.
fn has_socket_of_its_own(port: u16) -> bool {
    port < UNPRIVILEGED_PORT && ![DNS_PORT, PROXY_PORT, TURNED_PORT].contains(&port)
}

fn destinations(rules: &BTreeSet<EgressRule>, ranges: Ranges) -> Vec<Destination> {
    let range = |address: IpAddr, length| Destination { address, length };
    let mut all = vec![
        range(ranges.v4.network().into(), ranges.v4.prefix_len()),
        range(ranges.v6.network().into(), ranges.v6.prefix_len()),
    ];
    let named: BTreeSet<IpAddr> = rules.iter().filter_map(|rule| named(&rule.host)).collect();
    let in_a_range = |address: &IpAddr| match address {
        IpAddr::V4(address) => ranges.v4.contains(address),
        IpAddr::V6(address) => ranges.v6.contains(address),
    };
    let own = named.into_iter().filter(|address| !in_a_range(address));
    all.extend(own.map(|address| range(address, if address.is_ipv4() { 32 } else { 128 })));
    all
}

/// Returns what the loopback gets out of each range: the last but one, which the gateway comes to last. A range that has no
/// address to spare gives none.
fn own(ranges: Ranges) -> Vec<IpAddr> {
    let v4 = (ranges.v4.prefix_len() <= 24).then(|| ranges.v4.broadcast().to_bits() - 1);
    let v6 = (ranges.v6.prefix_len() <= 120).then(|| ranges.v6.broadcast().to_bits() - 1);
    let v4 = v4.map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits)));
    v4.into_iter().chain(v6.map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits)))).collect()
}

/// Returns an address that a rule names, in the form in which the kernel connects to it. Those that mean the sandbox itself
/// or many hosts at once lead nowhere: what is asked of the proxy can still reach the first.
fn named(host: &HostPattern) -> Option<IpAddr> {
    let HostPattern::Address(address) = host else { return None };
    let address = address.to_canonical();
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    let leads =
        !address.is_loopback() && !address.is_unspecified() && !address.is_multicast() && !is_broadcast;
    leads.then_some(address)
}

/// Returns what a gateway is told that a socket is.
pub(crate) fn told(entrance: Entrance) -> egress::Entrance {
    match entrance {
        Entrance::DnsDatagrams => egress::Entrance::DnsDatagrams,
        Entrance::DnsStreams => egress::Entrance::DnsStreams,
        Entrance::Proxy => egress::Entrance::Proxy,
        Entrance::Port(port) => egress::Entrance::Port(port),
        Entrance::Turned => egress::Entrance::Redirected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> BTreeSet<EgressRule> {
        texts.iter().map(|text| text.parse().expect("a rule")).collect()
    }

    #[test]
    fn a_port_that_programs_or_ours_may_have_gets_no_socket_of_its_own() {
        let own: Vec<u16> = [1, 53, 80, 443, 1020, 1021, 1022, 1023, 1024, 8080, 65535]
            .into_iter()
            .filter(|port| has_socket_of_its_own(*port))
            .collect();
        assert_eq!(own, [1, 80, 443, 1020, 1023]);
    }

    #[test]
    fn the_loopback_gets_an_address_of_each_kind_where_one_can_be_spared() {
        let shown = |ranges| own(ranges).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(Ranges::default()), ["198.19.255.254", "fd66:756d:65:0:ffff:ffff:ffff:fffe"]);
        let v4 = "198.18.0.1/32".parse().expect("a range");
        let v6 = "fd66::/127".parse().expect("a range");
        assert_eq!(shown(Ranges { v4, v6 }), [""; 0]);
    }

    #[test]
    fn addresses_that_rules_name_are_destinations_beside_the_ranges() {
        let rules = rules(&[
            "https://192.0.2.1",
            "http://192.0.2.1",
            "tcp://[::ffff:192.0.2.2]:22",
            "https://127.0.0.1",
            "https://[::1]",
            "https://224.0.0.1",
            "https://198.18.0.9",
            "https://a.test",
        ]);
        let all: Vec<String> = destinations(&rules, Ranges::default())
            .into_iter()
            .map(|Destination { address, length }| format!("{address}/{length}"))
            .collect();
        assert_eq!(all, ["198.18.0.0/15", "fd66:756d:65::/64", "192.0.2.1/32", "192.0.2.2/32"]);
    }
}
