//! Hashrings as a file or the configuration describes them.

mod endpoint;

pub use endpoint::Endpoint;

use serde::de::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// One hashring: an element of the list in a hashring file of Thanos Receive (`HashringConfig` of `pkg/receive/config.go`).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingConfig {
    /// A name for messages and metrics; may be empty.
    #[serde(rename = "hashring", deserialize_with = "or_default")]
    pub name: String,
    /// The tenants whose series go to this ring; none: everyone's.
    #[serde(deserialize_with = "or_default")]
    pub tenants: Vec<String>,
    /// How `tenants` are compared with a tenant's name.
    #[serde(rename = "tenant_matcher_type", deserialize_with = "or_default")]
    pub tenant_matcher: TenantMatcher,
    /// The members of the ring.
    #[serde(deserialize_with = "or_default")]
    pub endpoints: Vec<Endpoint>,
    /// The algorithm; without one, that of [`crate::RingSettings`].
    #[serde(deserialize_with = "algorithm")]
    pub algorithm: Option<Algorithm>,
    /// Labels that Thanos' ingestors add to the blocks of these tenants. They change no placement.
    #[serde(deserialize_with = "or_default")]
    pub external_labels: BTreeMap<String, String>,
    /// Which part of the ring each tenant has.
    #[serde(rename = "shuffle_sharding_config", deserialize_with = "or_default")]
    pub shuffle_sharding: ShuffleSharding,
}

/// Gives each tenant a part of a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShuffleSharding {
    /// How many endpoints a tenant has, rounded up to the same number in each zone. Zero or less: all, and nothing else here counts.
    #[serde(deserialize_with = "or_default")]
    pub shard_size: i64,
    /// How many tenants' rings Thanos caches. Without effect here, where a tenant's ring is a few bytes.
    #[serde(deserialize_with = "or_default")]
    pub cache_size: i64,
    /// Chooses endpoints from all zones together.
    #[serde(deserialize_with = "or_default")]
    pub zone_awareness_disabled: bool,
    /// Other sizes for some tenants; the first that matches counts.
    #[serde(deserialize_with = "or_default")]
    pub overrides: Vec<ShardOverride>,
}

/// Another shard size for some tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShardOverride {
    /// Replaces [`ShuffleSharding::shard_size`].
    #[serde(deserialize_with = "or_default")]
    pub shard_size: i64,
    /// The tenants.
    #[serde(deserialize_with = "or_default")]
    pub tenants: Vec<String>,
    /// How they are compared. As in Thanos, an override without a matcher matches nobody.
    #[serde(rename = "tenant_matcher_type", deserialize_with = "or_default")]
    pub tenant_matcher: TenantMatcher,
}

/// How a list of tenants is compared with a tenant's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TenantMatcher {
    /// Nothing was said: exact for a ring, nobody for an override.
    #[default]
    Unset,
    /// Byte for byte.
    Exact,
    /// Patterns, see [`crate::glob_matches`].
    Glob,
    /// A name that Thanos does not know either: matches nobody.
    Unknown(String),
}

/// How a ring is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The hash modulo the number of members.
    #[default]
    Hashmod,
    /// Consistent hashing.
    Ketama,
    /// A name that Thanos does not know either: hashmod.
    Unknown(String),
}

/// An error in a file of hashrings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not a list of hashrings; says where.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The list is empty.
    #[error("the list of hashrings is empty")]
    Empty,
}

/// Reads a file of hashrings in Thanos' format.
///
/// # Errors
/// If it is not one, with line and column, or if it is empty. Unknown keys are errors: they may belong to a newer version
/// and change the placement.
pub fn parse_hashrings(text: &[u8]) -> Result<Vec<RingConfig>, ConfigError> {
    let rings: Vec<RingConfig> = serde_json::from_slice::<Option<_>>(text)?.unwrap_or_default();
    if rings.is_empty() { Err(ConfigError::Empty) } else { Ok(rings) }
}

impl From<&str> for Algorithm {
    fn from(name: &str) -> Self {
        match name {
            "hashmod" => Algorithm::Hashmod,
            "ketama" => Algorithm::Ketama,
            name => Algorithm::Unknown(name.to_owned()),
        }
    }
}

impl From<&str> for TenantMatcher {
    fn from(name: &str) -> Self {
        match name {
            "" => TenantMatcher::Unset,
            "exact" => TenantMatcher::Exact,
            "glob" => TenantMatcher::Glob,
            name => TenantMatcher::Unknown(name.to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Algorithm::from(String::deserialize(deserializer)?.as_str()))
    }
}

impl<'de> Deserialize<'de> for TenantMatcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(TenantMatcher::from(String::deserialize(deserializer)?.as_str()))
    }
}

/// Go's JSON reader leaves the default where a value is `null`.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn algorithm<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Algorithm>, D::Error> {
    let name: String = or_default(deserializer)?;
    Ok((!name.is_empty()).then(|| Algorithm::from(name.as_str())))
}

#[cfg(test)]
mod tests;
