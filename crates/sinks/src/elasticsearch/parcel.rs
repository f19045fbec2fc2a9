//! From a batch to requests: its documents, of which a piece at a time is on its way.

use super::Batch;
use super::documents::{Made, Origin, made};
use super::peer::Request;
use super::reply::{Fate, Reply};
use super::settings::Settings;
use crate::batch::Why;
use crate::otlp::coder::Coder;
use crate::room::{NoRoom, Room};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::bulk::{Split, checked};

/// The most documents of a request: what becomes of each is remembered while its answer is read.
pub(super) const MOST_DOCUMENTS: usize = 1 << 14;

/// Documents of some records, which are settled when all of them are done.
pub(super) struct Parcel {
    /// What is known of the first record.
    pub(super) meta: Meta,
    pub(super) sequences: Vec<u64>,
    /// Items as the books count them.
    pub(super) items: u64,
    /// Documents that were made of them.
    pub(super) documents: u64,
    /// Items of which there are no documents.
    pub(super) untranslatable: u64,
    /// Documents that were not wanted, and those that were too large.
    pub(super) rejected: u64,
    pub(super) too_large: u64,
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
    /// How it is sent.
    pub(super) request: Option<Request>,
}

/// What there is to be prepared.
pub(super) enum Job {
    /// Records to be made documents of.
    Batch(Batch),
    /// The next piece of a parcel.
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
    let parcel = match job {
        Job::Batch(batch) => {
            let known = (batch.meta, batch.sequences.clone(), batch.items);
            match made(batch, &tools.origin, &mut tools.coder, &room, &settings).await {
                Ok(made) => Parcel::new(known, made),
                Err((batch, why)) => return (Err(Unfit { job: Job::Batch(batch), why }), tools),
            }
        }
        Job::Piece(parcel) => parcel,
        Job::Rest(parcel, reply) => match rest(&parcel, &reply, &room).await {
            Ok((raw, left)) => Box::new(Parcel { raw, piece: 0..0, left, ..*parcel }),
            Err(no_room) => {
                return (Err(Unfit { job: Job::Rest(parcel, reply), why: no_room.into() }), tools);
            }
        },
    };
    let outcome = packed(parcel, most, &mut tools.coder, &room).await;
    (outcome, tools)
}

/// What is left of a parcel when what is done of its piece is taken out, and how many documents that are.
async fn rest(parcel: &Parcel, reply: &Reply, room: &Room) -> Result<(Bytes, u64), NoRoom> {
    let piece = parcel.raw.get(parcel.piece.clone()).unwrap_or_default();
    let behind = parcel.raw.get(parcel.piece.end..).unwrap_or_default();
    let later = || {
        let items = checked(piece).map_while(Result::ok).enumerate();
        items.filter(|(number, _)| reply.fate(*number) == Fate::Later).map(|(_, item)| item.bytes)
    };
    let (len, count) = later().fold((0, 0u64), |(len, count), bytes| (len + bytes.len(), count + 1));
    let mut window = room.window(len + behind.len()).await?;
    // There is room for exactly that.
    later().chain([behind]).try_for_each(|bytes| window.append(bytes)).map_err(|_| NoRoom::WithoutTurn)?;
    let left = parcel.left.saturating_sub(parcel.piece_documents as u64) + count;
    Ok((Bytes::from_owner(window), left))
}

/// Takes the next piece, and compresses it where that is wanted.
async fn packed(
    mut parcel: Box<Parcel>,
    most: usize,
    coder: &mut Coder,
    room: &Room,
) -> Result<Box<Parcel>, Unfit> {
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
            Err(no_room) => {
                return Err(Unfit { job: Job::Piece(parcel), why: Why::Room(no_room) });
            }
        }
    } else {
        body
    };
    parcel.request = Some(Request { tenant: parcel.meta.tenant, gzip, body, items: parcel.piece_documents });
    Ok(parcel)
}

impl Parcel {
    fn new((meta, sequences, items): (Meta, Vec<u64>, u64), made: Made) -> Box<Parcel> {
        let Made { raw, count, untranslatable } = made;
        Box::new(Parcel {
            meta,
            sequences,
            items,
            documents: count,
            untranslatable,
            rejected: 0,
            too_large: 0,
            raw,
            piece: 0..0,
            piece_documents: 0,
            left: count,
            most_documents: MOST_DOCUMENTS,
            sent: false,
            plain: false,
            request: None,
        })
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

    /// The lines of the piece that is sent.
    pub(super) fn piece(&self) -> &[u8] {
        self.raw.get(self.piece.clone()).unwrap_or_default()
    }

    /// The piece is done. Whether that was all.
    pub(super) fn advance(&mut self) -> bool {
        self.left = self.left.saturating_sub(self.piece_documents as u64);
        self.piece = self.piece.end..self.piece.end;
        self.most_documents = MOST_DOCUMENTS;
        self.sent = false;
        self.request = None;
        self.piece.end >= self.raw.len()
    }

    /// Passes over the first `documents`, which are done.
    pub(super) fn skip(&mut self, documents: u64) {
        let Ok(count) = usize::try_from(documents) else { return };
        if count == 0 {
            return;
        }
        let rest = self.raw.get(self.piece.start..).unwrap_or_default();
        let len = Split::new(rest, usize::MAX, count).next().map_or(0, |piece| piece.bytes.len());
        self.piece = self.piece.start + len..self.piece.start + len;
        self.left = self.left.saturating_sub(documents);
    }
}
