//! Batches that cannot pass as they are: decompressed, cut, translated, spread over lanes, compressed again.
//!
//! A batch becomes a sequence of pieces, each within the limits of a request; a piece becomes one request
//! for each lane. What proves too large when encoded is cut in halves until it fits, or until it is a single
//! sample, histogram or exemplar with its series' labels, or a single point. What there is no memory for even then
//! cannot be sent at all.

mod encode;
mod piece;

use super::Settings;
use super::batch::{Batch, BodyError, BodyFormat, piece_of};
use super::exchange::Request;
use crate::decoding::{self, END_SLACK};
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::journal_consumer::JournalConsumer;
pub(super) use encode::To;
use encode::{EncodeError, Encoded, Encoder, Most};
use piece::{RequestPart, Source};
use tidegate_arena::{Charge, Window};
use tidegate_journal::{Encoding, Tenant};
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
    from: BodyFormat,
    to: To,
    source: Option<Source>,
    /// The parts still to be sent, the next at the end. At most one for each record and each halving.
    left: Vec<RequestPart>,
    /// The part given out last.
    sent: Option<RequestPart>,
    begun: bool,
}

/// The next step of a batch.
pub(super) enum RecodeStep {
    /// Requests that may be sent at the same time.
    Requests {
        /// One for each lane that has something.
        requests: Vec<Request>,
        /// Items that the version which is sent cannot say.
        untranslatable: u64,
        /// Items that the peer does not take.
        unwanted: u64,
    },
    /// Items that cannot be sent.
    Lost(Dropped, u64),
    /// Nothing.
    Finished,
}

impl RecodeProgress {
    pub(super) const fn new(from: BodyFormat, to: To) -> RecodeProgress {
        RecodeProgress { from, to, source: None, left: Vec::new(), sent: None, begun: false }
    }

    /// Bytes of the sink's room that it holds.
    pub(super) fn held(&self) -> usize {
        self.source.as_ref().map_or(0, Source::held)
    }

