//! The parts of a batch: byte ranges of 1.0 bodies, runs of series of 2.0 bodies and of points of OTLP.

use crate::egress_budget::Charged;
use crate::prometheus_remote_write::batching::BodyFormat;
use std::ops::Range;
use tidegate_arena::Window;
use tidegate_wire::otlp;
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write::{self, Encode};
use tidegate_wire::proto::{Reader, WireType};
use tidegate_wire::remote_write::split::{self, Limit};
use tidegate_wire::remote_write::{Version, v1, v2};

/// Decompressed bodies.
pub(super) struct Source {
    form: BodyFormat,
    raw: Charged<Window>,
    /// Where each body is: one for each record. Those of 1.0 are one body when read together, and so are those
    /// of OTLP.
    bodies: Vec<Range<usize>>,
    /// The members of each body, counted over all of them: series of 2.0, points of OTLP, none of 1.0.
    members_of: Vec<Range<u64>>,
    /// All members.
    members: u64,
    /// The bytes of everything but series in 2.0 bodies: their symbols.
    symbol_bytes: usize,
    /// Where every so many members of 2.0 bodies begin, so that a piece is found without a walk from the start.
    marks: Vec<usize>,
    /// How many.
    stride: u64,
}

/// The most bytes of symbols that a series is thought to need.
const MOST_SYMBOLS: usize = 256;
/// The most marks of a source.
const MARKS: u64 = 4096;

/// A part of a source that could be a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestPart {
    /// Whole fields of 1.0 bodies.
    Bytes(Range<usize>),
    /// Members of bodies, counted over all of them: series of 2.0, points of OTLP.
    Members(Range<u64>),
    /// Some samples, histograms and exemplars of one series, counted over all of it.
    Slice(Single, Range<u64>),
}

/// A single series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Single {
    /// The bytes of its field in 1.0 bodies.
    Bytes(Range<usize>),
    /// Its number, counted over all 2.0 bodies.
    Member(u64),
}

impl RequestPart {
    pub(super) fn members(&self) -> Option<Range<u64>> {
        match self {
            RequestPart::Members(members) => Some(members.clone()),
            RequestPart::Slice(Single::Member(member), _) => Some(*member..member.saturating_add(1)),
            RequestPart::Bytes(_) | RequestPart::Slice(..) => None,
        }
    }
}

impl Source {
    pub(super) fn new(form: BodyFormat, raw: Charged<Window>, bodies: Vec<Range<usize>>) -> Source {
        let (mut members, mut bytes) = (0, 0);
        let mut ranges = Vec::new();
        for body in bodies.iter().filter_map(|range| raw.get(range.clone())) {
            let start = members;
            match form {
                BodyFormat::RemoteWrite(Version::V1) => {}
                BodyFormat::RemoteWrite(Version::V2) => {
                    for one in series_of(body) {
                        (members, bytes) = (members + 1, bytes + one.len());
                    }
                }
                BodyFormat::Otlp => members += otlp::items(otlp::Signal::Metrics, body),
            }
            ranges.push(start..members);
        }
        let symbol_bytes = raw.len().saturating_sub(bytes);
        let stride = members.div_ceil(MARKS).max(1);
        let mut source = Source {
            form,
            raw,
            bodies,
            members_of: ranges,
            members,
            symbol_bytes,
            marks: Vec::new(),
            stride,
        };
        if form == BodyFormat::RemoteWrite(Version::V2) {
            source.marks = source.marked();
        }
        source
    }

    /// Where every so many series begin.
    fn marked(&self) -> Vec<usize> {
        let every = usize::try_from(self.stride).unwrap_or(usize::MAX);
        let starts = self.bodies.iter().flat_map(|body| {
            let bytes = self.raw.get(body.clone()).unwrap_or_default();
            starts_of(bytes).map(|start| body.start + start)
        });
        starts.step_by(every).collect()
    }

    /// All bodies, one after the other.
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The bytes of all bodies.
    pub(super) fn len(&self) -> usize {
        self.raw.len()
    }

    /// Bytes of the sink's room that it takes.
    pub(super) fn held(&self) -> usize {
        self.raw.bytes()
    }

