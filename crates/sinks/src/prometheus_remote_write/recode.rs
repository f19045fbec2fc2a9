//! Batches that cannot pass as they are: decompressed, cut, translated, spread over lanes, compressed again.
//!
//! A batch becomes a sequence of pieces, each within the limits of a request; a piece becomes one request
//! for each lane. What proves too large when encoded is cut in halves until it fits, or until it is a single
//! sample, histogram or exemplar with its series' labels, or a single point. What there is no memory for even then
//! cannot be sent at all.

mod encode;
mod piece;
mod relabeling;

use super::Settings;
use super::batching::{Batch, BatchMode, BodyFormat, piece_of};
use super::outbound_request::{Lane, OutboundRequest, Recoding, Records};
use crate::batch::{BatchBody, DropReason};
use crate::decoding::{self, DamagedBody, END_SLACK};
use crate::egress_budget::{BorrowTurn, BudgetError, Charged, EgressBudget};
use crate::losses::Losses;
use crate::pipeline_stage::SinkPipeline;
pub(super) use encode::To;
use encode::{EncodeError, Encoded, Encoder, Most};
use piece::{RequestPart, Source};
pub(crate) use relabeling::{Relabeling, share_of};
use std::ops::Range;
use tidegate_arena::{Charge, Window};
use tidegate_journal::Encoding;
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::Version;
use tidegate_wire::{gzip, snappy, zstd};

/// Encodes batches anew, within a sink's part of the memory.
pub(super) struct Recoder {
    room: EgressBudget,
    encoder: Encoder,
    limits: Limits,
    /// How many points of OTLP make about a request: halved when they do not fit, doubled when they leave half of
    /// it empty.
    points: u64,
    /// Whether deltas are added up by tenant.
    by_tenant: bool,
}

/// The initial value of [`Recoder::points`].
const POINTS: u64 = 1_000;
/// How many times a piece is held on its way out at most: in both versions, with tables, without histograms, with its
/// exemplars where they belong, spread over lanes, and compressed.
const COPIES: usize = 8;
/// The most bytes of a piece when memory is short.
const SMALLEST: usize = 16 << 10;
/// The memory of the decoders for OTLP bodies.
const DECODERS: usize = gzip::Decoder::BYTES + zstd::Decoder::BYTES;

/// How large a request may be.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The most bytes of a piece, before compression, that the sink's own part has room for and the peer takes.
    bytes: usize,
    /// The most items of a piece.
    items: u64,
}

/// How far a batch has come.
pub(super) struct RecodeProgress {
    to: To,
    /// Nothing while a record on its own is not read.
    source: Option<Source>,
    /// The parts still to be sent, the next at the end. At most one for each record and each halving.
    left: Vec<RequestPart>,
    /// The part given out last.
    sent: Option<RequestPart>,
    /// The next part is halved: the peer found it too large.
    is_too_large: bool,
    /// It cannot be halved.
    is_smallest: bool,
}

/// The next step of a batch.
enum RecodeStep {
    /// Requests that may be sent at the same time.
    Requests(Encoded),
    /// Items that cannot be sent.
    Lost(u64),
}

impl RecodeProgress {
    fn new(source: Source, to: To) -> RecodeProgress {
        let left = vec![source.whole()];
        RecodeProgress { to, source: Some(source), left, sent: None, is_too_large: false, is_smallest: false }
    }

    /// Bytes of the sink's room that it holds.
    pub(super) fn held(&self) -> usize {
        self.source.as_ref().map_or(0, Source::held)
    }

    /// Gives back what it holds: the record is read again.
    pub(super) fn release(&mut self) {
        self.source = None;
    }

    /// Whether nothing is left to be sent.
    pub(super) fn is_finished(&self) -> bool {
        self.left.is_empty()
    }

    /// The requests that were given out last come again, record by record. False when they are of one.
    pub(super) fn again_apart(&mut self) -> bool {
        let (Some(piece), Some(source)) = (&self.sent, &self.source) else { return false };
        let Some(pieces) = source.apart(piece) else { return false };
        self.left.extend(pieces.into_iter().rev());
        true
    }

    /// The requests that were given out last come again, with half as much in each. False when they cannot be halved.
    pub(super) fn again_halved(&mut self) -> bool {
        self.is_too_large = !std::mem::take(&mut self.is_smallest);
        if self.is_too_large {
            self.again();
        }
        self.is_too_large
    }

    /// The requests that were given out last come again.
    pub(super) fn again(&mut self) {
        self.left.extend(self.sent.take());
    }

    /// The same, in another version.
    pub(super) fn again_as(&mut self, to: Version) {
        self.to.version = to;
        self.again();
    }

