//! Why a key is where it is.

use crate::config::Algorithm;
use crate::error::{RingName, Unplaced};
use crate::multi::{MultiRing, TenantRing};
use crate::ring::{Ring, Shard};
use crate::tenants::TenantMatch;
use xxhash_rust::xxh64::xxh64;

/// The way from a tenant and a hash to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The ring that is the tenant's.
    pub ring: RingName,
    /// Why it is.
    pub matched: Match,
    /// The ring's algorithm, as configured.
    pub algorithm: Algorithm,
    /// How many endpoints the ring has.
    pub endpoints: usize,
    /// The part of the ring that the tenant has; `None`: all of it.
    pub shard: Option<ShardExplanation>,
    /// The key's hash.
    pub hash: u64,
    /// The section that the hash belongs to; `None` without sections.
    pub section: Option<Section>,
    /// The members that hold the key, the first replica first.
    pub replicas: Vec<Replica>,
}

/// Why a ring is a tenant's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// The ring has no list of tenants.
    Everyone,
    /// The list has the tenant's name.
    Exact,
    /// The list has this pattern.
    Glob(String),
}

/// The part of a ring that one tenant has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardExplanation {
    /// The shard size that holds for the tenant.
    pub size: i64,
    /// The position of the override that sets it, from 1; `None`: the ring's own.
    pub override_position: Option<usize>,
    /// Its endpoints, in the order of the ring's list.
    pub endpoints: Vec<Replica>,
}

/// A section of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its position on the ring, from 0.
    pub position: usize,
    /// How many sections the ring has.
    pub of: usize,
    /// Where it ends.
    pub hash: u64,
    /// The replica that it belongs to.
    pub owner: Replica,
    /// Which section of the owner's it is, from 1: its hash is that of `address:number`.
    pub number: Option<u16>,
}

/// An endpoint that holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its index in [`MultiRing::members`].
    pub member: u16,
    /// Its address.
    pub address: String,
    /// Its availability zone in this ring; may be empty.
    pub zone: String,
}

impl MultiRing {
    /// Explains where the key of a tenant with this hash is. It leaves the cache as it is.
    ///
    /// # Errors
    /// Like [`MultiRing::for_tenant`].
    pub fn explain(&self, tenant: &str, hash: u64) -> Result<Explanation, Unplaced> {
        let (tenant_ring, matched) = self.ring_of(tenant)?;
        let matched = match matched {
            TenantMatch::Everyone => Match::Everyone,
            TenantMatch::Exact => Match::Exact,
            TenantMatch::Glob(pattern) => Match::Glob(pattern.to_owned()),
        };
        let shard = tenant_ring.shard(tenant)?;
        let ring = &tenant_ring.ring;
        let named = |endpoints: &[u16]| endpoints.iter().filter_map(|&one| self.replica(ring, one)).collect();
        Ok(Explanation {
            ring: tenant_ring.name.clone(),
            matched,
            algorithm: tenant_ring.algorithm.clone(),
            endpoints: ring.len(),
            shard: shard.as_ref().and_then(|shard| self.shard_explanation(tenant_ring, shard, tenant)),
            hash,
            section: self.section(ring, shard.as_deref(), hash),
            replicas: named(&ring.endpoints_in(hash, shard.as_deref())),
        })
    }

    fn replica(&self, ring: &Ring, endpoint: u16) -> Option<Replica> {
        let member = ring.member(endpoint)?;
        let address = self.members().get(usize::from(member))?.address.to_string();
        Some(Replica { member, address, zone: ring.zones().name(ring.zones().of(endpoint)).to_owned() })
    }

    fn shard_explanation(&self, ring: &TenantRing, shard: &Shard, tenant: &str) -> Option<ShardExplanation> {
        let (size, position) = ring.sharding.as_ref()?.size(tenant);
        let all = (0..=u16::MAX).take(ring.ring.len()).filter(|&endpoint| shard.has(endpoint));
        let endpoints = all.filter_map(|endpoint| self.replica(&ring.ring, endpoint)).collect();
        Some(ShardExplanation { size, override_position: position.map(|position| position + 1), endpoints })
    }

    fn section(&self, ring: &Ring, shard: Option<&Shard>, hash: u64) -> Option<Section> {
        let sections = ring.sections()?;
        let mut owners = sections.owners_from(sections.section(hash), 1);
        let (position, owner) = owners.find(|&(_, owner)| shard.is_none_or(|shard| shard.has(owner)))?;
        let (owner, hash) = (self.replica(ring, owner)?, sections.hash(position)?);
        let number =
            (1..=1000).find(|number| xxh64(format!("{}:{number}", owner.address).as_bytes(), 0) == hash);
        Some(Section { position, of: sections.len(), hash, owner, number })
    }
}
