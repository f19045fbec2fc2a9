//! The permit of an admitted request, and the reasons for refusal.

use crate::canned_refusal::CannedRefusal;
use crate::drain_estimate::DrainEstimate;
use crate::rejection::Rejection;
use std::time::Duration;
use tidegate_limit::{Denied, Limit, LimitReached, RequestPermit};

/// A request's claims on the limits of its route and tenant, empty if nothing is limited; and which sink its data is for,
/// if it is for one alone. Keep it until the request is answered: dropping it returns the claims.
#[derive(Debug, Default)]
#[must_use = "dropping it gives back what the request holds"]
pub struct Permit(PermitKind);

/// As small as the claims alone: every connection that receives a body has room for one.
#[derive(Debug, Default)]
enum PermitKind {
    #[default]
    Unlimited,
    Limited(RequestPermit),
    Addressed(Box<AddressedPermit>),
}

/// A permit for data that is for one sink alone. Hardly any is.
#[derive(Debug)]
struct AddressedPermit {
    claims: Option<RequestPermit>,
    recipient: Box<str>,
}

const _: () = assert!(size_of::<Permit>() == size_of::<Option<RequestPermit>>());

impl Permit {
    pub(crate) fn new(claims: RequestPermit) -> Permit {
        Permit(PermitKind::Limited(claims))
    }

    /// The permit for data that is sent again to the sink `name` alone. It was checked, and passed the pipeline of its source,
    /// when it came first.
    pub fn to_sink(self, name: &str) -> Permit {
        let claims = match self.0 {
            PermitKind::Unlimited => None,
            PermitKind::Limited(claims) => Some(claims),
            PermitKind::Addressed(permit) => permit.claims,
        };
        Permit(PermitKind::Addressed(Box::new(AddressedPermit { claims, recipient: name.into() })))
    }

    /// The claims, if anything is limited.
    pub(crate) fn claims(&self) -> Option<&RequestPermit> {
        match &self.0 {
            PermitKind::Unlimited => None,
            PermitKind::Limited(claims) => Some(claims),
            PermitKind::Addressed(permit) => permit.claims.as_ref(),
        }
    }

    /// The only sink that its data is for.
    pub(crate) fn recipient(&self) -> Option<&str> {
        match &self.0 {
            PermitKind::Addressed(permit) => Some(&permit.recipient),
            PermitKind::Unlimited | PermitKind::Limited(_) => None,
        }
    }

    /// Why the request could not [grow](crate::Gate::grow), if it could not.
    pub fn denied(&self) -> Option<CannedRefusal> {
        let note = usize::from(self.claims()?.note());
        CannedRefusal::ALL.get(note.checked_sub(1)?).copied()
    }

    pub(crate) fn deny(&self, canned: CannedRefusal) {
        if let Some(hold) = self.claims() {
            // There are fewer than 255, and zero is none.
            hold.set_note(canned as u8 + 1);
        }
    }
}

/// Why a limit forbids a request, with the delay that its client gets.
#[inline]
pub(crate) fn refused(denied: Denied, pressure: &DrainEstimate) -> Rejection {
    use CannedRefusal::*;
    let (canned, LimitReached { wait, .. }) = match denied {
        Denied::Share { held } => {
            return Rejection::canned(Share).retry_after(pressure.delay(held));
        }
        Denied::Route(reached) => {
            let canned = match reached.limit {
                Limit::Requests => RouteRequests,
                Limit::Items => RouteItems,
                Limit::Bytes => RouteBytes,
                Limit::Concurrency => RouteConcurrency,
                Limit::InFlight => RouteInFlight,
            };
            (canned, reached)
        }
        Denied::Tenant(reached) => {
            let canned = match reached.limit {
                Limit::Requests => TenantRequests,
                Limit::Items => TenantItems,
                Limit::Bytes => TenantBytes,
                Limit::Concurrency => TenantConcurrency,
                Limit::InFlight => TenantInFlight,
            };
            (canned, reached)
        }
    };
    // How long others take is not known, and what they hold at a time is held for a moment.
    let wait = wait.unwrap_or(Duration::from_secs(1));
    // Rounded up: before that it would be refused again.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Rejection::canned(canned).retry_after(pressure.jitter(seconds))
}
