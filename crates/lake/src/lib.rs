//! The lake: metrics, spans and logs as Parquet files on disk, written in a fixed slice of memory and read
//! back.
//!
//! A [`Writer`] takes checked bodies of remote write and OTLP in the order of the journal's sequences and turns
//! them into files of the four [`Table`]s, partitioned by the hour in which they were received. Files become part
//! of the lake by one line in that hour's manifest; [`scan`], [`list`] and [`verify`] read what the
//! manifests name and nothing else.
//!
//! It promises:
//! - all that the writer holds at any moment, parquet's encoders and zstd included, fits in the slice that
//!   it was opened with, whatever the labels look like ([`Writer::smallest_slice`] is the least);
//! - a sequence is in the lake once: after a crash at any point, [`Writer::open`] says after which sequence
//!   to go on, and what had been written beyond it is gone;
//! - what comes out is what came in, to the bit: NaN payloads, stale markers, all labels,
//!   every attribute with its type. What cannot be
//!   kept is counted by reason in [`BatchResult`], never silently left out.
//!
//! It leaves to others: following the journal and committing its cursor once a [`Commit`] is out,
//! decompressing and checking bodies, paying for the slice, and the threads to run on. It merges no files.
//!
//! The argument is in `design/lake.md`.

mod buffer_sizes;
mod checksum;
mod error;
mod file;
mod gatherer;
mod json;
mod labels;
mod layout;
mod list;
mod manifest;
mod metadata;
mod otlp;
mod output;
mod pool;
mod prometheus;
mod query;
mod replay;
mod retention;
mod run;
mod scan;
mod search;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod verify;
mod views;
mod writer;

pub use buffer_sizes::largest_item;
pub use error::Error;
pub use layout::Hour;
pub use list::{Partition, list};
pub use otlp::BatchInParts;
pub use output::{Format, Output, json_of};
pub use prometheus::{BatchPosition, BatchResult, DroppedItems};
pub use query::{Matcher, Query};
pub use replay::{Replay, ReplayLosses, ReplayPosition, ReplayProtocol, ReplayQuery, ReplayRequest};
pub use retention::Retention;
pub use scan::{Scan, scan};
pub use search::{Search, SearchCounts, Snapshot, Uncommitted, Visitor};
pub use table::Table;
pub use verify::{VerifyReport, verify, verify_presence};
pub use views::duckdb_views;
pub use writer::{Commit, CommittedFile, Writer, WriterSettings};
