//! One ring.

mod hashmod;
mod ketama;
mod shard;
mod zones;

pub(crate) use ketama::Ketama;
pub(crate) use shard::{Shard, Sharding};
pub(crate) use zones::Zones;

use crate::config::Endpoint;
use crate::error::{RingError, RingName};
use crate::footprint::Footprint;
use crate::replicas::{MAX_REPLICATION, Replicas};
use hashmod::Hashmod;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A ring: from the hash of a key to the members that hold it.
pub struct Ring {
    /// The member that each endpoint is.
    members: Box<[u16]>,
    zones: Zones,
    algorithm: Table,
}

enum Table {
    Hashmod(Hashmod),
    Ketama(Ketama),
}

impl Ring {
    /// A ring of consistent hashing: one more endpoint takes its part of the keys from the others and moves nothing between
    /// them. Members are indices into `endpoints`.
    ///
    /// With availability zones, the replicas of a key are spread evenly over them.
    ///
    /// # Errors
    /// If there are too many endpoints, or too few for `replication` copies in as many places.
    pub fn ketama(endpoints: &[Endpoint], replication: usize) -> Result<Self, RingError> {
        let members = checked(endpoints, replication, &RingName::default())?;
        Self::ketama_of(endpoints, members, replication, &RingName::default())
    }

    /// A ring that takes the hash modulo the number of endpoints: it needs no memory, and almost every key moves when an endpoint
    /// comes or goes. Members are indices into `endpoints`, which are used in the order of their addresses.
    ///
    /// # Errors
    /// If there are too many endpoints, too few for `replication` copies, or an availability zone.
    pub fn hashmod(endpoints: &[Endpoint], replication: usize) -> Result<Self, RingError> {
        let members = checked(endpoints, replication, &RingName::default())?;
        Self::hashmod_of(endpoints, members, replication, &RingName::default())
    }

    /// The members that hold a key, the first replica first.
    pub fn members(&self, hash: u64) -> Replicas {
        self.members_in(hash, None)
    }

    /// The part of all keys that each member holds, from 0 to 1; together they are as many as there are replicas. For the
    /// status, not for each request: it looks at all sections.
    pub fn key_shares(&self) -> Vec<(u16, f64)> {
        self.key_shares_in(None)
    }

    /// The memory of a ring of ketama, before it is built.
    pub fn footprint(endpoints: usize, replication: usize) -> Footprint {
        let resident = Ketama::bytes(endpoints, replication) + endpoints.saturating_mul(64) + 256;
        let building =
            resident.saturating_add(Ketama::building_bytes(endpoints) + endpoints.saturating_mul(256) + 4096);
        Footprint { resident, building }
    }

    /// The shares of keys among the members of a shard.
    pub(crate) fn key_shares_in(&self, shard: Option<&Shard>) -> Vec<(u16, f64)> {
        let mut shares = BTreeMap::<u16, f64>::new();
        let mut add = |members: Replicas, share| {
            members.iter().for_each(|&member| *shares.entry(member).or_default() += share);
        };
        match &self.algorithm {
            Table::Hashmod(_) => {
                let len = self.len() as u64;
                (0..len).for_each(|hash| add(self.members(hash), 1.0 / len as f64));
            }
            Table::Ketama(ketama) => {
                let whole = 2.0_f64.powi(64);
                for (from, to) in ketama.spans() {
                    add(self.members_in(to, shard), to.wrapping_sub(from) as f64 / whole);
                }
            }
        }
        shares.into_iter().collect()
    }

    /// The members that hold a key, among those of a shard.
    pub(crate) fn members_in(&self, hash: u64, shard: Option<&Shard>) -> Replicas {
        let members = |endpoints: &[u16]| endpoints.iter().filter_map(|&one| self.member(one)).collect();
        match (&self.algorithm, shard) {
            // The usual ring: its table is read in place.
            (Table::Ketama(ketama), None) => members(ketama.replicas(hash)),
            _ => members(&self.endpoints_in(hash, shard)),
        }
    }

    /// The same as indices of endpoints.
    pub(crate) fn endpoints_in(&self, hash: u64, shard: Option<&Shard>) -> Replicas {
        match (&self.algorithm, shard) {
            (Table::Hashmod(hashmod), _) => hashmod.replicas(hash),
            (Table::Ketama(ketama), None) => ketama.replicas(hash).iter().copied().collect(),
            (Table::Ketama(ketama), Some(shard)) => ketama.replicas_in(hash, shard, &self.zones),
        }
    }

    pub(crate) fn member(&self, endpoint: u16) -> Option<u16> {
        self.members.get(usize::from(endpoint)).copied()
    }

    /// How many endpoints it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no endpoints; never.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The sections, if the algorithm has any.
    pub(crate) fn sections(&self) -> Option<&Ketama> {
        match &self.algorithm {
            Table::Ketama(ketama) => Some(ketama),
            Table::Hashmod(_) => None,
        }
    }

    /// Like [`Ring::ketama`], where `members` are the numbers of the endpoints, which [`checked`] has seen.
    pub(crate) fn ketama_of(
        endpoints: &[Endpoint],
        members: Box<[u16]>,
        replication: usize,
        ring: &RingName,
    ) -> Result<Self, RingError> {
        let mut zone_of = HashMap::new();
        for endpoint in endpoints {
            if *zone_of.entry(&endpoint.address).or_insert(&endpoint.zone) != &endpoint.zone {
                let (ring, address) = (ring.clone(), endpoint.address.clone());
                return Err(RingError::TwoZones { ring, address });
            }
        }
        let zones = Zones::new(endpoints);
        let possible = zones.possible_replicas(|_| true);
        if possible < replication {
            return Err(RingError::UnevenZones { ring: ring.clone(), possible, replication });
        }
        let ketama = Ketama::new(endpoints, &zones, replication);
        Ok(Self { members, zones, algorithm: Table::Ketama(ketama) })
    }

    /// Like [`Ring::hashmod`], where `members` are the numbers of the endpoints, which [`checked`] has seen.
    pub(crate) fn hashmod_of(
        endpoints: &[Endpoint],
        members: Box<[u16]>,
        replication: usize,
        ring: &RingName,
    ) -> Result<Self, RingError> {
        if endpoints.iter().any(|endpoint| !endpoint.zone.is_empty()) {
            return Err(RingError::ZonesNeedKetama(ring.clone()));
        }
        let hashmod = Hashmod::new(endpoints, replication);
        Ok(Self { members, zones: Zones::new(endpoints), algorithm: Table::Hashmod(hashmod) })
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ring of {} endpoints", self.len())
    }
}

/// Checks the numbers, and returns those of the endpoints.
pub(crate) fn checked(
    endpoints: &[Endpoint],
    replication: usize,
    ring: &RingName,
) -> Result<Box<[u16]>, RingError> {
    if !(1..=MAX_REPLICATION).contains(&replication) {
        return Err(RingError::Replication(replication));
    }
    let ring = || ring.clone();
    let Ok(len) = u16::try_from(endpoints.len()) else {
        return Err(RingError::TooManyEndpoints { ring: ring(), endpoints: endpoints.len() });
    };
    if endpoints.len() < replication {
        return Err(RingError::TooFewEndpoints { ring: ring(), endpoints: endpoints.len(), replication });
    }
    Ok((0..len).collect())
}

#[cfg(test)]
mod tests;
