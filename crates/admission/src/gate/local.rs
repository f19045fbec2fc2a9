//! Admission of what a source reads by itself: nobody sent a request, so there are no headers, no credentials and no
//! peer. Limits, tenants and the state of the journal apply as they do to requests.

use super::Gate;
use super::admission::Demand;
use crate::permit::Permit;
use crate::rejection::Rejection;
use tidegate_journal::{Checkpoints, Tenant};
use tidegate_ledger::OpenRequest;
use tidegate_limit::Moment;

impl Gate {
    /// Whether a batch of `bytes` that a source of this gateway has read may go to the journal. It belongs to `tenant`, or
    /// else to the default tenant; without tenants to nobody.
    ///
    /// # Errors
    /// The first check that fails. The batch then holds nothing.
    pub fn admit_local(
        &self,
        tenant: Option<&str>,
        bytes: usize,
        open: &mut OpenRequest,
    ) -> Result<Permit, Rejection> {
        let name = self.local_tenant(tenant)?;
        self.named(Demand { now: Moment::now(), bytes: bytes as u64, journalled: true }, open, name)
    }

    /// Whether a dead letter of `bytes` may go to the journal again, under the tenant that it had. Sources cannot say that
    /// data is nobody's where there is a default tenant; here nobody's stays nobody's.
    ///
    /// # Errors
    /// The first check that fails. The letter then holds nothing.
    pub fn admit_dead_letter(
        &self,
        tenant: &Tenant,
        bytes: usize,
        open: &mut OpenRequest,
    ) -> Result<Permit, Rejection> {
        let name = Some(tenant.as_str()).filter(|name| !name.is_empty());
        self.named(Demand { now: Moment::now(), bytes: bytes as u64, journalled: true }, open, name)
    }

    /// Has these checkpoints hold without a record: their source read what has no records. They are durable soon.
    pub fn set_checkpoints(&self, checkpoints: &Checkpoints) {
        self.0.journal.set_checkpoints(checkpoints);
    }

    /// Whether a source that has this `tenant` in its settings has one where one is required.
    ///
    /// # Errors
    /// `tenant` when it has none.
    pub fn local_tenant<'a>(&'a self, tenant: Option<&'a str>) -> Result<Option<&'a str>, Rejection> {
        match &self.0.rules.tenancy {
            Some(tenancy) => tenancy.configured(tenant),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{rig, rig_with};
    use crate::gate::GateRules;
    use crate::tenancy::Tenancy;
    use std::sync::Arc;
    use tidegate_journal::Tenant;
    use tidegate_ledger::Refusal;
    use tidegate_limit::{AdmissionTable, LimiterSettings, TenantLimits, Tenants};

    /// A source's own tenant comes before the default one; without either, a required tenant is missing.
    #[tokio::test]
    async fn a_source_has_its_own_tenant_or_the_default_one() {
        let with = |default: Option<&str>| {
            let tenancy = Tenancy { default: default.map(Into::into), required: true, ..Tenancy::default() };
            rig_with(1 << 30, |_, _| GateRules { tenancy: Some(tenancy), ..GateRules::default() })
        };
        let named = with(Some("all"));
        assert_eq!(named.gate.local_tenant(Some("own")).unwrap(), Some("own"));
        assert_eq!(named.gate.local_tenant(None).unwrap(), Some("all"));
        let nameless = with(None);
        assert_eq!(nameless.gate.local_tenant(None).unwrap_err().reason, Refusal::Tenant);
        assert_eq!(nameless.gate.local_tenant(Some("own")).unwrap(), Some("own"));
    }

    /// A dead letter keeps its tenant: nobody's is not the default tenant's, even where a tenant is required.
    #[tokio::test]
    async fn a_dead_letter_keeps_its_tenant() {
        let rig = rig_with(1 << 30, |ledger, source| {
            let tenants = Tenants::new(4, TenantLimits::default(), ledger.clone());
            let limits = Arc::new(AdmissionTable::new(
                vec![(source.clone(), LimiterSettings::default())],
                Some(tenants),
            ));
            let tenancy = Tenancy { default: Some("all".into()), required: true, ..Tenancy::default() };
            GateRules { tenancy: Some(tenancy), limits: Some(limits), ..GateRules::default() }
        });
        let tenant_of = |tenant: &Tenant| {
            let mut open = rig.source.open();
            assert!(rig.gate.admit_dead_letter(tenant, 100, &mut open).is_ok());
            open.tenant().map(|tenant| tenant.name().to_owned())
        };
        assert_eq!(tenant_of(&Tenant::NONE), None);
        assert_eq!(tenant_of(&Tenant::new("shop").unwrap()).as_deref(), Some("shop"));
    }

    /// Credentials are for clients: what the gateway reads itself needs none, and without tenants has none.
    #[tokio::test]
    async fn nothing_is_refused_where_nothing_is_limited() {
        let rig = rig(1 << 30);
        let mut open = rig.source.open();
        assert!(rig.gate.admit_local(Some("own"), 100, &mut open).is_ok());
        assert!(open.tenant().is_none());
        rig.gate.stop();
        let refused = rig.gate.admit_local(None, 100, &mut open).unwrap_err();
        assert_eq!(refused.reason, Refusal::Shutdown);
        open.refuse(refused.reason);
    }
}
