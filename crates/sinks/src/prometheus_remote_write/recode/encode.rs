//! Converts a part to requests: translated, spread over lanes, compressed.

use super::piece::{self, RequestPart, Source};
use super::relabeling::{Relabeling, share_of};
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::losses::Losses;
use crate::pipeline_stage::SinkPipeline;
use crate::prometheus_remote_write::batching::BodyFormat;
use crate::prometheus_remote_write::outbound_request::{Request, ResendRange};
use crate::prometheus_remote_write::settings::Translation;
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::Tenant;
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::prometheus::{self as otlp, Deltas};
use tidegate_wire::output::{Counter, Output, SliceOutput};
use tidegate_wire::remote_write::exemplars::{self, OrphanExemplars};
use tidegate_wire::remote_write::{RewriteError, Series, Symbols, Version, view_within};
use tidegate_wire::remote_write::{has_histograms, join, split, translate, v2, without_histograms};
use tidegate_wire::snappy;
use tokio::time::Instant;

/// Makes requests, within a sink's room.
pub(super) struct Encoder {
    room: EgressBudget,
    lanes: usize,
    translation: Translation,
    /// The memory that deltas are added up in, where they are.
    deltas: Option<Deltas>,
    started: Instant,
    /// The sink's pipeline, where it relabels what OTLP is translated to.
    relabeling: Option<Relabeling>,
    snappy: snappy::Encoder,
}

/// The limits of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus_remote_write) struct To {
    pub(in crate::prometheus_remote_write) version: Version,
    /// Whether the peer takes native histograms.
    pub(in crate::prometheus_remote_write) histograms: bool,
}

/// How large a piece may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// Bytes before compression; [`ALL`](Self::ALL) for what cannot be cut any smaller.
    pub(super) bytes: usize,
    /// Samples, histograms and exemplars made of points of OTLP. (Of remote write it is known before.)
    pub(super) entries: u64,
}

impl Most {
    /// However many there are.
    pub(super) const ALL: usize = usize::MAX;
}

/// A piece as it goes out.
pub(super) struct Encoded {
    /// One for each lane that has something.
    pub(super) requests: Vec<Request>,
    /// Items of the piece.
    pub(super) items: u64,
    /// Those that are in no request: the version has no place for them, the peer does not take them, or relabeling dropped them.
    pub(super) losses: Losses,
    /// Whether twice as much of the source would be likely to fit too.
    pub(super) is_half_empty: bool,
}

/// Why a piece cannot become requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncodeError {
    /// It is larger than asked for.
    Large,
    /// There is no memory for it.
    Room(BudgetError),
}

impl From<BudgetError> for EncodeError {
    fn from(no_room: BudgetError) -> EncodeError {
        EncodeError::Room(no_room)
    }
}

/// A body that was made, and the items of its source that it cannot say.
struct Made(Charged<Window>, u64);

/// A body that can be written twice: once to be measured, once for good.
trait Body {
    fn write(&self, out: &mut impl Output) -> Result<(), RewriteError>;
}

/// The most bytes of the table of a 2.0 body that is read piece by piece. With more symbols than this has room for, they
/// are found more slowly.
pub(super) const TABLE: usize = 64 << 10;

/// A 2.0 body made of OTLP has at most one symbol for each of so many bytes that it may have.
const BYTES_PER_SYMBOL: usize = 32;
/// Likewise: one byte of symbols for each of so many.
const BYTES_PER_SYMBOL_BYTE: usize = 2;

impl Encoder {
    pub(super) fn new(
        room: EgressBudget,
        lanes: usize,
        translation: Translation,
        pipeline: Option<&SinkPipeline>,
    ) -> Encoder {
        let deltas = Some(translation.delta_series).filter(|series| *series > 0).map(Deltas::new);
        let relabeling = pipeline.and_then(Relabeling::new);
        let (started, snappy) = (Instant::now(), snappy::Encoder::new());
        Encoder { room, lanes, translation, deltas, started, relabeling, snappy }
    }

    /// Whether what OTLP is translated to is relabeled.
    pub(super) fn relabels(&self) -> bool {
        self.relabeling.is_some()
    }

    /// Sets the tenant of the next parts.
    pub(super) fn turn_to(&mut self, tenant: &Tenant) {
        if let Some(deltas) = &mut self.deltas {
            deltas.set_owner(tenant.as_str().as_bytes());
        }
    }

    /// Makes the last part's result final: its deltas are not added again.
    pub(super) fn keep(&mut self) {
        if let Some(deltas) = &mut self.deltas {
            deltas.commit();
        }
        if let Some(relabeling) = &mut self.relabeling {
            relabeling.keep();
        }
    }

