//! A tenant's share of the memory in which bodies are decompressed.

use super::{AdmissionTable, Denied, RequestPermit, countable};
use crate::tenants::{TenantAccount, TenantId};
use std::sync::Arc;

/// The memory in which one body is decompressed, or that is waited for to be, on its tenant's account. Dropping it
/// takes it off.
#[derive(Debug)]
#[must_use = "dropping it takes the memory off its tenant's account"]
pub struct DecodeShare {
    table: Arc<AdmissionTable>,
    tenant: TenantId,
    alone: bool,
    bytes: u32,
}

impl RequestPermit {
    /// Enters that `bytes` are to be had for this request's body, of which so many are free. Nothing where there are
    /// no tenants.
    ///
    /// # Errors
    /// [`Denied::Share`], when its tenant has its part already.
    pub fn decode_share(&self, bytes: u64, free: u64) -> Result<Option<DecodeShare>, Denied> {
        let Some((tenant, account)) = self.tenant.zip(self.table.account(self.tenant)) else {
            return Ok(None);
        };
        let bytes = countable(bytes);
        match account.decode(0, bytes.into(), free) {
            Some(before) => {
                let table = Arc::clone(&self.table);
                Ok(Some(DecodeShare { table, tenant, alone: before == 0, bytes }))
            }
            None => Err(denied(account)),
        }
    }
}

impl DecodeShare {
    /// Whether its tenant had nothing else when it was entered. Only such a one may wait for memory: what waits is at
    /// most one request for each tenant then.
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    /// The bytes that it was entered with.
    pub fn bytes(&self) -> u64 {
        self.bytes.into()
    }

    /// The tenant's total use.
    pub fn held(&self) -> u64 {
        self.table.account(Some(self.tenant)).map_or(0, TenantAccount::held)
    }

    /// The body turns out to need `more`, while `free` are.
    ///
    /// # Errors
    /// [`Denied::Share`]; it has what it had then.
    pub fn grow(&mut self, more: u64, free: u64) -> Result<(), Denied> {
        let Some(account) = self.table.account(Some(self.tenant)) else { return Ok(()) };
        let more = countable(more).min(u32::MAX - self.bytes);
        account.decode(self.bytes(), more.into(), free).ok_or_else(|| denied(account))?;
        self.bytes += more;
        Ok(())
    }

    /// It is `bytes`, as it turned out: without a question, since they are had already.
    pub fn settle(&mut self, bytes: u64) {
        let Some(account) = self.table.account(Some(self.tenant)) else { return };
        let bytes = countable(bytes);
        account.settle(self.bytes(), bytes.into());
        self.bytes = bytes;
    }
}

impl Drop for DecodeShare {
    fn drop(&mut self) {
        if let Some(account) = self.table.account(Some(self.tenant)) {
            account.settle(self.bytes(), 0);
        }
    }
}

/// Memory that a request holds beside its body, such as a translation of it, on its tenant's account. Owned, so that a
/// thread can grow it that does not have the request. Dropping it takes it off.
#[derive(Debug)]
#[must_use = "dropping it takes the memory off its tenant's account"]
pub struct TranslationShare {
    table: Arc<AdmissionTable>,
    tenant: TenantId,
    /// The bytes that the request itself is charged with.
    own: u64,
    bytes: u32,
}

impl RequestPermit {
    /// Memory beside the body, none yet. Nothing where there are no tenants.
    pub fn translation_share(&self) -> Option<TranslationShare> {
        let tenant = self.tenant?;
        self.table.account(Some(tenant))?;
        Some(TranslationShare { table: Arc::clone(&self.table), tenant, own: self.bytes(), bytes: 0 })
    }
}

impl TranslationShare {
    /// Enters `more` bytes of received data, while `free` are free. They are no received bytes: rates do not count them.
    ///
    /// # Errors
    /// [`Denied::Share`], when its tenant has its part already; it has what it had then.
    pub fn grow(&mut self, more: u64, free: u64) -> Result<(), Denied> {
        let Some(account) = self.table.account(Some(self.tenant)) else { return Ok(()) };
        let more = countable(more).min(u32::MAX - self.bytes);
        if !account.hold(self.own.saturating_add(self.bytes.into()), more.into(), free) {
            return Err(denied(account));
        }
        self.bytes += more;
        Ok(())
    }

    /// Gives back what is more than `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let kept = countable(bytes).min(self.bytes);
        if let Some(account) = self.table.account(Some(self.tenant)) {
            account.release(u64::from(self.bytes - kept));
        }
        self.bytes = kept;
    }
}

impl Drop for TranslationShare {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

fn denied(account: &TenantAccount) -> Denied {
    Denied::Share { held: account.held() }
}
