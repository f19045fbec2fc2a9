//! Converts a batch to requests. One part of its documents is in flight at a time.

use super::bulk_response::{BulkResponse, ItemOutcome};
use super::documents::{IdPrefix, MadeDocuments, made};
use super::item_filter::ItemChoice;
use super::peer::BulkRequest;
use super::record_shares::{OutcomeRuns, RecordShare};
use super::settings::Settings;
use super::{Batch, BulkProtocol};
use crate::delivery::compressor::Compressor;
use crate::delivery::{Preparation, Prepared, UnsentWork};
use crate::egress_budget::{BudgetError, EgressBudget};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::bulk::{Split, checked_items};
use tokio::time::Instant;

/// The most documents of a request: what becomes of each is remembered while its answer is read.
pub(super) const MAX_DOCUMENTS: usize = 1 << 14;

/// Documents of some records, which are settled when all of them are done.
pub(super) struct OutboundRequest {
    /// The metadata of the first record.
    pub(super) meta: Meta,
    pub(super) shares: Vec<RecordShare>,
    /// The same before the answer to a piece of which some documents have to be sent again; empty otherwise.
    pub(super) shares_before: Vec<RecordShare>,
    /// The owners of the documents from the beginning of the part to the end.
    pub(super) runs: OutcomeRuns,
    /// The lines of the documents, some of them done.
    pub(super) raw: Bytes,
    /// Where in those is the piece that is sent; what comes before is done.
    pub(super) piece: Range<usize>,
    pub(super) piece_documents: usize,
    /// Documents from the beginning of the piece to the end.
    pub(super) left: u64,
    /// How many documents a piece has at most.
    pub(super) most_documents: usize,
    /// The piece was sent before, and may have been taken.
    pub(super) sent: bool,
    /// For want of memory it is not compressed.
    pub(super) plain: bool,
    /// The index that its documents have waited for, if they have.
    pub(super) follows: Option<Arc<str>>,
    /// How often something of the piece was answered with 500.
    pub(super) faults: u32,
    /// How often something of it was refused for want of room, and it is not sent before then.
    pub(super) refusals: u32,
    pub(super) not_before: Option<Instant>,
    /// How it is sent.
    pub(super) request: Option<BulkRequest>,
}

/// Work to prepare, besides batches.
pub(super) enum PendingWork {
    /// The rest of a request.
    Of(RemainingWork),
    /// Documents of some records that have waited for this index.
    Follow(Box<Batch>, ItemChoice, Arc<str>),
}

/// The rest of an outbound request.
pub(super) enum RemainingWork {
    /// The next piece.
    Piece(Box<OutboundRequest>),
    /// The unfinished documents of a part, and then the next part.
    Rest(Box<OutboundRequest>, BulkResponse),
}

/// The tools for preparing requests, besides memory.
pub(super) struct PreparationTools {
    pub(super) compressor: Compressor,
    pub(super) origin: IdPrefix,
}

/// Prepares the next request: of a batch, the documents that are picked. Pieces have at most `most` bytes.
pub(super) async fn prepare(
    work: Preparation<BulkProtocol>,
    pick: ItemChoice,
    most: usize,
    mut tools: Box<PreparationTools>,
    room: EgressBudget,
    settings: Arc<Settings>,
) -> Prepared<BulkProtocol> {
    let (batch, pick, follows) = match work {
        Preparation::Batch(batch) => (batch, pick, None),
        Preparation::More(PendingWork::Follow(batch, pick, name)) => (*batch, pick, Some(name)),
        Preparation::More(PendingWork::Of(remaining)) => {
            return (next(remaining, most, &mut tools.compressor, &room).await, tools);
        }
    };
    let meta = batch.meta;
    #[expect(clippy::large_futures, reason = "the engine has boxed all of this")]
    let made = made(batch, &pick, &tools.origin, &mut tools.compressor, &room, &settings).await;
    match made {
        Ok(made) => {
            let remaining = RemainingWork::Piece(OutboundRequest::new(meta, made, follows));
            (next(remaining, most, &mut tools.compressor, &room).await, tools)
        }
        Err((batch, why)) => {
            let work = match follows {
                None => Preparation::Batch(batch),
                Some(name) => Preparation::More(PendingWork::Follow(Box::new(batch), pick, name)),
            };
            (Err(UnsentWork { work, why }), tools)
        }
    }
}