    /// The requests of `piece`, each within `most`.
    pub(super) async fn encode(
        &mut self,
        source: &Source,
        piece: &RequestPart,
        To { version: to, histograms }: To,
        most: Most,
    ) -> Result<Encoded, EncodeError> {
        self.relabeling.as_mut().into_iter().for_each(Relabeling::forget);
        let items = source.items(piece);
        let (mut entries, mut filtered) = (items, 0);
        let bytes = most.bytes;
        let part = match piece {
            RequestPart::Slice(single, wanted) => {
                let message = source.message(single).ok_or(EncodeError::Large)?;
                let version = source.form().version();
                let slice =
                    Slice { message, version, fields: source.sliced_fields(), wanted: wanted.clone() };
                Some(self.made(&slice, bytes).await?)
            }
            _ => None,
        };
        let mut to = to;
        let made = match (source.form(), to) {
            (BodyFormat::RemoteWrite(Version::V1), Version::V1) => part.map(|part| Made(part, 0)),
            (BodyFormat::RemoteWrite(Version::V1), Version::V2) => {
                match self.newer(source, piece, part.as_ref().map(AsRef::as_ref), bytes).await {
                    // There is no memory for the symbols of a single series: it goes out as it is.
                    Err(EncodeError::Room(BudgetError::Never)) if bytes == Most::ALL => {
                        to = Version::V1;
                        part.map(|part| Made(part, 0))
                    }
                    newer => Some(newer?),
                }
            }
            (BodyFormat::RemoteWrite(Version::V2), _) => {
                Some(self.resolved(source, piece, part.as_ref().map(AsRef::as_ref), to, bytes).await?)
            }
            (BodyFormat::Otlp, wanted) => {
                // A single point takes no tables in 1.0, however many labels it has.
                to = if bytes == Most::ALL { Version::V1 } else { wanted };
                let (made, said) = self.translated(source, piece, to, bytes).await?;
                entries = said.samples + said.histograms + said.exemplars;
                if entries > most.entries {
                    return Err(EncodeError::Large);
                }
                match &mut self.relabeling {
                    None => Some(made),
                    Some(relabeling) => {
                        let Made(body, untranslatable) = made;
                        let (body, left) = Box::pin(relabeling.apply(body, to, entries, &self.room)).await?;
                        let said = items.saturating_sub(untranslatable);
                        filtered = said.saturating_sub(share_of(said, left.into(), entries.into()));
                        entries = left;
                        Some(Made(body, untranslatable))
                    }
                }
            }
        };
        let (whole, untranslatable) = match &made {
            Some(Made(window, untranslatable)) => (window.as_ref(), *untranslatable),
            None => (source.bytes(piece), 0),
        };
        if whole.len() > bytes {
            return Err(EncodeError::Large);
        }
        let is_half_empty = whole.len() <= bytes / 2 && entries <= most.entries / 2;
        let (mut unwanted, mut without, mut is_empty) = (0, None, false);
        if !histograms && has_histograms(to, whole) {
            let mut out = self.room.window(whole.len()).await?;
            let left_out = fill(&mut out, whole.len(), |out| without_histograms(to, whole, out))?;
            entries = entries.saturating_sub(left_out.histograms);
            // A point is one histogram.
            unwanted = if source.form() == BodyFormat::Otlp { left_out.histograms } else { left_out.items };
            without = Some(out);
            is_empty = left_out.remaining == 0;
        }
        let whole = without.as_ref().map_or(whole, AsRef::as_ref);
        let mut losses = Losses::of(Dropped::Untranslatable, untranslatable);
        losses.add(Dropped::Rejected, unwanted);
        losses.add(Dropped::Filtered, filtered);
        let of_piece = items;
        let (_, mut items) = losses.within(of_piece);
        let mut requests = Vec::new();
        let lone = if to == Version::V2 { exemplars::count_orphans(whole) } else { 0 };
        let with_series = if lone > 0 {
            let (with_series, left) = self.with_exemplars(whole, lone).await?;
            items = items.saturating_sub(left.as_ref().map_or(0, |left| left.items));
            requests.extend(left);
            Some(with_series)
        } else {
            None
        };
        let whole = with_series.as_ref().map_or(whole, AsRef::as_ref);
        let has_series = match (source.form(), to) {
            (_, Version::V2) => piece::has_series(whole),
            (BodyFormat::Otlp, Version::V1) => entries > 0,
            (BodyFormat::RemoteWrite(_), Version::V1) => !is_empty,
        };
        if has_series {
            // A single series is in one lane, whatever its labels are.
            if self.lanes == 1 || bytes == Most::ALL {
                let entries = match (to, source.form()) {
                    (Version::V2, _) => ResendRange::Each(piece::entries_of(whole)),
                    (Version::V1, BodyFormat::Otlp) => ResendRange::All(entries),
                    (Version::V1, BodyFormat::RemoteWrite(_)) => ResendRange::All(items),
                };
                requests.push(self.request(whole, to, items, entries).await?);
            } else {
                let mut lanes = match to {
                    Version::V1 => self.spread(whole).await?,
                    Version::V2 => self.spread_v2(whole, bytes).await?,
                };
                if source.form() == BodyFormat::Otlp {
                    share_out(items, &mut lanes);
                }
                requests.extend(lanes);
            }
        }
        for request in &mut requests {
            request.histograms = histograms;
            request.points = source.form() == BodyFormat::Otlp;
        }
        Ok(Encoded { requests, items: of_piece, losses, is_half_empty })
    }

