//! Taking bad items out of a request, so that they do not cost the good ones.

use super::field::{SeenFields, text};
use super::{Counts, attribute, log, metric, point, profile, trace};
use crate::otlp::Signal;
use crate::otlp::error::{OtlpError, OtlpErrorKind};
use crate::otlp::request::field::{OWNER, SCHEMA_URL};
use crate::otlp::split::{is_member, items_at, levels};
use crate::proto::Reader;
use crate::proto::write::{Varint, varint_len};
use std::ops::Range;

/// How many errors are reported at most.
const MAX_ERRORS: usize = 3;

/// The rest of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedItems {
    /// Its contents.
    pub counts: Counts,
    /// How long it is.
    pub len: usize,
    /// Items that were taken out.
    pub refused: u64,
    /// The first error.
    pub errors: Vec<OtlpError>,
}

/// Moves what [`check`](super::check) does not refuse to the start of `raw`. See [`retain_valid`](crate::otlp::retain_valid).
pub(in crate::otlp) fn retain_valid(signal: Signal, raw: &mut [u8]) -> Result<RetainedItems, OtlpError> {
    let len = raw.len();
    let mut filter = ItemFilter { signal, raw, errors: Vec::new(), path: [("", 0); 5] };
    let retained = filter.message(0, 0, 0..len, 0)?;
    let errors = filter.errors;
    if retained.items == 0
        && let Some(error) = errors.first()
    {
        return Err(error.clone());
    }
    // Whatever was moved: the journal gets what was checked.
    let counts = super::check(signal, raw.get(..retained.end).unwrap_or_default())?;
    Ok(RetainedItems { counts, len: retained.end, refused: retained.refused, errors })
}

struct ItemFilter<'r> {
    signal: Signal,
    raw: &'r mut [u8],
    errors: Vec<OtlpError>,
    /// The enclosing messages, by depth: their names and numbers.
    path: [(&'static str, u64); 5],
}

/// The rest of a message.
struct RetainedMessage {
    /// Where it ends.
    end: usize,
    items: u64,
    /// Items that were taken out.
    refused: u64,
}

impl ItemFilter<'_> {
    /// Moves what is good of the message at `from`, which has this depth and is in `field` of the one around it, to
    /// `to`, which is not behind it.
    ///
    /// Calls itself once for each level.
    fn message(
        &mut self,
        depth: usize,
        field: u32,
        from: Range<usize>,
        to: usize,
    ) -> Result<RetainedMessage, OtlpError> {
        let mut retained = RetainedMessage { end: to, items: 0, refused: 0 };
        let (mut at, below, mut number) = (from.start, depth + 1, 0);
        while at < from.end {
            let mut reader = Reader::within(self.raw, at..from.end);
            let Some(key) = reader.key()? else { break };
            let behind_key = reader.offset();
            if !is_member(self.signal, depth, key) {
                reader.skip(key)?;
                let next = reader.offset();
                retained.end = self.keep(at..next, retained.end);
                at = next;
                continue;
            }
            let member = reader.message(key)?;
            let (start, next) = (member.offset(), reader.offset());
            let called = self.called(depth);
            if let Some(place) = self.path.get_mut(depth) {
                *place = (called, number);
            }
            number += 1;
            let verdict = self.verdict(below, field, member);
            match verdict? {
                Some(error) => {
                    retained.refused += items_at(self.signal, below, member.rest());
                    self.note(error, below);
                }
                None if below == levels(self.signal) => {
                    retained.end = self.keep(at..next, retained.end);
                    retained.items += 1;
                }
                None => {
                    let key_end = self.keep(at..behind_key, retained.end);
                    let place = key_end + (start - behind_key);
                    let inner = self.message(below, key.field, start..next, place)?;
                    retained.refused += inner.refused;
                    retained.items += inner.items;
                    if inner.items > 0 || inner.refused == 0 {
                        retained.end = self.close(key_end, place..inner.end);
                    }
                }
            }
            at = next;
        }
        Ok(retained)
    }

    /// An error in a member of this depth as a whole: in an item, or in a message that encloses items and so affects
    /// each of them.
    fn verdict(&self, depth: usize, field: u32, member: Reader<'_>) -> Result<Option<OtlpError>, OtlpError> {
        let counts = &mut Counts::default();
        match (self.signal, depth) {
            (_, 1) => owner(member, "the resource", attribute::resource),
            (_, 2) => owner(member, "the scope", attribute::scope),
            (Signal::Traces, _) => Ok(trace::span(member, counts).err()),
            (Signal::Logs, _) => Ok(log::record(member, counts).err()),
            (Signal::Profiles, _) => Ok(profile::profile(member, counts).err()),
            (Signal::Metrics, 3) => head(member),
            // Its metric's head was found to be good with all that is in it.
            (Signal::Metrics, 4) => Ok(None),
            (Signal::Metrics, _) => Ok(match field {
                5 | 7 => point::number(member, counts),
                9 => point::histogram(member, counts),
                10 => point::exponential(member, counts),
                _ => point::summary(member, counts),
            }
            .err()),
        }
    }

    /// The name of a message's member at this depth; `None` if the level has no name of its own.
    fn called(&self, depth: usize) -> &'static str {
        match (depth, self.signal) {
            (0, _) => "resource",
            (1, _) => "scope",
            (2, Signal::Traces) => "span",
            (2, Signal::Logs) => "log record",
            (2, Signal::Profiles) => "profile",
            (2, Signal::Metrics) => "metric",
            (4, _) => "point",
            _ => "",
        }
    }

    /// Reports an error in the member of this depth, if not enough are told already.
    fn note(&mut self, error: OtlpError, depth: usize) {
        if self.errors.len() < MAX_ERRORS {
            let path = self.path.get(..depth).unwrap_or_default().iter().rev();
            let named = path.filter(|(kind, _)| !kind.is_empty());
            self.errors.push(named.fold(error, |error, (kind, number)| error.within(kind, *number)));
        }
    }

    /// Moves bytes to `to`, which is not behind them, and says where they end there.
    fn keep(&mut self, from: Range<usize>, to: usize) -> usize {
        let end = to + from.len();
        if to < from.start && from.end <= self.raw.len() {
            self.raw.copy_within(from, to);
        }
        end
    }

    /// Writes the length of `content` to `at`, moves it to behind that, and says where it ends there. It was not
    /// shorter before, so there is room for the length.
    fn close(&mut self, at: usize, content: Range<usize>) -> usize {
        let len = content.len() as u64;
        let start = at + usize::try_from(varint_len(len)).unwrap_or(10);
        let end = self.keep(content, start);
        for (to, from) in self.raw.iter_mut().skip(at).zip(Varint::new(len).as_bytes()) {
            *to = *from;
        }
        end
    }
}

