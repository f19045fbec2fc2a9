//! The tenant of the items that are being placed.

use tidegate_journal::Tenant;

/// A tenant, and a number that says for how long it has been this one: a number is compared for each item, a name only where it differs.
#[derive(Debug)]
pub(crate) struct CurrentTenant {
    tenant: Tenant,
    turn: u64,
}

impl CurrentTenant {
    pub(in crate::spread) const fn new() -> CurrentTenant {
        CurrentTenant { tenant: Tenant::NONE, turn: 0 }
    }

    /// The items that follow are of this tenant.
    pub(crate) fn set(&mut self, tenant: &Tenant) {
        if self.tenant != *tenant {
            self.tenant = *tenant;
            self.turn += 1;
        }
    }

    /// The tenant.
    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Another number than ever before, where it is another tenant than before.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_the_tenant_is_another_turn() {
        let mut current = CurrentTenant::new();
        let turns = ["a", "a", "b", "a"].map(|name| {
            current.set(&Tenant::new(name).unwrap());
            assert_eq!(current.tenant().as_str(), name);
            current.turn()
        });
        assert_eq!(turns, [1, 1, 2, 3]);
    }
}
