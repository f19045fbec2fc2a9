//! Configurations of others, said in ours.

mod document;
mod fluent_bit;
mod group;
mod notes;
mod otelcol;
mod ottl;
mod prometheus;
mod references;
mod relabel;
mod sinks;
mod steps;
#[expect(
    unreachable_pub,
    reason = "the settings of others are declared as ours are, and are nobody's business"
)]
mod thanos_limits;
mod thanos_receive;
mod vector;
mod vmagent;

pub use fluent_bit::fluent_bit;
pub use notes::{Imported, Note};
pub use otelcol::{CollectorVersion, otelcol};
pub use prometheus::prometheus;
pub use thanos_limits::thanos_limits;
pub use thanos_receive::thanos_receive;
pub use vector::vector;
pub use vmagent::vmagent;
