//! Records of the journal and dead letters, as rows.

use crate::literals::Literals;
use crate::walk::ReadCounts;
use std::io;
use std::path::Path;
use tidegate_elastic::documents::LogRequests;
use tidegate_elastic::intake::{self, EventRequests};
use tidegate_journal::inspect::{Bodies, inspect};
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_lake::{BatchPosition, Error, Uncommitted};
use tidegate_wire::coding::{Decode, Grow, decode};
use tidegate_wire::output::Full;
use tidegate_wire::remote_write::{Symbols, Version, view};
use tidegate_wire::{gzip, otlp, snappy, zlib, zstd};

/// How long a piece of a translated record is, where no single item is longer, in bytes.
const PIECE: usize = 128 << 10;

/// Which records are read.
pub(crate) struct RecordBounds<'l> {
    /// Those behind this one.
    pub(crate) after: Option<u64>,
    /// Those that may have items of this signal.
    pub(crate) signal: Signal,
    /// Those of which body and decoded body together have at most so many bytes.
    pub(crate) body: usize,
    /// Those that have these.
    pub(crate) literals: Literals<'l>,
    /// The sink of the lake, which will have those that are for it alone.
    pub(crate) lake: Option<&'l str>,
}

/// Shows the items of records to `rows`, those of the newest segment first. Returns whether no record was missing.
pub(crate) fn read(
    dir: &Path,
    bounds: &RecordBounds<'_>,
    rows: &mut Uncommitted<'_>,
    counts: &mut ReadCounts,
) -> io::Result<bool> {
    let journal = inspect(dir)?;
    let first_wanted = bounds.after.map_or(0, |after| after + 1);
    let mut reader = RecordReader { bounds, rows, counts, buffers: BodyBuffers::default() };
    let mut is_whole = journal.segments.first().is_none_or(|oldest| oldest.first <= first_wanted);
    for (place, segment) in journal.segments.iter().enumerate().rev() {
        let is_behind = segment.next.is_none_or(|next| next > first_wanted);
        if !is_behind && place > 0 {
            continue;
        }
        let mut bodies = match journal.bodies(segment) {
            Ok(bodies) => bodies,
            // Consumed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                is_whole = false;
                continue;
            }
            Err(error) => return Err(error),
        };
        if place == 0 {
            reader.counts.oldest_ns = bodies.received_at_ns();
        }
        if is_behind {
            is_whole &= reader.segment(&mut bodies, segment.first.max(first_wanted), segment.next)?;
        }
        if reader.rows.is_over() {
            break;
        }
    }
    Ok(is_whole)
}

struct RecordReader<'r, 'v> {
    bounds: &'r RecordBounds<'r>,
    rows: &'r mut Uncommitted<'v>,
    counts: &'r mut ReadCounts,
    buffers: BodyBuffers,
}

/// Memory for a body, as it is stored and decompressed.
#[derive(Default)]
pub(crate) struct BodyBuffers {
    body: Vec<u8>,
    raw: Vec<u8>,
}

/// Why a body gave no rows, or not all.
pub(crate) enum Unread {
    TooLong,
    Damaged,
    Lake(Error),
}

impl From<Error> for Unread {
    fn from(error: Error) -> Unread {
        Unread::Lake(error)
    }
}

impl RecordReader<'_, '_> {
    /// Reads the records from `first` on. Returns whether all of them were there, as far as can be said.
    fn segment(&mut self, bodies: &mut Bodies, first: u64, next: Option<u64>) -> io::Result<bool> {
        let (mut expected, mut is_whole) = (first, true);
        while let Some((sequence, meta)) = bodies.next_head() {
            if sequence < first {
                continue;
            }
            is_whole &= sequence == expected;
            expected = sequence + 1;
            if self.rows.is_over() {
                return Ok(is_whole);
            }
            // What is sent again to another sink was there before.
            if bodies.recipient().is_some_and(|sink| self.bounds.lake != Some(sink)) {
                continue;
            }
            let Some(meta) = meta.filter(|meta| may_have(meta, self.bounds.signal)) else { continue };
            self.counts.records += 1;
            match self.record(bodies, sequence, &meta) {
                Ok(()) => {}
                Err(Unread::TooLong) => self.counts.too_long += 1,
                // The newest is perhaps still being written: it is not acknowledged then.
                Err(Unread::Damaged) if next.is_some() => self.counts.damaged += 1,
                Err(Unread::Damaged) => {}
                Err(Unread::Lake(error)) => return Err(io::Error::other(error)),
            }
        }
        Ok(is_whole && next.is_none_or(|next| next == expected))
    }

    fn record(&mut self, bodies: &mut Bodies, sequence: u64, meta: &Meta) -> Result<(), Unread> {
        let body_len = bodies.body_len();
        let raw = self.buffers.read(body_len, meta, self.bounds.body, |body| bodies.read_body(body))?;
        let position = BatchPosition { sequence, received_at_ns: meta.received_at_ns };
        if !self.bounds.literals.may_be_in(meta.protocol, raw) {
            return Ok(());
        }
        items(raw, meta, &position, self.bounds.signal, self.rows)
    }
}

