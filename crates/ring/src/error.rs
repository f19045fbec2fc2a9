//! Why a ring cannot be built, and why a tenant has none.

use crate::glob::BadPattern;
use std::fmt;

/// A hashring in messages: its position in the list, from 1, and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingName {
    /// From 1; 0 for a ring outside of a list.
    pub position: usize,
    /// May be empty.
    pub name: String,
}

/// Rings cannot be built from their description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// There are no rings.
    #[error("the list of hashrings is empty")]
    Empty,
    /// The replication factor is not supported.
    #[error("the replication factor is {0}; it must be from 1 to {max}", max = crate::MAX_REPLICATION)]
    Replication(usize),
    /// More addresses than members have numbers.
    #[error("there are {0} different addresses; at most 65535 are supported")]
    TooManyMembers(usize),
    /// More endpoints in one ring than members have numbers.
    #[error("{ring} has {endpoints} endpoints; at most 65535 are supported")]
    TooManyEndpoints {
        /// The ring.
        ring: RingName,
        /// How many it has.
        endpoints: usize,
    },
    /// A ring cannot hold as many replicas as wanted.
    #[error("{ring} has {endpoints} endpoints, fewer than the replication factor {replication}")]
    TooFewEndpoints {
        /// The ring.
        ring: RingName,
        /// How many it has.
        endpoints: usize,
        /// How many it needs.
        replication: usize,
    },
    /// Replicas are spread evenly over zones, and the smallest zone is too small for that.
    #[error(
        "{ring} can hold {possible} replicas spread evenly over its availability zones, fewer than the replication factor \
         {replication}; add endpoints to its smallest zone"
    )]
    UnevenZones {
        /// The ring.
        ring: RingName,
        /// How many replicas its zones hold.
        possible: usize,
        /// How many it needs.
        replication: usize,
    },
    /// Hashmod knows no zones.
    #[error(
        "{0} gives an endpoint an availability zone, which hashmod does not support; use ketama or remove the zone"
    )]
    ZonesNeedKetama(RingName),
    /// Hashmod knows no shards.
    #[error(
        "{0} has a shard size, which hashmod does not support; use ketama or remove the shuffle sharding"
    )]
    ShardsNeedKetama(RingName),
    /// A shard is larger than its ring.
    #[error("{ring} has {endpoints} endpoints, fewer than its shard size {shard_size}")]
    ShardTooLarge {
        /// The ring.
        ring: RingName,
        /// How many endpoints it has.
        endpoints: usize,
        /// How many a shard needs.
        shard_size: i64,
    },
    /// One address stands in two zones of one ring.
    #[error("{ring} lists the address {address} in two availability zones")]
    TwoZones {
        /// The ring.
        ring: RingName,
        /// The address.
        address: String,
    },
}

/// A tenant has no place on any ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// No ring is for this tenant.
    #[error("no hashring is for this tenant")]
    NoRing,
    /// The tenant came to a malformed pattern.
    #[error("{ring} has a malformed tenant pattern `{pattern}`")]
    Pattern {
        /// The ring.
        ring: RingName,
        /// The pattern.
        pattern: String,
        /// The mistake in it.
        #[source]
        source: BadPattern,
    },
    /// The tenant's ring has no shard for it.
    #[error("{ring}: {source}")]
    Shard {
        /// The ring.
        ring: RingName,
        /// Why.
        #[source]
        source: ShardError,
    },
}

/// A ring has no shard of the size that a tenant should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// A zone is too small.
    #[error("a shard takes {wanted} endpoints of availability zone `{zone}`, which has {endpoints}")]
    ZoneTooSmall {
        /// The zone; empty for all together.
        zone: String,
        /// How many it has.
        endpoints: usize,
        /// How many the shard takes of each zone.
        wanted: i64,
    },
    /// The shard is smaller than the replication factor.
    #[error("the tenant's shard has {endpoints} endpoints, fewer than the replication factor {replication}")]
    TooFewEndpoints {
        /// How many it has.
        endpoints: usize,
        /// How many it needs.
        replication: usize,
    },
    /// The endpoints of the shard, chosen without looking at zones, cannot hold the replicas evenly.
    #[error(
        "the tenant's shard can hold {possible} replicas spread evenly over its availability zones, fewer than the \
         replication factor {replication}"
    )]
    UnevenZones {
        /// How many replicas its zones hold.
        possible: usize,
        /// How many it needs.
        replication: usize,
    },
}

impl fmt::Display for RingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.position, self.name.as_str()) {
            (0, _) => f.write_str("the ring"),
            (position, "") => write!(f, "hashring {position}"),
            (position, name) => write!(f, "hashring {position} `{name}`"),
        }
    }
}
