//! Rights beyond adding to the sender's own tenant: `_bulk` actions, and resending as an operator.

use super::Gate;
use super::admission::Demand;
use crate::access::{BulkActions, BulkRights, Identity, Indices};
use crate::caller::Caller;
use crate::permit::Permit;
use crate::rejection::Rejection;
use crate::tenancy;
use std::collections::HashMap;
use tidegate_ledger::{OpenRequest, Refusal};

/// `_bulk` rights where the credentials have none of their own.
#[derive(Debug, Clone, Default)]
pub struct BulkDefaults {
    /// Actions beyond `create` and `index` where no credentials are needed.
    pub open: BulkActions,
    /// To which indices, where neither the credential nor the tenant says; all but those that begin with a dot.
    pub indices: Option<Indices>,
    /// To which indices some tenants may write, by name.
    pub tenants: HashMap<String, Indices>,
}

/// The header with which an operator says whose data it sends again; empty for what is nobody's.
pub const RESEND_HEADER: &str = "Tidegate-Tenant";

/// The header with which data is sent again to one sink alone: its name. Goes with [`RESEND_HEADER`] where there are credentials
/// or tenants; elsewhere it is for senders on the same machine.
pub const SINK_HEADER: &str = "Tidegate-Sink";

/// The tenant of resent data, if this request resends.
pub(super) fn resend_tenant<'a>(caller: &Caller<'a>) -> Result<Option<&'a [u8]>, Rejection> {
    caller.headers.sole(RESEND_HEADER).map_err(|_| Rejection::new(Refusal::Tenant, TWICE))
}

impl Gate {
    /// Whether this request sends data again and shows no key. One that is shown is always checked.
    pub(super) fn is_resent_without_key(&self, caller: &Caller<'_>) -> Result<bool, Rejection> {
        let is_resent =
            [RESEND_HEADER, SINK_HEADER].iter().any(|header| caller.headers.sole(header) != Ok(None));
        Ok(is_resent && self.authorization(caller.headers)?.is_none())
    }

    /// The only sink that this request's data is for, if it names one.
    pub(super) fn recipient<'a>(&self, caller: &Caller<'a>) -> Result<Option<&'a str>, Rejection> {
        let named = match caller.headers.sole(SINK_HEADER) {
            Ok(None) => return Ok(None),
            Ok(Some(named)) => named,
            Err(_) => return Err(Rejection::new(Refusal::Headers, SINK_TWICE)),
        };
        if !caller.journalled {
            return Err(Rejection::new(Refusal::Headers, NOT_JOURNALLED));
        }
        let sink = str::from_utf8(named).map_err(|_| Rejection::new(Refusal::NotFound, NO_SINK))?;
        match self.0.journal.is_followed(sink) {
            true => Ok(Some(sink)),
            // It is being changed, or begins again after a mistake; or nobody has forgotten it yet.
            false if self.0.journal.has_cursor(sink) => {
                Err(Rejection::new(Refusal::Shutdown, SINK_PAUSES).retry_after(self.0.memory.spread(1)))
            }
            false => Err(Rejection::new(Refusal::NotFound, NO_SINK)),
        }
    }

    /// Whether anybody on this machine may address a sink where there are no credentials and no tenants. What a proxy sends that
    /// says for whom it asks does not come from this machine.
    pub(super) fn check_address(caller: &Caller<'_>) -> Result<(), Rejection> {
        let is_forwarded = PROXIES.iter().any(|header| caller.headers.sole(header) != Ok(None));
        if is_forwarded || !caller.peer.to_canonical().is_loopback() {
            return Err(Rejection::new(Refusal::Forbidden, FROM_AFAR));
        }
        match resend_tenant(caller)? {
            None | Some(b"") => Ok(()),
            Some(_) => Err(Rejection::new(Refusal::Tenant, NO_TENANTS)),
        }
    }

    /// Lets in what was accepted before, under the tenant `of` that it had: for operators only.
    #[cold]
    pub(super) fn admit_resent(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
        authorization: Option<&[u8]>,
        of: &[u8],
    ) -> Result<(Permit, Identity), Rejection> {
        let rules = self.rules();
        if rules.operators.is_open() {
            return Err(Rejection::new(Refusal::Forbidden, NO_OPERATORS));
        }
        let granted = rules.operators.check(authorization, None, caller.peer)?;
        let name = match str::from_utf8(of) {
            Ok("") => None,
            Ok(of) if rules.tenancy.is_some() => Some(tenancy::validate_name(of)?),
            _ => return Err(Rejection::new(Refusal::Tenant, NO_TENANTS)),
        };
        let permit = self.named(Demand::of(caller), open, name)?;
        Ok((permit, granted.as_operator()))
    }

    /// The `_bulk` rights of a request that was [admitted](Gate::admit_identified): those of its credential, then its
    /// tenant's settings, then those of all.
    pub fn bulk_rights(&self, granted: &Identity, open: &OpenRequest) -> BulkRights {
        if granted.is_operator() {
            return BulkRights::all();
        }
        let defaults = self.rules().bulk.load();
        let (actions, own) = granted.bulk().unwrap_or((defaults.open, None));
        let tenant = open.tenant();
        let of_tenant = tenant.and_then(|tenant| defaults.tenants.get(tenant.name()));
        let indices = own.or(of_tenant).or(defaults.indices.as_ref());
        BulkRights::new(actions, indices.cloned(), tenant.cloned())
    }
}

const TWICE: &str = "the header `Tidegate-Tenant` is there several times: send it once\n";
/// Headers with which a proxy says for whom it asks.
const PROXIES: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];
const SINK_PAUSES: &str =
    "the sink that the header `Tidegate-Sink` names does not run at the moment; send it again\n";
const SINK_TWICE: &str = "the header `Tidegate-Sink` is there several times: send it once\n";
const NOT_JOURNALLED: &str = "the header `Tidegate-Sink` is for data that goes through the journal, and this is forwarded: leave it out\n";
const NO_SINK: &str = "the header `Tidegate-Sink` names no sink that is running: `/status` lists them\n";
/// Why a request for one sink is refused where anybody may send: it passes the pipeline of its source by.
const FROM_AFAR: &str =
    "without `access.admin_credentials_file` data is sent to one sink from the machine itself only\n";
/// Why a request for one sink must say whose its data is.
pub(super) const NAMELESS: &str = "the header `Tidegate-Sink` is for operators who send data again, and goes with `Tidegate-Tenant`: the \
                                   tenant that the data had, empty for none\n";
const NO_OPERATORS: &str = "sending again under the tenant that data had needs an operator's token, and the gateway \
                            knows none: set `access.admin_credentials_file`\n";
const NO_TENANTS: &str = "the resent item has a tenant, but the gateway has no tenants: set `tenants.header` or another \
                          setting under `tenants`\n";
