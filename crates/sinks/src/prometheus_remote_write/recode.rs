//! Batches that cannot pass as they are: decompressed, cut, translated, spread over lanes, compressed again.
//!
//! A batch becomes a sequence of pieces, each within the limits of a request; a piece becomes one request
//! for each lane. What proves too large when encoded is cut in halves until it fits, or until it is a single
//! series, which then cannot be sent at all.

mod piece;

use super::Settings;
use super::batch::{Batch, piece_of};
use super::exchange::Request;
use crate::inbox::Inbox;
use crate::room::Room;
use bytes::Bytes;
use piece::{Cut, Piece, Source};
use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_ledger::Dropped;
use tidegate_wire::output::{Counter, SliceOutput};
use tidegate_wire::remote_write::{Limits, Symbols, Version, check, join, split, translate, view};
use tidegate_wire::snappy;

/// Encodes batches anew, within a sink's part of the memory.
pub(super) struct Recoder {
    room: Room,
    lanes: usize,
    /// The most bytes of a piece, before compression.
    most_bytes: usize,
    /// The most items of a piece.
    most_items: u64,
    encoder: snappy::Encoder,
}

/// How far a batch has come.
pub(super) struct Work {
    from: Version,
    to: Version,
    source: Option<Source>,
    /// What is still to be sent, the next at the end. At most one for each halving, so about forty.
    left: Vec<Piece>,
    begun: bool,
}

/// What comes next of a batch.
pub(super) enum Step {
    /// Requests that may be sent at the same time.
    Requests(Vec<Request>),
    /// Items that cannot be sent.
    Lost(Dropped, u64),
    /// Nothing.
    Finished,
}

impl Work {
    pub(super) const fn new(from: Version, to: Version) -> Work {
        Work { from, to, source: None, left: Vec::new(), begun: false }
    }
}

impl Recoder {
    pub(super) fn new(room: Room, settings: &Settings) -> Recoder {
        Recoder {
            lanes: settings.lanes,
            most_bytes: settings.max_bytes.min(piece_of(room.part())),
            most_items: settings.max_items,
            encoder: snappy::Encoder::new(),
            room,
        }
    }

    /// The next requests of the batch.
    pub(super) async fn next(&mut self, work: &mut Work, batch: &mut Batch, inbox: &mut Inbox) -> Step {
        if work.begun && work.left.is_empty() {
            return Step::Finished;
        }
        let source = match work.source.take() {
            Some(source) => source,
            None => match self.decode(work.from, batch, inbox).await {
                Some(source) => source,
                None => {
                    // The source let it in, so it was whole then.
                    (work.begun, work.left) = (true, Vec::new());
                    return Step::Lost(Dropped::Damaged, batch.items());
                }
            },
        };
        if !work.begun {
            (work.begun, work.left) = (true, vec![source.whole()]);
        }
        let Some(piece) = work.left.pop() else { return Step::Finished };
        let (piece, rest) = source.cut(piece, self.most_bytes, self.most_items);
        work.left.extend(rest);
        let step = match self.encode(&source, &piece, work.to).await {
            Ok(requests) => Step::Requests(requests),
            Err(TooLarge) => match source.halve(&piece) {
                Cut::Halves(first, second) => {
                    work.left.extend([second, first]);
                    Step::Requests(Vec::new())
                }
                Cut::Single { items } => Step::Lost(Dropped::TooLarge, items),
            },
        };
        if batch.is_large() {
            batch.unload();
        } else {
            work.source = Some(source);
        }
        step
    }

    /// The batch, decompressed.
    async fn decode(&self, version: Version, batch: &mut Batch, inbox: &mut Inbox) -> Option<Source> {
        batch.load(&self.room, inbox).await.ok()?;
        let (window, bodies) = batch.bodies();
        let needed = bodies.iter().map(|body| body.raw_len).sum();
        let mut raw = self.room.window(needed).await.ok()?;
        let mut ranges = Vec::with_capacity(bodies.len());
        for body in bodies {
            let (from, bytes) = (raw.len(), window.get(body.range.clone())?);
            match body.encoding {
                Encoding::Snappy => {
                    let len = snappy::decode(bytes, raw.spare_mut()).ok()?;
                    raw.advance(len);
                }
                Encoding::Identity => raw.append(bytes).ok()?,
                Encoding::Gzip | Encoding::Zstd => return None,
            }
            ranges.push(from..raw.len());
        }
        Some(Source::new(version, raw, ranges))
    }

    async fn encode(
        &mut self,
        source: &Source,
        piece: &Piece,
        to: Version,
    ) -> Result<Vec<Request>, TooLarge> {
        let whole = match (source.version(), to) {
            (Version::V1, Version::V1) => None,
            (Version::V1, Version::V2) => Some(self.newer(source.bytes(piece)).await?),
            (Version::V2, Version::V2) => Some(self.joined(&source.bodies(), piece).await?),
            (Version::V2, Version::V1) => {
                let joined = self.joined(&source.bodies(), piece).await?;
                Some(self.older(&joined).await?)
            }
        };
        let whole = whole.as_deref().unwrap_or_else(|| source.bytes(piece));
        if self.lanes == 1 {
            return Ok(vec![self.request(whole, to).await?]);
        }
        let mut requests = Vec::with_capacity(self.lanes);
        for lane in self.spread(whole, to).await?.into_iter().filter(|lane| !lane.is_empty()) {
            requests.push(self.request(&lane, to).await?);
        }
        Ok(requests)
    }

