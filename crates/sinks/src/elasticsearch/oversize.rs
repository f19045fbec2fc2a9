//! Sends records that need more memory than the sink's own part: when nothing else is in flight, with the turn to borrow.
//! A record is decoded once, and becomes as many documents at a time as fit beside that, down to one.
//!
//! No memory is held over a wait: before another attempt it is all released, and the record is read from the journal
//! again. Progress is kept as a number of documents, so that delivered ones are not sent again (except after a restart).
//! While another sink waits for the turn to borrow, the record gives it up between requests in the same way.

use super::BulkProtocol;
use super::document_source::{DocumentSource, FillError, SourcePosition};
use super::documents::{share, version_of};
use super::item_filter::{ItemChoice, filter_items, retain};
use super::outbound_request::{OutboundRequest, RemainingWork, go_on, runs_left};
use super::record_shares::{OutcomeRuns, RecordShare};
use super::responses::ResponseAction;
use crate::batch::{BatchBody, DropReason};
use crate::decoding::END_SLACK;
use crate::delivery::{AnsweredRequest, OversizeOutcome, Pipeline};
use crate::egress_budget::{BorrowSlice, BudgetError, Charged};
use crate::journal_consumer::Record;
use std::sync::Arc;
use tidegate_arena::{GROWTH_STEP, PAGE, Window};
use tidegate_journal::{Encoding, Meta, ReadError};
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::{Symbols, Version, view};
use tokio::time::Instant;

/// The least length of the window that documents are first made in, where there is room for it.
const PIECE: usize = 128 << 10;

/// A record that is sent when nothing else is in flight.
#[derive(Debug, Clone)]
pub(super) struct OversizeRecord {
    pub(super) record: Record,
    /// The index that some of its documents have waited for, where only those are sent.
    pub(super) follows: Option<Arc<str>>,
}

impl From<Record> for OversizeRecord {
    fn from(record: Record) -> OversizeRecord {
        OversizeRecord { record, follows: None }
    }
}

/// The progress of a record.
#[derive(Debug, Clone)]
pub(super) struct RecordProgress {
    pub(super) sequence: u64,
    follows: Option<Arc<str>>,
    /// Where the first piece begins that is not all done, and the number of its first document.
    mark: SourcePosition,
    number: u64,
    /// Its end, and what is left of it.
    end: u64,
    left: OutcomeRuns,
    /// Whether those may have been sent, how often some of them failed or were refused, and until when they wait.
    sent: bool,
    faults: u32,
    refusals: u32,
    pub(super) not_before: Option<Instant>,
    /// The record's counts as they were where the piece begins, except losses and waits.
    share: RecordShare,
}

/// The outcome of an attempt.
enum AttemptOutcome {
    /// Every document is done, or waits for its index.
    Done(RecordShare),
    /// The rest is sent later.
    Later(Box<RecordProgress>),
}

/// Why nothing was sent.
enum UnsentReason {
    /// All of the record is lost.
    Lost(Dropped),
    /// The journal cannot be read now.
    Unreadable,
}

impl From<Dropped> for UnsentReason {
    fn from(why: Dropped) -> UnsentReason {
        UnsentReason::Lost(why)
    }
}

/// The context for sending a record: the protocol and the pipeline.
struct OversizeSender<'a> {
    protocol: &'a mut BulkProtocol,
    pipeline: &'a mut Pipeline<BulkProtocol>,
    slice: BorrowSlice,
}

impl BulkProtocol {
    /// Sends a record once, piece by piece, with nothing else in flight.
    pub(super) async fn send_oversize(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        oversize: &OversizeRecord,
        record: &Record,
    ) -> OversizeOutcome {
        let mut sending = OversizeSender { protocol: self, pipeline, slice: BorrowSlice::begin() };
        match Box::pin(sending.read_and_send(oversize, record)).await {
            Ok(AttemptOutcome::Done(share)) => {
                let outbound = OutboundRequest::of(record.meta, share, oversize.follows.clone());
                self.settle(pipeline, *outbound);
                OversizeOutcome::Settled
            }
            Ok(AttemptOutcome::Later(progress)) => {
                self.progress = Some(progress);
                OversizeOutcome::Later
            }
            Err(UnsentReason::Unreadable) => OversizeOutcome::Unreadable,
            Err(UnsentReason::Lost(why)) => OversizeOutcome::Lost(why),
        }
    }
}

