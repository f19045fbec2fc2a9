//! Shuffle shards: the endpoints of a ring that one tenant has (`getTenantShard` of `pkg/receive/hashring.go`).

use super::{Ring, Zones};
use crate::config::{Endpoint, ShuffleSharding};
use crate::error::ShardError;
use crate::go_rand::GoRand;
use crate::tenants::Tenants;
use std::collections::HashSet;

/// How a ring is divided.
pub(crate) struct Sharding {
    size: i64,
    overrides: Box<[(Tenants, i64)]>,
    /// The groups of endpoints that a shard takes the same number of: one for each zone, or one for all.
    groups: Box<[Group]>,
    replication: usize,
}

struct Group {
    /// The zone; `None` for all together.
    zone: Option<u16>,
    /// How many different endpoints it has.
    endpoints: usize,
}

/// The endpoints of one tenant.
pub(crate) struct Shard {
    /// A bit for each endpoint of the ring.
    endpoints: Box<[u64]>,
    /// How many zones they have.
    zones: usize,
}

impl Sharding {
    /// `None` if each tenant has the whole ring.
    pub(crate) fn new(
        config: &ShuffleSharding,
        endpoints: &[Endpoint],
        zones: &Zones,
        replication: usize,
    ) -> Option<Self> {
        if config.shard_size <= 0 {
            return None;
        }
        let different: HashSet<&Endpoint> = endpoints.iter().collect();
        let groups = if config.zone_awareness_disabled {
            Box::from([Group { zone: None, endpoints: different.len() }])
        } else {
            let of = |zone| different.iter().filter(|endpoint| endpoint.zone == zones.name(zone)).count();
            (0_u16..).take(zones.len()).map(|zone| Group { zone: Some(zone), endpoints: of(zone) }).collect()
        };
        let overrides = config.overrides.iter();
        let overrides =
            overrides.map(|one| (Tenants::of_override(&one.tenants, &one.tenant_matcher), one.shard_size));
        Some(Self { size: config.shard_size, overrides: overrides.collect(), groups, replication })
    }

    /// The size of a tenant's shard, and the position of the override that sets it.
    pub(crate) fn size(&self, tenant: &str) -> (i64, Option<usize>) {
        let position = self.overrides.iter().position(|(tenants, _)| tenants.has(tenant));
        let size =
            position.and_then(|position| self.overrides.get(position)).map_or(self.size, |&(_, size)| size);
        (size, position)
    }

    /// Chooses the endpoints of a tenant.
    pub(crate) fn shard(&self, ring: &Ring, tenant: &str) -> Result<Shard, ShardError> {
        let (size, _) = self.size(tenant);
        let take = div_ceil(size, self.groups.len());
        let mut shard = Shard { endpoints: vec![0; ring.len().div_ceil(64)].into(), zones: 0 };
        for group in &self.groups {
            let zone = group.zone.map_or("", |zone| ring.zones().name(zone));
            let wanted = match usize::try_from(take) {
                Ok(wanted) if wanted > group.endpoints => {
                    let zone = zone.to_owned();
                    return Err(ShardError::ZoneTooSmall { zone, endpoints: group.endpoints, wanted: take });
                }
                wanted => wanted.unwrap_or_default(),
            };
            let mut random = GoRand::new(seed(tenant, zone));
            for _ in 0..wanted {
                shard.add_from(ring, random.next_u64(), group.zone);
            }
        }
        let (endpoints, replication) = (shard.len(), self.replication);
        if endpoints < replication {
            return Err(ShardError::TooFewEndpoints { endpoints, replication });
        }
        let possible = ring.zones().possible_replicas(|endpoint| shard.has(endpoint));
        if possible < replication {
            return Err(ShardError::UnevenZones { possible, replication });
        }
        shard.zones = ring.zones().count(|endpoint| shard.has(endpoint));
        Ok(shard)
    }
}

impl Shard {
    /// Whether an endpoint is the tenant's.
    pub(crate) fn has(&self, endpoint: u16) -> bool {
        self.endpoints.get(usize::from(endpoint / 64)).is_some_and(|bits| bits >> (endpoint % 64) & 1 == 1)
    }

    /// How many zones its endpoints have.
    pub(crate) fn zones(&self) -> usize {
        self.zones
    }

    /// How many endpoints it has.
    pub(crate) fn len(&self) -> usize {
        self.endpoints.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Adds the first endpoint from a hash on that is in the zone and is not there yet.
    fn add_from(&mut self, ring: &Ring, hash: u64, zone: Option<u16>) {
        let Some(sections) = ring.sections() else { return };
        let in_zone = |endpoint| zone.is_none_or(|zone| ring.zones().of(endpoint) == zone);
        let mut owners = sections.owners_from(sections.section(hash), 1).map(|(_, owner)| owner);
        let Some(endpoint) = owners.find(|&owner| in_zone(owner) && !self.has(owner)) else { return };
        if let Some(bits) = self.endpoints.get_mut(usize::from(endpoint / 64)) {
            *bits |= 1 << (endpoint % 64);
        }
    }
}

/// The seed of a tenant's draws in a zone (`ShuffleShardSeed`).
fn seed(tenant: &str, zone: &str) -> i64 {
    let mut hash = md5::Context::new();
    hash.consume(tenant);
    if !zone.is_empty() {
        hash.consume([0]);
        hash.consume(zone);
    }
    let [first @ .., _, _, _, _, _, _, _, _] = hash.finalize().0;
    i64::from_be_bytes(first)
}

/// `size / groups`, rounded up; zero for sizes below zero.
fn div_ceil(size: i64, groups: usize) -> i64 {
    let (size, groups) = (u64::try_from(size).unwrap_or_default(), groups.max(1) as u64);
    i64::try_from(size.div_ceil(groups)).unwrap_or(i64::MAX)
}
