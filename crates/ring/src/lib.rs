//! Which members hold a key: the hashrings of Thanos Receive, and consistent hashing for other sinks.
//!
//! A [`MultiRing`] is built from the hashrings of a file ([`parse_hashrings`]) or of the configuration ([`RingConfig`]). A sink asks
//! it for the ring of a tenant ([`MultiRing::for_tenant`]) once per request, and that [`RingRef`] for the members of each
//! series' hash ([`SeriesHasher`]). A single [`Ring`] serves sinks without tenants.
//!
//! Promises, argued in `design/ring.md`:
//! - Placement is that of Thanos Receive v0.42.0 (`pkg/receive/hashring.go`), member by member and in the same order.
//! - A lookup allocates nothing. Everything is allocated when a ring is built, and [`MultiRing::footprint`] says how much.
//! - Tenant names that clients invent take no memory: the cache of tenants has a fixed size.
//!
//! It leaves to others: reading and watching files, connections, quorum. No I/O, no clock.

mod config;
mod error;
mod explain;
mod footprint;
mod glob;
mod go_rand;
mod multi;
mod replicas;
mod ring;
mod series_hash;
mod tenants;
mod warning;

pub use config::{
    Algorithm, ConfigError, Endpoint, RingConfig, ShardOverride, ShuffleSharding, TenantMatcher,
    parse_hashrings,
};
pub use error::{RingError, RingName, ShardError, Unplaced};
pub use explain::{Explanation, Match, Replica, Section, ShardExplanation};
pub use footprint::Footprint;
pub use glob::{BadPattern, glob_matches};
pub use multi::{Member, MultiRing, RingRef, RingSettings};
pub use replicas::{MAX_REPLICATION, Replicas};
pub use ring::Ring;
pub use series_hash::{SeriesHasher, hash_bytes, series_hash};
pub use warning::Warning;
