//! How many connections each address has.

use crate::hash::HashKey;
use crate::network::Network;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts in each of the two rows.
const COUNTS: usize = 4096;

/// Connections per peer address, in memory that does not grow with the addresses: each is counted in two places
/// that a secret key chooses, and its number is the smaller of the two counts. So no address ever has more than it
/// may; one that shares both of its places with busy ones may be refused early, which among a thousand busy
/// addresses happens to one in twenty, and among a hundred to one in two thousand.
///
/// An address is its [`Network`].
#[derive(Debug)]
pub struct ConnectionCounts {
    key: HashKey,
    rows: [Box<[AtomicU32]>; 2],
    /// Zero for any number.
    most: AtomicU32,
}

/// A connection that is counted, for [`ConnectionCounts::remove`].
#[derive(Debug)]
#[must_use = "a connection that ends has to be counted out"]
pub struct CountedConnection([u16; 2]);

impl ConnectionCounts {
    /// Its memory, in bytes: a line of the memory plan.
    pub const BYTES: usize = 2 * COUNTS * size_of::<AtomicU32>();

    /// At most `most` for each; any number with nothing.
    pub fn new(most: Option<u32>) -> ConnectionCounts {
        let row = || (0..COUNTS).map(|_| AtomicU32::new(0)).collect();
        ConnectionCounts {
            key: HashKey::random(),
            rows: [row(), row()],
            most: AtomicU32::new(most.unwrap_or(0)),
        }
    }

    /// At most `most` for each from now on. Those that are open stay open.
    pub fn set_limit(&self, most: Option<u32>) {
        self.most.store(most.unwrap_or(0), Relaxed);
    }

    /// Counts a connection of `peer`; nothing when it has as many as it may.
    pub fn try_add(&self, peer: IpAddr) -> Option<CountedConnection> {
        let counted = self.counted(peer);
        let most = self.most.load(Relaxed);
        let before = self.counts(&counted).map(|count| count.fetch_add(1, Relaxed)).min().unwrap_or(0);
        if most != 0 && before >= most {
            self.remove(counted);
            return None;
        }
        Some(counted)
    }

    /// Counts a connection out.
    pub fn remove(&self, counted: CountedConnection) {
        self.counts(&counted).for_each(|count| _ = count.fetch_sub(1, Relaxed));
    }

    fn counts<'a>(
        &'a self,
        CountedConnection(places): &CountedConnection,
    ) -> impl Iterator<Item = &'a AtomicU32> {
        let places = *places;
        self.rows.iter().zip(places).filter_map(|(row, place)| row.get(usize::from(place)))
    }

    fn counted(&self, peer: IpAddr) -> CountedConnection {
        let hash = self.key.hash(&Network::of(peer));
        let place = |bits: u64| (bits as usize % COUNTS) as u16;
        CountedConnection([place(hash), place(hash >> 32)])
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// No peer has more than it may, others have their own, and all is given back.
    #[test]
    fn each_address_has_its_own_number() {
        let peers = ConnectionCounts::new(Some(3));
        let one = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
        let mut seats: Vec<CountedConnection> = (0..3).map(|_| peers.try_add(one).unwrap()).collect();
        assert!(peers.try_add(one).is_none());
        assert!(peers.try_add(mapped).is_none(), "the same address in another notation");
        let two = peers.try_add(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))).unwrap();
        peers.remove(seats.pop().unwrap());
        seats.push(peers.try_add(one).unwrap());
        assert!(peers.try_add(one).is_none());
        seats.into_iter().chain([two]).for_each(|counted| peers.remove(counted));
        assert!(peers.rows.iter().flatten().all(|count| count.load(Relaxed) == 0));
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let peers = ConnectionCounts::new(Some(1));
        let of = |last| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, last));
        let counted = peers.try_add(of(1)).unwrap();
        assert!(peers.try_add(of(2)).is_none());
        peers.remove(counted);
        assert!(peers.try_add(of(2)).is_some());
    }

    /// A million addresses leave the memory as it is, and a peer among a hundred busy ones is let in.
    #[test]
    fn inventing_addresses_costs_nothing() {
        let peers = ConnectionCounts::new(None);
        for bits in 0..1_000_000_u32 {
            let counted = peers.try_add(IpAddr::V4(Ipv4Addr::from_bits(bits))).unwrap();
            peers.remove(counted);
        }
        peers.set_limit(Some(10));
        let busy = (0..100_u32).flat_map(|bits| [bits; 10]);
        let seats: Vec<_> =
            busy.filter_map(|bits| peers.try_add(IpAddr::V4(Ipv4Addr::from_bits(bits)))).collect();
        assert!(seats.len() > 980, "{}", seats.len());
        let strangers =
            (1000..2000_u32).filter(|bits| peers.try_add(IpAddr::V4(Ipv4Addr::from_bits(*bits))).is_some());
        assert!(strangers.count() > 980);
    }
}
