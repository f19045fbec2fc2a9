//! Reading what was caught: records to lines.

use crate::decode::{self, DecodeError, decode};
use crate::filter::TapFilter;
use crate::items::{Items, RemainingItems};
use crate::line::{LONGEST_LINE, Line};
use crate::watch::{CaughtBody, CaughtRecord, LONGEST_BODY, Watch};
use std::sync::Arc;
use tidegate_journal::Meta;

/// The most memory that symbols of a request of Remote-Write 2.0 may take to be shown.
pub(crate) const SYMBOLS: usize = 256 << 10;
/// Most bytes for showing a record, including the record: two lines, which grow by doubling. A quarter is for the
/// allocator's rounding.
pub(crate) const BYTES: usize = (LONGEST_BODY + decode::BYTES + SYMBOLS + 4 * LONGEST_LINE) / 4 * 5;

const NOT_CAUGHT: &str = "the body is longer than 256 KiB";
const TOO_LONG: &str = "the body is longer than 1 MiB once decompressed";
const DAMAGED: &str = "the body cannot be decompressed";

/// Shows what a look has caught. The tap stays open while there is one.
pub struct RecordReader {
    watch: Arc<Watch>,
    look: TapFilter,
}

/// The result for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadResult {
    /// Lines that were written.
    pub lines: u64,
    /// Lines for which there was no room.
    pub no_room: u64,
    /// The bytes examined.
    pub bytes: usize,
}

impl RecordReader {
    /// The reading that was claimed.
    pub(crate) fn new(watch: Arc<Watch>, look: TapFilter) -> RecordReader {
        RecordReader { watch, look }
    }

    /// How many records wait to be shown.
    pub fn waiting(&self) -> usize {
        self.watch.waiting()
    }

    /// Whether the look was ended meanwhile: what it holds is given back when this is dropped.
    pub fn is_over(&self) -> bool {
        self.watch.has_ended()
    }

    /// How many records passed since this was asked last that the look would have caught, if there had been room.
    pub fn missed(&self) -> u64 {
        self.watch.missed()
    }

    /// Does something while the queue is in use by somebody else.
    #[cfg(test)]
    pub(crate) fn holding(&self, act: impl FnOnce()) {
        self.watch.holding(act);
    }

    /// Takes the next record and shows what is known of it, and its body as it was before it was compressed: `Err` says why that is not
    /// shown. Nothing when none waits.
    pub fn read_next<T>(&self, read: impl FnOnce(&Meta, Result<&[u8], &'static str>) -> T) -> Option<T> {
        let caught = self.watch.next()?;
        let CaughtBody::Whole(body) = &caught.body else {
            return Some(read(&caught.meta, Err(NOT_CAUGHT)));
        };
        Some(match decode(&caught.meta, body) {
            Ok(raw) => read(&caught.meta, Ok(&raw)),
            Err(DecodeError::TooLong) => read(&caught.meta, Err(TOO_LONG)),
            Err(DecodeError::Damaged) => read(&caught.meta, Err(DAMAGED)),
        })
    }

    /// Takes the next record and gives its lines to `out`, which says whether it had room. Nothing when none
    /// waits. A record takes some milliseconds at most: who shares a thread with others lets them go first now
    /// and then.
    pub fn write_next(&self, out: &mut dyn FnMut(&str) -> bool) -> Option<ReadResult> {
        let caught = self.watch.next()?;
        let start = start(&caught);
        let mut items = Items::new(&self.look, &start, out);
        let mut bytes = 0;
        let left = match &caught.body {
            CaughtBody::NotRead => RemainingItems::all("the sink does not read bodies"),
            CaughtBody::TooLong(_) => RemainingItems::all(NOT_CAUGHT),
            CaughtBody::Whole(body) => match decode(&caught.meta, body) {
                Ok(raw) => {
                    bytes = raw.len();
                    items.walk(&caught.meta, &raw)
                }
                Err(DecodeError::TooLong) => RemainingItems::all(TOO_LONG),
                Err(DecodeError::Damaged) => RemainingItems::all(DAMAGED),
            },
        };
        items.say(&caught, left);
        let (lines, no_room) = items.counts();
        Some(ReadResult { lines, no_room, bytes })
    }
}

impl Drop for RecordReader {
    fn drop(&mut self) {
        self.watch.release();
    }
}

/// The prefix of all lines of a record: an open object.
fn start(caught: &CaughtRecord) -> String {
    let meta = &caught.meta;
    let mut line = Line::default();
    line.begin("{\"at\":");
    let (place, name) = &caught.at;
    line.join(place, name);
    // Of several, each item says its own.
    if !meta.is_mixed() {
        line.text("signal", meta.signal.name().as_bytes());
    }
    line.text("tenant", meta.tenant.as_str().as_bytes());
    line.time("received", meta.received_at_ns);
    line.into_start()
}