async fn next(
    remaining: RemainingWork,
    most: usize,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<Box<OutboundRequest>, UnsentWork<BulkProtocol>> {
    let outcome = go_on(remaining, most, compressor, room).await;
    outcome.map_err(|(left, no_room)| UnsentWork {
        work: Preparation::More(PendingWork::Of(left)),
        why: no_room.into(),
    })
}

/// Prepares the next request of an outbound one.
pub(super) async fn go_on(
    remaining: RemainingWork,
    most: usize,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<Box<OutboundRequest>, (RemainingWork, BudgetError)> {
    let outbound = match remaining {
        RemainingWork::Piece(outbound) => outbound,
        RemainingWork::Rest(outbound, reply) => match rest(&outbound, &reply, room).await {
            Ok((raw, runs)) => {
                let left = runs.count();
                Box::new(OutboundRequest {
                    raw,
                    runs,
                    piece: 0..0,
                    left,
                    shares_before: Vec::new(),
                    ..*outbound
                })
            }
            Err(no_room) => return Err((RemainingWork::Rest(outbound, reply), no_room)),
        },
    };
    if outbound.left == 0 && outbound.raw.is_empty() {
        return Ok(outbound);
    }
    packed(outbound, most, compressor, room).await
}

/// The documents of a part to send again.
fn later<'p>(
    outbound: &'p OutboundRequest,
    reply: &'p BulkResponse,
) -> impl Iterator<Item = (&'p [u8], (usize, u64))> {
    let items = checked_items(outbound.piece()).map_while(Result::ok).zip(outbound.runs.each()).enumerate();
    let later =
        items.filter(|(number, _)| matches!(reply.fate(*number), ItemOutcome::Later | ItemOutcome::Fault));
    later.map(|(_, (item, place))| (item.bytes, place))
}

/// The owners of the documents that remain after removing the finished ones of the part.
pub(super) fn runs_left(outbound: &OutboundRequest, reply: &BulkResponse) -> OutcomeRuns {
    let mut runs = OutcomeRuns::default();
    later(outbound, reply).for_each(|(_, (share, number))| runs.push(share, number, 1));
    runs.extend(&outbound.runs.behind(outbound.piece_documents as u64));
    runs
}

/// The rest of an outbound request without the finished documents of its part, and their owners.
async fn rest(
    outbound: &OutboundRequest,
    reply: &BulkResponse,
    room: &EgressBudget,
) -> Result<(Bytes, OutcomeRuns), BudgetError> {
    let behind = outbound.raw.get(outbound.piece.end..).unwrap_or_default();
    let len = later(outbound, reply).fold(0, |len, (bytes, _)| len + bytes.len());
    let mut window = room.window(len + behind.len()).await?;
    // There is room for exactly that.
    let mut lines = later(outbound, reply).map(|(bytes, _)| bytes).chain([behind]);
    lines.try_for_each(|bytes| window.append(bytes)).map_err(|_| BudgetError::WithoutTurn)?;
    Ok((Bytes::from_owner(window), runs_left(outbound, reply)))
}

/// Takes the next piece, and compresses it where that is wanted.
async fn packed(
    mut outbound: Box<OutboundRequest>,
    most: usize,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<Box<OutboundRequest>, (RemainingWork, BudgetError)> {
    outbound.choose(most);
    let body = outbound.raw.slice(outbound.piece.clone());
    let gzip = compressor.encoding() == Encoding::Gzip && !outbound.plain;
    let body = if gzip {
        let packed = async {
            // The usual compression ratio of documents; the buffer grows if it is exceeded.
            let mut out = room.window(body.len() / 6).await?;
            compressor.encode(&body, &mut out).await?;
            Ok(Bytes::from_owner(out))
        };
        match packed.await {
            Ok(packed) => packed,
            Err(no_room) => return Err((RemainingWork::Piece(outbound), no_room)),
        }
    } else {
        body
    };
    outbound.request =
        Some(BulkRequest { tenant: outbound.meta.tenant, gzip, body, items: outbound.piece_documents });
    Ok(outbound)
}

impl OutboundRequest {
    pub(super) fn new(meta: Meta, made: MadeDocuments, follows: Option<Arc<str>>) -> Box<OutboundRequest> {
        let MadeDocuments { raw, shares, runs } = made;
        let left = runs.count();
        Box::new(OutboundRequest {
            meta,
            shares,
            shares_before: Vec::new(),
            runs,
            raw,
            piece: 0..0,
            piece_documents: 0,
            left,
            most_documents: MAX_DOCUMENTS,
            sent: false,
            plain: false,
            follows,
            faults: 0,
            refusals: 0,
            not_before: None,
            request: None,
        })
    }

    /// Without documents yet, or any more.
    pub(super) fn of(meta: Meta, share: RecordShare, follows: Option<Arc<str>>) -> Box<OutboundRequest> {
        OutboundRequest::new(
            meta,
            MadeDocuments { raw: Bytes::new(), shares: vec![share], runs: OutcomeRuns::default() },
            follows,
        )
    }

    /// Takes the next piece of at most `most` bytes, from where the last one began.
    fn choose(&mut self, most: usize) {
        let start = self.piece.start;
        let rest = self.raw.get(start..).unwrap_or_default();
        if rest.len() <= most && self.left <= self.most_documents as u64 {
            self.piece = start..self.raw.len();
            self.piece_documents = usize::try_from(self.left).unwrap_or(usize::MAX);
            return;
        }
        let piece = Split::new(rest, most, self.most_documents).next();
        let (len, documents) = piece.map_or((rest.len(), 0), |piece| (piece.bytes.len(), piece.items));
        self.piece = start..start + len;
        self.piece_documents = documents;
    }

    /// A request of the piece as it is.
    pub(super) fn unpacked(&self) -> BulkRequest {
        let body = self.raw.slice(self.piece.clone());
        BulkRequest { tenant: self.meta.tenant, gzip: false, body, items: self.piece_documents }
    }

    /// The lines of the piece that is sent.
    pub(super) fn piece(&self) -> &[u8] {
        self.raw.get(self.piece.clone()).unwrap_or_default()
    }

    /// All of the piece is sent again, as if it had not been answered.
    pub(super) fn forget_answer(&mut self) {
        self.shares = std::mem::take(&mut self.shares_before);
    }

    /// The piece is done. Whether that was all.
    pub(super) fn advance(&mut self) -> bool {
        self.left = self.left.saturating_sub(self.piece_documents as u64);
        self.runs.skip(self.piece_documents as u64);
        self.piece = self.piece.end..self.piece.end;
        self.most_documents = MAX_DOCUMENTS;
        (self.sent, self.faults, self.refusals) = (false, 0, 0);
        self.not_before = None;
        self.request = None;
        self.piece.end >= self.raw.len()
    }

    /// Enters `lost` documents of the piece, or of all that is left where its lines are none, by `enter`.
    pub(super) fn lose(&mut self, mut lost: u64, enter: impl Fn(&mut RecordShare) -> &mut u64) {
        let most = if self.piece_documents == 0 { usize::MAX } else { self.piece_documents };
        for (share, _) in self.runs.each().take(most) {
            if lost == 0 {
                break;
            }
            lost -= 1;
            if let Some(share) = self.shares.get_mut(share) {
                *enter(share) += 1;
            }
        }
    }
}
