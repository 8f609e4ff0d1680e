//! The addresses that names have inside: each its own, for as long as the action lasts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::egress::{HostName, Ranges};

/// The most names of one action; a rule for all names below one lets any number be asked for.
const NAMES_MAX: u32 = 4096;
/// The first addresses of a range, which stand for nobody: programs take the very first for "any".
const SKIPPED: u32 = 16;

/// Which name has which address.
#[derive(Debug)]
pub(crate) struct Names {
    ranges: Ranges,
    numbers: HashMap<HostName, u32>,
    names: Vec<HostName>,
}

impl Names {
    pub(crate) fn new(ranges: Ranges) -> Self {
        Self { ranges, numbers: HashMap::new(), names: Vec::new() }
    }

    /// Returns the addresses of a name, which gets them now if it has none; nothing when there is no room for more names.
    pub(crate) fn addresses_of(&mut self, name: &HostName) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => self.add(name)?,
        };
        let v4 = u32::from(self.ranges.v4.network()).checked_add(SKIPPED + number)?;
        let v6 = u128::from(self.ranges.v6.network()).checked_add(u128::from(SKIPPED + number))?;
        let (v4, v6) = (Ipv4Addr::from(v4), Ipv6Addr::from(v6));
        (self.ranges.v4.contains(&v4) && self.ranges.v6.contains(&v6)).then_some((v4, v6))
    }

    fn add(&mut self, name: &HostName) -> Option<u32> {
        let number = u32::try_from(self.names.len()).ok().filter(|number| *number < NAMES_MAX)?;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        Some(number)
    }

    /// Tells whether an address is in a range.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.ranges.v4.contains(&address),
            IpAddr::V6(address) => self.ranges.v6.contains(&address),
        }
    }

    /// Returns the name that has an address; nothing when none was given it.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<&HostName> {
        if !self.has(address) {
            return None;
        }
        let number = match address {
            IpAddr::V4(address) => u128::from(u32::from(address) - u32::from(self.ranges.v4.network())),
            IpAddr::V6(address) => u128::from(address) - u128::from(self.ranges.v6.network()),
        };
        let number = number.checked_sub(u128::from(SKIPPED))?;
        self.names.get(usize::try_from(number).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).expect("a name")
    }

    #[test]
    fn each_name_has_its_own_addresses_and_keeps_them() {
        let mut names = Names::new(Ranges::default());
        let (a, b) = (names.addresses_of(&name("a.test")), names.addresses_of(&name("b.test")));
        assert_eq!(names.addresses_of(&name("a.test")), a);
        let ((a4, a6), (b4, b6)) = (a.expect("has some"), b.expect("has some"));
        assert!(a4 != b4 && a6 != b6 && names.has(a4.into()) && names.has(b6.into()));
        assert_eq!(names.name_of(a4.into()), Some(&name("a.test")));
        assert_eq!(names.name_of(b6.into()), Some(&name("b.test")));
    }

    #[test]
    fn an_address_that_no_name_was_given_has_none() {
        let mut names = Names::new(Ranges::default());
        names.addresses_of(&name("a.test")).expect("has some");
        for address in ["198.18.0.0", "198.18.0.17", "198.19.255.255", "127.0.0.1", "fd66:756d:65::", "::1"] {
            assert_eq!(names.name_of(address.parse().expect("an address")), None, "{address}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::new(Ranges::default());
        for number in 0..NAMES_MAX {
            assert!(names.addresses_of(&name(&format!("n{number}.test"))).is_some());
        }
        assert!(names.addresses_of(&name("one-more.test")).is_none());
        assert!(names.addresses_of(&name("n0.test")).is_some());
    }
}
