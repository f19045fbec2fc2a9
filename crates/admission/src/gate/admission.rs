//! Admission: the checks on a request before its body is read.

use super::{AddressTenancy, Gate, GateRules, RESEND_HEADER, SINK_HEADER, rights};
use crate::access::{AdmissionFuture, Certificate, Identity};
use crate::browser_guard;
use crate::caller::{Caller, Headers};
use crate::permit::{self, Permit};
use crate::rejection::{Rejection, RejectionText};
use crate::tenancy::TenantClaim;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_arena::Share;
use tidegate_ledger::{OpenRequest, Refusal};
use tidegate_limit::{AdmissionTable, Moment};

impl Gate {
    /// The password hash to wait for before [`admit`](Self::admit) can decide on a request with these headers from `peer`.
    #[inline]
    pub fn prepare(&self, headers: &dyn Headers, peer: IpAddr) -> Option<AdmissionFuture> {
        let GateRules { access, operators, .. } = &self.0.rules;
        if access.is_open() && operators.is_open() {
            return None;
        }
        let asked = if let Ok(None) = headers.sole(RESEND_HEADER) { access } else { operators };
        asked.prepare(self.authorization(headers).ok()?, peer)
    }

    /// Whether a request by `caller`, counted as `open`, may send its body. Asked when its head is known, so that a
    /// refusal costs as little as possible. Checks where it comes from, the credentials, the tenant, whether the journal
    /// accepts data now, and the limits, in this order.
    ///
    /// # Errors
    /// The first check that fails. The request then holds nothing.
    #[inline]
    pub fn admit(&self, caller: &Caller<'_>, open: &mut OpenRequest) -> Result<Permit, Rejection> {
        self.admit_identified(caller, open).map(|(permit, _)| permit)
    }

    /// As [`admit`](Self::admit). Also returns who the caller is, for sources that check what it
    /// [may do](Self::bulk_rights).
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    #[inline]
    pub fn admit_identified(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, Identity), Rejection> {
        may_come(caller)?;
        let rules = &self.0.rules;
        let is_open = rules.access.is_open() && rules.tenancy.is_none() && rules.operators.is_open();
        // Keys that the gateway has issued do not close it, and a command that sends data again has none.
        if is_open && (!rules.access.has_credentials() || self.is_resent_without_key(caller)?) {
            let recipient = match caller.headers.sole(SINK_HEADER) {
                Ok(None) => None,
                _ => {
                    Gate::check_address(caller)?;
                    self.recipient(caller)?
                }
            };
            self.check_open_for(caller.journalled)?;
            let permit = match &rules.limits {
                Some(table) if table.is_active() => self.limited(Demand::of(caller), open, table, None)?,
                _ => Permit::default(),
            };
            return Ok((to(recipient, permit), Identity::default()));
        }
        let (permit, identity) = self.identified(caller, open)?;
        // Names of sinks are for those who may address them.
        let recipient = self.recipient(caller)?;
        Ok((to(recipient, permit), identity))
    }

    /// As [`admit`](Self::admit), for endpoints that accept anonymous clients. Also returns whether the client is
    /// anonymous: it sent no credentials where some are asked for, and so cannot choose its tenant.
    ///
    /// # Errors
    /// As [`admit`](Self::admit). Credentials that are sent must be valid.
    pub fn admit_anonymous(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, bool), Rejection> {
        may_come(caller)?;
        let rules = &self.0.rules;
        let shows = caller.certificate.is_some() || self.authorization(caller.headers)?.is_some();
        if rules.access.is_open() || shows {
            return Ok((self.admit(caller, open)?, false));
        }
        if caller.headers.sole(SINK_HEADER) != Ok(None) {
            return Err(Rejection::new(Refusal::Headers, rights::NAMELESS));
        }
        let name = self.tenant(caller, TenantClaim::Anonymous)?;
        Ok((self.named(Demand::of(caller), open, name)?, true))
    }

    /// Checks the credentials and finds the tenant, then checks the rest.
    fn identified(
        &self,
        caller: &Caller<'_>,
        open: &mut OpenRequest,
    ) -> Result<(Permit, Identity), Rejection> {
        let authorization = self.authorization(caller.headers)?;
        if let Some(of) = rights::resend_tenant(caller)? {
            return self.admit_resent(caller, open, authorization, of);
        }
        if caller.headers.sole(SINK_HEADER) != Ok(None) {
            return Err(Rejection::new(Refusal::Headers, rights::NAMELESS));
        }
        let granted = self.0.rules.access.check(authorization, caller.certificate, caller.peer)?;
        let name = self.tenant(caller, TenantClaim::Identified(&granted))?;
        let permit = self.named(Demand::of(caller), open, name)?;
        Ok((permit, granted))
    }