impl BodyBuffers {
    /// A body of `len` bytes, decompressed. `fill` reads it, and says whether it is as it was written. Both together take at most `most`
    /// bytes.
    pub(crate) fn read(
        &mut self,
        len: usize,
        meta: &Meta,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> io::Result<bool>,
    ) -> Result<&[u8], Unread> {
        let raw_len = if meta.encoding == Encoding::Identity { 0 } else { meta.raw_len as usize + SLACK };
        if len + raw_len > most {
            return Err(Unread::TooLong);
        }
        sized(&mut self.body, len)?;
        if !fill(&mut self.body).unwrap_or(false) {
            return Err(Unread::Damaged);
        }
        if meta.encoding == Encoding::Identity {
            return Ok(&self.body);
        }
        sized(&mut self.raw, raw_len)?;
        let len = decoded(meta.encoding, &self.body, &mut self.raw).ok_or(Unread::Damaged)?;
        Ok(self.raw.get(..len).unwrap_or_default())
    }
}

/// Whether a body can have rows of that signal.
pub(crate) fn may_have(meta: &Meta, signal: Signal) -> bool {
    let is_readable = !matches!(meta.protocol, Protocol::OtlpJson | Protocol::Cri);
    is_readable && (meta.signal == signal || meta.is_mixed())
}

/// Room beyond what a body decodes to, so that a decoder that works in steps can see its end.
const SLACK: usize = 64;

fn sized(bytes: &mut Vec<u8>, len: usize) -> Result<(), Unread> {
    bytes.clear();
    bytes.try_reserve_exact(len).map_err(|_| Unread::TooLong)?;
    bytes.resize(len, 0);
    Ok(())
}

fn decoded(encoding: Encoding, body: &[u8], out: &mut [u8]) -> Option<usize> {
    match encoding {
        Encoding::Identity => None,
        Encoding::Snappy => snappy::decode(body, out).ok(),
        Encoding::Gzip => steps(&mut gzip::Decoder::new(), body, out),
        Encoding::Deflate => steps(&mut zlib::Decoder::new(), body, out),
        // The source has checked the body, and this decoder does not need the window that a frame names.
        Encoding::Zstd => steps(&mut zstd::Decoder::new(u64::MAX), body, out),
    }
}

fn steps(decoder: &mut impl Decode, body: &[u8], out: &mut [u8]) -> Option<usize> {
    decode(decoder, body, &mut Room { out, at: 0 }).ok()
}

/// Room that does not grow.
struct Room<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl Grow for Room<'_> {
    fn spare(&mut self) -> &mut [u8] {
        self.out.get_mut(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn grow(&mut self, _: usize) -> bool {
        false
    }
}

/// Shows the items of a decoded body that are of `signal`.
pub(crate) fn items(
    raw: &[u8],
    meta: &Meta,
    position: &BatchPosition,
    signal: Signal,
    rows: &mut Uncommitted<'_>,
) -> Result<(), Unread> {
    let wire_signal = match signal {
        Signal::Metrics => otlp::Signal::Metrics,
        Signal::Traces => otlp::Signal::Traces,
        _ => otlp::Signal::Logs,
    };
    let version = match meta.protocol {
        Protocol::Otlp => return Ok(rows.otlp(position, wire_signal, raw)?),
        Protocol::Intake => return events(raw, position, wire_signal, rows),
        Protocol::Bulk => return documents(raw, position, rows),
        Protocol::RemoteWrite1 => Version::V1,
        Protocol::RemoteWrite2 => Version::V2,
        Protocol::OtlpJson | Protocol::Cri => return Ok(()),
    };
    let mut symbols = Symbols::new();
    let request = view(version, raw, &mut symbols).map_err(|_| Unread::Damaged)?;
    Ok(rows.remote_write(&request)?)
}

fn documents(raw: &[u8], position: &BatchPosition, rows: &mut Uncommitted<'_>) -> Result<(), Unread> {
    let mut pieces = LogRequests::new(raw, position.received_at_ns);
    let (mut room, mut wanted) = (Vec::new(), PIECE);
    while !pieces.is_done() {
        sized(&mut room, wanted)?;
        match pieces.write(&mut room, usize::MAX) {
            Ok(piece) => {
                rows.otlp(position, otlp::Signal::Logs, room.get(..piece.bytes).unwrap_or_default())?;
            }
            Err(Full) => wanted = larger(wanted)?,
        }
    }
    Ok(())
}

fn events(
    raw: &[u8],
    position: &BatchPosition,
    signal: otlp::Signal,
    rows: &mut Uncommitted<'_>,
) -> Result<(), Unread> {
    let mut pieces = EventRequests::new(raw, position.received_at_ns, signal);
    let (mut room, mut wanted) = (Vec::new(), PIECE.max(intake::usual_len(pieces.next_len())));
    while !pieces.is_done() {
        sized(&mut room, wanted)?;
        match pieces.write(&mut room, usize::MAX) {
            Ok(piece) => rows.otlp(position, signal, room.get(..piece.bytes).unwrap_or_default())?,
            Err(Full) => wanted = larger(wanted)?,
        }
    }
    Ok(())
}

/// The longest piece: an item that takes more is not looked at, nor those behind it.
const LONGEST_PIECE: usize = 4 << 20;

fn larger(room: usize) -> Result<usize, Unread> {
    Some(room * 2).filter(|room| *room <= LONGEST_PIECE).ok_or(Unread::TooLong)
}
