//! Consistent hashing: sections of a ring, found by the first bits of a hash.

use super::{Shard, Zones};
use crate::config::Endpoint;
use crate::replicas::Replicas;
use std::fmt::Write;
use xxhash_rust::xxh64::xxh64;

/// How many sections each endpoint has.
pub(crate) const SECTIONS: usize = 1000;
/// About how many sections share an entry of the index, at the most.
const SECTIONS_PER_ENTRY: usize = 4;
/// How many hashes are compared at once. An entry seldom has more sections, so that there is no branch to mispredict.
const COMPARED_AT_ONCE: usize = 8;

/// The sections of all endpoints in the order of their hashes. A key belongs to the first section whose hash is not less than
/// its own, or to the first of all.
pub(crate) struct Ketama {
    hashes: Box<[u64]>,
    /// `replication` endpoints for each section. The first is the section's own.
    replicas: Box<[u16]>,
    replication: usize,
    /// Where the sections begin whose hashes have these first bits.
    index: Box<[u32]>,
    /// How many bits of a hash are not among the first.
    shift: u32,
}

impl Ketama {
    /// There are at most 65,535 endpoints, and their zones can hold `replication` replicas.
    pub(crate) fn new(endpoints: &[Endpoint], zones: &Zones, replication: usize) -> Self {
        let mut sections = Vec::with_capacity(endpoints.len() * SECTIONS);
        let mut key = String::new();
        for (number, endpoint) in (0_u16..).zip(endpoints) {
            for section in 1..=SECTIONS {
                key.clear();
                // Writing to a string cannot fail.
                _ = write!(key, "{}:{section}", endpoint.address);
                sections.push((xxh64(key.as_bytes(), 0), number));
            }
        }
        sections.sort_unstable();
        let mut replicas = Vec::with_capacity(sections.len() * replication);
        for section in 0..sections.len() {
            let later = sections.get(section..).unwrap_or_default().iter();
            let owners = later.chain(sections.iter().cycle()).map(|&(_, owner)| owner);
            let owners = owners.take(sections.len() * (replication + 1));
            replicas.extend_from_slice(&spread(owners, zones, zones.len(), replication));
        }
        let hashes: Box<[u64]> = sections.into_iter().map(|(hash, _)| hash).collect();
        let entries = index_entries(endpoints.len());
        let shift = u64::BITS - entries.ilog2();
        Self { index: index(&hashes, entries, shift), hashes, replicas: replicas.into(), replication, shift }
    }

    /// The endpoints that hold a key.
    #[inline]
    pub(crate) fn replicas(&self, hash: u64) -> &[u16] {
        let start = self.section(hash) * self.replication;
        self.replicas.get(start..start + self.replication).unwrap_or_default()
    }

    /// The endpoints of a shard that hold a key: those that a ring of them alone would name.
    pub(crate) fn replicas_in(&self, hash: u64, shard: &Shard, zones: &Zones) -> Replicas {
        let owners = self.owners_from(self.section(hash), self.replication + 1).map(|(_, owner)| owner);
        spread(owners.filter(|&owner| shard.has(owner)), zones, shard.zones(), self.replication)
    }

    /// The position of the section that a key belongs to.
    pub(crate) fn section(&self, hash: u64) -> usize {
        let entry = (hash >> self.shift) as usize;
        let mut section = self.index.get(entry).map_or(0, |start| *start as usize);
        // Hashes behind the entry are greater than this one, so they are not counted.
        while let Some(near) = self.hashes.get(section..).and_then(<[u64]>::first_chunk::<COMPARED_AT_ONCE>) {
            let before: usize = near.iter().map(|&other| usize::from(other < hash)).sum();
            section += before;
            if before < COMPARED_AT_ONCE {
                return section;
            }
        }
        let last = self.hashes.get(section..).unwrap_or_default();
        section += last.partition_point(|&other| other < hash);
        if section == self.hashes.len() { 0 } else { section }
    }

    /// Positions and owners of sections from one on, round and round, for as many laps.
    pub(crate) fn owners_from(&self, section: usize, laps: usize) -> impl Iterator<Item = (usize, u16)> {
        let all = self.replicas.iter().step_by(self.replication).copied().enumerate();
        all.clone().skip(section).chain(all.cycle()).take(self.len() * laps)
    }

    /// The hash of a section.
    pub(crate) fn hash(&self, section: usize) -> Option<u64> {
        self.hashes.get(section).copied()
    }

    /// Bytes of the sections of so many endpoints.
    pub(crate) fn bytes(endpoints: usize, replication: usize) -> usize {
        let sections = endpoints.saturating_mul(SECTIONS);
        let section = size_of::<u64>() + size_of::<u16>().saturating_mul(replication);
        sections.saturating_mul(section) + index_entries(endpoints) * size_of::<u32>()
    }

    /// Further bytes while they are built.
    pub(crate) fn building_bytes(endpoints: usize) -> usize {
        endpoints.saturating_mul(SECTIONS).saturating_mul(size_of::<(u64, u16)>())
    }

    /// The end of each section and that of the section before it.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (u64, u64)> {
        let before = self.hashes.last().into_iter().chain(&self.hashes);
        before.copied().zip(self.hashes.iter().copied())
    }

    /// How many sections there are.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }
}

/// How many entries the index of a ring has.
pub(crate) fn index_entries(endpoints: usize) -> usize {
    (endpoints.saturating_mul(SECTIONS) / SECTIONS_PER_ENTRY).next_power_of_two().max(2)
}

fn index(hashes: &[u64], entries: usize, shift: u32) -> Box<[u32]> {
    let mut sections = (0_u32..).zip(hashes).peekable();
    let start = |entry: usize| {
        while sections.next_if(|&(_, &hash)| ((hash >> shift) as usize) < entry).is_some() {}
        sections.peek().map_or(hashes.len() as u32, |&(section, _)| section)
    };
    (0..entries).map(start).collect()
}

/// The first of `owners` that are different endpoints and spread evenly over zones, of which the ring has as many.
///
/// Where the zones can hold `replication` replicas, each lap of the ring adds at least one, so as many laps are enough.
fn spread(
    owners: impl Iterator<Item = u16>,
    zones: &Zones,
    zone_count: usize,
    replication: usize,
) -> Replicas {
    let mut chosen = Replicas::default();
    for owner in owners {
        if !chosen.contains(&owner) && zones.admits(zone_count, &chosen, owner) {
            chosen.push(owner);
            if chosen.len() == replication {
                break;
            }
        }
    }
    chosen
}
