//! The tenants in numbers.

use serde::Serialize;

/// The tenants' traffic, if there are tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenants {
    /// How many have an entry of their own.
    pub known: u64,
    /// How many can have one; later ones share the entry `other`.
    pub most: u64,
    /// Those that hold or were refused most, at most [`MAX_SHOWN`](Self::MAX_SHOWN) of them.
    pub shown: Vec<Tenant>,
}

/// One tenant since the process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Requests received.
    pub received: u64,
    /// Requests accepted.
    pub accepted: u64,
    /// Requests refused, and the reason for most of them.
    pub refused: u64,
    /// The reason for which most were refused, if any were.
    pub mostly: Option<&'static str>,
    /// Requests that are being served.
    pub open: u64,
    /// Items accepted.
    pub items: u64,
    /// Bytes accepted.
    pub bytes: u64,
    /// Bytes of memory that its requests hold now.
    pub held: u64,
}

impl Tenants {
    /// The most that are shown.
    pub const MAX_SHOWN: usize = 32;

    /// These of `known` of at most `most` tenants: those that hold most first, then those that were refused most.
    pub fn of(mut tenants: Vec<Tenant>, known: u64, most: u64) -> Tenants {
        tenants.sort_by_key(|tenant| std::cmp::Reverse((tenant.held, tenant.refused, tenant.bytes)));
        tenants.truncate(Tenants::MAX_SHOWN);
        Tenants { known, most, shown: tenants }
    }
}