    pub(super) fn form(&self) -> BodyFormat {
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

    /// The 2.0 bodies that have any of these series, each with the stretch of it that they are in.
    pub(super) fn parts_of<'s>(&'s self, wanted: &Range<u64>) -> impl Iterator<Item = (&'s [u8], &'s [u8])> {
        let wanted = wanted.clone();
        let has = {
            let wanted = wanted.clone();
            move |series: &Range<u64>| series.start < wanted.end && wanted.start < series.end
        };
        self.bodies.iter().zip(&self.members_of).filter(move |(_, series)| has(series)).map(
            move |(body, series)| {
                let start =
                    if series.start < wanted.start { self.start_of(wanted.start) } else { Some(body.start) };
                let end = if wanted.end < series.end { self.start_of(wanted.end) } else { Some(body.end) };
                let part = start.zip(end).and_then(|(start, end)| self.raw.get(start..end));
                (self.raw.get(body.clone()).unwrap_or_default(), part.unwrap_or_default())
            },
        )
    }

    /// Where a series of the 2.0 bodies begins.
    fn start_of(&self, member: u64) -> Option<usize> {
        let index = usize::try_from(member / self.stride).ok()?;
        let mark = *self.marks.get(index)?;
        let within = usize::try_from(member % self.stride).ok()?;
        // A mark and the series behind it may be in several bodies.
        let mut starts = self.bodies.iter().filter(|body| mark < body.end).flat_map(|body| {
            let from = body.start.max(mark);
            starts_of(self.raw.get(from..body.end).unwrap_or_default()).map(move |start| from + start)
        });
        starts.nth(within)
    }

    /// The message of a single series.
    pub(super) fn message(&self, single: &Single) -> Option<&[u8]> {
        match single {
            Single::Bytes(range) => {
                let field = self.raw.get(range.clone())?;
                fields_of(field).find(|(field, _)| *field == v1::field::TIMESERIES).map(|(_, series)| series)
            }
            Single::Member(member) => self.series_in(&(*member..member.saturating_add(1))).next(),
        }
    }

