//! Code that the pipelines of sources and sinks share.
//!
//! A source's pipeline runs before the journal, a sink's behind it. Both decode a record's body, run the passes over it
//! in bounded steps, count what the steps did, and log the statements that failed. Where the memory comes from, and who
//! waits for it, is for each of them to say: [`run`] borrows it. `design/pipeline.md` has the argument.

pub mod decoding;
mod failure_log;
mod format;
mod memory;
mod meters;
mod run;

pub use failure_log::{FailureLog, Owner};
pub use format::format_of;
pub use memory::{GROWTH, WORKING, copies};
pub use meters::{PipelineMeters, StepMeters, StepTotals};
pub use run::{may_change, run, write};