    /// A 2.0 body with the exemplars that stand alone in it in their series, and what is left of those as a request of
    /// 1.0, which has a place for them.
    async fn with_exemplars(
        &mut self,
        raw: &[u8],
        lone: usize,
    ) -> Result<(Charged<Window>, Option<Request>), EncodeError> {
        let _charge = self.room.charge(TABLE + lone.saturating_mul(OrphanExemplars::BYTES)).await?;
        let mut symbols = Symbols::new();
        let request = view_within(raw, TABLE, &mut symbols).map_err(|_| EncodeError::Large)?;
        let mut found = Vec::with_capacity(lone);
        found.extend(exemplars::orphans(&request).take(lone));
        let most = raw.len().saturating_add(16);
        let mut out = self.room.window(most).await?;
        fill(&mut out, most, |out| exemplars::join_orphans(raw, &mut found, out))?;
        if found.is_empty() {
            return Ok((out, None));
        }
        let left = self.made(&UnmatchedExemplars(&found), Most::ALL).await?;
        let items = piece::items_of(Version::V1, &left);
        let request = self.request(&left, Version::V1, items, ResendRange::All(items)).await?;
        Ok((out, Some(request)))
    }

    /// The output of `body`, in at most `most` bytes.
    async fn made(&self, body: &impl Body, most: usize) -> Result<Charged<Window>, EncodeError> {
        let len = if most == Most::ALL {
            let mut counter = Counter::default();
            body.write(&mut counter).map_err(|_| EncodeError::Large)?;
            usize::try_from(counter.bytes()).map_err(|_| EncodeError::Large)?
        } else {
            most
        };
        let mut out = self.room.window(len).await?;
        fill(&mut out, len, |out| body.write(out))?;
        Ok(out)
    }

    /// Points of OTLP as a body of this version.
    async fn translated(
        &mut self,
        source: &Source,
        piece: &RequestPart,
        to: Version,
        most: usize,
    ) -> Result<(Made, otlp::Translated), EncodeError> {
        let wanted = piece.members().ok_or(EncodeError::Large)?;
        let (raw, points) = source.request_of(&wanted);
        let mut space = otlp::ScratchCapacity::default();
        if to == Version::V2 {
            (space.symbols, space.symbol_bytes) = (most / BYTES_PER_SYMBOL, most / BYTES_PER_SYMBOL_BYTE);
        }
        let _charge = self.room.charge(otlp::Scratch::bytes_for(space)).await?;
        let mut scratch = otlp::Scratch::new(space);
        let settings = otlp::Settings {
            naming: self.translation.naming,
            promote: &self.translation.promote,
            scope_labels: self.translation.scope_labels,
            target_info: self.translation.target_info,
        };
        let mut deltas = self.deltas.as_mut();
        if let Some(deltas) = &mut deltas {
            deltas.set_time(self.started.elapsed().as_secs());
        }
        let most = if most == Most::ALL {
            let (mut counter, raw, points) = (Counter::default(), raw, points.clone());
            let deltas = deltas.as_deref_mut();
            let counted = match to {
                Version::V1 => otlp::points_to_v1(raw, points, &settings, &mut scratch, deltas, &mut counter),
                Version::V2 => otlp::points_to_v2(raw, points, &settings, &mut scratch, deltas, &mut counter),
            };
            counted.map_err(|_| EncodeError::Large)?;
            usize::try_from(counter.bytes()).map_err(|_| EncodeError::Large)?
        } else {
            most
        };
        let mut out = self.room.window(most).await?;
        let said = fill(&mut out, most, |out| match to {
            Version::V1 => otlp::points_to_v1(raw, points, &settings, &mut scratch, deltas, out),
            Version::V2 => otlp::points_to_v2(raw, points, &settings, &mut scratch, deltas, out),
        })?;
        Ok((Made(out, said.dropped.points()), said))
    }

