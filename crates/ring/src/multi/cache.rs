//! The rings of tenants seen lately, in a table of fixed size.

use super::RingRef;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many tenants share a lock, and the slots from which the least recently used one is evicted.
const WAYS: usize = 4;
/// Longer names are not cached.
pub(crate) const MOST_NAME: usize = 128;
/// The most bytes of a slot besides its shard: itself, its part of the lock, and a name.
pub(crate) const SLOT_BYTES: usize = size_of::<Mutex<Set>>().div_ceil(WAYS) + MOST_NAME;

/// A cache of rings by tenant. Its hash has a random key, so no client can choose whom it evicts.
pub(super) struct TenantCache {
    sets: Box<[Mutex<Set>]>,
    hasher: RandomState,
}

/// The most recently used slot is the first.
pub(crate) type Set = [Option<Slot>; WAYS];

pub(crate) struct Slot {
    tenant: Box<str>,
    ring: RingRef,
}

impl TenantCache {
    /// A cache of `tenants`, rounded up to a power of two.
    pub(super) fn new(tenants: usize) -> Self {
        let sets = tenants.div_ceil(WAYS).next_power_of_two();
        Self { sets: (0..sets).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    pub(super) fn get(&self, tenant: &str) -> Option<RingRef> {
        let mut set = self.set(tenant)?;
        let found = set.iter().position(|slot| slot.as_ref().is_some_and(|slot| *slot.tenant == *tenant))?;
        set.get_mut(..=found)?.rotate_right(1);
        set.first()?.as_ref().map(|slot| slot.ring.clone())
    }

    pub(super) fn insert(&self, tenant: &str, ring: &RingRef) {
        if tenant.len() > MOST_NAME {
            return;
        }
        let slot = Slot { tenant: tenant.into(), ring: ring.clone() };
        if let Some(mut set) = self.set(tenant) {
            set.rotate_right(1);
            if let Some(first) = set.first_mut() {
                *first = Some(slot);
            }
        }
    }

    fn set(&self, tenant: &str) -> Option<MutexGuard<'_, Set>> {
        let set = self.hasher.hash_one(tenant) as usize & (self.sets.len() - 1);
        // Each step leaves a set in order, so one that a panic has left is as good as any.
        self.sets.get(set).map(|set| set.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
