//! Derived metrics: counts, sums and histograms of spans, log records and data points, flushed as OTLP metrics.
//!
//! A pipeline's run tells an [`Aggregator`] what it measured. The aggregator adds it to a series, found by tenant, resource, measure and
//! attributes. A flush writes all series as OTLP requests, in pieces that fit a request.
//!
//! Promises:
//! - Nothing grows: [`Settings::bytes`] is all that an aggregator takes, whatever arrives. An observation allocates nothing.
//! - No observation is lost silently: where a series has no room, its observations go to the overflow series of their tenant and
//!   measure, and are counted.
//! - Time comes from outside. The same observations at the same times have the same output.
//! - A restart continues: [`Aggregator::write_state`] and [`Aggregator::read_state`] keep all series, also in the midst of a flush.
//!
//! Where a group has [`PairSettings`], its observations are spans: each of a client waits for that of its server, or the other way round, and the
//! two are one observation of an edge in the graph of services.
//!
//! The crate does no I/O: its owner reads the journal, sends the requests and stores the state.

mod aggregator;
mod any_text;
mod attributes;
mod blob;
mod exemplar;
mod exponential;
mod flush;
mod index;
mod instrument;
mod number;
mod pairs;
mod piece;
mod point;
mod request;
mod resources;
mod series;
mod settings;
mod state;
mod state_stream;
#[cfg(test)]
mod tests;

pub use aggregator::{Aggregator, Counts};
pub use flush::Flush;
pub use pairs::PairSettings;
pub use piece::Piece;
pub use settings::{Group, Instrument, InstrumentKind, Settings, Temporality};
pub use state::StateError;
