//! From a piece to requests: translated, spread over lanes, compressed.

use super::piece::{self, Piece, Source};
use crate::prometheus_remote_write::batch::Form;
use crate::prometheus_remote_write::exchange::Request;
use crate::prometheus_remote_write::settings::Translation;
use crate::room::{Held, NoRoom, Room};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::Tenant;
use tidegate_wire::otlp::prometheus::{self as otlp, Deltas};
use tidegate_wire::output::{Counter, SliceOutput};
use tidegate_wire::remote_write::{Request as View, Series, Symbols, Version, view};
use tidegate_wire::remote_write::{has_histograms, join, split, translate, v2, without_histograms};
use tidegate_wire::snappy;
use tokio::time::Instant;

/// Makes requests, within a sink's room.
pub(super) struct Encoder {
    room: Room,
    lanes: usize,
    translation: Translation,
    /// The memory that deltas are added up in, where they are.
    deltas: Option<Deltas>,
    started: Instant,
    snappy: snappy::Encoder,
}

/// What requests are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus_remote_write) struct To {
    pub(in crate::prometheus_remote_write) version: Version,
    /// Whether the peer takes native histograms.
    pub(in crate::prometheus_remote_write) histograms: bool,
}

/// How large a piece may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// Bytes before compression.
    pub(super) bytes: usize,
    /// Samples, histograms and exemplars made of points of OTLP. (Of remote write it is known before.)
    pub(super) entries: u64,
}

/// A piece as it goes out.
pub(super) struct Encoded {
    /// One for each lane that has something.
    pub(super) requests: Vec<Request>,
    /// Items that the version which is sent cannot say.
    pub(super) untranslatable: u64,
    /// Items that the peer does not take.
    pub(super) unwanted: u64,
    /// Whether twice as much of the source would be likely to fit too.
    pub(super) is_half_empty: bool,
}

/// Why a piece cannot become requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is larger than asked for.
    Large,
    /// There is no memory for it.
    Room(NoRoom),
    /// There never is memory for what all records that it is of need together, however small it is cut.
    Source,
}

impl From<NoRoom> for Unfit {
    fn from(no_room: NoRoom) -> Unfit {
        Unfit::Room(no_room)
    }
}

/// A body that was made, and the items of its source that it cannot say.
struct Made(Held<Window>, u64);

/// A 2.0 body made of OTLP has at most one symbol for each of so many bytes that it may have.
const BYTES_PER_SYMBOL: usize = 32;
/// Likewise: one byte of symbols for each of so many.
const BYTES_PER_SYMBOL_BYTE: usize = 2;

impl Encoder {
    pub(super) fn new(room: Room, lanes: usize, translation: Translation) -> Encoder {
        let deltas = Some(translation.delta_series).filter(|series| *series > 0).map(Deltas::new);
        Encoder { room, lanes, translation, deltas, started: Instant::now(), snappy: snappy::Encoder::new() }
    }

    /// What comes next is of `tenant`.
    pub(super) fn turn_to(&mut self, tenant: &Tenant) {
        if let Some(deltas) = &mut self.deltas {
            deltas.turn_to(tenant.as_str().as_bytes());
        }
    }

    /// What came of the last piece is final: its deltas are not added again.
    pub(super) fn keep(&mut self) {
        if let Some(deltas) = &mut self.deltas {
            deltas.keep();
        }
    }

    /// The requests of `piece`, each within `most`.
    pub(super) async fn encode(
        &mut self,
        source: &Source,
        piece: &Piece,
        To { version: to, histograms }: To,
        most: Most,
    ) -> Result<Encoded, Unfit> {
        let items = source.items(piece);
        let mut entries = items;
        let bytes = most.bytes;
        let made = match (source.form(), to) {
            (Form::RemoteWrite(Version::V1), Version::V1) => None,
            (Form::RemoteWrite(Version::V1), Version::V2) => {
                Some(self.newer(source.bytes(piece), bytes).await?)
            }
            (Form::RemoteWrite(Version::V2), Version::V2) => Some(self.joined(source, piece, bytes).await?),
            (Form::RemoteWrite(Version::V2), Version::V1) => {
                let Made(joined, _) = self.joined(source, piece, bytes).await?;
                Some(self.older(&joined, bytes).await?)
            }
            (Form::Otlp, _) => {
                let (made, said) = self.translated(source, piece, to, bytes).await?;
                entries = said.samples + said.histograms + said.exemplars;
                if entries > most.entries {
                    return Err(Unfit::Large);
                }
                Some(made)
            }
        };
        let (whole, untranslatable) = match &made {
            Some(Made(window, untranslatable)) => (window.as_ref(), *untranslatable),
            None => (source.bytes(piece), 0),
        };
        if whole.len() > bytes {
            return Err(Unfit::Large);
        }
        let is_half_empty = whole.len() <= bytes / 2 && entries <= most.entries / 2;
        let (mut unwanted, mut without, mut is_empty) = (0, None, false);
        if !histograms && has_histograms(to, whole) {
            let mut out = self.room.window(whole.len()).await?;
            let left_out = fill(&mut out, whole.len(), |out| without_histograms(to, whole, out))?;
            entries = entries.saturating_sub(left_out.histograms);
            // A point is one histogram.
            unwanted = if source.form() == Form::Otlp { left_out.histograms } else { left_out.items };
            without = Some(out);
            is_empty = left_out.left == 0;
        }
        let whole = without.as_ref().map_or(whole, AsRef::as_ref);
        let has_series = match (source.form(), to) {
            (_, Version::V2) => piece::has_series(whole),
            (Form::Otlp, Version::V1) => entries > 0,
            (Form::RemoteWrite(_), Version::V1) => !is_empty,
        };
        if !has_series {
            return Ok(Encoded { requests: Vec::new(), untranslatable, unwanted, is_half_empty });
        }
        let items = items.saturating_sub(untranslatable).saturating_sub(unwanted);
        let mut requests = if self.lanes == 1 {
            let entries = if source.form() == Form::Otlp { entries } else { items };
            vec![self.request(whole, to, items, entries).await?]
        } else {
            let mut requests = match to {
                Version::V1 => self.spread(whole).await?,
                Version::V2 => self.spread_v2(whole, bytes).await?,
            };
            if source.form() == Form::Otlp {
                share_out(items, &mut requests);
            }
            requests
        };
        requests.iter_mut().for_each(|request| request.histograms = histograms);
        Ok(Encoded { requests, untranslatable, unwanted, is_half_empty })
    }

