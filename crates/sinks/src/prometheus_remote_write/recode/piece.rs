//! What a batch is cut into: stretches of bytes of 1.0 bodies, runs of series of 2.0 bodies and of points of OTLP.

use crate::prometheus_remote_write::batch::Form;
use crate::room::Held;
use std::ops::Range;
use tidegate_arena::Window;
use tidegate_wire::otlp;
use tidegate_wire::proto::{Reader, Wire};
use tidegate_wire::remote_write::split::{self, Limit};
use tidegate_wire::remote_write::{Version, v1, v2};

/// Decompressed bodies.
pub(super) struct Source {
    form: Form,
    raw: Held<Window>,
    /// Where each body is: one for each record. Those of 1.0 are one body when read together, and so are those
    /// of OTLP.
    bodies: Vec<Range<usize>>,
    /// The members of each body, counted over all of them: series of 2.0, points of OTLP, none of 1.0.
    members_of: Vec<Range<u64>>,
    /// All members.
    members: u64,
    /// The bytes of everything but series in 2.0 bodies: their symbols.
    symbol_bytes: usize,
}

/// A part of a source that could be a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whole fields of 1.0 bodies.
    Bytes(Range<usize>),
    /// Members of bodies, counted over all of them: series of 2.0, points of OTLP.
    Members(Range<u64>),
}

impl Piece {
    pub(super) fn members(&self) -> Option<Range<u64>> {
        match self {
            Piece::Bytes(_) => None,
            Piece::Members(members) => Some(members.clone()),
        }
    }
}

impl Source {
    pub(super) fn new(form: Form, raw: Held<Window>, bodies: Vec<Range<usize>>) -> Source {
        let (mut members, mut bytes) = (0, 0);
        let mut ranges = Vec::new();
        for body in bodies.iter().filter_map(|range| raw.get(range.clone())) {
            let start = members;
            match form {
                Form::RemoteWrite(Version::V1) => {}
                Form::RemoteWrite(Version::V2) => {
                    for one in series_of(body) {
                        (members, bytes) = (members + 1, bytes + one.len());
                    }
                }
                Form::Otlp => members += otlp::items(otlp::Signal::Metrics, body),
            }
            ranges.push(start..members);
        }
        let symbol_bytes = raw.len().saturating_sub(bytes);
        Source { form, raw, bodies, members_of: ranges, members, symbol_bytes }
    }

    /// The bytes of all bodies.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Bytes of the sink's room that it takes.
    pub(super) fn held(&self) -> usize {
        self.raw.bytes()
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.bodies.iter().filter_map(|range| self.raw.get(range.clone()))
    }

    /// The 2.0 bodies that have any of these series, and the number of the first series in them.
    pub(super) fn bodies_of(&self, wanted: &Range<u64>) -> (Vec<&[u8]>, u64) {
        let has = |series: &Range<u64>| series.start < wanted.end && wanted.start < series.end;
        let first = self.members_of.iter().find(|series| has(series)).map_or(0, |series| series.start);
        let bodies = self.bodies().zip(&self.members_of).filter(|(_, series)| has(series));
        (bodies.map(|(body, _)| body).collect(), first)
    }

    /// One OTLP request with these points in it, and which they are of its own.
    pub(super) fn request_of(&self, wanted: &Range<u64>) -> (&[u8], Range<u64>) {
        let has = |points: &Range<u64>| points.start < wanted.end && wanted.start < points.end;
        let mut bodies = self.bodies.iter().zip(&self.members_of).filter(|(_, points)| has(points));
        let Some((body, points)) = bodies.next() else { return (&[], 0..0) };
        let end = bodies.next_back().map_or(body.end, |(last, _)| last.end);
        let own = wanted.start.saturating_sub(points.start)..wanted.end.saturating_sub(points.start);
        (self.raw.get(body.start..end).unwrap_or_default(), own)
    }