    /// The series of `piece` from all of `bodies`, with one symbol table.
    async fn joined(&self, bodies: &[&[u8]], piece: &Piece) -> Result<Window, TooLarge> {
        let wanted = piece.series().ok_or(TooLarge)?;
        let mut out = self.room.window(self.most_bytes).await?;
        self.join_some(bodies, |position, _| wanted.contains(&position), &mut out).await?;
        Ok(out)
    }

    async fn join_some(
        &self,
        bodies: &[&[u8]],
        keep: impl FnMut(u64, &tidegate_wire::remote_write::v2::Series<'_>) -> bool,
        out: &mut Window,
    ) -> Result<(), TooLarge> {
        let symbols = bodies.iter().map(|raw| Symbols::count(raw)).sum();
        let _charge = self.room.charge(join::Scratch::bytes_for(symbols)).await?;
        let mut scratch = join::Scratch::new(symbols);
        fill(out, |out| join::join_some(bodies, keep, &mut scratch, out).map(drop))
    }

    async fn newer(&self, raw: &[u8]) -> Result<Window, TooLarge> {
        let (symbols, families) = piece::texts_of(raw);
        let _charge = self.room.charge(translate::Scratch::bytes_for(symbols, families)).await?;
        let mut scratch = translate::Scratch::new(symbols, families);
        let mut out = self.room.window(self.most_bytes).await?;
        fill(&mut out, |out| translate::to_v2(raw, &mut scratch, out).map(drop))?;
        Ok(out)
    }

    async fn older(&self, raw: &[u8]) -> Result<Window, TooLarge> {
        let mut out = self.room.window(self.most_bytes).await?;
        with_symbols(&self.room, raw, |symbols| {
            let request = view(Version::V2, raw, symbols).map_err(|_| TooLarge)?;
            let tidegate_wire::remote_write::Request::V2(request) = request else { return Err(TooLarge) };
            fill(&mut out, |out| translate::to_v1(request, out).map(drop))
        })
        .await?;
        Ok(out)
    }

    /// `raw` as one body for each lane, which may be empty.
    async fn spread(&self, raw: &[u8], version: Version) -> Result<Vec<Window>, TooLarge> {
        let mut lanes = Vec::with_capacity(self.lanes);
        if version == Version::V2 {
            for number in 0..self.lanes {
                let mut out = self.room.window(raw.len()).await?;
                let keep = |_, series: &tidegate_wire::remote_write::v2::Series<'_>| {
                    split::lane(&tidegate_wire::remote_write::Series::V2(*series), self.lanes) == number
                };
                self.join_some(&[raw], keep, &mut out).await?;
                lanes.push(out);
            }
            return Ok(lanes);
        }
        let mut sizes = vec![Counter::default(); self.lanes];
        split::partition(raw, &mut sizes).map_err(|_| TooLarge)?;
        for size in &sizes {
            lanes.push(self.room.window(usize::try_from(size.bytes()).map_err(|_| TooLarge)?).await?);
        }
        let mut outputs: Vec<_> = lanes.iter_mut().map(|lane| SliceOutput::new(lane.spare_mut())).collect();
        split::partition(raw, &mut outputs).map_err(|_| TooLarge)?;
        let lengths: Vec<usize> = outputs.iter().map(SliceOutput::len).collect();
        lanes.iter_mut().zip(lengths).for_each(|(lane, len)| lane.advance(len));
        Ok(lanes)
    }

    async fn request(&mut self, raw: &[u8], version: Version) -> Result<Request, TooLarge> {
        let most = snappy::max_compressed_len(raw.len()).map_err(|_| TooLarge)?;
        let mut out = self.room.window(most).await?;
        let len = self.encoder.compress(raw, out.spare_mut()).map_err(|_| TooLarge)?;
        out.advance(len);
        let items = with_symbols(&self.room, raw, |symbols| Ok(items(version, raw, symbols))).await?;
        Ok(Request { body: Bytes::from_owner(out), version, items })
    }
}

/// It does not fit into a request, or into the memory for one.
struct TooLarge;

impl From<tidegate_arena::Refused> for TooLarge {
    fn from(_: tidegate_arena::Refused) -> TooLarge {
        TooLarge
    }
}

/// Runs `write` over the charged bytes of `out`.
fn fill<E>(
    out: &mut Window,
    write: impl FnOnce(&mut SliceOutput<'_>) -> Result<(), E>,
) -> Result<(), TooLarge> {
    let mut output = SliceOutput::new(out.spare_mut());
    write(&mut output).map_err(|_| TooLarge)?;
    let len = output.len();
    out.advance(len);
    Ok(())
}

/// Runs `look` with scratch for the symbols of `raw` that is paid for.
async fn with_symbols<T>(
    room: &Room,
    raw: &[u8],
    look: impl FnOnce(&mut Symbols) -> Result<T, TooLarge>,
) -> Result<T, TooLarge> {
    let _charge = room.charge(Symbols::bytes_for(raw)).await?;
    look(&mut Symbols::new())
}

/// Items in a body of our own making.
fn items(version: Version, raw: &[u8], symbols: &mut Symbols) -> u64 {
    let limits = Limits { require_metric_name: false, ..Limits::default() };
    check(version, raw, &limits, symbols)
        .map_or(0, |counts| counts.samples + counts.histograms + counts.exemplars + counts.metadata)
}
