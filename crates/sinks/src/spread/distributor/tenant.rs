//! The tenant of the items that are being placed.

use tidegate_journal::Tenant;

/// A tenant, and a number that says for how long it has been this one: a number is compared for each item, a name only where it differs.
#[derive(Debug)]
pub(crate) struct CurrentTenant {
    tenant: Tenant,
    generation: u64,
}

impl CurrentTenant {
    pub(in crate::spread) const fn new() -> CurrentTenant {
        CurrentTenant { tenant: Tenant::NONE, generation: 0 }
    }

    /// The items that follow are of this tenant.
    pub(crate) fn set(&mut self, tenant: &Tenant) {
        if self.tenant != *tenant {
            self.tenant = *tenant;
            self.generation += 1;
        }
    }

    /// The tenant.
    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Another number than ever before, where it is another tenant than before.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_the_tenant_is_another_generation() {
        let mut current = CurrentTenant::new();
        let generations = ["a", "a", "b", "a"].map(|name| {
            current.set(&Tenant::new(name).unwrap());
            assert_eq!(current.tenant().as_str(), name);
            current.generation()
        });
        assert_eq!(generations, [1, 1, 2, 3]);
    }
}
