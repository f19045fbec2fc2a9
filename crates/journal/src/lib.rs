//! The append-only journal between sources and sinks.
//!
//! Sources [`append`](Journal::append) batches; every sink [`follow`](Journal::follow)s with a cursor of its
//! own, and [`commit`](Committer::commit)s what it has delivered. Nothing else is shared between them, so a
//! slow sink costs disk, not memory, and slows nobody.
//!
//! It promises: an append that was acknowledged is there after any crash that its [`Durability`] names, in
//! order, bit for bit, until every sink has completed it. It always opens: what is damaged is skipped, kept
//! aside and counted, never fatal. A full disk refuses appends and resumes by itself. Memory does not grow
//! with the backlog: it is O(segments) and O(sinks), and an append allocates nothing.
//!
//! A batch may carry [`Checkpoints`]: how far a source has read. They hold exactly when the batch is durable, and
//! outlive it.
//!
//! It leaves to others: deciding who may append (`admission`), counting items (`ledger`; every
//! [`Event`] says how many), and paying for the windows that bodies travel in (`arena`).
//!
//! The layout of the bytes and the argument for each crash case are in `design/journal.md`.

mod append;
mod checkpoints;
mod clock;
mod commit_order;
mod cursor;
mod cursor_state;
pub mod dead_letters;
mod drain_rate;
mod follower;
pub mod inspect;
mod journal;
mod meta;
mod queue;
mod receive_clock;
mod receive_times;
mod record;
mod record_scanner;
mod recover;
mod segment;
mod segment_index;
mod settings;
mod shared;
mod stats;
mod sync;
mod writer;

pub use append::Receipt;
pub use checkpoints::table::CHECKPOINT_BYTES;
pub use checkpoints::{CHECKPOINT_KEY_MAX, CHECKPOINT_VALUE_MAX, CheckpointError, Checkpoints};
pub use clock::{Clock, SystemClock};
pub use cursor::{CURSOR_METADATA_LEN, CursorMetadata, MAX_IN_FLIGHT};
pub use follower::{
    Committer, CompletedRecords, CursorPosition, Event, Follower, Gap, ReadError, Recipient, Record,
};
pub use journal::{AppendFuture, Batch, Journal};
pub use meta::{Encoding, Meta, Protocol, Signal, TENANT_MAX, Tenant, is_mixed};
pub use receive_clock::SET_BACK_NS;
pub use recover::Recovery;
pub use settings::{AppendError, DiskError, Durability, OpenError, Settings, StartAt, WhenFull};
pub use stats::{SinkStats, Stats};

#[cfg(all(test, not(loom)))]
mod tests;
