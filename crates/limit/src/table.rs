//! Routes and tenants, and what one request has of both.

use crate::clock::Moment;
use crate::limiter::{LimitReached, Limiter, LimiterSettings};
use crate::request_size_limit::RequestTooLarge;
use crate::tenants::{TenantAccount, TenantId, TenantLimits, Tenants};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use tidegate_ledger::Source;

mod decode_share;

pub use decode_share::{DecodeShare, TranslationShare};

/// The most routes.
pub const MAX_ROUTES: usize = 16;

/// All limits. A request asks once, and gets a [`RequestPermit`].
#[derive(Debug)]
pub struct AdmissionTable {
    routes: Vec<RouteLimits>,
    tenants: Option<Tenants>,
    /// Whether there is anything to ask.
    active: AtomicBool,
}

#[derive(Debug)]
struct RouteLimits {
    limiter: Limiter,
    /// Where its items are counted.
    books: Source,
}

/// The number of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteId(RouteNumber);

/// An enum for the values that it does not have: whoever holds a permit or something else instead has no bytes for telling
/// which, and that lies in the task of every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
enum RouteNumber {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl RouteNumber {
    const ALL: [RouteNumber; MAX_ROUTES] = {
        use RouteNumber::*;
        [R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10, R11, R12, R13, R14, R15]
    };
}

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// A limit of its route.
    Route(LimitReached),
    /// A limit of its tenant.
    Tenant(LimitReached),
    /// Memory is short, and its tenant holds its part of it already: so many bytes.
    Share {
        /// The tenant's current use.
        held: u64,
    },
}

/// A request's claims on the limits of its route and tenant, and on its tenant's share of the memory. Dropping it
/// returns all of them.
#[derive(Debug)]
#[must_use = "dropping it gives back what it holds"]
pub struct RequestPermit {
    table: Arc<AdmissionTable>,
    tenant: Option<TenantId>,
    route: RouteId,
    /// Bytes of its body, as far as they are known. Whoever holds it grows it alone; an atomic, so that it can be
    /// lent.
    bytes: AtomicU32,
    /// The reason why it could not grow, numbered by its holder: the one byte that is free beside the others.
    note: AtomicU8,
}

impl AdmissionTable {
    /// A table of these routes, each with the page that counts what it accepts, and of tenants where there are some.
    ///
    /// # Panics
    /// With more than [`MAX_ROUTES`] routes, which are those that the program has.
    pub fn new(routes: Vec<(Source, LimiterSettings)>, tenants: Option<Tenants>) -> AdmissionTable {
        assert!(routes.len() <= MAX_ROUTES, "{} routes are more than {MAX_ROUTES}", routes.len());
        let active =
            tenants.is_some() || routes.iter().any(|(_, limits)| *limits != LimiterSettings::default());
        let routes = routes.into_iter().map(|(books, limits)| {
            let limiter = Limiter::new(&limits);
            limiter.skip_items(books.items());
            RouteLimits { limiter, books }
        });
        AdmissionTable { routes: routes.collect(), tenants, active: AtomicBool::new(active) }
    }

    /// Whether a request has to ask: while nothing is limited it need not.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    /// The route whose page this is.
    #[inline]
    pub fn route(&self, books: &Source) -> Option<RouteId> {
        let at = self.routes.iter().position(|route| route.books.is(books))?;
        RouteNumber::ALL.get(at).copied().map(RouteId)
    }

    /// The tenants, where there are some.
    pub fn tenants(&self) -> Option<&Tenants> {
        self.tenants.as_ref()
    }

    /// Other limits from now on, of the routes by the names of their pages, and of the tenants. Who is in stays in.
    pub fn set_limits(&self, routes: impl Fn(&str) -> LimiterSettings, tenants: TenantLimits) {
        let mut active = self.tenants.is_some();
        for route in &self.routes {
            let limits = routes(route.books.name());
            if !route.limiter.limits_items() {
                route.limiter.skip_items(route.books.items());
            }
            route.limiter.set_limits(&limits);
            active |= limits != LimiterSettings::default();
        }
        if let Some(table) = &self.tenants {
            table.set_limits(tenants);
        }
        self.active.store(active, Relaxed);
    }