impl OversizeSender<'_> {
    /// Sends a record's documents, piece by piece.
    async fn read_and_send(
        &mut self,
        oversize: &OversizeRecord,
        record: &Record,
    ) -> Result<AttemptOutcome, UnsentReason> {
        let room = self.pipeline.room.clone();
        let lost = |why: BudgetError| DropReason::Room(why).reason();
        let mut kept = room.window(record.body_len as usize).await.map_err(lost)?;
        match self.pipeline.consumer.read_into(record, &mut kept) {
            Ok(()) => {}
            // Records dropped by the quota were counted there, and are not counted again.
            Err(ReadError::NoRecord | ReadError::Damaged) => return Err(Dropped::Damaged.into()),
            Err(ReadError::Memory(_)) => return Err(UnsentReason::Unreadable),
        }
        if oversize.follows.is_none() && self.protocol.progress.is_none() {
            self.pipeline.consumer.show(record, &kept);
        }
        let raw = self.decoded(&record.meta, kept).await?;
        let body = BatchBody {
            range: 0..raw.len(),
            sequence: record.sequence,
            signal: record.meta.signal,
            protocol: record.meta.protocol,
            encoding: Encoding::Identity,
            raw_len: raw.len(),
            items: u64::from(record.meta.items),
            received_at_ns: record.meta.received_at_ns,
            taken: self.pipeline.consumer.signals_within(&record.meta),
        };
        let mut symbols = Symbols::new();
        let table = match version_of(&body) {
            Some(Version::V2) => Some(room.charge(Symbols::bytes_for(&raw)).await.map_err(lost)?),
            _ => None,
        };
        let request = match version_of(&body) {
            Some(version) => Some(view(version, &raw, &mut symbols).map_err(|_| Dropped::Damaged)?),
            None => None,
        };
        let settings = Arc::clone(&self.protocol.settings);
        let prefix = self.protocol.origin.record(record.sequence);
        let names = (prefix, record.meta.tenant.as_str());
        let mut source = DocumentSource::new(&raw, &body, names, request, (&settings, &room));
        let own = raw.bytes() + table.as_ref().map_or(0, Charged::bytes);
        Ok(Box::pin(self.send_pieces(oversize, &body, &mut source, own)).await?)
    }

    /// The decoded body.
    async fn decoded(&mut self, meta: &Meta, kept: Charged<Window>) -> Result<Charged<Window>, Dropped> {
        if meta.encoding == Encoding::Identity {
            return Ok(kept);
        }
        let room = self.pipeline.room.window(meta.raw_len as usize + END_SLACK).await;
        let mut raw = room.map_err(|why| DropReason::Room(why).reason())?;
        let Some(tools) = &mut self.pipeline.tools else { return Err(Dropped::Damaged) };
        tools.compressor.decode(meta.encoding, &kept, &mut raw).await.map_err(|_| Dropped::Damaged)?;
        Ok(raw)
    }

    /// Where to begin: at the start, or where the last attempt ended.
    fn begun(&mut self, oversize: &OversizeRecord) -> RecordProgress {
        let OversizeRecord { record, follows } = oversize;
        let known = self.protocol.progress.take();
        let known = known.filter(|known| known.sequence == record.sequence && known.follows == *follows);
        known.map_or_else(
            || RecordProgress {
                sequence: record.sequence,
                follows: follows.clone(),
                mark: SourcePosition::default(),
                number: 0,
                end: 0,
                left: OutcomeRuns::default(),
                sent: false,
                faults: 0,
                refusals: 0,
                not_before: None,
                share: RecordShare {
                    sequence: record.sequence,
                    items: u64::from(record.meta.items),
                    ..RecordShare::default()
                },
            },
            |known| *known,
        )
    }

    async fn send_pieces(
        &mut self,
        oversize: &OversizeRecord,
        body: &BatchBody,
        source: &mut DocumentSource<'_>,
        own: usize,
    ) -> Result<AttemptOutcome, Dropped> {
        let only = match &oversize.follows {
            None => None,
            Some(name) => match self.protocol.unavailable.wait_of(body.sequence, name) {
                Some(wait) => Some(ItemChoice::Only([wait].into())),
                None => return Ok(AttemptOutcome::Done(share(body))),
            },
        };
        let begun = self.begun(oversize);
        let RecordProgress { mut number, end, left, sent, faults, refusals, .. } = begun;
        let passed = body.taken.others(source.raw()).await;
        let mut shares = vec![RecordShare { passed, ..begun.share }];
        source.go_to(begun.mark);
        self.slice.sends();
        let (mut ended, mut has_sent) = (false, false);
        while !ended {
            if std::mem::replace(&mut has_sent, true) && self.slice.is_over(&self.pipeline.room) {
                return Ok(AttemptOutcome::Later(Box::new(RecordProgress {
                    sequence: body.sequence,
                    follows: oversize.follows.clone(),
                    mark: source.mark(),
                    number,
                    end,
                    left,
                    sent,
                    faults,
                    refusals,
                    not_before: None,
                    share: shares.into_iter().next().unwrap_or_default(),
                })));
            }
            // Connections may still hold what was sent last.
            self.pipeline.let_go_to(own + source.bytes()).await;
            let (mark, known) = (source.mark(), shares.first().cloned().unwrap_or_default());
            let Some(share) = shares.first_mut() else { break };
            let made = self.piece(source, share, &oversize.record.meta).await?;
            ended = made.ended;
            let first = number;
            number = share.documents;
            let mut runs = OutcomeRuns::default();
            runs.push(0, first, made.documents);
            let mut window = made.window;
            if first < end {
                // Some of it was done the last time.
                retain(&mut window, &mut runs, |_, _, number| number >= end || left.has(number)).await;
            }
            let pick = only.clone().unwrap_or_else(|| self.protocol.unavailable.pick());
            filter_items(&mut window, &mut runs, &mut shares, &pick).await;
            if runs.count() == 0 {
                continue;
            }
            let mut outbound =
                OutboundRequest::of(oversize.record.meta, RecordShare::default(), oversize.follows.clone());
            (outbound.left, outbound.runs) = (runs.count(), runs);
            (outbound.raw, outbound.shares) = (bytes::Bytes::from_owner(window), std::mem::take(&mut shares));
            if first < end {
                (outbound.sent, outbound.faults, outbound.refusals) = (sent, faults, refusals);
            }
            outbound = match Box::pin(self.deliver(outbound)).await {
                Ok(outbound) => outbound,
                Err(outbound) => {
                    let mut rest = outbound.runs.clone();
                    // The documents after this part, left from the last time.
                    if number < end {
                        rest.extend(&left.from(number));
                    }
                    let OutboundRequest { faults, refusals, not_before, shares, .. } = *outbound;
                    let share = shares.into_iter().next().unwrap_or_default();
                    let RecordShare { documents, said, left_out, .. } = known;
                    return Ok(AttemptOutcome::Later(Box::new(RecordProgress {
                        sequence: body.sequence,
                        follows: oversize.follows.clone(),
                        mark,
                        number: first,
                        end: number.max(end),
                        left: rest,
                        sent: true,
                        faults,
                        refusals,
                        not_before,
                        share: RecordShare { documents, said, left_out, ..share },
                    })));
                }
            };
            shares = std::mem::take(&mut outbound.shares);
        }
        Ok(AttemptOutcome::Done(shares.into_iter().next().unwrap_or_default()))
    }

    /// Makes the next piece: one request's worth of documents, or a single one that takes all the room. A document that
    /// does not fit even then is skipped.
    async fn piece(
        &mut self,
        source: &mut DocumentSource<'_>,
        share: &mut RecordShare,
        meta: &Meta,
    ) -> Result<DocumentRange, Dropped> {
        let counts = source.counts();
        let mut documents = 0;
        let mut wanted = 0;
        'larger: loop {
            match source.prepare().await {
                Ok(()) => {}
                Err(FillError::Damaged) => return Err(Dropped::Damaged),
                Err(FillError::Full | FillError::Room(_)) => {
                    self.skip(source, share, meta, self.pipeline.room.left());
                    let room = self.pipeline.room.clone();
                    let window = room.window(1).await.map_err(|_| Dropped::TooLarge)?;
                    return Ok(DocumentRange { window, documents: 0, ended: false });
                }
            }
            // The rest mostly suffices for the compressed copy.
            let left = whole(self.pipeline.room.left());
            let usual = self.pipeline.most().min(left / 3 * 2).max(PIECE);
            let most = whole(usual.max(wanted).min(left));
            let mut window = self.pipeline.room.window(most).await.map_err(|_| Dropped::TooLarge)?;
            let mut ended = false;
            while !ended {
                match source.fill(&mut window).await {
                    Ok(filled) => {
                        documents += filled.documents;
                        share.documents += filled.documents;
                        share.said += filled.items;
                        if counts {
                            share.left_out = Some(share.left_out.unwrap_or(0) + filled.left_out);
                        }
                        ended = filled.ended;
                    }
                    Err(FillError::Damaged) => return Err(Dropped::Damaged),
                    Err(FillError::Full | FillError::Room(_)) if documents > 0 => break,
                    Err(FillError::Full) if most < left => {
                        wanted = most.saturating_mul(2);
                        continue 'larger;
                    }
                    // The intermediate form is made without the window.
                    Err(FillError::Room(_)) => continue 'larger,
                    Err(FillError::Full) => {
                        self.skip(source, share, meta, most);
                        break;
                    }
                }
                tokio::task::yield_now().await;
            }
            return Ok(DocumentRange { window, documents, ended });
        }
    }

    /// Skips a document that does not fit into `room` bytes, which are all that there are.
    fn skip(&mut self, source: &mut DocumentSource<'_>, share: &mut RecordShare, meta: &Meta, room: usize) {
        self.pipeline.report.too_large(share.sequence, meta, 1, room);
        source.skip();
        share.documents += 1;
        share.said += 1;
        share.too_large += 1;
    }

    /// Sends all of a piece. An error returns what is left of it, to wait, be it for another turn to borrow.
    async fn deliver(
        &mut self,
        outbound: Box<OutboundRequest>,
    ) -> Result<Box<OutboundRequest>, Box<OutboundRequest>> {
        let begun = outbound.left;
        let mut next = RemainingWork::Piece(outbound);
        loop {
            let (most, room) = (self.pipeline.most(), self.pipeline.room.clone());
            let packed = match &mut self.pipeline.tools {
                Some(tools) => Box::pin(go_on(next, most, &mut tools.compressor, &room)).await,
                None => Err((next, BudgetError::Never)),
            };
            let outbound = match packed {
                Ok(outbound) if outbound.left == 0 => return Ok(outbound),
                Ok(outbound) => outbound,
                Err((RemainingWork::Piece(outbound), _)) if outbound.plain => return Err(outbound),
                Err((RemainingWork::Piece(mut outbound), _)) => {
                    outbound.plain = true;
                    next = RemainingWork::Piece(outbound);
                    continue;
                }
                Err((RemainingWork::Rest(mut outbound, reply), _)) => {
                    outbound.runs = runs_left(&outbound, &reply);
                    return Err(outbound);
                }
            };
            let AnsweredRequest { request, reservation, answer, .. } =
                self.pipeline.attempt(outbound).await?;
            match self.protocol.hear(self.pipeline, request, reservation, answer) {
                ResponseAction::Done(outbound) => return Ok(outbound),
                // Settled documents are not sent again.
                ResponseAction::Piece(outbound)
                    if outbound.left < begun && self.slice.is_over(&self.pipeline.room) =>
                {
                    return Err(outbound);
                }
                ResponseAction::Piece(outbound) => next = RemainingWork::Piece(outbound),
                ResponseAction::Rest(outbound, reply) => next = RemainingWork::Rest(outbound, reply),
                ResponseAction::Again(outbound) => return Err(outbound),
            }
        }
    }
}

/// The documents to be sent next.
struct DocumentRange {
    window: Charged<Window>,
    /// How many there are, skipped ones included.
    documents: u64,
    ended: bool,
}

/// The longest window of at most `bytes` bytes, in whole pages or steps.
fn whole(bytes: usize) -> usize {
    let unit = if bytes < GROWTH_STEP { PAGE } else { GROWTH_STEP };
    bytes / unit * unit
}
