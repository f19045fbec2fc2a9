//! The refusals that come by the thousand, and say the same each time.

use tidegate_ledger::Refusal;

/// Declares them: a name, the reason in the books, and the words.
macro_rules! canned_refusals {
    ($($name:ident $reason:ident $words:literal,)+) => {
        /// A refusal whose words are always the same: its answers are put together at the start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CannedRefusal {
            $(#[doc = $words] $name,)+
        }

        impl CannedRefusal {
            /// All of them.
            pub const ALL: &[CannedRefusal] = &[$(CannedRefusal::$name),+];

            /// The reason in the books.
            #[inline]
            pub const fn reason(self) -> Refusal {
                match self { $(CannedRefusal::$name => Refusal::$reason,)+ }
            }

            /// The error and its remedy, with a line feed at the end.
            pub const fn words(self) -> &'static str {
                match self { $(CannedRefusal::$name => concat!($words, "\n"),)+ }
            }
        }
    };
}

canned_refusals! {
    Memory Memory "no memory is free for this request now; send it again later",
    Share Share "memory is short, and this tenant holds its part of it; send it again later",
    Quota Disk "the journal's quota is used up by items that the sinks have not delivered yet; retry later",
    DiskFull Disk "the disk of the journal is full; send it again later",
    DiskFails Disk "the disk of the journal is failing; send it again later",
    Stopping Shutdown "the gateway is stopping; send it again",
    Connections Connections "as many connections as are allowed, in all or from one address, are open; connect again later",
    RouteRequests RateLimited "more requests a second arrive here than are allowed; send it again later",
    RouteItems RateLimited "more items a second arrive here than are allowed; send it again later",
    RouteBytes RateLimited "more bytes a second arrive here than are allowed; send it again later",
    RouteConcurrency Concurrency "as many requests as are allowed are being served; send it again later",
    RouteInFlight Concurrency "as many bytes as are allowed are being received; send it again later",
    TenantRequests RateLimited "more requests a second arrive than this tenant may send; send it again later",
    TenantItems RateLimited "more items a second arrive than this tenant may send; send it again later",
    TenantBytes RateLimited "more bytes a second arrive than this tenant may send; send it again later",
    TenantConcurrency Concurrency "as many requests as this tenant may send are being served; send it again later",
    HeadSeries RateLimited "this tenant has as many active series as it may have; send it again when it has less",
    TenantInFlight Concurrency "as many bytes as this tenant may send are being received; send it again later",
}