    /// Lets a request in that brings `bytes`, or as many as will turn out, while `free` bytes of memory are.
    ///
    /// # Errors
    /// The first thing that forbids it; nothing is taken then.
    #[inline]
    pub fn admit(
        self: &Arc<Self>,
        now: Moment,
        route: RouteId,
        tenant: Option<TenantId>,
        bytes: u64,
        free: u64,
    ) -> Result<RequestPermit, Denied> {
        let bytes = countable(bytes);
        let (of_route, account) = (self.limiter(route), self.account(tenant));
        // Everything is looked at before anything is taken: what a flood is refused writes nothing.
        if let Some(RouteLimits { limiter, books }) = of_route {
            if limiter.limits_items() {
                limiter.charge_items(now, books.items());
            }
            limiter.check(now, bytes.into()).map_err(Denied::Route)?;
        }
        if let Some(account) = account {
            if account.limiter().limits_items() {
                account.limiter().charge_items(now, account.page().items());
            }
            account.limiter().check(now, bytes.into()).map_err(Denied::Tenant)?;
            if !account.may_hold(bytes.into(), free) {
                return Err(Denied::Share { held: account.held() });
            }
        }
        if let Some(RouteLimits { limiter, .. }) = of_route {
            limiter.take(now, bytes.into()).map_err(Denied::Route)?;
        }
        let taken = account.map_or(Ok(()), |account| {
            if !account.hold(0, bytes.into(), free) {
                return Err(Denied::Share { held: account.held() });
            }
            account.limiter().take(now, bytes.into()).map_err(|reached| {
                account.release(bytes.into());
                Denied::Tenant(reached)
            })
        });
        match taken {
            Ok(()) => Ok(RequestPermit {
                table: Arc::clone(self),
                tenant,
                route,
                bytes: AtomicU32::new(bytes),
                note: AtomicU8::new(0),
            }),
            Err(denied) => {
                if let Some(RouteLimits { limiter, .. }) = of_route {
                    limiter.release(bytes.into());
                }
                Err(denied)
            }
        }
    }

    /// Whether a request of the route with these books, and of the tenant of this name, may have so many bytes,
    /// decompressed, and so many items.
    ///
    /// # Errors
    /// When it may never.
    pub fn fits(
        &self,
        books: &Source,
        tenant: Option<&str>,
        bytes: u64,
        items: u64,
    ) -> Result<(), RequestTooLarge> {
        if let Some(RouteLimits { limiter, .. }) = self.route(books).and_then(|route| self.limiter(route)) {
            limiter.fits(bytes, items)?;
        }
        let tenant = self.tenants.as_ref().zip(tenant);
        let account = tenant.and_then(|(tenants, name)| tenants.account(tenants.find(name)));
        account.map_or(Ok(()), |account| account.limiter().fits(bytes, items))
    }

    fn limiter(&self, RouteId(at): RouteId) -> Option<&RouteLimits> {
        self.routes.get(at as usize)
    }

    fn account(&self, tenant: Option<TenantId>) -> Option<&TenantAccount> {
        tenant.and_then(|id| self.tenants.as_ref()?.account(id))
    }
}

impl RequestPermit {
    /// Notes a number with it.
    pub fn set_note(&self, note: u8) {
        self.note.store(note, Relaxed);
    }

    /// The number that was noted; zero where none was.
    pub fn note(&self) -> u8 {
        self.note.load(Relaxed)
    }

    /// The bytes that it was entered with.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed).into()
    }

    /// Its body turns out to have `bytes` in all, while `free` are: enters what is more than before.
    ///
    /// # Errors
    /// The limit that forbids it; its claims are unchanged.
    pub fn grow(&self, now: Moment, bytes: u64, free: u64) -> Result<(), Denied> {
        let own = self.bytes();
        let more = u64::from(countable(bytes)).saturating_sub(own);
        if more == 0 {
            return Ok(());
        }
        let route = self.table.limiter(self.route);
        if let Some(RouteLimits { limiter, .. }) = route {
            limiter.take_bytes(now, own, more).map_err(Denied::Route)?;
        }
        let taken = self.table.account(self.tenant).map_or(Ok(()), |account| {
            if !account.hold(own, more, free) {
                return Err(Denied::Share { held: account.held() });
            }
            account.limiter().take_bytes(now, own, more).map_err(|reached| {
                account.release(more);
                Denied::Tenant(reached)
            })
        });
        match taken {
            // Added, so that what was taken comes back, whoever grew it meanwhile.
            Ok(()) => _ = self.bytes.fetch_add(countable(more), Relaxed),
            Err(_) => {
                if let Some(RouteLimits { limiter, .. }) = route {
                    limiter.release_bytes(more);
                }
            }
        }
        taken
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if let Some(RouteLimits { limiter, .. }) = self.table.limiter(self.route) {
            limiter.release(bytes);
        }
        if let Some(account) = self.table.account(self.tenant) {
            account.release(bytes);
            account.limiter().release(bytes);
        }
    }
}

/// As many bytes as one request can have: no body is as long as this.
fn countable(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests;