    /// What `piece` begins with, up to the end of the record that it begins in; and the rest of `left`, in which
    /// pieces follow each other from its end on, without that.
    pub(super) fn rest_of_record(&self, piece: Piece, left: &mut Vec<Piece>) -> Piece {
        let Some(range) = piece.members() else { return piece };
        let within = self.members_of.iter().find(|series| series.contains(&range.start));
        let end = within.map_or(range.end, |series| series.end);
        while let Some(Piece::Members(next)) =
            left.pop_if(|next| next.members().is_some_and(|n| n.start < end))
        {
            if next.end > end {
                left.push(Piece::Members(end..next.end));
                break;
            }
        }
        Piece::Members(range.start..end)
    }

    /// All of it.
    pub(super) fn whole(&self) -> Piece {
        match self.form {
            Form::RemoteWrite(Version::V1) => Piece::Bytes(0..self.raw.len()),
            Form::RemoteWrite(Version::V2) | Form::Otlp => Piece::Members(0..self.members),
        }
    }

    /// The bytes of a piece of 1.0.
    pub(super) fn bytes(&self, piece: &Piece) -> &[u8] {
        match piece {
            Piece::Bytes(range) => self.raw.get(range.clone()).unwrap_or_default(),
            Piece::Members(_) => &[],
        }
    }

    /// The beginning of `piece` that is likely within the limits, and what follows it. Of OTLP, `points` are
    /// thought to be.
    pub(super) fn cut(&self, piece: Piece, bytes: usize, items: u64, points: u64) -> (Piece, Option<Piece>) {
        match piece {
            Piece::Bytes(ref range) => match self.first(range, Limit { samples: items, bytes }) {
                Some(end) if end < range.end => {
                    (Piece::Bytes(range.start..end), Some(Piece::Bytes(end..range.end)))
                }
                _ => (piece, None),
            },
            Piece::Members(ref range) => {
                let end = match self.form {
                    Form::Otlp => range.start.saturating_add(points.max(1)).min(range.end),
                    Form::RemoteWrite(_) => self.first_series(range, bytes, items),
                };
                if end < range.end {
                    (Piece::Members(range.start..end), Some(Piece::Members(end..range.end)))
                } else {
                    (piece, None)
                }
            }
        }
    }

    /// `piece` in two halves, if it holds more than one series or entry of metadata.
    pub(super) fn halve(&self, piece: &Piece) -> Option<(Piece, Piece)> {
        match piece {
            Piece::Bytes(range) => {
                let half = Limit { samples: u64::MAX, bytes: range.len() / 2 };
                let end = self.first(range, half).filter(|end| *end < range.end)?;
                Some((Piece::Bytes(range.start..end), Piece::Bytes(end..range.end)))
            }
            Piece::Members(range) => {
                let middle = range.start.midpoint(range.end);
                let halves = (Piece::Members(range.start..middle), Piece::Members(middle..range.end));
                (range.start < middle).then_some(halves)
            }
        }
    }

    /// `piece` record by record, if it is of several.
    pub(super) fn apart(&self, piece: &Piece) -> Option<Vec<Piece>> {
        let pieces: Vec<Piece> = match piece {
            Piece::Bytes(range) => {
                let within =
                    self.bodies.iter().map(|body| body.start.max(range.start)..body.end.min(range.end));
                within.filter(|range| !range.is_empty()).map(Piece::Bytes).collect()
            }
            Piece::Members(range) => {
                let within = self
                    .members_of
                    .iter()
                    .map(|series| series.start.max(range.start)..series.end.min(range.end));
                within.filter(|range| !range.is_empty()).map(Piece::Members).collect()
            }
        };
        (pieces.len() > 1).then_some(pieces)
    }

    /// Items in a piece.
    pub(super) fn items(&self, piece: &Piece) -> u64 {
        match piece {
            Piece::Bytes(_) => items_of(Version::V1, self.bytes(piece)),
            Piece::Members(range) if self.form == Form::Otlp => range.end.saturating_sub(range.start),
            Piece::Members(range) => self.series_in(range).map(items_of_v2).sum(),
        }
    }