    /// The fields of a series that make up its slices.
    pub(super) fn sliced_fields(&self) -> &'static [u32] {
        match self.form {
            BodyFormat::RemoteWrite(Version::V1) => {
                &[v1::field::SAMPLES, v1::field::EXEMPLARS, v1::field::HISTOGRAMS]
            }
            _ => &[v2::field::SAMPLES, v2::field::HISTOGRAMS, v2::field::EXEMPLARS],
        }
    }

    /// Whether a piece is a single series, or a part of one.
    pub(super) fn is_single(&self, piece: &RequestPart) -> bool {
        match piece {
            RequestPart::Members(range) => {
                self.form != BodyFormat::Otlp && range.end.saturating_sub(range.start) == 1
            }
            RequestPart::Bytes(range) => {
                let bytes = self.raw.get(range.clone()).unwrap_or_default();
                let mut fields = fields_of(bytes);
                fields.next().is_some_and(|(field, _)| field == v1::field::TIMESERIES)
                    && fields.next().is_none()
            }
            RequestPart::Slice(..) => true,
        }
    }

    /// The samples, histograms and exemplars of a single series.
    fn slice_of(&self, piece: &RequestPart) -> Option<(Single, Range<u64>)> {
        let single = match piece {
            RequestPart::Slice(single, items) => return Some((single.clone(), items.clone())),
            piece if !self.is_single(piece) => return None,
            RequestPart::Members(range) => Single::Member(range.start),
            RequestPart::Bytes(range) => Single::Bytes(range.clone()),
        };
        let items = count(self.message(&single)?, self.sliced_fields());
        Some((single, 0..items))
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

    /// All of it.
    pub(super) fn whole(&self) -> RequestPart {
        match self.form {
            BodyFormat::RemoteWrite(Version::V1) => RequestPart::Bytes(0..self.raw.len()),
            BodyFormat::RemoteWrite(Version::V2) | BodyFormat::Otlp => RequestPart::Members(0..self.members),
        }
    }

    /// The bytes of a piece of 1.0.
    pub(super) fn bytes(&self, piece: &RequestPart) -> &[u8] {
        match piece {
            RequestPart::Bytes(range) => self.raw.get(range.clone()).unwrap_or_default(),
            RequestPart::Members(_) | RequestPart::Slice(..) => &[],
        }
    }

    /// The beginning of `piece` that is likely within the limits, and what follows it. Of OTLP, `points` are
    /// thought to be.
    pub(super) fn cut(
        &self,
        piece: RequestPart,
        bytes: usize,
        items: u64,
        points: u64,
    ) -> (RequestPart, Option<RequestPart>) {
        match piece {
            RequestPart::Bytes(ref range) => {
                // Where it cannot be read, it ends with its body, so that it does not take those after it along.
                let first = self.first(range, Limit { samples: items, bytes });
                match first.or_else(|| self.end_of_body(range.start)) {
                    Some(end) if end < range.end => {
                        (RequestPart::Bytes(range.start..end), Some(RequestPart::Bytes(end..range.end)))
                    }
                    _ => (piece, None),
                }
            }
            RequestPart::Members(ref range) => {
                let end = match self.form {
                    BodyFormat::Otlp => range.start.saturating_add(points.max(1)).min(range.end),
                    BodyFormat::RemoteWrite(_) => self.first_series(range, bytes, items),
                };
                if end < range.end {
                    (RequestPart::Members(range.start..end), Some(RequestPart::Members(end..range.end)))
                } else {
                    (piece, None)
                }
            }
            RequestPart::Slice(..) => (piece, None),
        }
    }

    /// `piece` in two halves, if it holds more than one series or entry of metadata, or more than one sample of one.
    pub(super) fn halve(&self, piece: &RequestPart) -> Option<(RequestPart, RequestPart)> {
        if self.is_single(piece) {
            let (single, items) = self.slice_of(piece)?;
            let middle = items.start.midpoint(items.end);
            let halves = (
                RequestPart::Slice(single.clone(), items.start..middle),
                RequestPart::Slice(single, middle..items.end),
            );
            return (items.start < middle).then_some(halves);
        }
        match piece {
            RequestPart::Bytes(range) => {
                let half = Limit { samples: u64::MAX, bytes: range.len() / 2 };
                let end = self.first(range, half).filter(|end| *end < range.end)?;
                Some((RequestPart::Bytes(range.start..end), RequestPart::Bytes(end..range.end)))
            }
            RequestPart::Members(range) => {
                let middle = range.start.midpoint(range.end);
                let halves =
                    (RequestPart::Members(range.start..middle), RequestPart::Members(middle..range.end));
                (range.start < middle).then_some(halves)
            }
            RequestPart::Slice(..) => None,
        }
    }

    /// `piece` record by record, if it is of several.
    pub(super) fn apart(&self, piece: &RequestPart) -> Option<Vec<RequestPart>> {
        let pieces: Vec<RequestPart> = match piece {
            RequestPart::Bytes(range) => {
                let within =
                    self.bodies.iter().map(|body| body.start.max(range.start)..body.end.min(range.end));
                within.filter(|range| !range.is_empty()).map(RequestPart::Bytes).collect()
            }
            RequestPart::Members(range) => {
                let within = self
                    .members_of
                    .iter()
                    .map(|series| series.start.max(range.start)..series.end.min(range.end));
                within.filter(|range| !range.is_empty()).map(RequestPart::Members).collect()
            }
            RequestPart::Slice(..) => return None,
        };
        (pieces.len() > 1).then_some(pieces)
    }

    /// Items in a piece.
    pub(super) fn items(&self, piece: &RequestPart) -> u64 {
        match piece {
            RequestPart::Bytes(_) => items_of(Version::V1, self.bytes(piece)),
            RequestPart::Members(range) if self.form == BodyFormat::Otlp => {
                range.end.saturating_sub(range.start)
            }
            RequestPart::Members(range) => self.series_in(range).map(items_of_v2).sum(),
            RequestPart::Slice(single, items) => {
                // Metadata is with the first of a series.
                let metadata = match (single, items.start, self.message(single)) {
                    (Single::Member(_), 0, Some(series)) => count(series, &[v2::field::METADATA]),
                    _ => 0,
                };
                items.end.saturating_sub(items.start) + metadata
            }
        }
    }

    /// Where the first request within `limit` ends, in a stretch of 1.0 bodies.
    fn first(&self, range: &Range<usize>, limit: Limit) -> Option<usize> {
        let raw = self.raw.get(range.clone())?;
        split::split(raw, limit).next().map(|first| range.start + first.range.end)
    }

    /// Where the body ends that has this byte.
    fn end_of_body(&self, at: usize) -> Option<usize> {
        self.bodies.iter().find(|body| body.contains(&at)).map(|body| body.end)
    }

    /// Where the first request within the limits ends: at least one series on.
    fn first_series(&self, range: &Range<u64>, bytes: usize, items: u64) -> u64 {
        // Each with its share of the symbols, unless there are very many that nobody may need.
        let symbols = self.symbol_bytes / usize::try_from(self.members.max(1)).unwrap_or(usize::MAX);
        let symbols = symbols.min(MOST_SYMBOLS);
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
        self.parts_of(range).flat_map(|(_, part)| series_of(part))
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

/// Where the series of a 2.0 body begin.
fn starts_of(raw: &[u8]) -> impl Iterator<Item = usize> {
    let mut reader = Reader::new(raw);
    std::iter::from_fn(move || {
        loop {
            let start = reader.offset();
            let key = reader.key().ok()??;
            reader.skip(key).ok()?;
            if key.field == v2::field::TIMESERIES && key.wire == WireType::Length {
                return Some(start);
            }
        }
    })
}

/// Writes a series field with everything of `message` but the items that are not among `wanted`, of those that `fields`
/// are. Metadata is with the first of them.
pub(super) fn put_slice(
    (version, message): (Version, &[u8]),
    fields: &[u32],
    wanted: &Range<u64>,
    out: &mut impl Output,
) -> Result<(), Full> {
    let (field, metadata) = match version {
        Version::V1 => (v1::field::TIMESERIES, None),
        Version::V2 => (v2::field::TIMESERIES, Some(v2::field::METADATA).filter(|_| wanted.start > 0)),
    };
    write::message(out, field, &Slice { message, fields, wanted, without: metadata })
}

struct Slice<'a> {
    message: &'a [u8],
    fields: &'a [u32],
    wanted: &'a Range<u64>,
    without: Option<u32>,
}

impl Encode for Slice<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut reader = Reader::new(self.message);
        let mut item = 0;
        loop {
            let start = reader.offset();
            let Ok(Some(key)) = reader.key() else { return Ok(()) };
            if reader.skip(key).is_err() {
                return Ok(());
            }
            let keep = if self.fields.contains(&key.field) {
                item += 1;
                self.wanted.contains(&(item - 1))
            } else {
                Some(key.field) != self.without
            };
            if keep {
                out.put(self.message.get(start..reader.offset()).unwrap_or_default())?;
            }
        }
    }
}

