//! The tenants of a ring or of an override.

use crate::config::TenantMatcher;
use crate::glob::{BadPattern, glob_matches};
use std::collections::HashSet;

/// A set of tenants, by name or by pattern.
pub(crate) enum Tenants {
    Everyone,
    Nobody,
    Exact(HashSet<Box<str>>),
    Glob(Vec<Box<str>>),
}

impl Tenants {
    /// Those of a ring, where no list means everyone and no matcher means exact.
    pub(crate) fn of_ring(tenants: &[String], matcher: &TenantMatcher) -> Self {
        match matcher {
            _ if tenants.is_empty() => Tenants::Everyone,
            TenantMatcher::Unset | TenantMatcher::Exact => Tenants::exact(tenants),
            TenantMatcher::Glob => Tenants::glob(tenants),
            TenantMatcher::Unknown(_) => Tenants::Nobody,
        }
    }

    /// Those of an override, where no list or no matcher means nobody.
    pub(crate) fn of_override(tenants: &[String], matcher: &TenantMatcher) -> Self {
        match matcher {
            TenantMatcher::Exact => Tenants::exact(tenants),
            TenantMatcher::Glob => Tenants::glob(tenants),
            TenantMatcher::Unset | TenantMatcher::Unknown(_) => Tenants::Nobody,
        }
    }

    fn exact(tenants: &[String]) -> Self {
        Tenants::Exact(tenants.iter().map(|name| name.as_str().into()).collect())
    }

    fn glob(tenants: &[String]) -> Self {
        Tenants::Glob(tenants.iter().map(|pattern| pattern.as_str().into()).collect())
    }

    /// The entry that matches a tenant: its name, its pattern, or nothing for everyone. The error is that of a malformed pattern,
    /// if none of the others matches.
    pub(crate) fn find(&self, tenant: &str) -> Result<Option<TenantMatch<'_>>, (&str, BadPattern)> {
        match self {
            Tenants::Everyone => Ok(Some(TenantMatch::Everyone)),
            Tenants::Nobody => Ok(None),
            Tenants::Exact(names) => Ok(names.contains(tenant).then_some(TenantMatch::Exact)),
            Tenants::Glob(patterns) => {
                let mut failed = None;
                for pattern in patterns {
                    match glob_matches(pattern, tenant) {
                        Ok(true) => return Ok(Some(TenantMatch::Glob(pattern))),
                        Ok(false) => {}
                        Err(error) => failed = failed.or(Some((&**pattern, error))),
                    }
                }
                failed.map_or(Ok(None), Err)
            }
        }
    }

    /// Whether a tenant is one of these, where a malformed pattern matches nobody.
    pub(crate) fn has(&self, tenant: &str) -> bool {
        match self {
            Tenants::Glob(patterns) => {
                patterns.iter().any(|pattern| glob_matches(pattern, tenant) == Ok(true))
            }
            others => matches!(others.find(tenant), Ok(Some(_))),
        }
    }
}

/// Why a tenant is in a set.
pub(crate) enum TenantMatch<'a> {
    Everyone,
    Exact,
    Glob(&'a str),
}