    /// The tenant of a request.
    fn tenant<'a>(
        &'a self,
        caller: &Caller<'a>,
        sender: TenantClaim<'a>,
    ) -> Result<Option<&'a str>, Rejection> {
        let Some(tenancy) = &self.0.rules.tenancy else { return Ok(None) };
        match self.1.as_deref() {
            None => tenancy.of(caller, sender, None),
            Some(AddressTenancy::Default(tenant)) => tenancy.of(caller, sender, Some(tenant)),
            Some(AddressTenancy::Own(own)) => own.of(caller, sender, None),
        }
    }

    /// Checks the rest for a request of the tenant `name`.
    pub(super) fn named(
        &self,
        demand: Demand,
        open: &mut OpenRequest,
        name: Option<&str>,
    ) -> Result<Permit, Rejection> {
        let rules = &self.0.rules;
        let table = rules.limits.as_ref().filter(|table| table.is_active());
        let tenants = table.and_then(|table| table.tenants());
        let tenant = tenants.zip(name).map(|(tenants, name)| (tenants.find(name), tenants, name));
        if let Some((id, tenants, name)) = tenant
            && let Some(page) = tenants.ledger(id, name)
        {
            open.belongs_to(page);
        }
        self.check_open_for(demand.journalled)?;
        match table {
            Some(table) => self.limited(demand, open, table, tenant.map(|(id, ..)| id)),
            None => Ok(Permit::default()),
        }
    }

    /// The caller's credentials: from `Authorization`, or from the configured header that replaces it.
    pub(super) fn authorization<'a>(&self, headers: &'a dyn Headers) -> Result<Option<&'a [u8]>, Rejection> {
        let twice = |_| {
            Rejection::new(Refusal::Headers, "the request has several `Authorization` headers: send one\n")
        };
        let shown = headers.sole("authorization").map_err(twice)?;
        match (shown, self.0.rules.access.header()) {
            (None, Some(header)) => headers.sole(header).map_err(twice),
            (shown, _) => Ok(shown),
        }
    }

    #[inline]
    fn limited(
        &self,
        demand: Demand,
        open: &OpenRequest,
        table: &Arc<AdmissionTable>,
        tenant: Option<tidegate_limit::TenantId>,
    ) -> Result<Permit, Rejection> {
        let Some(route) = open.source().and_then(|books| table.route(books)) else {
            return Ok(Permit::default());
        };
        let free = if tenant.is_some() { self.0.arena.free(Share::Ingest) } else { u64::MAX };
        let hold = table.admit(demand.now, route, tenant, demand.bytes, free);
        hold.map(Permit::new).map_err(|denied| permit::refused(denied, &self.0.memory))
    }

    /// Raises what a request is known to hold to `bytes`, as its body arrives.
    ///
    /// # Errors
    /// When its route or its tenant may not hold that much now; the request then holds what it held before.
    #[inline]
    pub fn grow(&self, permit: &Permit, bytes: usize) -> Result<(), Rejection> {
        match permit.claims() {
            Some(hold) if bytes as u64 > hold.bytes() => {
                let grown = hold.grow(Moment::now(), bytes as u64, self.0.arena.free(Share::Ingest));
                grown.map_err(|denied| {
                    let refused = permit::refused(denied, &self.0.memory);
                    if let RejectionText::CannedRefusal(canned) = refused.words {
                        permit.deny(canned);
                    }
                    refused
                })
            }
            _ => Ok(()),
        }
    }

    /// Whether a request of this kind can be accepted now.
    fn check_open_for(&self, journalled: bool) -> Result<(), Rejection> {
        match self.check_open() {
            Err(refused) if refused.reason == Refusal::Disk && !journalled => Ok(()),
            decided => decided,
        }
    }
}

/// The part of a request that limits are about.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    pub(super) now: Moment,
    /// The bytes of the body, where they are known.
    pub(super) bytes: u64,
    pub(super) journalled: bool,
}

impl Demand {
    #[inline]
    pub(super) fn of(caller: &Caller<'_>) -> Demand {
        Demand { now: caller.now, bytes: caller.bytes.unwrap_or(0), journalled: caller.journalled }
    }
}

const EXPIRED: Rejection = Rejection::new(
    Refusal::Unauthorized,
    "the client's certificate has expired since this connection was opened; connect again with one that is valid\n",
);

/// Checks every request of every source, whatever the rules are.
#[inline]
fn may_come(caller: &Caller<'_>) -> Result<(), Rejection> {
    // Connections end with their certificates; this is for the request that crosses that.
    if caller.certificate.is_some_and(Certificate::has_expired) {
        return Err(EXPIRED);
    }
    browser_guard::check(caller)
}

/// The permit for the sink that the request names, if it names one.
fn to(recipient: Option<&str>, permit: Permit) -> Permit {
    match recipient {
        Some(sink) => permit.to_sink(sink),
        None => permit,
    }
}
