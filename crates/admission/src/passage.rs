//! What a request that was let in holds, and why one was not.

use crate::pressure::Pressure;
use crate::refused::Refused;
use std::time::Duration;
use tidegate_ledger::Refusal;
use tidegate_limit::{Denied, Hold, Limit, Reached};

/// What a request that was let in has of the limits of its route and its tenant. To be kept until it is answered:
/// dropping it gives that back. Where nothing is limited it is nothing.
#[derive(Debug, Default)]
#[must_use = "dropping it gives back what the request holds"]
pub struct Passage(pub(crate) Option<Hold>);

/// Why a limit forbids a request, in the words and with the delay that its client gets.
pub(crate) fn refused(denied: Denied, pressure: &Pressure) -> Refused {
    let (Denied::Route(reached) | Denied::Tenant(reached)) = denied else {
        let Denied::Share { held } = denied else { return Refused::new(Refusal::Share, SHARE) };
        return Refused::new(Refusal::Share, SHARE).retry_after(pressure.delay(held));
    };
    let of_tenant = matches!(denied, Denied::Tenant(_));
    let Reached { limit, wait } = reached;
    let words = match (limit, of_tenant) {
        (Limit::Requests, false) => {
            "more requests a second arrive here than are allowed; send it again later\n"
        }
        (Limit::Requests, true) => "more requests a second than this tenant may send; send it again later\n",
        (Limit::Items, false) => "more items a second arrive here than are allowed; send it again later\n",
        (Limit::Items, true) => "more items a second than this tenant may send; send it again later\n",
        (Limit::Bytes, false) => "more bytes a second arrive here than are allowed; send it again later\n",
        (Limit::Bytes, true) => "more bytes a second than this tenant may send; send it again later\n",
        (Limit::Concurrency, false) => {
            "as many requests as are allowed are being served; send it again later\n"
        }
        (Limit::Concurrency, true) => {
            "as many requests as this tenant may send are being served; send it again later\n"
        }
        (Limit::InFlight, false) => "as many bytes as are allowed are being received; send it again later\n",
        (Limit::InFlight, true) => {
            "as many bytes as this tenant may send are being received; send it again later\n"
        }
    };
    let reason = match limit {
        Limit::Requests | Limit::Items | Limit::Bytes => Refusal::RateLimited,
        Limit::Concurrency | Limit::InFlight => Refusal::Concurrency,
    };
    // How long others take is not known, and what they hold at a time is held for a moment.
    let seconds = whole_seconds(wait.unwrap_or(Duration::from_secs(1)));
    Refused::new(reason, words).retry_after(pressure.jitter(seconds))
}

const SHARE: &str = "memory is short, and this tenant holds its part of it; send it again later\n";

/// Rounded up: before that it would be refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
