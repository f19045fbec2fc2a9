//! From the bytes of a log file to log records: lines, container formats, multiline records, and the checkpoint from which
//! reading resumes.
//!
//! [`Lines`] is the state of one file. Its caller reads the file and gives the bytes with [`Lines::feed`]; records go to an
//! [`Output`]. Whole lines are not copied: a record's text is a slice of the caller's buffer wherever it can be.
//!
//! Promises, argued in `design/lines.md`:
//! - Records do not depend on how the bytes are cut into feeds.
//! - [`Lines::checkpoint`] covers exactly the records that the output has taken. A reader that resumes from it gets every
//!   other record, and none of these.
//! - A file holds memory only for records whose end has not come, no more than [`Settings::most_held`], and asks the output
//!   before it does.
//! - Nothing from a file fails: lines that are too long, are not UTF-8, or do not have their container's format are
//!   counted in [`Counts`].
//!
//! No I/O and no clock.

mod checkpoint;
mod container;
mod counts;
mod decode;
mod framing;
mod lines;
mod pending;
mod record;
mod settings;
mod stream;
mod workspace;

pub use checkpoint::Checkpoint;
pub use container::Stream;
pub use counts::Counts;
pub use lines::{Fed, Lines, Stop};
pub use record::{Output, Record, Taken};
pub use settings::{Boundary, Encoding, Format, LineFormat, Multiline, OnLongLine, Settings};
pub use workspace::Workspace;
