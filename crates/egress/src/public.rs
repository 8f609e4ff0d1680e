//! Which addresses are public: the only ones that a name may resolve to, unless its rule says otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ranges of IPv4 that are not for everybody, by the registry of special-purpose addresses (RFC 6890 and its updates), with
/// multicast (RFC 5771) and what is reserved (RFC 1112, section 4).
const SPECIAL_V4: [([u8; 4], u8); 17] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // What a large cloud tells and gives its machines, at an address that looks like anybody's.
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 31, 196, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Tells whether an address is for everybody: not of this machine, of a network of its own, of a cloud's metadata or of many
/// at once, also when it only carries such an address.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let number = u32::from(address);
    let within = |(network, length): &([u8; 4], u8)| {
        let mask = u32::MAX << (32 - length);
        number & mask == u32::from_be_bytes(*network) & mask
    };
    !SPECIAL_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Only what is handed out for everybody (RFC 4291, section 2.4), without documentation (RFC 3849, RFC 9637), what is for
    // protocols (RFC 2928), and 6to4, which carries an address of IPv4 (RFC 3056).
    let is_global = parts[0] & 0xe000 == 0x2000;
    let is_special = (parts[0] == 0x2001 && (parts[1] < 0x0200 || parts[1] == 0x0db8))
        || (parts[0] == 0x3fff && parts[1] < 0x1000)
        || parts[0] == 0x2002;
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_everybody_are_public() {
        for text in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
        {
            assert!(is_public(text.parse().expect("an address")), "{text}");
        }
    }

    #[test]
    fn all_others_are_not() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "::1.1.1.1",
            "64:ff9b::101:101",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:101:101::1",
            "100::1",
            "fd00:ec2::254",
            "5f00::1",
        ] {
            assert!(!is_public(text.parse().expect("an address")), "{text}");
        }
    }
}