    /// Points of OTLP as a body of this version.
    async fn translated(
        &mut self,
        source: &Source,
        piece: &Piece,
        to: Version,
        most: usize,
    ) -> Result<(Made, otlp::Translated), Unfit> {
        let wanted = piece.members().ok_or(Unfit::Large)?;
        let (raw, points) = source.request_of(&wanted);
        let mut space = otlp::Room::default();
        if to == Version::V2 {
            (space.symbols, space.symbol_bytes) = (most / BYTES_PER_SYMBOL, most / BYTES_PER_SYMBOL_BYTE);
        }
        let _charge = match self.room.charge(otlp::Scratch::bytes_for(space)).await {
            // What is to be held does not depend on how many of the points are wanted.
            Err(NoRoom::Never) => return Err(Unfit::Source),
            charge => charge?,
        };
        let mut scratch = otlp::Scratch::new(space);
        let settings = otlp::Settings {
            naming: self.translation.naming,
            promote: &self.translation.promote,
            scope_labels: self.translation.scope_labels,
            target_info: self.translation.target_info,
        };
        let mut out = self.room.window(most).await?;
        let mut deltas = self.deltas.as_mut();
        if let Some(deltas) = &mut deltas {
            deltas.tick(self.started.elapsed().as_secs());
        }
        let said = fill(&mut out, most, |out| match to {
            Version::V1 => otlp::part_to_v1(raw, points, &settings, &mut scratch, deltas, out),
            Version::V2 => otlp::part_to_v2(raw, points, &settings, &mut scratch, deltas, out),
        })?;
        Ok((Made(out, said.dropped.points()), said))
    }

    /// The series of `piece` from all bodies, with one symbol table.
    async fn joined(&self, source: &Source, piece: &Piece, most: usize) -> Result<Made, Unfit> {
        let wanted = piece.members().ok_or(Unfit::Large)?;
        let (bodies, first) = source.bodies_of(&wanted);
        let most = most.min(roomy(source.len()));
        let mut out = self.room.window(most).await?;
        let keep = |position: u64, _: &v2::Series<'_>| wanted.contains(&(first + position));
        match self.join(&bodies, keep, most, &mut out).await {
            // What is to be held does not depend on how many of the series are wanted.
            Err(Unfit::Room(NoRoom::Never)) => Err(Unfit::Source),
            joined => joined.map(|_series| Made(out, 0)),
        }
    }