    /// The same, without native histograms.
    pub(super) fn again_without_histograms(&mut self) {
        self.to.histograms = false;
        self.again();
    }
}

impl Recoder {
    pub(super) fn new(room: EgressBudget, settings: &Settings, pipeline: Option<&SinkPipeline>) -> Recoder {
        let limits = Limits { bytes: piece_of(room.part()), items: settings.max_items };
        let encoder = Encoder::new(room.clone(), settings.lanes, settings.otlp.clone(), pipeline);
        let by_tenant = settings.tenant_header.is_some();
        Recoder { encoder, room, limits, points: POINTS.min(limits.items).max(1), by_tenant }
    }

    /// Makes the results of the last given requests final.
    pub(super) fn keep(&mut self) {
        self.encoder.keep();
    }

    /// A batch, decompressed, as if nothing of it was sent.
    ///
    /// # Errors
    /// The batch, when there is no room for it or it is damaged.
    pub(super) async fn begin(&self, batch: Batch, to: To) -> Result<Recoding, (Batch, DropReason)> {
        let BatchMode::Recode { from, .. } = batch.key.mode else { return Err((batch, DropReason::Damaged)) };
        let is_decoded = matches!(batch.bodies.as_slice(), [BatchBody { encoding: Encoding::Identity, .. }]);
        let decoded = match batch.bodies.as_slice() {
            _ if is_decoded => None,
            bodies => match self.decode(from, &batch.window, bodies).await {
                Ok(decoded) => Some(decoded),
                Err(why) => return Err((batch, why)),
            },
        };
        let Batch { meta, sequences, items, mut window, bodies, .. } = batch;
        let (raw, ranges) = decoded.unwrap_or_else(|| {
            // Bodies are read from the beginning of their window on, one after the other.
            let range = bodies.into_iter().next().map_or(0..0, |body| body.range);
            let decoded = 0..range.len();
            window.copy_within(range, 0);
            window.truncate(decoded.end);
            (window, vec![decoded])
        });
        let source = Source::new(from, raw, ranges);
        let records = Records::new(meta, sequences, items);
        Ok(Recoding { records, progress: RecodeProgress::new(source, to) })
    }

    /// A record that was read again, as far as `known` has come.
    pub(super) fn resume(&self, begun: Recoding, known: Recoding) -> Recoding {
        let progress = RecodeProgress { source: begun.progress.source, ..known.progress };
        Recoding { records: known.records, progress }
    }