    /// The requests that were given out last come again, record by record. False when they are of one.
    pub(super) fn again_apart(&mut self) -> bool {
        let (Some(piece), Some(source)) = (&self.sent, &self.source) else { return false };
        let Some(pieces) = source.apart(piece) else { return false };
        self.left.extend(pieces.into_iter().rev());
        true
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
    pub(super) fn new(room: EgressBudget, settings: &Settings) -> Recoder {
        let limits =
            Limits { bytes: settings.max_bytes.min(piece_of(room.part())), items: settings.max_items };
        let encoder = Encoder::new(room.clone(), settings.lanes, settings.otlp.clone());
        Recoder { encoder, room, limits, points: POINTS.min(limits.items).max(1) }
    }

    /// Sets the tenant of the next parts, whose deltas are accumulated separately.
    pub(super) fn turn_to(&mut self, tenant: &Tenant) {
        self.encoder.turn_to(tenant);
    }

    /// Makes the results of the last given requests final.
    pub(super) fn keep(&mut self) {
        self.encoder.keep();
    }

    /// The next requests of the batch.
    pub(super) async fn next(
        &mut self,
        work: &mut RecodeProgress,
        batch: &mut Batch,
        consumer: &mut JournalConsumer,
    ) -> RecodeStep {
        loop {
            if work.begun && work.left.is_empty() {
                return RecodeStep::Finished;
            }
            let source = match work.source.take() {
                Some(source) => source,
                None => match self.decode(work.from, batch, consumer).await {
                    Ok(source) => source,
                    Err(reason) => {
                        (work.begun, work.left) = (true, Vec::new());
                        return RecodeStep::Lost(reason, batch.items());
                    }
                },
            };
            if !work.begun {
                (work.begun, work.left) = (true, vec![source.whole()]);
            }
            let Some(piece) = work.left.pop() else { return RecodeStep::Finished };
            let bytes = self.fitting();
            let (piece, rest) = source.cut(piece, bytes, self.limits.items, self.points);
            work.left.extend(rest);
            let Some(step) = self.step(&source, piece, work, batch).await else {
                work.source = Some(source);
                tokio::task::yield_now().await;
                continue;
            };
            // That of a large batch is gone before the batch looks at what is held.
            work.source = Some(source).filter(|_| !batch.is_large());
            batch.unload(&self.room);
            return step;
        }
    }

    /// Encodes `piece`; `None` if it is split into halves.
    async fn step(
        &mut self,
        source: &Source,
        piece: RequestPart,
        work: &mut RecodeProgress,
        batch: &mut Batch,
    ) -> Option<RecodeStep> {
        let members = piece.members().map_or(0, |members| members.end.saturating_sub(members.start));
        // A single point goes, whatever becomes of it.
        let entries = if members > 1 { self.limits.items } else { u64::MAX };
        let mut most = Most { bytes: self.fitting(), entries };
        loop {
            match self.encoder.encode(source, &piece, work.to, most).await {
                Ok(Encoded { requests, untranslatable, unwanted, is_half_empty }) => {
                    if is_half_empty && members >= self.points {
                        self.points = self.points.saturating_mul(2).min(self.limits.items.max(1));
                    }
                    work.sent = Some(piece);
                    return Some(RecodeStep::Requests { requests, untranslatable, unwanted });
                }
                Err(EncodeError::Room(BudgetError::WithoutTurn)) => batch.borrow(&self.room).await,
                Err(_) => match source.halve(&piece) {
                    Some((first, second)) => {
                        self.points = (members / 2).clamp(1, self.points);
                        work.left.extend([second, first]);
                        return None;
                    }
                    // A part that cannot be split is sent as it is: the peer decides whether it is too large.
                    None if most.bytes != Most::ALL => most.bytes = Most::ALL,
                    None => return Some(RecodeStep::Lost(Dropped::TooLarge, source.items(&piece))),
                },
            }
        }
    }

    /// The most bytes of a piece that there is room for now, with all that is made of it.
    fn fitting(&self) -> usize {
        self.limits.bytes.min((self.room.left() / COPIES).max(SMALLEST))
    }

    /// The batch, decompressed.
    async fn decode(
        &self,
        form: BodyFormat,
        batch: &mut Batch,
        consumer: &mut JournalConsumer,
    ) -> Result<Source, Dropped> {
        batch.load(&self.room, consumer).await.map_err(|no_body| match no_body {
            BodyError::Damaged => Dropped::Damaged,
            BodyError::TooLarge => Dropped::TooLarge,
        })?;
        if let Some((window, range)) = batch.take_plain() {
            return Ok(Source::new(form, window, vec![range]));
        }
        let needed = batch.bodies().1.iter().map(|body| body.raw_len).sum();
        let mut room = self.decoding_room(form, needed).await;
        if let Err(BudgetError::WithoutTurn) = room {
            batch.borrow(&self.room).await;
            room = self.decoding_room(form, needed).await;
        }
        let (mut raw, _charge) = room.map_err(|_| Dropped::TooLarge)?;
        let (window, bodies) = batch.bodies();
        let mut ranges = Vec::with_capacity(bodies.len());
        let mut decoders = Decoders::default();
        for body in bodies {
            let from = raw.len();
            // The source checked it before it was accepted, and the journal checks what it gives back.
            let bytes = window.get(body.range.clone()).ok_or(Dropped::Damaged)?;
            decoders.decode(body.encoding, bytes, &mut raw).await?;
            ranges.push(from..raw.len());
        }
        Ok(Source::new(form, raw, ranges))
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
    async fn decode(&mut self, encoding: Encoding, bytes: &[u8], raw: &mut Window) -> Result<(), Dropped> {
        match encoding {
            Encoding::Snappy => {
                let decoded = snappy::decode(bytes, raw.spare_mut());
                raw.advance(decoded.map_err(|_| Dropped::Damaged)?);
                return Ok(());
            }
            Encoding::Identity => return raw.append(bytes).map_err(|_| Dropped::Damaged),
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
        .map_err(|_damaged| Dropped::Damaged)
    }
}