    /// The series of 2.0 bodies that `keep` wants. Says how many there are.
    async fn join(
        &self,
        bodies: &[&[u8]],
        keep: impl FnMut(u64, &v2::Series<'_>) -> bool,
        most: usize,
        out: &mut Window,
    ) -> Result<u64, Unfit> {
        let symbols = bodies.iter().map(|raw| Symbols::count(raw)).sum();
        let _charge = self.room.charge(join::Scratch::bytes_for(symbols)).await?;
        let mut scratch = join::Scratch::new(symbols);
        fill(out, most, |out| join::join_some(bodies, keep, &mut scratch, out)).map(|joined| joined.series)
    }

    /// A 1.0 body as 2.0.
    async fn newer(&self, raw: &[u8], most: usize) -> Result<Made, Unfit> {
        let (symbols, families) = piece::texts_of(raw);
        let _charge = self.room.charge(translate::Scratch::bytes_for(symbols, families)).await?;
        let mut scratch = translate::Scratch::new(symbols, families);
        let most = most.min(roomy(raw.len()));
        let mut out = self.room.window(most).await?;
        let dropped = fill(&mut out, most, |out| translate::to_v2(raw, &mut scratch, out))?;
        Ok(Made(out, dropped.metadata))
    }

    /// A 2.0 body as 1.0. Start timestamps are lost; they are no items.
    async fn older(&self, raw: &[u8], most: usize) -> Result<Made, Unfit> {
        let mut out = self.room.window(most).await?;
        let _charge = self.room.charge(Symbols::bytes_for(raw)).await?;
        let mut symbols = Symbols::new();
        let Ok(View::V2(request)) = view(Version::V2, raw, &mut symbols) else { return Err(Unfit::Large) };
        fill(&mut out, most, |out| translate::to_v1(request, out))?;
        Ok(Made(out, 0))
    }

    /// A 1.0 body as one request for each lane that has something of it.
    async fn spread(&mut self, raw: &[u8]) -> Result<Vec<Request>, Unfit> {
        let mut sizes = vec![Counter::default(); self.lanes];
        split::partition(raw, &mut sizes).map_err(|_| Unfit::Large)?;
        let mut requests = Vec::with_capacity(self.lanes);
        let mut all = self.room.window(raw.len()).await?;
        let mut rest = all.spare_mut();
        let mut outputs = Vec::with_capacity(self.lanes);
        for size in &sizes {
            let size = usize::try_from(size.bytes()).map_err(|_| Unfit::Large)?;
            let (lane, behind) = std::mem::take(&mut rest).split_at_mut_checked(size).ok_or(Unfit::Large)?;
            outputs.push(SliceOutput::new(lane));
            rest = behind;
        }
        split::partition(raw, &mut outputs).map_err(|_| Unfit::Large)?;
        let lengths: Vec<usize> = outputs.iter().map(SliceOutput::len).collect();
        all.advance(lengths.iter().sum());
        let mut start = 0;
        for len in lengths {
            let lane = all.get(start..start + len).unwrap_or_default();
            start += len;
            if !lane.is_empty() {
                let items = piece::items_of(Version::V1, lane);
                requests.push(self.request(lane, Version::V1, items, items).await?);
            }
        }
        Ok(requests)
    }

    /// A 2.0 body as one request for each lane that has something of it. Each lane has a symbol table of its
    /// own; all of them together may be as large as one request.
    async fn spread_v2(&mut self, raw: &[u8], most: usize) -> Result<Vec<Request>, Unfit> {
        let mut requests = Vec::with_capacity(self.lanes);
        let mut left = most;
        for number in 0..self.lanes {
            let mut lane = self.room.window(raw.len()).await?;
            let lanes = self.lanes;
            let keep = |_, series: &v2::Series<'_>| split::lane(&Series::V2(*series), lanes) == number;
            let series = self.join(&[raw], keep, left, &mut lane).await?;
            if series > 0 {
                left = left.saturating_sub(lane.len());
                let items = piece::items_of(Version::V2, &lane);
                requests.push(self.request(&lane, Version::V2, items, items).await?);
            }
        }
        Ok(requests)
    }

    async fn request(
        &mut self,
        raw: &[u8],
        version: Version,
        items: u64,
        entries: u64,
    ) -> Result<Request, Unfit> {
        let longest = snappy::max_compressed_len(raw.len()).map_err(|_| Unfit::Large)?;
        let mut out = self.room.window(longest).await?;
        let len = self.snappy.compress(raw, out.spare_mut()).map_err(|_| Unfit::Large)?;
        out.advance(len);
        Ok(Request { body: Bytes::from_owner(out), version, histograms: true, items, entries })
    }
}

/// Shares `items` out among requests, by how much is in each.
fn share_out(items: u64, requests: &mut [Request]) {
    let all: u128 = requests.iter().map(|request| u128::from(request.entries)).sum();
    let (mut seen, mut given) = (0u128, 0u64);
    for request in requests {
        seen += u128::from(request.entries);
        let upto = (u128::from(items) * seen).checked_div(all).and_then(|upto| u64::try_from(upto).ok());
        let upto = upto.unwrap_or(items);
        (request.items, given) = (upto - given, upto);
    }
}

/// Bytes that something made of `len` bytes usually stays within; what does not is cut smaller.
fn roomy(len: usize) -> usize {
    len.saturating_add(len / 2).saturating_add(256)
}

/// Runs `write` over the first `most` charged bytes of `out`.
fn fill<T, E>(
    out: &mut Window,
    most: usize,
    write: impl FnOnce(&mut SliceOutput<'_>) -> Result<T, E>,
) -> Result<T, Unfit> {
    let spare = out.spare_mut();
    let most = most.min(spare.len());
    let mut output = SliceOutput::new(spare.get_mut(..most).unwrap_or_default());
    let written = write(&mut output).map_err(|_| Unfit::Large)?;
    let len = output.len();
    out.advance(len);
    Ok(written)
}
