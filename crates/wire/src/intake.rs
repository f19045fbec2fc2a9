//! Elastic APM's intake, version 2: lines of JSON, of which the first says who speaks and each other is an event.
//!
//! [`check`] walks a decompressed body once and says what is in it, and what is wrong with which line. [`events`]
//! shows a checked body without a copy.
//!
//! Checked: that each line is JSON, that its only member names a kind of event, that required fields are there, and
//! that known fields are of their type and no longer than they may be. Fields that are not known are passed over,
//! and `null` is the same as no field, and so is an object without members. Of a field that is given twice the last counts.
//! Names of fields that are written with escapes are not known.
//!
//! Specification: <https://github.com/elastic/apm-data/tree/main/input/elasticapm/docs/spec/v2>, and where that says
//! less than the server checks, its decoder.

pub mod address;
mod check;
mod error;
mod schema;
#[cfg(test)]
mod tests;
mod view;

pub use check::MAX_DEPTH;
pub use error::{EventError, EventErrorKind};
pub use view::{Array, Members, Number, Object, Text, Value, Values};

use crate::otlp::Signal;
use crate::utf8::is_utf8;
use std::ops::Range;

/// The longest line that is taken, in bytes: as APM Server has it (`max_event_size`).
pub const LONGEST_LINE: usize = 300 << 10;

/// The contents of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The metadata: the first line, and no other.
    Metadata,
    /// Something that a service did for others.
    Transaction,
    /// A part of that.
    Span,
    /// An exception, or a logged error.
    Error,
    /// Values of metrics.
    Metricset,
    /// A log record, in the fields of ECS.
    Log,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 6] = [
        EventKind::Metadata,
        EventKind::Transaction,
        EventKind::Span,
        EventKind::Error,
        EventKind::Metricset,
        EventKind::Log,
    ];

    /// The name of the member that holds it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Metadata => "metadata",
            EventKind::Transaction => "transaction",
            EventKind::Span => "span",
            EventKind::Error => "error",
            EventKind::Metricset => "metricset",
            EventKind::Log => "log",
        }
    }

    /// The signal of its events; nothing for the metadata, which belong to all of them.
    #[must_use]
    pub const fn signal(self) -> Option<Signal> {
        match self {
            EventKind::Transaction | EventKind::Span => Some(Signal::Traces),
            EventKind::Error | EventKind::Log => Some(Signal::Logs),
            EventKind::Metricset => Some(Signal::Metrics),
            EventKind::Metadata => None,
        }
    }

    fn named(name: &[u8]) -> Option<EventKind> {
        EventKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// A set of kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventKinds(u8);

impl EventKinds {
    /// All of them.
    pub const ALL: EventKinds = EventKinds(u8::MAX);

    /// Whether `kind` is among them.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> EventKinds {
        EventKinds(kinds.into_iter().fold(0, |all, kind| all | 1 << kind as u8))
    }
}

/// An event as it stands in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its kind.
    pub kind: EventKind,
    raw: &'a [u8],
}

impl<'a> Event<'a> {
    /// Its fields.
    #[must_use]
    pub fn fields(self) -> Object<'a> {
        Object::new(self.raw)
    }
}

/// The contents of a checked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events, the metadata not being one.
    pub events: u64,
    /// How many of those are transactions and spans.
    pub traces: u64,
    /// How many are metricsets.
    pub metrics: u64,
    /// How many are errors and logs.
    pub logs: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// The bytes of the longest event's line together with those of the metadata's, which says whose it is.
    pub largest_item: usize,
}

