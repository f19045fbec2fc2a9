//! What a batch is cut into: stretches of bytes of 1.0 bodies, runs of series of 2.0 bodies.

use std::ops::Range;
use tidegate_arena::Window;
use tidegate_wire::proto::{Reader, Wire};
use tidegate_wire::remote_write::split::{self, Limit};
use tidegate_wire::remote_write::{Version, v1, v2};

/// Decompressed bodies.
pub(super) struct Source {
    version: Version,
    raw: Window,
    /// Where each body is. Those of 1.0 are one body when read together.
    bodies: Vec<Range<usize>>,
    /// Series of 2.0 bodies.
    series: u64,
}

/// A part of a source that could be a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whole fields of 1.0 bodies.
    Bytes(Range<usize>),
    /// Series of 2.0 bodies, counted over all of them.
    Series(Range<u64>),
}

/// What is left of a piece that is too large.
pub(super) enum Cut {
    Halves(Piece, Piece),
    /// It is one series, or one entry of metadata.
    Single {
        items: u64,
    },
}

impl Piece {
    pub(super) fn series(&self) -> Option<Range<u64>> {
        match self {
            Piece::Bytes(_) => None,
            Piece::Series(series) => Some(series.clone()),
        }
    }
}

impl Source {
    pub(super) fn new(version: Version, raw: Window, bodies: Vec<Range<usize>>) -> Source {
        let mut source = Source { version, raw, bodies, series: 0 };
        source.series = source.fields().filter(|(field, _)| *field == v2::field::TIMESERIES).count() as u64;
        source
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    pub(super) fn bodies(&self) -> Vec<&[u8]> {
        self.bodies.iter().filter_map(|range| self.raw.get(range.clone())).collect()
    }

    /// All of it.
    pub(super) fn whole(&self) -> Piece {
        match self.version {
            Version::V1 => Piece::Bytes(0..self.raw.len()),
            Version::V2 => Piece::Series(0..self.series),
        }
    }

    /// The bytes of a piece of 1.0.
    pub(super) fn bytes(&self, piece: &Piece) -> &[u8] {
        match piece {
            Piece::Bytes(range) => self.raw.get(range.clone()).unwrap_or_default(),
            Piece::Series(_) => &[],
        }
    }

    /// The beginning of `piece` that is likely within the limits, and what follows it.
    pub(super) fn cut(&self, piece: Piece, bytes: usize, items: u64) -> (Piece, Option<Piece>) {
        match piece {
            Piece::Bytes(ref range) => match self.first(range, Limit { samples: items, bytes }) {
                Some(end) if end < range.end => {
                    (Piece::Bytes(range.start..end), Some(Piece::Bytes(end..range.end)))
                }
                _ => (piece, None),
            },
            Piece::Series(ref range) => {
                let each = (self.raw.len() as u64 / self.series.max(1)).max(1);
                let end = range.start + (bytes as u64 / each).min(items).max(1);
                if end < range.end {
                    (Piece::Series(range.start..end), Some(Piece::Series(end..range.end)))
                } else {
                    (piece, None)
                }
            }
        }
    }

    /// `piece` in two halves, if it holds more than one thing.
    pub(super) fn halve(&self, piece: &Piece) -> Cut {
        match piece {
            Piece::Bytes(range) => {
                let half = Limit { samples: u64::MAX, bytes: range.len() / 2 };
                match self.first(range, half) {
                    Some(end) if end < range.end => {
                        Cut::Halves(Piece::Bytes(range.start..end), Piece::Bytes(end..range.end))
                    }
                    _ => Cut::Single { items: self.items_of(piece) },
                }
            }
            Piece::Series(range) if range.end - range.start > 1 => {
                let middle = range.start.midpoint(range.end);
                Cut::Halves(Piece::Series(range.start..middle), Piece::Series(middle..range.end))
            }
            Piece::Series(_) => Cut::Single { items: self.items_of(piece) },
        }
    }

    /// Where the first request within `limit` ends, in a stretch of 1.0 bodies.
    fn first(&self, range: &Range<usize>, limit: Limit) -> Option<usize> {
        let raw = self.raw.get(range.clone())?;
        split::split(raw, limit).next().map(|first| range.start + first.range.end)
    }

    /// Items in a piece that is one series or one entry of metadata.
    fn items_of(&self, piece: &Piece) -> u64 {
        let items = |series: &[u8], fields: &[u32]| {
            fields_of(series).filter(|(field, _)| fields.contains(field)).count() as u64
        };
        match piece {
            Piece::Bytes(_) => fields_of(self.bytes(piece))
                .map(|(field, value)| match field {
                    v1::field::TIMESERIES => {
                        items(value, &[v1::field::SAMPLES, v1::field::EXEMPLARS, v1::field::HISTOGRAMS])
                    }
                    _ => 1,
                })
                .sum(),
            Piece::Series(range) => {
                let mut series = self.fields().filter(|(field, _)| *field == v2::field::TIMESERIES);
                let at = usize::try_from(range.start).unwrap_or(usize::MAX);
                let one = series.nth(at).map_or(&[][..], |(_, value)| value);
                let counted =
                    [v2::field::SAMPLES, v2::field::HISTOGRAMS, v2::field::EXEMPLARS, v2::field::METADATA];
                items(one, &counted)
            }
        }
    }

    /// The top-level messages of all bodies.
    fn fields(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.bodies.iter().filter_map(|range| self.raw.get(range.clone())).flat_map(fields_of)
    }
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
