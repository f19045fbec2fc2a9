//! The addresses that were found last, which a forked child has from its parent.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names at most: one for each signal.
const NAMES: usize = 3;

type Addresses = Vec<(String, Vec<IpAddr>)>;

/// Only the sending thread uses it, the parent's and then the child's. It writes to the copy that is not
/// current: a fork in the middle leaves the child with the one that is, whose lock is free.
#[derive(Default)]
pub(crate) struct AddressCache {
    copies: [Mutex<Addresses>; 2],
    current: AtomicUsize,
}

impl AddressCache {
    pub(super) fn remember(&self, host: &str, addresses: &[IpAddr]) {
        let current = self.current.load(Ordering::Acquire) % 2;
        let [first, second] = &self.copies;
        let (now, next) = if current == 0 { (first, second) } else { (second, first) };
        let mut all = match now.try_lock() {
            Ok(known) => known.clone(),
            Err(_) => return,
        };
        all.retain(|(name, _)| name != host);
        all.truncate(NAMES - 1);
        all.push((host.to_owned(), addresses.to_vec()));
        // Held for ever, in a child, if the parent was just writing: then the other copy stays.
        if let Ok(mut next) = next.try_lock() {
            *next = all;
            drop(next);
            self.current.store(1 - current, Ordering::Release);
        }
    }

    pub(super) fn recall(&self, host: &str) -> Vec<IpAddr> {
        let current = self.copies.get(self.current.load(Ordering::Acquire) % 2);
        let Some(Ok(known)) = current.map(Mutex::try_lock) else { return Vec::new() };
        known.iter().find(|(name, _)| name == host).map(|(_, found)| found.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_addresses_of_three_names_are_known() {
        let known = AddressCache::default();
        let address = |number: u8| IpAddr::from([192, 0, 2, number]);
        for number in 0..5 {
            known.remember("a", &[address(number)]);
        }
        known.remember("b", &[address(7)]);
        known.remember("c", &[address(8), address(9)]);
        assert_eq!(known.recall("a"), [address(4)]);
        assert_eq!(known.recall("c").len(), 2);
        known.remember("d", &[address(1)]);
        assert_eq!(known.recall("d").len(), 1);
        assert!(known.recall("nobody").is_empty());
    }

    #[test]
    fn a_lock_of_a_vanished_writer_leaves_the_last_addresses() {
        let known = AddressCache::default();
        known.remember("a", &[IpAddr::from([192, 0, 2, 1])]);
        let _writer = known.copies[0].try_lock().unwrap();
        known.remember("a", &[IpAddr::from([192, 0, 2, 2])]);
        assert_eq!(known.recall("a"), [IpAddr::from([192, 0, 2, 1])]);
    }
}
