//! The memory of rings, before they are built.

use crate::config::{Algorithm, RingConfig};
use crate::multi::{MOST_NAME, Member, MultiRing, RingSettings, SLOT_BYTES, TenantRing};
use crate::ring::{Ketama, Shard};

/// An allocation's own cost, and what its size is rounded up by.
const ALLOCATION: usize = 32;

/// The memory of rings, in bytes of heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// While they exist, with the cache of tenants full.
    pub resident: usize,
    /// While they are built, besides those that exist already.
    pub building: usize,
}

impl MultiRing {
    /// The most memory that [`MultiRing::new`] takes for these rings. To replace rings while they are in use, a program needs both.
    pub fn footprint(configs: &[RingConfig], settings: &RingSettings) -> Footprint {
        let (mut resident, mut largest_shard, mut largest_temporary) = (0, 0, 0);
        for config in configs {
            let algorithm = config.algorithm.as_ref().unwrap_or(&settings.algorithm);
            let (endpoints, ketama) = (config.endpoints.len(), *algorithm == Algorithm::Ketama);
            resident +=
                ring(config) + if ketama { Ketama::bytes(endpoints, settings.replication) } else { 0 };
            largest_temporary =
                largest_temporary.max(if ketama { Ketama::building_bytes(endpoints) } else { 0 });
            if config.shuffle_sharding.shard_size > 0 {
                largest_shard =
                    largest_shard.max(endpoints.div_ceil(64) * 8 + size_of::<Shard>() + 2 * ALLOCATION);
            }
        }
        // Maps by address and by zone, which the build drops.
        let endpoints: usize = configs.iter().map(|config| config.endpoints.len()).sum();
        let building = resident + largest_temporary + endpoints * 256 + 4096;
        let slots = settings.cached_tenants.next_power_of_two().max(4);
        resident += slots * (SLOT_BYTES + ALLOCATION + largest_shard);
        Footprint { resident, building: building.max(resident) }
    }
}

/// A ring without its sections.
fn ring(config: &RingConfig) -> usize {
    let texts = |all: &[String]| all.iter().map(|text| text.len() + 64 + ALLOCATION).sum::<usize>();
    let members = config.endpoints.iter().map(|endpoint| {
        let text = endpoint.address.len() + endpoint.capnproto_address.len() + endpoint.zone.len();
        // A growing list is up to twice as long as its elements.
        text + 2 * size_of::<Member>() + 3 * ALLOCATION + 32
    });
    let overrides = config.shuffle_sharding.overrides.iter().map(|one| texts(&one.tenants) + 128);
    size_of::<TenantRing>()
        + config.name.len()
        + MOST_NAME
        + 8 * ALLOCATION
        + texts(&config.tenants)
        + members.sum::<usize>()
        + overrides.sum::<usize>()
}