/// Checks the decompressed body `raw` in one walk and counts what is in it. Lines longer than `longest` bytes are
/// refused without a look. `refused` is told of each line that is, with where it is in `raw`, its line feed included.
/// Nothing is allocated.
///
/// # Errors
/// The error in the first line, if that is not the metadata: then nothing of the body can be used. A body without
/// lines is an empty body.
pub fn check(
    raw: &[u8],
    longest: usize,
    mut refused: impl FnMut(Range<usize>, EventError),
) -> Result<Counts, IntakeError> {
    let all_utf8 = is_utf8(raw);
    let mut counts = Counts::default();
    let mut begun = false;
    let mut metadata = 0;
    for (range, line) in lines(raw) {
        let verdict = match check_line(line, longest, all_utf8) {
            Ok(event) if begun == (event.kind == EventKind::Metadata) => {
                Err(EventError { event: Some(event.kind), kind: EventErrorKind::Order })
            }
            verdict => verdict,
        };
        match verdict {
            Ok(event) if begun => {
                counts.events += 1;
                match event.kind.signal() {
                    Some(Signal::Traces) => counts.traces += 1,
                    Some(Signal::Metrics) => counts.metrics += 1,
                    _ => counts.logs += 1,
                }
                counts.largest_item = counts.largest_item.max(metadata + range.len());
            }
            Ok(_) => (begun, metadata) = (true, range.len()),
            Err(error) if !begun => return Err(IntakeError { line: range, error }),
            Err(error) => {
                counts.refused += 1;
                refused(range, error);
            }
        }
    }
    Ok(counts)
}

/// Moves the lines that [`check`] does not refuse to the start of `raw`, in their order, and says how many bytes they
/// take. For bodies whose first line is the metadata.
pub fn retain_valid(raw: &mut [u8], longest: usize) -> usize {
    let (mut at, mut kept) = (0, 0);
    while let Some((range, line)) = line_at(raw, at) {
        let is_kept = match check_line(line, longest, false) {
            Ok(event) => (event.kind == EventKind::Metadata) == (kept == 0),
            Err(_) => false,
        };
        at = range.end;
        if is_kept {
            let len = range.len();
            raw.copy_within(range, kept);
            kept += len;
        }
    }
    kept
}

/// Why nothing of a body can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntakeError {
    /// Where its first line is.
    pub line: Range<usize>,
    /// The error.
    pub error: EventError,
}

fn check_line(line: &[u8], longest: usize, all_utf8: bool) -> Result<Event<'_>, EventError> {
    if line.len() > longest {
        return Err(EventError { event: None, kind: EventErrorKind::TooLong });
    }
    if !all_utf8 && !is_utf8(line) {
        return Err(EventError { event: None, kind: EventErrorKind::Utf8 });
    }
    check::event(line)
}

/// The events of a checked body, the metadata first.
pub fn events(raw: &[u8]) -> impl Iterator<Item = Event<'_>> {
    lines(raw).filter_map(|(_, line)| event(line))
}

/// Where the metadata of a checked body end: at their closing brace, before which there is a member.
#[must_use]
pub fn metadata_end(raw: &[u8]) -> Option<usize> {
    let (_, line) = lines(raw).next()?;
    let metadata = event(line).filter(|event| event.kind == EventKind::Metadata)?;
    let start = metadata.raw.as_ptr().addr().checked_sub(raw.as_ptr().addr())?;
    (start + metadata.raw.len()).checked_sub(1)
}

/// The events of a checked body from the line on that begins at `at`, each with where its line ends.
pub fn events_from(raw: &[u8], at: usize) -> impl Iterator<Item = (usize, Event<'_>)> {
    lines_from(raw, at).filter_map(|(range, line)| Some((range.end, event(line)?)))
}

/// The event of a checked line.
fn event(line: &[u8]) -> Option<Event<'_>> {
    let (name, value) = Object::new(line).members().next()?;
    Some(Event { kind: EventKind::named(name.raw())?, raw: value.object()?.raw() })
}

/// The lines of a body that are not blank: where they are with their line feed, and without it and blanks around.
pub fn lines(raw: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    lines_from(raw, 0)
}

fn lines_from(raw: &[u8], mut at: usize) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    std::iter::from_fn(move || {
        let (range, line) = line_at(raw, at)?;
        at = range.end;
        Some((range, line))
    })
    .filter(|(_, line)| !line.is_empty())
}

/// The line that begins at `at`.
fn line_at(raw: &[u8], at: usize) -> Option<(Range<usize>, &[u8])> {
    let rest = raw.get(at..).filter(|rest| !rest.is_empty())?;
    let len = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    Some((at..at + len, rest.get(..len)?.trim_ascii()))
}
