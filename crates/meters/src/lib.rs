//! Meters: fixed-size counters, gauges and histograms with bounded label sets.
//!
//! Guarantees:
//! - a meter's memory is allocated when it is made and never grows; `size_bytes` says how much it is;
//! - counting and observing never allocate and never lock;
//! - no label value from outside can make the number of series grow beyond the bound given at creation:
//!   what does not fit is counted in one series labelled `other`, and the overflow itself is counted.
//!
//! The registry and the text format are `prometheus-client`'s; the storage is ours. What to count, and
//! whether the books balance, is left to `tidegate-ledger`; serving the text is left to the console.

mod counter;
mod encode;
mod family;
mod gauge;
mod histogram;
mod name;
mod registry;
mod seat;
mod unit;
mod value;

#[cfg(test)]
mod tests;

pub use counter::Counter;
pub use family::{Family, MAX_LABEL_BYTES, Meter, OTHER};
pub use gauge::Gauge;
pub use histogram::{Buckets, Histogram, Summary};
pub use name::Name;
pub use registry::{CONTENT_TYPE, PREFIX, Reading, Registry};
pub use unit::Unit;
pub use value::{Kind, Value};
