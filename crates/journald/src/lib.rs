//! systemd's journal as OpenTelemetry logs.
//!
//! - [`Decoder`] reads the journal export format from chunks of any length, within fixed memory.
//! - [`record_of`] maps the fields of an entry to a record and its attributes.
//! - [`Reader`] follows the journal and gives batches to a [`Destination`], with the cursor behind which it goes on.
//! - [`Journalctl`] is a running `journalctl` that follows the journal from a [`Start`].
//! - [`Cursor`] tells where in the journal an entry is, and how many may be missing between two.
//!
//! It promises: whatever `journalctl` writes, an entry takes at most [`EntryLimits`], is never half of another, and a field
//! that is too long is cut and marked; the program ends with the [`Journalctl`] that started it.
//!
//! A cursor goes with the records before it, so an entry is delivered once; entries that were deleted unread are counted.
//!
//! It leaves to others: making records and the cursor durable.
//!
//! The design is in `design/journald.md`.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod counters;
mod cursor;
mod destination;
mod export;
mod fields;
mod journalctl;
mod reader;
mod record;

pub use counters::Counters;
pub use cursor::{Cursor, Position};
pub use destination::{AppendError, Buffer, Destination, EncodedBatch};
pub use export::{Decoder, Entry, EntryLimits, Field, Malformed, Progress};
pub use fields::{FieldSet, Fields};
pub use journalctl::{Chunk, Journalctl, JournalctlSettings, Start, StartError};
pub use reader::{Reader, ReaderSettings};
pub use record::{Attribute, Record, Resource, Value, record_of, resource_of};
