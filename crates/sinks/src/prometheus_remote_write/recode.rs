//! Batches that cannot pass as they are: decompressed, cut, translated, spread over lanes, compressed again.
//!
//! A batch becomes a sequence of pieces, each within the limits of a request; a piece becomes one request
//! for each lane. What proves too large when encoded is cut in halves until it fits, or until it is a single
//! series, which then cannot be sent at all. A record whose tables alone are too large is lost as a whole.

mod encode;
mod piece;

use super::Settings;
use super::batch::{Batch, NoBody, piece_of};
use super::exchange::Request;
use crate::inbox::Inbox;
use crate::room::{NoRoom, Room};
use encode::{Encoded, Encoder, Unfit};
use piece::{Piece, Source};
use tidegate_journal::Encoding;
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::Version;
use tidegate_wire::snappy;

/// Encodes batches anew, within a sink's part of the memory.
pub(super) struct Recoder {
    room: Room,
    encoder: Encoder,
    limits: Limits,
}

/// How large a request may be.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The most bytes of a piece, before compression, that the sink's own part has room for.
    bytes: usize,
    /// The most bytes of a piece that the peer takes. Only a single series becomes as large.
    peer_bytes: usize,
    /// The most items of a piece.
    items: u64,
}

/// How far a batch has come.
pub(super) struct Work {
    from: Version,
    to: Version,
    source: Option<Source>,
    /// What is still to be sent, the next at the end. At most one for each record and each halving.
    left: Vec<Piece>,
    /// What was given out last.
    sent: Option<Piece>,
    begun: bool,
}

/// What comes next of a batch.
pub(super) enum Step {
    /// Requests that may be sent at the same time.
    Requests {
        /// One for each lane that has something.
        requests: Vec<Request>,
        /// Items that the version which is sent cannot say.
        untranslatable: u64,
    },
    /// Items that cannot be sent.
    Lost(Dropped, u64),
    /// Nothing.
    Finished,
}

impl Work {
    pub(super) const fn new(from: Version, to: Version) -> Work {
        Work { from, to, source: None, left: Vec::new(), sent: None, begun: false }
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
        self.to = to;
        self.again();
    }
}

impl Recoder {
    pub(super) fn new(room: Room, settings: &Settings) -> Recoder {
        let limits = Limits {
            bytes: settings.max_bytes.min(piece_of(room.part())),
            peer_bytes: settings.max_bytes,
            items: settings.max_items,
        };
        Recoder { encoder: Encoder::new(room.clone(), settings.lanes), room, limits }
    }

    /// The next requests of the batch.
    pub(super) async fn next(&mut self, work: &mut Work, batch: &mut Batch, inbox: &mut Inbox) -> Step {
        loop {
            if work.begun && work.left.is_empty() {
                return Step::Finished;
            }
            let source = match work.source.take() {
                Some(source) => source,
                None => match self.decode(work.from, batch, inbox).await {
                    Ok(source) => source,
                    Err(reason) => {
                        (work.begun, work.left) = (true, Vec::new());
                        return Step::Lost(reason, batch.items());
                    }
                },
            };
            if !work.begun {
                (work.begun, work.left) = (true, vec![source.whole()]);
            }
            let Some(piece) = work.left.pop() else { return Step::Finished };
            let (piece, rest) = source.cut(piece, self.limits.bytes, self.limits.items);
            work.left.extend(rest);
            let Some(step) = self.step(&source, piece, work, batch).await else {
                work.source = Some(source);
                continue;
            };
            // That of a large batch is gone before the batch looks at what is held.
            work.source = Some(source).filter(|_| !batch.is_large());
            batch.unload(&self.room);
            return step;
        }
    }

    /// What comes of `piece`; nothing when it is left in halves.
    async fn step(
        &mut self,
        source: &Source,
        piece: Piece,
        work: &mut Work,
        batch: &mut Batch,
    ) -> Option<Step> {
        let mut most = self.limits.bytes;
        loop {
            match self.encoder.encode(source, &piece, work.to, most).await {
                Ok(Encoded { requests, untranslatable }) => {
                    work.sent = Some(piece);
                    return Some(Step::Requests { requests, untranslatable });
                }
                Err(Unfit::Room(NoRoom::WithoutTurn)) => batch.borrow(&self.room).await,
                // Cutting does not help, but for records that were put together.
                Err(Unfit::Source) => {
                    if let Some(pieces) = source.apart(&piece) {
                        work.left.extend(pieces.into_iter().rev());
                        return None;
                    }
                    let lost = source.rest_of_record(piece, &mut work.left);
                    return Some(Step::Lost(Dropped::TooLarge, source.items(&lost)));
                }
                Err(unfit) => match source.halve(&piece) {
                    Some((first, second)) => {
                        work.left.extend([second, first]);
                        return None;
                    }
                    // A single series may be as large as the peer takes it.
                    None if unfit == Unfit::Large && most < self.limits.peer_bytes => {
                        most = self.limits.peer_bytes;
                    }
                    None => return Some(Step::Lost(Dropped::TooLarge, source.items(&piece))),
                },
            }
        }
    }

    /// The batch, decompressed.
    async fn decode(
        &self,
        version: Version,
        batch: &mut Batch,
        inbox: &mut Inbox,
    ) -> Result<Source, Dropped> {
        batch.load(&self.room, inbox).await.map_err(|no_body| match no_body {
            NoBody::Damaged => Dropped::Damaged,
            NoBody::TooLarge => Dropped::TooLarge,
        })?;
        let needed = batch.bodies().1.iter().map(|body| body.raw_len).sum();
        let mut room = self.room.window(needed).await;
        if let Err(NoRoom::WithoutTurn) = room {
            batch.borrow(&self.room).await;
            room = self.room.window(needed).await;
        }
        let mut raw = room.map_err(|_| Dropped::TooLarge)?;
        let (window, bodies) = batch.bodies();
        let mut ranges = Vec::with_capacity(bodies.len());
        for body in bodies {
            let from = raw.len();
            // The source checked it before it was accepted, and the journal checks what it gives back.
            let bytes = window.get(body.range.clone()).ok_or(Dropped::Damaged)?;
            let decoded = match body.encoding {
                Encoding::Snappy => {
                    snappy::decode(bytes, raw.spare_mut()).map(|len| raw.advance(len)).map_err(drop)
                }
                Encoding::Identity => raw.append(bytes).map_err(drop),
                Encoding::Gzip | Encoding::Zstd => return Err(Dropped::Untranslatable),
            };
            decoded.map_err(|()| Dropped::Damaged)?;
            ranges.push(from..raw.len());
        }
        Ok(Source::new(version, raw, ranges))
    }
}
