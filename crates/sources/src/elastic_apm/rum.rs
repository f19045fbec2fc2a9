//! How many events an address may send: browsers' agents have no secret by which to know them.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;
use tidegate_limit::{Moment, Network, PerSecond, Rate};

/// Rates; a power of two.
const RATES: u16 = 1024;
/// How many times the rate of a second may come at once.
const BURST: u64 = 3;

/// Events a second for each address, in memory that does not grow with the addresses: those that a secret key puts in
/// the same place share it. An address counts as its [`Network`].
pub(super) struct Rum {
    key: RandomState,
    rates: Box<[Rate]>,
}

/// Where the rate of an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateSlot(u16);

impl Rum {
    pub(super) fn new(events_per_second: u32) -> Rum {
        let rate = u64::from(events_per_second.max(1));
        let limit = PerSecond { rate, burst: rate * BURST };
        Rum { key: RandomState::new(), rates: (0..RATES).map(|_| Rate::new(Some(limit))).collect() }
    }

    /// Lets an address send that owes nothing.
    ///
    /// # Errors
    /// After how long it may, when it has sent too much.
    pub(super) fn enter(&self, peer: IpAddr) -> Result<RateSlot, Duration> {
        let [low, high, ..] = self.key.hash_one(Network::of(peer)).to_le_bytes();
        let seat = RateSlot(u16::from_le_bytes([low, high]) % RATES);
        match self.rates.get(usize::from(seat.0)) {
            Some(rate) => rate.check(Moment::now(), 1).map(|()| seat),
            None => Ok(seat),
        }
    }

    /// Counts the events of a request that was let in: how many they are is known when all of them are there.
    pub(super) fn count(&self, seat: RateSlot, events: u64) {
        if let Some(rate) = self.rates.get(usize::from(seat.0)) {
            rate.charge(Moment::now(), events);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever sent more than three seconds' worth waits; another address does not.
    #[test]
    fn each_address_has_a_rate_of_its_own() {
        let rum = Rum::new(300);
        let [one, other] = ["10.0.0.1", "2001:db8::1"].map(|text| text.parse::<IpAddr>().unwrap());
        let seat = rum.enter(one).unwrap();
        rum.count(seat, 600);
        assert!(rum.enter(one).is_ok());
        rum.count(seat, 3000);
        let wait = rum.enter(one).unwrap_err();
        assert!(wait > Duration::from_secs(5) && wait < Duration::from_secs(15), "{wait:?}");
        let another = rum.enter(other);
        assert!(another.is_ok() || another == Err(wait), "in the same place by chance");
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        assert_eq!(rum.enter(neighbour).ok(), another.ok());
    }

    /// A listener on `[::]` sees IPv4 addresses as mapped ones: each has its own rate there too, and the same one.
    #[test]
    fn mapped_addresses_have_the_rates_of_the_ipv4_addresses_that_they_are() {
        let rum = Rum::new(300);
        let seat = |text: &str| rum.enter(text.parse().unwrap()).unwrap();
        assert_eq!(seat("::ffff:10.0.0.1"), seat("10.0.0.1"));
        let others: std::collections::HashSet<u16> =
            (0..50).map(|last| seat(&format!("::ffff:10.0.1.{last}")).0).collect();
        assert!(others.len() > 25, "{} places for 50 addresses", others.len());
    }
}
