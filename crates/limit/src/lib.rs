//! How much anybody may use.
//!
//! A [`Limiter`] holds the limits of one route or one tenant: requests, items and bytes a second, requests and
//! bytes at a time, items and bytes in one request. [`Throttle`] gives tokens to at most so many keys, each for a time. [`Tenants`] is a table of
//! fixed size, in which names that find no room share one entry; it also knows what memory each tenant holds, and
//! what its fair part is. A [`AdmissionTable`] puts routes and tenants together, a [`RequestPermit`] is what one request has of both, and
//! a [`DecodeShare`] what its body takes while it is decompressed. [`HeadSeries`] compares the series of a tenant in the store behind with its limit. [`ConnectionCounts`] counts connections per address, and [`Network`] says what
//! one address is.
//!
//! It promises: a decision takes no lock and no memory; a limit is never exceeded by a race; what was taken
//! of a number at a time is given back exactly once, when its value is dropped; nothing here grows with what
//! comes from outside.
//!
//! It leaves to others: whose a request is and what is answered (`admission`), counting (`ledger`), the memory
//! itself (`arena`). The argument is in `design/limits.md`.

mod clock;
mod concurrency_gauge;
mod connection_counts;
mod hash;
mod head_series;
mod limiter;
mod network;
mod rate;
mod request_size_limit;
mod sync;
mod table;
mod tenants;
mod throttle;

pub use clock::Moment;
pub use concurrency_gauge::ConcurrencyGauge;
pub use connection_counts::{ConnectionCounts, CountedConnection};
pub use head_series::{
    HeadSeries, HeadSeriesCounts, HeadSeriesLimits, HeadSeriesState, MOST_COUNTED_TENANTS,
};
pub use limiter::{Limit, LimitReached, Limiter, LimiterPermit, LimiterSettings};
pub use network::Network;
pub use rate::{PerSecond, Rate};
pub use request_size_limit::RequestTooLarge;
pub use table::{AdmissionTable, DecodeShare, Denied, MAX_ROUTES, RequestPermit, RouteId, TranslationShare};
pub use tenants::{OTHER, TenantAccount, TenantAllowance, TenantId, TenantLimits, Tenants};
pub use throttle::{NoToken, Throttle, Token};