    /// The next requests of a batch, each of at most `most` bytes before compression; none when nothing is left.
    pub(super) async fn next(&mut self, work: Recoding, most: usize) -> OutboundRequest {
        let Recoding { mut records, mut progress } = work;
        self.limits.bytes = most.min(piece_of(self.room.part()));
        if self.by_tenant {
            self.encoder.turn_to(&records.meta.tenant);
        }
        let mut turn = BorrowTurn::none();
        let (mut lanes, mut items, mut losses) = (Vec::new(), 0, Losses::NONE);
        while lanes.is_empty()
            && let Some(source) = progress.source.take()
            && let Some(piece) = progress.left.pop()
        {
            let step = Box::pin(self.step(&source, piece, &mut progress, &mut turn)).await;
            progress.source = Some(source);
            match step {
                Some(RecodeStep::Requests(encoded)) if encoded.requests.is_empty() => {
                    self.keep();
                    records.conclude(encoded.items, encoded.losses);
                }
                Some(RecodeStep::Requests(encoded)) => {
                    (items, losses) = (encoded.items, encoded.losses);
                    lanes = encoded.requests.into_iter().map(Lane::from).collect();
                }
                Some(RecodeStep::Lost(items)) => {
                    records.conclude(items, Losses::of(Dropped::TooLarge, items));
                }
                None => {}
            }
            if lanes.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        if !self.room.is_over() {
            turn = BorrowTurn::none();
        }
        OutboundRequest { records, lanes, items, losses, progress: Some(progress), turn }
    }

    /// Encodes the beginning of `piece`; `None` if it is split into halves.
    async fn step(
        &mut self,
        source: &Source,
        piece: RequestPart,
        progress: &mut RecodeProgress,
        turn: &mut BorrowTurn,
    ) -> Option<RecodeStep> {
        progress.is_smallest = false;
        if std::mem::take(&mut progress.is_too_large) {
            match source.halve(&piece) {
                Some((first, second)) => {
                    progress.left.extend([second, first]);
                    return None;
                }
                None => progress.is_smallest = true,
            }
        }
        let (piece, rest) = source.cut(piece, self.fitting(), self.limits.items, self.points);
        progress.left.extend(rest);
        let members = piece.members().map_or(0, |members| members.end.saturating_sub(members.start));
        // A single point goes, whatever becomes of it.
        let entries = if members > 1 { self.limits.items } else { u64::MAX };
        let mut most = Most { bytes: self.fitting(), entries };
        loop {
            match self.encoder.encode(source, &piece, progress.to, most).await {
                Ok(encoded) => {
                    if encoded.is_half_empty && members >= self.points {
                        self.points = self.points.saturating_mul(2).min(self.limits.items.max(1));
                    }
                    progress.sent = Some(piece);
                    return Some(RecodeStep::Requests(encoded));
                }
                Err(EncodeError::Room(BudgetError::WithoutTurn)) if !turn.is_some() => {
                    *turn = self.room.turn().await;
                }
                Err(_) => match source.halve(&piece) {
                    Some((first, second)) => {
                        self.points = (members / 2).clamp(1, self.points);
                        progress.left.extend([second, first]);
                        return None;
                    }
                    // A part that cannot be split is sent as it is: the peer decides whether it is too large.
                    None if most.bytes != Most::ALL => most.bytes = Most::ALL,
                    None => return Some(RecodeStep::Lost(source.items(&piece))),
                },
            }
        }
    }

    /// The most bytes of a piece that there is room for now, with all that is made of it.
    fn fitting(&self) -> usize {
        // Relabeling holds a piece with what it becomes, which may be twice as long.
        let copies = if self.encoder.relabels() { 2 * COPIES } else { COPIES };
        self.limits.bytes.min((self.room.left() / copies).max(SMALLEST))
    }

    /// The decoded bodies, and the range of each.
    async fn decode(
        &self,
        form: BodyFormat,
        window: &[u8],
        bodies: &[BatchBody],
    ) -> Result<(Charged<Window>, Vec<Range<usize>>), DropReason> {
        let needed = bodies.iter().map(|body| body.raw_len).sum();
        let (mut raw, _charge) = self.decoding_room(form, needed).await?;
        let mut ranges = Vec::with_capacity(bodies.len());
        let mut decoders = Decoders::default();
        for body in bodies {
            let from = raw.len();
            // The source checked it before it was accepted, and the journal checks what it gives back.
            let bytes = window.get(body.range.clone()).ok_or(DropReason::Damaged)?;
            let decoded = decoders.decode(body.encoding, bytes, &mut raw).await;
            decoded.map_err(|_damaged| DropReason::Damaged)?;
            ranges.push(from..raw.len());
        }
        Ok((raw, ranges))
    }

    /// Room for what bodies decode to, and for what decodes them.
    async fn decoding_room(
        &self,
        form: BodyFormat,
        needed: usize,
    ) -> Result<(Charged<Window>, Option<Charged<Charge>>), BudgetError> {
        Ok(match form {
            BodyFormat::RemoteWrite(_) => (self.room.window(needed).await?, None),
            BodyFormat::Otlp => {
                let charge = self.room.charge(DECODERS).await?;
                (self.room.window(needed.saturating_add(END_SLACK)).await?, Some(charge))
            }
        })
    }
}

/// Made when they are needed: most bodies are in Snappy.
#[derive(Default)]
struct Decoders {
    gzip: Option<gzip::Decoder>,
    zstd: Option<zstd::Decoder>,
}

impl Decoders {
    /// Appends what `bytes` decode to.
    async fn decode(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        raw: &mut Window,
    ) -> Result<(), DamagedBody> {
        match encoding {
            Encoding::Snappy => {
                let decoded = snappy::decode(bytes, raw.spare_mut());
                raw.advance(decoded.map_err(|_| DamagedBody)?);
                Ok(())
            }
            Encoding::Identity => raw.append(bytes).map_err(|_| DamagedBody),
            Encoding::Gzip => {
                let gzip = self.gzip.get_or_insert_with(gzip::Decoder::new);
                decoding::steps(gzip, bytes, decoding::YIELD_BYTES, raw).await
            }
            Encoding::Deflate => {
                let gzip = self.gzip.get_or_insert_with(gzip::Decoder::new);
                decoding::steps(&mut gzip.as_zlib(), bytes, decoding::YIELD_BYTES, raw).await
            }
            Encoding::Zstd => {
                // The source has checked every body, and this decoder does not need the window that a frame names.
                let zstd = self.zstd.get_or_insert_with(|| zstd::Decoder::new(u64::MAX));
                decoding::steps(zstd, bytes, usize::MAX, raw).await
            }
        }
    }
}
