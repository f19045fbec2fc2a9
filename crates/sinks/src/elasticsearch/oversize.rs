//! Sends records that need more memory than the sink's own part: when nothing else is in flight, with the turn to borrow.
//! A record is decoded once, and becomes as many documents at a time as fit beside that, down to one.
//!
//! No memory is held over a wait: before another attempt it is all released, and the record is read from the journal
//! again. Progress is kept as a number of documents, so that delivered ones are not sent again (except after a restart).

use super::documents::{share, version_of};
use super::landing::After;
use super::parcel::{Next, Parcel, go_on, runs_left};
use super::shares::{Runs, Share};
use super::sift::{Pick, retain, sift};
use super::source::{Mark, Source, Unfilled};
use super::unavailable::Oversize;
use super::{Elasticsearch, Landed};
use crate::batch::{Body, Why};
use crate::decoding::SLACK;
use crate::inbox::PASSING;
use crate::losses::Losses;
use crate::room::{Held, NoRoom};
use std::sync::Arc;
use tidegate_arena::{PAGE, STEP, Window};
use tidegate_journal::{Encoding, ReadError};
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::{Symbols, Version, view};
use tokio::time::Instant;

/// The least length of the window that documents are first made in, where there is room for it.
const PIECE: usize = 128 << 10;

/// The progress of a record.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    sequence: u64,
    follows: Option<Arc<str>>,
    /// Where the first piece begins that is not all done, and the number of its first document.
    mark: Mark,
    number: u64,
    /// Its end, and what is left of it.
    end: u64,
    left: Runs,
    /// Whether those may have been sent, how often some of them failed or were refused, and until when they wait.
    sent: bool,
    faults: u32,
    refusals: u32,
    not_before: Option<Instant>,
    /// The record's counts as they were where the piece begins, except losses and waits.
    share: Share,
}

/// The outcome of an attempt.
enum Outcome {
    /// Every document is done, or waits for its index.
    Done(Share),
    /// The rest is sent later.
    Later(Box<Progress>),
    /// The record is no longer in the journal, which has counted it.
    Gone,
}

impl Elasticsearch {
    /// Sends a record on its own.
    pub(super) async fn send_oversize(&mut self, oversize: Oversize) {
        let begins = self.progress.as_ref().filter(|known| known.sequence == oversize.record.sequence);
        if let Some(at) = begins.and_then(|known| known.not_before) {
            tokio::time::sleep_until(at).await;
        }
        self.endpoints.opens().await;
        self.endpoints.let_go(&self.room, self.settings.timeout).await;
        let turn = self.room.turn().await;
        let outcome = Box::pin(self.read_and_send(&oversize)).await;
        // The turn ends when what was borrowed is given back.
        self.endpoints.let_go(&self.room, self.settings.timeout).await;
        drop(turn);
        let Oversize { record, follows } = &oversize;
        let parcel = |share: Share| Parcel::of(record.meta, share, follows.clone());
        match outcome {
            Ok(Outcome::Done(share)) => self.settle(*parcel(share)),
            Ok(Outcome::Later(progress)) => {
                self.progress = Some(progress);
                self.oversize = Some(oversize);
            }
            // What the quota dropped was counted there, and is not counted again.
            Ok(Outcome::Gone) => self.lose_oversize(&oversize, Dropped::Damaged),
            Err(why) => {
                if why == Dropped::TooLarge {
                    let bytes = record.body_len.max(record.meta.raw_len) as usize;
                    self.letters.too_large(record.sequence, bytes, "a record");
                }
                self.lose_oversize(&oversize, why);
            }
        }
    }

    fn lose_oversize(&mut self, oversize: &Oversize, why: Dropped) {
        let Oversize { record, follows } = oversize;
        if follows.is_some() {
            self.unavailable.is_tried = false;
            self.unavailable.forget(record.sequence);
            self.tell();
        }
        self.inbox.settle_each([record.sequence], Losses::of(why, u64::from(record.meta.items)));
    }

