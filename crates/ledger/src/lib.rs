//! The books: what came in, and what became of it. The one owner of all counters about items.
//!
//! These equations hold at every moment, not only at rest, because every entry moves an item or a request
//! from one column to another under one lock:
//!
//! - for each source: requests received = accepted + refused (by reason) + open;
//! - for each source that forwards items instead of journalling them: items forwarded = answered + rejected +
//!   unanswered + refused + abandoned + open;
//! - for each source with a pipeline: items received = accepted + filtered + sampled out;
//! - for the journal: items accepted ≤ items appended ≤ items accepted + items handed over;
//! - for each sink: items accepted since it was attached = delivered + passed over + queued + dropped (by reason).
//!
//! Queued items are not counted here: their number follows from the journal's own counts in every record, so the
//! journal's equation compares two independent counts. A sink's columns are stored with its cursor ([`SinkLedger`]), so the
//! books still balance after a crash.
//!
//! Passed over is what a sink is not configured to take, as logs by a sink for metrics, and what is sent again to another
//! sink: not its business, so neither delivered nor dropped. Replayed items were sent again to the sink itself; they are among
//! the accepted ones.
//!
//! Where there are tenants, each has a page of the requests that are known to be its own; the first equation
//! holds there too.
//!
//! A difference is therefore always a mistake in the program; it is shown on `/status` and in `/metrics`.
//! Deciding refusals is left to admission, moving cursors to the journal, sending to the sinks.

mod balance;
mod forwarded;
mod journal;
mod ledger;
mod metrics;
mod pipeline;
mod reason;
mod recent;
mod signal;
mod sink;
mod sink_ledger;
mod source;
mod tenant;

#[cfg(test)]
mod tests;

pub use balance::{Balance, ForwardedBalance, JournalBalance, PipelineBalance, SinkBalance, SourceBalance};
pub use forwarded::{Fate, Forwarded};
pub use journal::JournalItems;
pub use ledger::{Ledger, MAX_SINKS, MAX_SOURCES, MAX_TENANTS, TooMany};
pub use pipeline::PipelineItems;
pub use reason::{Dropped, Refusal};
pub use recent::{MOST_RECENT_REFUSALS, RecentRefusal, RefusalDetails, ShortText};
pub use signal::{Counts, Signal};
pub use sink::{Settlement, SinkAccount};
pub use sink_ledger::{SinkLedger, UnknownVersion};
pub use source::{ItemRefusal, OpenRequest, Source, SubmittedRequest};
pub use tenant::{MAX_TENANT_NAME, TenantHandle, TenantTotals};