    /// Where the first request within `limit` ends, in a stretch of 1.0 bodies.
    fn first(&self, range: &Range<usize>, limit: Limit) -> Option<usize> {
        let raw = self.raw.get(range.clone())?;
        split::split(raw, limit).next().map(|first| range.start + first.range.end)
    }

    /// Where the first request within the limits ends: at least one series on.
    fn first_series(&self, range: &Range<u64>, bytes: usize, items: u64) -> u64 {
        // Each with its share of the symbols.
        let symbols = self.symbol_bytes / usize::try_from(self.members.max(1)).unwrap_or(usize::MAX);
        let mut left = (bytes, items);
        let mut end = range.start;
        for series in self.series_in(range) {
            let after = (left.0.checked_sub(series.len() + symbols), left.1.checked_sub(items_of_v2(series)));
            let (Some(bytes), Some(items)) = after else { break };
            left = (bytes, items);
            end += 1;
        }
        end.max(range.start + 1).min(range.end)
    }

    /// Some series of 2.0 bodies.
    fn series_in(&self, range: &Range<u64>) -> impl Iterator<Item = &[u8]> {
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let count = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.series().skip(start).take(count)
    }

    /// The series of all 2.0 bodies.
    fn series(&self) -> impl Iterator<Item = &[u8]> {
        self.bodies().flat_map(series_of)
    }
}

/// Whether a 2.0 body has anything but symbols.
pub(super) fn has_series(raw: &[u8]) -> bool {
    series_of(raw).next().is_some()
}

/// The series of a 2.0 body.
fn series_of(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields_of(raw).filter(|(field, _)| *field == v2::field::TIMESERIES).map(|(_, series)| series)
}

/// Items in a body.
pub(super) fn items_of(version: Version, raw: &[u8]) -> u64 {
    match version {
        Version::V1 => fields_of(raw).map(items_of_v1).sum(),
        Version::V2 => series_of(raw).map(items_of_v2).sum(),
    }
}

/// Items in a field of a 1.0 body: as they were counted when the body was accepted.
fn items_of_v1((field, value): (u32, &[u8])) -> u64 {
    let items = [v1::field::SAMPLES, v1::field::EXEMPLARS, v1::field::HISTOGRAMS];
    match field {
        v1::field::TIMESERIES => count(value, &items),
        v1::field::METADATA => 1,
        _ => 0,
    }
}

/// Items in a series of a 2.0 body: likewise.
fn items_of_v2(series: &[u8]) -> u64 {
    let items = [v2::field::SAMPLES, v2::field::HISTOGRAMS, v2::field::EXEMPLARS, v2::field::METADATA];
    count(series, &items)
}

fn count(message: &[u8], fields: &[u32]) -> u64 {
    fields_of(message).filter(|(field, _)| fields.contains(field)).count() as u64
}

/// How many texts (label names and values, and those of metadata) and metadata entries a 1.0 body has at
/// most: what the symbol table of its translation may need.
pub(super) fn texts_of(raw: &[u8]) -> (usize, usize) {
    let request = v1::Request::new(raw);
    let labels: usize = request
        .series()
        .map(|series| {
            let of_exemplars: usize = series.exemplars().map(|exemplar| exemplar.labels.count()).sum();
            series.labels().count() + of_exemplars
        })
        .sum();
    let families = request.metadata().count();
    (2 * labels + 2 * families + 1, families)
}

/// The length-delimited fields of a message that was checked.
fn fields_of(message: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            let key = reader.key().ok()??;
            if key.wire == Wire::Length {
                return Some((key.field, reader.bytes(key).ok()?));
            }
            reader.skip(key).ok()?;
        }
    })
}

#[cfg(test)]
mod tests;
