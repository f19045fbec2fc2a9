//! The hash modulo the number of endpoints.

use crate::config::Endpoint;
use crate::replicas::Replicas;

/// Endpoints in the order of their addresses. Replica `n` of a hash is at `(hash + n) mod len`, where the sum is taken modulo 2⁶⁴.
pub(crate) struct Hashmod {
    order: Box<[u16]>,
    replication: u8,
}

impl Hashmod {
    /// There are at most 65,535 endpoints, and at least as many as replicas.
    pub(crate) fn new(endpoints: &[Endpoint], replication: usize) -> Self {
        let mut order: Vec<u16> = (0..=u16::MAX).take(endpoints.len()).collect();
        order.sort_by_key(|&endpoint| endpoints.get(usize::from(endpoint)).map(|endpoint| &endpoint.address));
        Self { order: order.into(), replication: u8::try_from(replication).unwrap_or(u8::MAX) }
    }

    /// The endpoints that hold a key.
    pub(crate) fn replicas(&self, hash: u64) -> Replicas {
        let at = |n| (hash.wrapping_add(n) % self.order.len().max(1) as u64) as usize;
        (0..u64::from(self.replication)).filter_map(|n| self.order.get(at(n)).copied()).collect()
    }
}
