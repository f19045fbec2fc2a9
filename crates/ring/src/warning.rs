//! Parts of a configuration that Thanos accepts and then ignores, or reads otherwise than they seem to say.

use crate::config::{Algorithm, RingConfig, TenantMatcher};
use crate::error::RingName;
use crate::glob::{BadPattern, glob_matches};
use crate::multi::{MultiRing, RingSettings};
use std::collections::HashSet;

/// Something in the description of rings that probably does not mean what it says. Placement follows Thanos nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An algorithm that Thanos does not know.
    #[error("{ring}: the algorithm `{name}` is unknown, so hashmod is used")]
    Algorithm {
        /// The ring.
        ring: RingName,
        /// The algorithm.
        name: String,
    },
    /// A kind of matcher that Thanos does not know.
    #[error("{ring}: the tenant matcher `{name}` is unknown, so its tenants never match")]
    Matcher {
        /// The ring.
        ring: RingName,
        /// The matcher.
        name: String,
    },
    /// An override without a matcher.
    #[error("{ring}: override {position} of the shard size has no `tenant_matcher_type`, so it is ignored")]
    OverrideMatcher {
        /// The ring.
        ring: RingName,
        /// The override's, from 1.
        position: usize,
    },
    /// A pattern that is malformed.
    #[error("{ring}: the tenant pattern `{pattern}` is malformed")]
    Pattern {
        /// The ring.
        ring: RingName,
        /// The pattern.
        pattern: String,
    },
    /// An address that a ring has twice: both copies of a key may go there.
    #[error("{ring}: the address {address} is listed twice, so it may hold two replicas of a key")]
    Twice {
        /// The ring.
        ring: RingName,
        /// The address.
        address: String,
    },
    /// A ring behind one that is for everyone.
    #[error("{ring} is never used, because {earlier} before it is for all tenants")]
    Unreachable {
        /// The ring.
        ring: RingName,
        /// The ring for everyone.
        earlier: RingName,
    },
}

impl MultiRing {
    /// Properties of these rings that an operator may not expect.
    pub fn warnings(configs: &[RingConfig], settings: &RingSettings) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut for_everyone: Option<RingName> = None;
        for (config, position) in configs.iter().zip(1..) {
            let ring = RingName { position, name: config.name.clone() };
            if let Some(earlier) = &for_everyone {
                warnings.push(Warning::Unreachable { ring: ring.clone(), earlier: earlier.clone() });
            } else if config.tenants.is_empty() {
                for_everyone = Some(ring.clone());
            }
            if let Algorithm::Unknown(name) = config.algorithm.as_ref().unwrap_or(&settings.algorithm) {
                warnings.push(Warning::Algorithm { ring: ring.clone(), name: name.clone() });
            }
            of_tenants(&ring, &config.tenants, &config.tenant_matcher, &mut warnings);
            for (one, position) in config.shuffle_sharding.overrides.iter().zip(1..) {
                if one.tenant_matcher == TenantMatcher::Unset {
                    warnings.push(Warning::OverrideMatcher { ring: ring.clone(), position });
                }
                of_tenants(&ring, &one.tenants, &one.tenant_matcher, &mut warnings);
            }
            let mut seen = HashSet::new();
            let again = config.endpoints.iter().filter(|endpoint| !seen.insert(&endpoint.address));
            warnings
                .extend(again.map(|one| Warning::Twice { ring: ring.clone(), address: one.address.clone() }));
        }
        warnings
    }
}

fn of_tenants(ring: &RingName, tenants: &[String], matcher: &TenantMatcher, warnings: &mut Vec<Warning>) {
    match matcher {
        TenantMatcher::Unknown(name) => {
            warnings.push(Warning::Matcher { ring: ring.clone(), name: name.clone() });
        }
        TenantMatcher::Glob => {
            let malformed = tenants.iter().filter(|pattern| is_malformed(pattern));
            warnings.extend(
                malformed.map(|pattern| Warning::Pattern { ring: ring.clone(), pattern: pattern.clone() }),
            );
        }
        TenantMatcher::Unset | TenantMatcher::Exact => {}
    }
}

/// Whether a pattern is malformed anywhere. A comparison stops at the first part that does not match, so each part behind a star
/// is looked at alone.
fn is_malformed(pattern: &str) -> bool {
    let parts = std::iter::once(pattern)
        .chain(pattern.match_indices('*').filter_map(|(star, _)| pattern.get(star..)));
    parts.clone().any(|part| glob_matches(part, "") == Err(BadPattern))
}
