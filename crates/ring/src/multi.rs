//! The rings of a file, each for some tenants.

mod cache;

use crate::config::{Algorithm, Endpoint, RingConfig};
use crate::error::{RingError, RingName, Unplaced};
use crate::replicas::Replicas;
use crate::ring::{Ring, Shard, Sharding, checked};
use crate::tenants::{TenantMatch, Tenants};
use cache::TenantCache;
pub(crate) use cache::{MOST_NAME, SLOT_BYTES};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Settings of all rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSettings {
    /// The algorithm of rings that name none (`--receive.hashrings-algorithm`).
    pub algorithm: Algorithm,
    /// On how many members each key is (`--receive.replication-factor`).
    pub replication: usize,
    /// How many tenants' rings are cached, rounded up to a power of two.
    pub cached_tenants: usize,
}

/// A member of one ring or several: an address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// For gRPC, `host:port`.
    pub address: Box<str>,
    /// For Cap'n Proto. Where rings differ in it for one address, that of the first counts.
    pub capnproto_address: Box<str>,
}

/// Rings with the tenants they are for; the first that is for a tenant is the tenant's.
pub struct MultiRing {
    members: Box<[Member]>,
    rings: Box<[Arc<TenantRing>]>,
    cache: TenantCache,
}

/// A ring with the tenants it is for.
pub(crate) struct TenantRing {
    pub(crate) name: RingName,
    pub(crate) algorithm: Algorithm,
    pub(crate) tenants: Tenants,
    pub(crate) ring: Ring,
    pub(crate) sharding: Option<Sharding>,
}

/// The ring of a tenant. Clones share it.
#[derive(Clone)]
pub struct RingRef {
    pub(crate) ring: Arc<TenantRing>,
    pub(crate) shard: Option<Arc<Shard>>,
}

impl Default for RingSettings {
    fn default() -> Self {
        Self { algorithm: Algorithm::Hashmod, replication: 1, cached_tenants: 1024 }
    }
}

impl MultiRing {
    /// Builds the rings. This takes some milliseconds for a hundred endpoints, and as much memory as [`MultiRing::footprint`] says.
    ///
    /// # Errors
    /// The first thing that is wrong, with the ring.
    pub fn new(configs: &[RingConfig], settings: &RingSettings) -> Result<Self, RingError> {
        if configs.is_empty() {
            return Err(RingError::Empty);
        }
        let (mut members, mut numbers) = (Vec::new(), HashMap::new());
        let mut rings = Vec::with_capacity(configs.len());
        for (config, position) in configs.iter().zip(1..) {
            let name = RingName { position, name: config.name.clone() };
            let mut of_endpoints = checked(&config.endpoints, settings.replication, &name)?;
            for (number, endpoint) in of_endpoints.iter_mut().zip(&config.endpoints) {
                *number = *numbers.entry(endpoint.address.as_str()).or_insert_with(|| {
                    members.push(Member::from(endpoint));
                    u16::try_from(members.len() - 1).unwrap_or(u16::MAX)
                });
            }
            rings.push(Arc::new(TenantRing::new(config, of_endpoints, settings, name)?));
        }
        if members.len() > usize::from(u16::MAX) {
            return Err(RingError::TooManyMembers(members.len()));
        }
        let cache = TenantCache::new(settings.cached_tenants);
        Ok(Self { members: members.into(), rings: rings.into(), cache })
    }

    /// The members of all rings. Their positions are the numbers in [`Replicas`].
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// All rings, each as a whole.
    pub fn rings(&self) -> impl Iterator<Item = RingRef> {
        self.rings.iter().map(|ring| RingRef { ring: Arc::clone(ring), shard: None })
    }

    /// The ring of a tenant. Ask once per request, not per series.
    ///
    /// # Errors
    /// If no ring is for the tenant, or its ring has no shard for it.
    pub fn for_tenant(&self, tenant: &str) -> Result<RingRef, Unplaced> {
        if let Some(found) = self.cache.get(tenant) {
            return Ok(found);
        }
        let (ring, _) = self.ring_of(tenant)?;
        let shard = ring.shard(tenant)?;
        let found = RingRef { ring: Arc::clone(ring), shard };
        self.cache.insert(tenant, &found);
        Ok(found)
    }

    /// The first ring that is for a tenant, and why it is.
    pub(crate) fn ring_of(&self, tenant: &str) -> Result<(&Arc<TenantRing>, TenantMatch<'_>), Unplaced> {
        for ring in &self.rings {
            match ring.tenants.find(tenant) {
                Ok(Some(found)) => return Ok((ring, found)),
                Ok(None) => {}
                Err((pattern, source)) => {
                    let (ring, pattern) = (ring.name.clone(), pattern.to_owned());
                    return Err(Unplaced::Pattern { ring, pattern, source });
                }
            }
        }
        Err(Unplaced::NoRing)
    }
}

impl RingRef {
    /// The members that hold a key, the first replica first: indices into [`MultiRing::members`].
    pub fn members(&self, hash: u64) -> Replicas {
        self.ring.ring.members_in(hash, self.shard.as_deref())
    }

    /// The part of all keys that each member holds, as [`Ring::key_shares`] has it.
    pub fn key_shares(&self) -> Vec<(u16, f64)> {
        self.ring.ring.key_shares_in(self.shard.as_deref())
    }

    /// The ring's position and name.
    pub fn name(&self) -> &RingName {
        &self.ring.name
    }
}

impl fmt::Debug for MultiRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rings()).finish()
    }
}

impl fmt::Debug for RingRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} endpoints", self.ring.name, self.ring.ring.len())
    }
}

impl TenantRing {
    fn new(
        config: &RingConfig,
        members: Box<[u16]>,
        settings: &RingSettings,
        name: RingName,
    ) -> Result<Self, RingError> {
        let algorithm = config.algorithm.as_ref().unwrap_or(&settings.algorithm).clone();
        let (endpoints, replication) = (config.endpoints.as_slice(), settings.replication);
        let shard_size = config.shuffle_sharding.shard_size;
        let ring = if algorithm == Algorithm::Ketama {
            let ring = Ring::ketama_of(endpoints, members, replication, &name)?;
            if usize::try_from(shard_size).is_ok_and(|size| size > endpoints.len()) {
                return Err(RingError::ShardTooLarge { ring: name, endpoints: endpoints.len(), shard_size });
            }
            ring
        } else {
            if shard_size > 0 {
                return Err(RingError::ShardsNeedKetama(name));
            }
            Ring::hashmod_of(endpoints, members, replication, &name)?
        };
        let sharding = Sharding::new(&config.shuffle_sharding, endpoints, ring.zones(), replication);
        let tenants = Tenants::of_ring(&config.tenants, &config.tenant_matcher);
        Ok(Self { name, algorithm, tenants, ring, sharding })
    }

    /// The shard of a tenant, if tenants have shards.
    pub(crate) fn shard(&self, tenant: &str) -> Result<Option<Arc<Shard>>, Unplaced> {
        let Some(sharding) = &self.sharding else { return Ok(None) };
        match sharding.shard(&self.ring, tenant) {
            Ok(shard) => Ok(Some(Arc::new(shard))),
            Err(source) => Err(Unplaced::Shard { ring: self.name.clone(), source }),
        }
    }
}

impl From<&Endpoint> for Member {
    fn from(endpoint: &Endpoint) -> Self {
        let (address, capnproto_address) = (&*endpoint.address, &*endpoint.capnproto_address);
        Self { address: address.into(), capnproto_address: capnproto_address.into() }
    }
}

#[cfg(test)]
mod tests;
