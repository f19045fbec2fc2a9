//! Configurations of others, said in ours.

#[expect(
    unreachable_pub,
    reason = "the settings of others are declared as ours are, and are nobody's business"
)]
mod thanos;

pub use thanos::thanos_limits;
