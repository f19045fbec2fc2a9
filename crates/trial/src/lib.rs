//! Runs pipelines over sample items outside a gateway: for the tests in a configuration, for `tidegate pipeline eval`, and for
//! the page on which people try things.
//!
//! It works on the heap, with items as JSON: it is for a person's handful of items, not for traffic. Items look as the sink
//! `http` writes them (`docs/http-sink.md`); series of remote write are texts as Prometheus shows them.

mod apply;
mod compare;
mod explain;
mod items;
mod marks;
mod paste;
mod series;
mod trace;

pub use apply::{Applied, StepTotals, TooLong, apply, apply_within};
pub use compare::{Difference, differences};
pub use explain::{Change, Explained, explain};
pub use items::{ItemError, decode, encode};
pub use paste::{MOST_ITEMS, PasteProblem, Pasted, PastedBody, read as read_pasted};
pub use series::{decode as decode_series, decode_with_values as decode_samples, encode as encode_series};
pub use trace::{Bounds, Trace, TracedChange, TracedItem, TracedStatement, trace};