    /// The series of `piece`, or the part of one that `part` is, with their symbols: spelled out in 1.0, or with a table
    /// of their own.
    async fn resolved(
        &self,
        source: &Source,
        piece: &RequestPart,
        part: Option<&[u8]>,
        to: Version,
        most: usize,
    ) -> Result<Made, EncodeError> {
        let wanted = piece.members().ok_or(EncodeError::Large)?;
        if to == Version::V2 && part.is_none() {
            let (bodies, first) = source.bodies_of(&wanted);
            let most =
                if most == Most::ALL { 2 * roomy(source.len()) } else { most.min(roomy(source.len())) };
            let joined = async {
                let mut out = self.room.window(most).await?;
                let keep = |position: u64, _: &v2::Series<'_>| wanted.contains(&(first + position));
                self.join(&bodies, keep, most, &mut out).await?;
                Ok(Made(out, 0))
            };
            match Box::pin(joined).await {
                // The tables of the bodies are too large: then without.
                Err(EncodeError::Room(BudgetError::Never)) => {}
                joined => return joined,
            }
        }
        // The whole table where there is room for it.
        let bodies = source.parts_of(&wanted).map(|(body, _)| Symbols::bytes_for(body));
        let table = bodies.max().unwrap_or(0);
        let table = if table <= self.room.left() / 4 { table } else { table.min(TABLE) };
        let _charge = self.room.charge(table).await?;
        let parts = source.parts_of(&wanted).map(|(body, whole)| (body, part.unwrap_or(whole))).collect();
        let body = Resolved { parts, to, table };
        // Cut until it is of one body, whose table is there.
        if to == Version::V2 && body.parts.len() > 1 {
            return Err(EncodeError::Large);
        }
        Ok(Made(self.made(&body, most).await?, 0))
    }

    /// The series of 2.0 bodies that `keep` wants. Says how many there are.
    async fn join(
        &self,
        bodies: &[&[u8]],
        keep: impl FnMut(u64, &v2::Series<'_>) -> bool,
        most: usize,
        out: &mut Window,
    ) -> Result<u64, EncodeError> {
        let symbols = bodies.iter().map(|raw| Symbols::count(raw)).sum();
        let _charge = self.room.charge(join::Scratch::bytes_for(symbols)).await?;
        let mut scratch = join::Scratch::new(symbols);
        fill(out, most, |out| join::join_selected(bodies, keep, &mut scratch, out))
            .map(|joined| joined.series)
    }

    /// A piece of 1.0 as 2.0, with the metadata that is anywhere in the batch; or the part of a series that `part` is.
    async fn newer(
        &self,
        source: &Source,
        piece: &RequestPart,
        part: Option<&[u8]>,
        most: usize,
    ) -> Result<Made, EncodeError> {
        let (raw, range) = match (part, piece) {
            (Some(part), _) => (part, 0..part.len()),
            (None, RequestPart::Bytes(range)) => (source.raw(), range.clone()),
            _ => return Err(EncodeError::Large),
        };
        let own = raw.get(range.clone()).unwrap_or_default();
        let (symbols, families) = (piece::texts_of(own), piece::families_of(raw));
        let symbols = symbols
            .saturating_add(families.saturating_mul(2).min(piece::series_of_v1(own).saturating_mul(2)));
        let _charge = self.room.charge(translate::Scratch::bytes_for(symbols, families)).await?;
        let mut scratch = translate::Scratch::new(symbols, families);
        let most = if most == Most::ALL {
            let mut counter = Counter::default();
            let counted = translate::range_to_v2(raw, range.clone(), &mut scratch, &mut counter);
            counted.map_err(|_| EncodeError::Large)?;
            usize::try_from(counter.bytes()).map_err(|_| EncodeError::Large)?
        } else {
            most.min(roomy(raw.len()))
        };
        let mut out = self.room.window(most).await?;
        let dropped = fill(&mut out, most, |out| translate::range_to_v2(raw, range, &mut scratch, out))?;
        Ok(Made(out, dropped.metadata))
    }

    /// A 1.0 body as one request for each lane that has something of it.
    async fn spread(&mut self, raw: &[u8]) -> Result<Vec<Request>, EncodeError> {
        let mut sizes = vec![Counter::default(); self.lanes];
        split::partition(raw, &mut sizes).map_err(|_| EncodeError::Large)?;
        let mut requests = Vec::with_capacity(self.lanes);
        let mut all = self.room.window(raw.len()).await?;
        let mut rest = all.spare_mut();
        let mut outputs = Vec::with_capacity(self.lanes);
        for size in &sizes {
            let size = usize::try_from(size.bytes()).map_err(|_| EncodeError::Large)?;
            let (lane, behind) =
                std::mem::take(&mut rest).split_at_mut_checked(size).ok_or(EncodeError::Large)?;
            outputs.push(SliceOutput::new(lane));
            rest = behind;
        }
        split::partition(raw, &mut outputs).map_err(|_| EncodeError::Large)?;
        let lengths: Vec<usize> = outputs.iter().map(SliceOutput::len).collect();
        all.advance(lengths.iter().sum());
        let mut start = 0;
        for len in lengths {
            let lane = all.get(start..start + len).unwrap_or_default();
            start += len;
            if !lane.is_empty() {
                let items = piece::items_of(Version::V1, lane);
                requests.push(self.request(lane, Version::V1, items, ResendRange::All(items)).await?);
            }
        }
        Ok(requests)
    }

    /// A 2.0 body as one request for each lane that has something of it. Each lane has a symbol table of its
    /// own; all of them together may be as large as one request.
    async fn spread_v2(&mut self, raw: &[u8], most: usize) -> Result<Vec<Request>, EncodeError> {
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
                let entries = ResendRange::Each(piece::entries_of(&lane));
                requests.push(self.request(&lane, Version::V2, items, entries).await?);
            }
        }
        Ok(requests)
    }

    async fn request(
        &mut self,
        raw: &[u8],
        version: Version,
        items: u64,
        entries: ResendRange,
    ) -> Result<Request, EncodeError> {
        let longest = snappy::max_compressed_len(raw.len()).map_err(|_| EncodeError::Large)?;
        let mut out = self.room.window(longest).await?;
        let len = self.snappy.compress(raw, out.spare_mut()).map_err(|_| EncodeError::Large)?;
        out.advance(len);
        let body = Bytes::from_owner(out);
        Ok(Request { body, raw_len: raw.len(), version, histograms: true, points: false, items, entries })
    }
}

