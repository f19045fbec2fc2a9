//! Joins the items of many callers into few large requests to Elasticsearch or OpenSearch.
//!
//! Callers on any thread submit a `create`, `index`, `update`, `delete`, `get` or `search` and await a
//! [`Ticket`]. One task, the [`Driver`], sends the items as `_bulk`, `_mget` and `_msearch` when there are
//! enough items, enough bytes, or the oldest has waited long enough, and gives each item its own answer.
//!
//! Guarantees:
//! - *bounded*: bodies that wait or are in flight, and answers, are charged to a share of the arena;
//!   callers have slots in one allocation of a declared size. Without memory or a slot an item is refused
//!   at once, with a delay;
//! - *ordered*: items for one document are carried out in the order in which they were submitted, also
//!   across requests and retries;
//! - *one answer each*: typed, also when the whole request fails and when the engine ends;
//! - *cheap withdrawal*: dropping a ticket withdraws an unsent item in O(1), without a task, a timer or an
//!   allocation; the answer to an item in flight is discarded;
//! - *isolation*: each kind of request has its own limits, and a request that hangs delays only items for
//!   the documents that it carries.
//!
//! Left to others: the meaning of documents, the connection ([`Transport`], implemented by [`http`]), and
//! running the driver. The argument is in `design/bulk.md`.
#![cfg_attr(not(feature = "driver"), allow(dead_code, reason = "only the driver sends and answers"))]

mod backoff;
mod batch;
mod clock;
mod document;
#[cfg(feature = "driver")]
mod driver;
mod engine;
#[cfg(feature = "driver")]
mod forward;
#[cfg(feature = "http")]
pub mod http;
mod lane;
#[cfg(all(test, loom))]
mod loom;
mod meters;
mod new_item;
mod outcome;
pub mod response;
#[cfg(feature = "driver")]
mod send_batch;
mod settings;
mod slots;
mod state;
mod sync;
mod target;
mod throughput;
mod ticket_list;
mod transport;

#[cfg(feature = "driver")]
pub use driver::Driver;
pub use engine::{Bulk, Ticket};
#[cfg(feature = "driver")]
pub use forward::Forward;
pub use lane::{LANES, Lane};
pub use outcome::{
    Answer, BulkSubmitError, Failure, FailureKind, FetchedDocument, ItemResponse, ResponseBytes, Revision,
    SearchResponse, WriteResponse,
};
pub use settings::Settings;
pub use target::{Refresh, Search, Target};
pub use ticket_list::TicketList;
pub use transport::{
    Payload, RequestFailure, Transport, TransportError, TransportRequest, TransportResponse,
};
