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

    /// Of `known` of at most `most` tenants the first by memory, by refusals, by items and by bytes; those that hold most first.
    pub fn of(mut tenants: Vec<Tenant>, known: u64, most: u64) -> Tenants {
        const ORDERS: [fn(&Tenant) -> u64; 4] =
            [|tenant| tenant.held, |tenant| tenant.refused, |tenant| tenant.items, |tenant| tenant.bytes];
        let mut shown = Vec::with_capacity(Tenants::MAX_SHOWN.min(tenants.len()));
        for order in ORDERS {
            tenants.sort_by_key(|tenant| std::cmp::Reverse(order(tenant)));
            let with_any = tenants.partition_point(|tenant| order(tenant) > 0);
            shown.extend(tenants.drain(..with_any.min(Tenants::MAX_SHOWN / ORDERS.len())));
        }
        // In the last order, by bytes.
        shown.extend(tenants.drain(..tenants.len().min(Tenants::MAX_SHOWN - shown.len())));
        shown.sort_by_key(|tenant| std::cmp::Reverse((tenant.held, tenant.refused, tenant.bytes)));
        Tenants { known, most, shown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str, [held, refused, items, bytes]: [u64; 4]) -> Tenant {
        Tenant {
            name: name.to_owned(),
            received: 0,
            accepted: 0,
            refused,
            mostly: None,
            open: 0,
            items,
            bytes,
            held,
        }
    }

    /// Whoever is first by any measure is shown, however many are before it by another.
    #[test]
    fn the_first_by_each_measure_are_shown() {
        let many = (0..100).map(|number| tenant(&format!("t{number}"), [0, 0, 1, 100 - number]));
        let first = [
            tenant("memory", [9, 0, 0, 0]),
            tenant("refusals", [0, 9, 0, 0]),
            tenant("items", [0, 0, 9, 0]),
            tenant("bytes", [0, 0, 0, 900]),
        ];
        let tenants = Tenants::of(many.chain(first).collect(), 104, 200);
        assert_eq!((tenants.shown.len(), tenants.shown[0].name.as_str()), (Tenants::MAX_SHOWN, "memory"));
        // Nobody else holds memory or was refused, so those places are for the largest by bytes.
        for name in ["refusals", "items", "bytes", "t0", "t20"] {
            assert!(tenants.shown.iter().any(|tenant| tenant.name == name), "{name}");
        }
        assert_eq!(Tenants::of(vec![tenant("one", [0; 4])], 1, 200).shown.len(), 1);
    }
}