/// Some items of one series.
struct Slice<'a> {
    message: &'a [u8],
    version: Version,
    fields: &'a [u32],
    wanted: std::ops::Range<u64>,
}

impl Body for Slice<'_> {
    fn write(&self, out: &mut impl Output) -> Result<(), RewriteError> {
        Ok(piece::put_slice((self.version, self.message), self.fields, &self.wanted, out)?)
    }
}

/// Stretches of 2.0 bodies, each with the body whose symbols they refer to.
struct Resolved<'a> {
    parts: Vec<(&'a [u8], &'a [u8])>,
    to: Version,
    /// The most bytes of the table of one body.
    table: usize,
}

impl Body for Resolved<'_> {
    fn write(&self, out: &mut impl Output) -> Result<(), RewriteError> {
        let mut symbols = Symbols::new();
        match self.to {
            Version::V1 => {
                for (body, part) in &self.parts {
                    let request = view_within(body, self.table, &mut symbols)?;
                    translate::series_to_v1(request.series_in(part), out)?;
                }
                Ok(())
            }
            Version::V2 => {
                let Some((body, part)) = self.parts.first() else { return Ok(()) };
                let request = view_within(body, self.table, &mut symbols)?;
                join::write_unjoined(request.series_in(part), out).map(drop)
            }
        }
    }
}

/// Exemplars that found no series.
struct UnmatchedExemplars<'s, 'a>(&'s [OrphanExemplars<'a>]);

impl Body for UnmatchedExemplars<'_, '_> {
    fn write(&self, out: &mut impl Output) -> Result<(), RewriteError> {
        Ok(exemplars::orphans_to_v1(self.0, out)?)
    }
}

/// Shares `items` out among requests, by how much is in each.
fn share_out(items: u64, requests: &mut [Request]) {
    let all: u128 = requests.iter().map(|request| u128::from(request.entries.sum())).sum();
    let (mut seen, mut given) = (0u128, 0u64);
    for request in requests {
        seen += u128::from(request.entries.sum());
        let upto = share_of(items, seen, all);
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
) -> Result<T, EncodeError> {
    let spare = out.spare_mut();
    let most = most.min(spare.len());
    let mut output = SliceOutput::new(spare.get_mut(..most).unwrap_or_default());
    let written = write(&mut output).map_err(|_| EncodeError::Large)?;
    let len = output.len();
    out.advance(len);
    Ok(written)
}
