//! Offsets at which reading of log files starts, taken from the checkpoints of other programs.
//!
//! `tidegate import checkpoints` reads the checkpoints of Promtail, Alloy, Filebeat, Fluent Bit or the OpenTelemetry Collector,
//! compares them with the files on disk ([`survey()`]), and stores the result in the data folder ([`StoredOffsets`]). The source
//! `file` looks each file without a checkpoint of its own up in it ([`StartOffsets`]).
//!
//! Promises: the other program's files are only read, and a damaged one is an error and never a panic; an offset applies to
//! a file only while the file begins with the bytes that it began with when the offset was stored.
//!
//! Where a program stops reading is its own affair: what it had read but not delivered when it stopped is behind its
//! checkpoint, and comes again.

mod bolt;
mod bounded;
mod checkpoint;
mod collector;
mod filebeat;
mod fluent_bit;
mod prefix;
mod promtail;
mod sqlite;
mod start_offsets;
mod stored_offsets;
mod survey;

pub use bounded::ReadError;
pub use checkpoint::{Checkpoint, Checkpoints};
pub use collector::collector;
pub use filebeat::filebeat;
pub use fluent_bit::fluent_bit;
pub use prefix::{PREFIX_LEN, Prefix};
pub use promtail::promtail;
pub use start_offsets::StartOffsets;
pub use stored_offsets::{MOST_FILES, StoredOffset, StoredOffsets};
pub use survey::{State, SurveyedFile, survey};
