//! From a batch to requests: its documents, of which a piece at a time is on its way.

use super::Batch;
use super::documents::{Made, Origin, made};
use super::peer::Request;
use super::reply::{Fate, Reply};
use super::settings::Settings;
use super::shares::{Runs, Share};
use super::sift::Pick;
use crate::batch::Why;
use crate::otlp::coder::Coder;
use crate::room::{NoRoom, Room};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::bulk::{Split, checked};
use tokio::time::Instant;

/// The most documents of a request: what becomes of each is remembered while its answer is read.
pub(super) const MOST_DOCUMENTS: usize = 1 << 14;

/// Documents of some records, which are settled when all of them are done.
pub(super) struct Parcel {
    /// What is known of the first record.
    pub(super) meta: Meta,
    pub(super) shares: Vec<Share>,
    /// The same before the answer to a piece of which some documents have to be sent again; empty otherwise.
    pub(super) shares_before: Vec<Share>,
    /// Whose the documents are from the beginning of the piece to the end.
    pub(super) runs: Runs,
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
    pub(super) request: Option<Request>,
}

/// What there is to be prepared.
pub(super) enum Job {
    /// Records to be made documents of; and the index for which some of them have waited.
    Batch(Batch, Pick, Option<Arc<str>>),
    /// More of a parcel.
    Next(Next),
}

/// What of a parcel comes next.
pub(super) enum Next {
    /// The next piece.
    Piece(Box<Parcel>),
    /// What was not done of a piece, and then the next.
    Rest(Box<Parcel>, Reply),
}

/// What did not become a request.
pub(super) struct Unfit {
    pub(super) job: Job,
    pub(super) why: Why,
}

/// What is needed to prepare requests, beside memory.
pub(super) struct Tools {
    pub(super) coder: Coder,
    pub(super) origin: Origin,
}

/// Prepares the next request. Pieces have at most `most` bytes.
pub(super) async fn prepare(
    job: Job,
    most: usize,
    mut tools: Box<Tools>,
    room: Room,
    settings: Arc<Settings>,
) -> (Result<Box<Parcel>, Unfit>, Box<Tools>) {
    let next = match job {
        Job::Batch(batch, pick, follows) => {
            let meta = batch.meta;
            match made(batch, &pick, &tools.origin, &mut tools.coder, &room, &settings).await {
                Ok(made) => Next::Piece(Parcel::new(meta, made, follows)),
                Err((batch, why)) => {
                    return (Err(Unfit { job: Job::Batch(batch, pick, follows), why }), tools);
                }
            }
        }
        Job::Next(next) => next,
    };
    let outcome = go_on(next, most, &mut tools.coder, &room).await;
    (outcome.map_err(|(next, no_room)| Unfit { job: Job::Next(next), why: no_room.into() }), tools)
}

/// Prepares the next request of a parcel.
pub(super) async fn go_on(
    next: Next,
    most: usize,
    coder: &mut Coder,
    room: &Room,
) -> Result<Box<Parcel>, (Next, NoRoom)> {
    let parcel = match next {
        Next::Piece(parcel) => parcel,
        Next::Rest(parcel, reply) => match rest(&parcel, &reply, room).await {
            Ok((raw, runs)) => {
                let left = runs.count();
                Box::new(Parcel { raw, runs, piece: 0..0, left, shares_before: Vec::new(), ..*parcel })
            }
            Err(no_room) => return Err((Next::Rest(parcel, reply), no_room)),
        },
    };
    if parcel.left == 0 && parcel.raw.is_empty() {
        return Ok(parcel);
    }
    packed(parcel, most, coder, room).await
}

/// What of a piece is to be sent again.
fn later<'p>(parcel: &'p Parcel, reply: &'p Reply) -> impl Iterator<Item = (&'p [u8], (usize, u64))> {
    let items = checked(parcel.piece()).map_while(Result::ok).zip(parcel.runs.each()).enumerate();
    let later = items.filter(|(number, _)| matches!(reply.fate(*number), Fate::Later | Fate::Fault));
    later.map(|(_, (item, place))| (item.bytes, place))
}

/// Whose documents are left of a parcel when what is done of its piece is taken out.
pub(super) fn runs_left(parcel: &Parcel, reply: &Reply) -> Runs {
    let mut runs = Runs::default();
    later(parcel, reply).for_each(|(_, (share, number))| runs.push(share, number, 1));
    runs.extend(&parcel.runs.behind(parcel.piece_documents as u64));
    runs
}

/// What is left of a parcel when what is done of its piece is taken out, and whose documents that are.
async fn rest(parcel: &Parcel, reply: &Reply, room: &Room) -> Result<(Bytes, Runs), NoRoom> {
    let behind = parcel.raw.get(parcel.piece.end..).unwrap_or_default();
    let len = later(parcel, reply).fold(0, |len, (bytes, _)| len + bytes.len());
    let mut window = room.window(len + behind.len()).await?;
    // There is room for exactly that.
    let mut lines = later(parcel, reply).map(|(bytes, _)| bytes).chain([behind]);
    lines.try_for_each(|bytes| window.append(bytes)).map_err(|_| NoRoom::WithoutTurn)?;
    Ok((Bytes::from_owner(window), runs_left(parcel, reply)))
}

/// Takes the next piece, and compresses it where that is wanted.
async fn packed(
    mut parcel: Box<Parcel>,
    most: usize,
    coder: &mut Coder,
    room: &Room,
) -> Result<Box<Parcel>, (Next, NoRoom)> {
    parcel.choose(most);
    let body = parcel.raw.slice(parcel.piece.clone());
    let gzip = coder.encoding() == Encoding::Gzip && !parcel.plain;
    let body = if gzip {
        let packed = async {
            // What documents usually shrink to; what does not grows.
            let mut out = room.window(body.len() / 6).await?;
            coder.encode(&body, &mut out).await?;
            Ok(Bytes::from_owner(out))
        };
        match packed.await {
            Ok(packed) => packed,
            Err(no_room) => return Err((Next::Piece(parcel), no_room)),
        }
    } else {
        body
    };
    parcel.request = Some(Request { tenant: parcel.meta.tenant, gzip, body, items: parcel.piece_documents });
    Ok(parcel)
}

impl Parcel {
    pub(super) fn new(meta: Meta, made: Made, follows: Option<Arc<str>>) -> Box<Parcel> {
        let Made { raw, shares, runs } = made;
        let left = runs.count();
        Box::new(Parcel {
            meta,
            shares,
            shares_before: Vec::new(),
            runs,
            raw,
            piece: 0..0,
            piece_documents: 0,
            left,
            most_documents: MOST_DOCUMENTS,
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
    pub(super) fn of(meta: Meta, share: Share, follows: Option<Arc<str>>) -> Box<Parcel> {
        Parcel::new(meta, Made { raw: Bytes::new(), shares: vec![share], runs: Runs::default() }, follows)
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
    pub(super) fn unpacked(&self) -> Request {
        let body = self.raw.slice(self.piece.clone());
        Request { tenant: self.meta.tenant, gzip: false, body, items: self.piece_documents }
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
        self.most_documents = MOST_DOCUMENTS;
        (self.sent, self.faults, self.refusals) = (false, 0, 0);
        self.not_before = None;
        self.request = None;
        self.piece.end >= self.raw.len()
    }

    /// Enters `lost` documents of the piece, or of all that is left where its lines are none, by `enter`.
    pub(super) fn lose(&mut self, mut lost: u64, enter: impl Fn(&mut Share) -> &mut u64) {
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