/// The error in a group's resource or scope, or in its schema.
///
/// # Errors
/// When the group is no sequence of fields: then nobody knows what is in it.
fn owner(
    mut group: Reader<'_>,
    what: &'static str,
    check: fn(Reader<'_>) -> Result<(), OtlpError>,
) -> Result<Option<OtlpError>, OtlpError> {
    let mut once = SeenFields::default();
    let mut error = None;
    while let Some(key) = group.key()? {
        let mut before = group;
        let found = match key.field {
            OWNER => {
                let again = once.first(key, &group, what);
                let message = group.message(key)?;
                again.and_then(|()| check(message))
            }
            SCHEMA_URL => {
                group.bytes(key)?;
                text(&mut before, key, "schema_url")
            }
            _ => {
                group.skip(key)?;
                Ok(())
            }
        };
        error = error.or(found.err());
    }
    Ok(error)
}

/// The error in a metric's part common to all of its points.
///
/// # Errors
/// When the metric is no sequence of fields, or its data: then nobody knows how many points are in it.
fn head(mut metric: Reader<'_>) -> Result<Option<OtlpError>, OtlpError> {
    let mut data = false;
    let mut error = None;
    while let Some(key) = metric.key()? {
        let mut before = metric;
        let found = match key.field {
            1..=3 => {
                metric.bytes(key)?;
                text(&mut before, key, metric::text_field_name(key.field))
            }
            5 | 7 | 9 | 10 | 11 => {
                let points = metric.message(key)?;
                metric::members(points, key.field)?;
                match std::mem::replace(&mut data, true) {
                    true => Err(OtlpError::new(points.offset(), OtlpErrorKind::Twice("the data"))),
                    false => Ok(()),
                }
            }
            12 => attribute::key_value(metric.message(key)?),
            _ => {
                metric.skip(key)?;
                Ok(())
            }
        };
        error = error.or(found.err());
    }
    Ok(error)
}