    /// Sends a record's documents, piece by piece. An error says why all of it is lost.
    async fn read_and_send(&mut self, oversize: &Oversize) -> Result<Outcome, Dropped> {
        let record = &oversize.record;
        let room = self.room.clone();
        let lost = |why: NoRoom| Why::Room(why).reason();
        match self.inbox.recall(record.sequence) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Outcome::Gone),
            Err(error) => {
                self.inbox.unreadable(&error);
                return Ok(self.later(oversize));
            }
        }
        let mut kept = room.window(record.body_len as usize).await.map_err(lost)?;
        match self.inbox.read_recalled(&mut kept) {
            Ok(()) => {}
            Err(ReadError::NoRecord) => return Ok(Outcome::Gone),
            Err(ReadError::Damaged) => return Err(Dropped::Damaged),
            Err(ReadError::Memory(_)) => return Ok(self.later(oversize)),
        }
        if oversize.follows.is_none() && self.progress.is_none() {
            self.inbox.show(record, &kept);
        }
        let raw = self.decoded(oversize, kept).await?;
        let body = Body {
            range: 0..raw.len(),
            sequence: record.sequence,
            signal: record.meta.signal,
            protocol: record.meta.protocol,
            encoding: Encoding::Identity,
            raw_len: raw.len(),
            items: u64::from(record.meta.items),
            received_at_ns: record.meta.received_at_ns,
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
        let settings = Arc::clone(&self.settings);
        let prefix = self.origin.record(record.sequence);
        let names = (prefix, record.meta.tenant.as_str());
        let mut source = Source::new(&raw, &body, names, request, (&settings, &room));
        let own = raw.bytes() + table.as_ref().map_or(0, Held::bytes);
        Box::pin(self.send_pieces(oversize, &body, &mut source, own)).await
    }

    /// The decoded body.
    async fn decoded(&mut self, oversize: &Oversize, kept: Held<Window>) -> Result<Held<Window>, Dropped> {
        let meta = &oversize.record.meta;
        if meta.encoding == Encoding::Identity {
            return Ok(kept);
        }
        let room = self.room.window(meta.raw_len as usize + SLACK).await;
        let mut raw = room.map_err(|why| Why::Room(why).reason())?;
        let Some(tools) = &mut self.tools else { return Err(Dropped::Damaged) };
        tools.coder.decode(meta.encoding, &kept, &mut raw).await.map_err(|_| Dropped::Damaged)?;
        Ok(raw)
    }

    /// The record could not be read: tries again after a while.
    fn later(&mut self, oversize: &Oversize) -> Outcome {
        let mut begun = self.begun(oversize);
        begun.not_before = Some(Instant::now() + PASSING);
        Outcome::Later(Box::new(begun))
    }

    /// Where to begin: at the start, or where the last attempt ended.
    fn begun(&mut self, oversize: &Oversize) -> Progress {
        let Oversize { record, follows } = oversize;
        let known = self.progress.take();
        let known = known.filter(|known| known.sequence == record.sequence && known.follows == *follows);
        known.map_or_else(
            || Progress {
                sequence: record.sequence,
                follows: follows.clone(),
                mark: Mark::default(),
                number: 0,
                end: 0,
                left: Runs::default(),
                sent: false,
                faults: 0,
                refusals: 0,
                not_before: None,
                share: Share {
                    sequence: record.sequence,
                    items: u64::from(record.meta.items),
                    ..Share::default()
                },
            },
            |known| *known,
        )
    }

    async fn send_pieces(
        &mut self,
        oversize: &Oversize,
        body: &Body,
        source: &mut Source<'_>,
        own: usize,
    ) -> Result<Outcome, Dropped> {
        let only = match &oversize.follows {
            None => None,
            Some(name) => match self.unavailable.wait_of(body.sequence, name) {
                Some(wait) => Some(Pick::Only([wait].into())),
                None => return Ok(Outcome::Done(share(body))),
            },
        };
        let begun = self.begun(oversize);
        let Progress { mut number, end, left, sent, faults, refusals, .. } = begun;
        let mut shares = vec![begun.share];
        source.go_to(begun.mark);
        let mut ended = false;
        while !ended {
            // Connections may still hold what was sent last.
            self.endpoints.let_go_to(&self.room, own + source.bytes(), self.settings.timeout).await;
            let (mark, known) = (source.mark(), shares.first().cloned().unwrap_or_default());
            let Some(share) = shares.first_mut() else { break };
            let made = self.piece(source, share).await?;
            ended = made.ended;
            let first = number;
            number = share.documents;
            let mut runs = Runs::default();
            runs.push(0, first, made.documents);
            let mut window = made.window;
            if first < end {
                // Some of it was done the last time.
                retain(&mut window, &mut runs, |_, _, number| number >= end || left.has(number)).await;
            }
            let pick = only.clone().unwrap_or_else(|| self.unavailable.pick());
            sift(&mut window, &mut runs, &mut shares, &pick).await;
            if runs.count() == 0 {
                continue;
            }
            let mut parcel = Parcel::of(oversize.record.meta, Share::default(), oversize.follows.clone());
            (parcel.left, parcel.runs) = (runs.count(), runs);
            (parcel.raw, parcel.shares) = (bytes::Bytes::from_owner(window), std::mem::take(&mut shares));
            if first < end {
                (parcel.sent, parcel.faults, parcel.refusals) = (sent, faults, refusals);
            }
            parcel = match Box::pin(self.deliver(parcel)).await {
                Ok(parcel) => parcel,
                Err(parcel) => {
                    let mut rest = parcel.runs.clone();
                    // What was behind this piece and is left from the last time.
                    if number < end {
                        rest.extend(&left.from(number));
                    }
                    let Parcel { faults, refusals, not_before, shares, .. } = *parcel;
                    let share = shares.into_iter().next().unwrap_or_default();
                    let Share { documents, said, left_out, .. } = known;
                    return Ok(Outcome::Later(Box::new(Progress {
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
                        share: Share { documents, said, left_out, ..share },
                    })));
                }
            };
            shares = std::mem::take(&mut parcel.shares);
        }
        Ok(Outcome::Done(shares.into_iter().next().unwrap_or_default()))
    }

    /// Makes the next piece: one request's worth of documents, or a single one that takes all the room. A document that
    /// does not fit even then is skipped.
    async fn piece(&mut self, source: &mut Source<'_>, share: &mut Share) -> Result<Piece, Dropped> {
        let counts = source.counts();
        let mut documents = 0;
        let mut wanted = 0;
        'larger: loop {
            match source.prepare().await {
                Ok(()) => {}
                Err(Unfilled::Damaged) => return Err(Dropped::Damaged),
                Err(Unfilled::Full | Unfilled::Room(_)) => {
                    self.pass_over(source, share, self.room.left());
                    let room = self.room.clone();
                    let window = room.window(1).await.map_err(|_| Dropped::TooLarge)?;
                    return Ok(Piece { window, documents: 0, ended: false });
                }
            }
            // The rest mostly suffices for the compressed copy.
            let left = whole(self.room.left());
            let usual = self.most().min(left / 3 * 2).max(PIECE);
            let most = whole(usual.max(wanted).min(left));
            let mut window = self.room.window(most).await.map_err(|_| Dropped::TooLarge)?;
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
                    Err(Unfilled::Damaged) => return Err(Dropped::Damaged),
                    Err(Unfilled::Full | Unfilled::Room(_)) if documents > 0 => break,
                    Err(Unfilled::Full) if most < left => {
                        wanted = most.saturating_mul(2);
                        continue 'larger;
                    }
                    // The intermediate form is made without the window.
                    Err(Unfilled::Room(_)) => continue 'larger,
                    Err(Unfilled::Full) => {
                        self.pass_over(source, share, most);
                        break;
                    }
                }
                tokio::task::yield_now().await;
            }
            return Ok(Piece { window, documents, ended });
        }
    }

    /// Skips a document that does not fit into `room` bytes, which are all that there are.
    fn pass_over(&mut self, source: &mut Source<'_>, share: &mut Share, room: usize) {
        self.letters.too_large(share.sequence, room, "an item of a record");
        source.skip();
        share.documents += 1;
        share.said += 1;
        share.too_large += 1;
    }

    /// Sends all of a piece. An error returns what is left of it, to wait.
    async fn deliver(&mut self, parcel: Box<Parcel>) -> Result<Box<Parcel>, Box<Parcel>> {
        let mut next = Next::Piece(parcel);
        loop {
            let (most, room) = (self.most(), self.room.clone());
            let packed = match &mut self.tools {
                Some(tools) => Box::pin(go_on(next, most, &mut tools.coder, &room)).await,
                None => Err((next, NoRoom::Never)),
            };
            let parcel = match packed {
                Ok(parcel) if parcel.left == 0 => return Ok(parcel),
                Ok(parcel) => parcel,
                Err((Next::Piece(parcel), _)) if parcel.plain => return Err(parcel),
                Err((Next::Piece(mut parcel), _)) => {
                    parcel.plain = true;
                    next = Next::Piece(parcel);
                    continue;
                }
                Err((Next::Rest(mut parcel, reply), _)) => {
                    parcel.runs = runs_left(&parcel, &reply);
                    return Err(parcel);
                }
            };
            let Landed { parcel, place, answer, .. } = self.attempt(parcel).await?;
            match self.hear(parcel, place, answer) {
                After::Done(parcel) => return Ok(parcel),
                After::Piece(parcel) => next = Next::Piece(parcel),
                After::Rest(parcel, reply) => next = Next::Rest(parcel, reply),
                After::Again(parcel) => return Err(parcel),
            }
        }
    }

    /// Sends a request once; returns it when no endpoint accepts one now.
    async fn attempt(&mut self, parcel: Box<Parcel>) -> Result<Landed, Box<Parcel>> {
        let now = Instant::now();
        let Some(request) = parcel.request.clone() else { return Err(parcel) };
        if parcel.not_before.is_some_and(|at| at > now) {
            return Err(parcel);
        }
        let Some((place, peer)) = self.endpoints.place(parcel.piece().len(), now) else {
            return Err(parcel);
        };
        let under_way = self.letters.health().under_way();
        let answer = peer.send(&request).await;
        Ok(Landed { parcel, place, answer, _under_way: under_way })
    }
}

/// The documents to be sent next.
struct Piece {
    window: Held<Window>,
    /// How many there are, skipped ones included.
    documents: u64,
    ended: bool,
}

/// The longest window of at most `bytes` bytes, in whole pages or steps.
fn whole(bytes: usize) -> usize {
    let unit = if bytes < STEP { PAGE } else { STEP };
    bytes / unit * unit
}
