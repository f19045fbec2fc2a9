//! Many small callers become few large requests to Elasticsearch or OpenSearch.
//!
//! Callers on any thread hand over a `create`, `index`, `update`, `delete`, `get` or `search` and await a
//! [`Ticket`]. One task, the [`Driver`], sends what has gathered as `_bulk`, `_mget` and `_msearch` when there
//! are enough items, enough bytes, or the oldest has waited long enough, and gives each item its own answer.
//!
//! Guarantees:
//! - *bounded*: bodies that wait or are under way, and answers, are charged to a share of the arena; callers
//!   have slots in one allocation of a declared size. What has no room is refused at once, with a delay;
//! - *in order*: items for one document are carried out in the order in which they were handed over, also
//!   across requests and retries;
//! - *one answer each*: typed, also when the whole request fails and when the engine ends;
//! - *leaving is cheap*: dropping a ticket takes an item back that was not sent, in O(1), without a task, a
//!   timer or an allocation; an item that is under way only loses its reader;
//! - *nobody waits for strangers*: each kind of request has its own slots, and one that hangs holds up only
//!   items for the very documents that it carries.
//!
//! It leaves to others: what a document means, the connection ([`Transport`], of which [`http`] is one), and
//! who runs the driver. The argument is in `design/bulk.md`.
#![cfg_attr(not(feature = "driver"), allow(dead_code, reason = "only the driver sends and answers"))]

pub mod answer;
mod backoff;
mod batch;
mod clock;
mod document;
mod drain;
#[cfg(feature = "driver")]
mod driver;
mod engine;
#[cfg(feature = "driver")]
mod flight;
#[cfg(feature = "driver")]
mod forward;
#[cfg(feature = "http")]
pub mod http;
mod lane;
mod line;
mod list;
#[cfg(all(test, loom))]
mod loom;
mod meters;
mod outcome;
mod settings;
mod slots;
mod state;
mod sync;
mod target;
mod transport;

#[cfg(feature = "driver")]
pub use driver::Driver;
pub use engine::{Bulk, Ticket};
#[cfg(feature = "driver")]
pub use forward::Forward;
pub use lane::{LANES, Lane};
pub use list::List;
pub use outcome::{Answer, Body, Element, Failure, Found, Hits, Kind, Refused, Revision, Written};
pub use settings::Settings;
pub use target::{Refresh, Search, Target};
pub use transport::{Answered, NoAnswer, Payload, Request, Transport};
