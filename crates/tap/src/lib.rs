//! A live, bounded look at what passes a source or a sink.
//!
//! Sources and sinks [`offer`](Tap::offer) each record to the [`Tap`]. While nobody looks that is one relaxed
//! load. Somebody who looks [`open`](Tap::open)s it for a [`TapFilter`], and gets a [`RecordReader`] that shows what was
//! caught, an item a line, in JSON. It ends when they say so, when the connection that it
//! is bound to is gone, or a few seconds after the last reading ended.
//!
//! It promises: who offers never waits, and while nobody looks neither allocates nor locks; what a look may hold
//! ([`LOOK_BYTES`]) is charged before it begins and given back when it ends; what was not caught is counted and
//! said; a line is JSON whatever is in the record, and never longer than [`LONGEST_LINE`].
//!
//! It leaves to others: where records are offered (`admission`, `sinks`), and who may look (the console's port).
//! `design/tap.md` has the argument.

mod decode;
mod filter;
mod items;
mod line;
mod record_reader;
mod tap;
mod watch;

#[cfg(test)]
mod tests;

pub use filter::{FilterError, LONGEST_WAIT, SOURCES, TapFilter};
pub use line::LONGEST_LINE;
pub use record_reader::{ReadResult, RecordReader};
pub use tap::{LOOK_BYTES, LOOKS, OPEN_FOR, Tap, TapError};
pub use watch::{LONGEST_BODY, TapPoint};