/// How many samples, histograms and exemplars a 2.0 body has, as a receiver counts them.
pub(super) fn entries_of(raw: &[u8]) -> [u64; 3] {
    let mut entries = [0; 3];
    for series in series_of(raw) {
        let fields = [v2::field::SAMPLES, v2::field::HISTOGRAMS, v2::field::EXEMPLARS];
        for (sum, field) in entries.iter_mut().zip(fields) {
            *sum += count(series, &[field]);
        }
    }
    entries
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

/// How many texts the labels of a 1.0 body have at most: what the symbol table of its translation may need.
pub(super) fn texts_of(raw: &[u8]) -> usize {
    let labels = v1::Request::new(raw).series().map(|series| {
        let of_exemplars: usize = series.exemplars().map(|exemplar| exemplar.labels.count()).sum();
        series.labels().count() + of_exemplars
    });
    2 * labels.sum::<usize>() + 1
}

/// How many entries of metadata a 1.0 body has.
pub(super) fn families_of(raw: &[u8]) -> usize {
    fields_of(raw).filter(|(field, _)| *field == v1::field::METADATA).count()
}

/// How many series a 1.0 body has.
pub(super) fn series_of_v1(raw: &[u8]) -> usize {
    fields_of(raw).filter(|(field, _)| *field == v1::field::TIMESERIES).count()
}

/// The length-delimited fields of a message that was checked.
fn fields_of(message: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            let key = reader.key().ok()??;
            if key.wire == WireType::Length {
                return Some((key.field, reader.bytes(key).ok()?));
            }
            reader.skip(key).ok()?;
        }
    })
}

#[cfg(test)]
mod tests;
