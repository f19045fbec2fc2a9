//! The definition of one address for all limits on addresses.

use std::net::IpAddr;

/// The network that an address counts as, wherever addresses are limited: an IPv4 address is its own, in whichever
/// notation it comes (a socket that listens on `[::]` reports `::ffff:192.0.2.1`); an IPv6 address counts as its /64,
/// since whoever has one address of that has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(u64);

impl Network {
    /// The network of `address`.
    #[must_use]
    pub fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // The upper half, with a bit that no IPv4 address has.
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64 | 1 << 63,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn of(address: &str) -> Network {
        Network::of(address.parse().unwrap())
    }

    #[test]
    fn mapped_ipv4_addresses_count_as_the_ipv4_addresses_that_they_are() {
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("::ffff:192.0.2.1"), of("::ffff:192.0.2.2"));
    }

    #[test]
    fn an_ipv6_address_counts_as_its_64_bit_network() {
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("::c000:201"), of("192.0.2.1"));
    }
}
