//! Reasons why an item has no answer of the destination, and their words for the client.

use tidegate_admission::{Gate, Rejection};
use tidegate_bulk::{Failure, FailureKind, ItemResponse};
use tidegate_ledger::{Fate, Refusal};

/// Why an item was not sent, or has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The engine, or the destination, has no room.
    Busy(u32),
    /// It could not be sent in time.
    Late,
    /// It was sent, and not answered.
    Unanswered,
    Stopping,
    /// The destination refuses the gateway's credentials.
    Denied,
    TooLarge,
}

/// The response for a failure of the engine: the destination's answer to this item alone, or that there is none.
pub(super) fn judged(failure: Failure) -> Result<ItemResponse, Lost> {
    let Failure { kind, status, reason } = failure;
    match kind {
        FailureKind::Rejected | FailureKind::NoRoom => Err(Lost::Busy(1)),
        FailureKind::Timeout => Err(Lost::Late),
        FailureKind::Stopped => Err(Lost::Stopping),
        FailureKind::Denied => Err(Lost::Denied),
        FailureKind::Server if (400..500).contains(&status) => Err(Lost::Denied),
        // The destination refuses a request that has this item alone.
        FailureKind::Invalid | FailureKind::TooLarge => {
            Ok(ItemResponse { status, failed: true, body: None, reason })
        }
        _ => Err(Lost::Unanswered),
    }
}

impl Lost {
    /// Status, type and reason of an item's error.
    pub(super) fn words(self) -> (u16, &'static str, &'static str) {
        const REJECTED: &str = "es_rejected_execution_exception";
        const UNAVAILABLE: &str = "unavailable_shards_exception";
        match self {
            Lost::Busy(_) => (429, REJECTED, "the destination accepts no more items now; retry later"),
            Lost::Late => {
                (503, UNAVAILABLE, "it could not be sent to the destination in time; send it again later")
            }
            Lost::Unanswered => (
                503,
                UNAVAILABLE,
                "it was sent to the destination, which did not respond; it may have been carried out",
            ),
            Lost::Stopping => (503, UNAVAILABLE, "the gateway is stopping; send it again"),
            Lost::Denied => (
                503,
                UNAVAILABLE,
                "the destination refuses the gateway's requests; its operator can mend that",
            ),
            Lost::TooLarge => (413, "content_too_long_exception", "the item is larger than can be sent"),
        }
    }

    /// The refusal of a request of which no item has an answer.
    pub(super) fn refused(self, gate: &Gate) -> Rejection {
        const STOPPING: &str = "the gateway is stopping; send it again\n";
        let words = match self {
            Lost::Busy(_) => "the destination accepts no more items now; retry later\n",
            Lost::Late => "the items could not be sent to the destination in time; send them again later\n",
            Lost::Unanswered => {
                "the items were sent to the destination, which did not respond; they may have been carried out\n"
            }
            Lost::Stopping => STOPPING,
            Lost::Denied => "the destination refuses the gateway's requests; its operator can mend that\n",
            Lost::TooLarge => "the item is larger than can be sent; make it smaller\n",
        };
        let refused = Rejection::new(self.refusal(), words);
        match self {
            Lost::TooLarge => refused,
            Lost::Busy(seconds) => refused.retry_after(seconds),
            _ => refused.retry_after(gate.spread(1)),
        }
    }

    pub(super) fn refusal(self) -> Refusal {
        match self {
            Lost::Busy(_) => Refusal::Concurrency,
            Lost::Late | Lost::Unanswered | Lost::Denied => Refusal::Destination,
            Lost::Stopping => Refusal::Shutdown,
            Lost::TooLarge => Refusal::TooLarge,
        }
    }

    pub(super) fn fate(self) -> Fate {
        match self {
            Lost::Unanswered => Fate::Unanswered,
            _ => Fate::Refused,
        }
    }
}
