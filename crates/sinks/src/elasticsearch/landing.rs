//! From answers to the books: what is settled, sent again, looked at more closely.

use super::answer::{Answer, Reason};
use super::parcel::{Job, Next, Parcel, Unfit};
use super::reply::{Fate, Reply};
use super::sift::index_of;
use super::{Elasticsearch, GRACE, Landed, Packed, SMALLER_FOR, SMALLEST};
use crate::backoff::Backoff;
use crate::batch::Why;
use crate::endpoints::{Place, Verdict};
use crate::losses::Losses;
use futures_util::stream::StreamExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate_ledger::Dropped;
use tidegate_wire::bulk::{Kind, checked};
use tokio::time::Instant;

/// How often a document is sent that is answered with 500, before it is one that is not wanted.
const MOST_FAULTS: u32 = 5;
/// How long something that was taken says that a node works.
const ALIVE_FOR: Duration = Duration::from_secs(60);

/// What comes after an answer.
pub(super) enum After {
    /// All of the parcel is done.
    Done(Box<Parcel>),
    /// The next piece.
    Piece(Box<Parcel>),
    /// What was not done of the piece.
    Rest(Box<Parcel>, Reply),
    /// The same again.
    Again(Box<Parcel>),
}

/// What became of the documents of a piece.
#[derive(Debug, Default)]
struct Tally {
    /// Those that the node is done with, one way or the other.
    done: u64,
    rejected: u64,
    pressed: u64,
    unavailable: u64,
    faults: u64,
    /// The indexes of those that take nothing now.
    indexes: Vec<Arc<str>>,
}

impl Elasticsearch {
    /// A job has become a request, or has not.
    pub(super) fn unpack(&mut self, (packed, tools): Packed) {
        self.packing = None;
        self.tools = Some(tools);
        let Unfit { job, why } = match packed {
            // Of all that was in it nothing could be said, or it waits for its index.
            Ok(parcel) if parcel.request.is_none() => return self.settle(*parcel),
            Ok(parcel) if parcel.follows.is_some() => {
                self.following = Some(parcel);
                return;
            }
            Ok(parcel) => return self.ready.push_back(parcel),
            Err(unfit) => unfit,
        };
        let crowded = matches!(why, Why::Room(_)) && !self.is_waiting_for_nothing();
        match job {
            job if crowded => {
                self.crowded = true;
                self.jobs.push_front(job);
            }
            // What is under way has its memory already.
            Job::Next(Next::Piece(parcel)) => self.prepare_next(Next::Piece(plain(parcel))),
            Job::Next(Next::Rest(mut parcel, _)) => {
                parcel.forget_answer();
                self.prepare_next(Next::Piece(parcel));
            }
            Job::Batch(batch, _, Some(name)) => {
                self.unavailable.is_tried = false;
                // The next attempt is for one record.
                self.unavailable.leave(&name, Instant::now());
                match (why, batch.sequences.as_slice()) {
                    (Why::Room(_), [only]) => {
                        self.unavailable.is_tried = self.recall_oversize(*only, name);
                    }
                    (Why::Damaged, [only]) => self.lose(*only, Dropped::Damaged),
                    _ => {}
                }
            }
            Job::Batch(batch, _, None) => match (why, batch.sequences.as_slice()) {
                (Why::Room(_), [only]) => {
                    self.roomless = Some(*only);
                    self.read_again();
                }
                (Why::Damaged, [only]) => {
                    self.inbox.settle_each([*only], Losses::of(Dropped::Damaged, batch.items));
                }
                _ => {
                    self.singly_before = self.singly_before.max(batch.last() + 1);
                    self.read_again();
                }
            },
        }
    }

    fn prepare_next(&mut self, next: Next) {
        self.jobs.push_front(Job::Next(next));
    }

    /// Lets go of what is not documents yet, to read it again once nothing is under way.
    pub(super) fn read_again(&mut self) {
        self.again = true;
        self.open.clear();
        self.jobs.retain(|job| !matches!(job, Job::Batch(_, _, None)));
    }

    /// Takes in an answer.
    pub(super) fn hear(&mut self, mut parcel: Box<Parcel>, place: Place, answer: Answer) -> After {
        let now = Instant::now();
        let again = std::mem::replace(&mut parcel.sent, true);
        match answer {
            Answer::Taken(reply) if reply.is_clean(parcel.piece_documents) => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                self.taken(&parcel, now);
                advanced(parcel)
            }
            Answer::Taken(reply) => self.hear_each(parcel, place, reply, again),
            Answer::Later { reason, after } => {
                let documents = parcel.piece_documents as u64;
                self.fail(place, after, documents, &reason.to_string());
                After::Again(parcel)
            }
            Answer::TooLarge(reason) => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                let len = parcel.piece().len();
                if len > SMALLEST {
                    self.smaller = Some(((len / 2).max(SMALLEST), now + SMALLER_FOR));
                }
                self.halve(parcel, &reason, Dropped::TooLarge)
            }
            Answer::Refused(reason) => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                self.halve(parcel, &reason, Dropped::Rejected)
            }
            Answer::Fault(reason) => self.hear_fault(parcel, place, reason, now),
        }
    }

    /// A request failed, and may fail again. The first time that may be the node; when it says the same again it is
    /// the request, of which halves are sent. A document alone is only at fault where the node takes others.
    fn hear_fault(&mut self, mut parcel: Box<Parcel>, place: Place, reason: Reason, now: Instant) -> After {
        let is_known =
            self.fault.as_ref().is_some_and(|(words, until)| *words == reason.words && now < *until);
        self.fault = Some((reason.words.clone(), now + SMALLER_FOR));
        let documents = parcel.piece_documents as u64;
        if !is_known {
            self.fail(place, None, documents, &reason.to_string());
            return After::Again(parcel);
        }
        if parcel.piece_documents > 1 {
            self.endpoints.give_back(place, Verdict::Alive, now);
            return self.halve(parcel, &reason, Dropped::Rejected);
        }
        parcel.faults += 1;
        if self.alive_until.is_some_and(|until| now < until) && parcel.faults > 1 {
            self.endpoints.give_back(place, Verdict::Alive, now);
            return self.halve(parcel, &reason, Dropped::Rejected);
        }
        // Others go before it, and say whether it is the node.
        self.fail(place, None, documents, &reason.to_string());
        self.delay(&mut parcel, now);
        After::Again(parcel)
    }

    /// Something was taken.
    fn taken(&mut self, parcel: &Parcel, now: Instant) {
        self.alive_until = Some(now + ALIVE_FOR);
        self.letters.taken(parcel.request.as_ref().map_or(0, |request| request.body.len()));
    }

    /// Holds a parcel back for a while, longer each time.
    fn delay(&self, parcel: &mut Parcel, now: Instant) {
        let mut backoff = Backoff::new(self.settings.backoff.0, self.settings.backoff.1);
        let mut wait = backoff.wait(None);
        parcel.refusals += 1;
        for _ in 1..parcel.refusals.min(16) {
            wait = backoff.wait(None);
        }
        parcel.not_before = Some(now + wait);
    }

    /// Takes in what became of each document.
    fn hear_each(&mut self, mut parcel: Box<Parcel>, place: Place, reply: Reply, again: bool) -> After {
        let now = Instant::now();
        let raw = parcel.raw.slice(parcel.piece.clone());
        let items = || checked(&raw).map_while(Result::ok).enumerate();
        let said = &reply;
        let of_fate = |wanted: Fate| items().filter(move |(number, _)| said.fate(*number) == wanted);
        // What was made here, or sent before, is there because it was sent before.
        let again = again || parcel.follows.is_some();
        let again = again || parcel.shares.first().is_some_and(|first| first.sequence < self.inherited);
        let is_foreign = |item: &tidegate_wire::bulk::Item<'_>, origin: &super::documents::Origin| {
            item.action.kind != Kind::Create || !(again || origin.made(item))
        };
        // Something that failed often enough, and not with the node, is not wanted.
        let is_hopeless = parcel.faults + 1 >= MOST_FAULTS;
        let mut tally = Tally::default();
        let shares_before = parcel.shares.clone();
        let runs = std::mem::take(&mut parcel.runs);
        for ((number, item), (share, at)) in items().zip(runs.each()) {
            let Some(share) = parcel.shares.get_mut(share) else { continue };
            let is_rejected = match reply.fate(number) {
                Fate::Done => false,
                Fate::Conflict => is_foreign(&item, &self.origin),
                Fate::Refused(_) => true,
                Fate::Fault if is_hopeless => true,
                Fate::Fault => {
                    tally.faults += 1;
                    continue;
                }
                Fate::Later => {
                    tally.pressed += 1;
                    continue;
                }
                Fate::Unavailable => {
                    tally.unavailable += 1;
                    let words = reply.unavailable.as_deref().unwrap_or_default();
                    let index = self.unavailable.refused(index_of(&item), words);
                    share.wait(&index, at);
                    if !tally.indexes.contains(&index) {
                        tally.indexes.push(index);
                    }
                    continue;
                }
            };
            tally.done += 1;
            tally.rejected += u64::from(is_rejected);
            share.rejected += u64::from(is_rejected);
        }
        parcel.runs = runs;
        if let Some(words) = &reply.conflict {
            let foreign = of_fate(Fate::Conflict).filter(|(_, item)| is_foreign(item, &self.origin));
            self.letters.bury(&parcel, foreign.map(|(_, item)| item.bytes), words);
        }
        for (kind, words) in (0..).zip(&reply.refusals) {
            let refused = of_fate(Fate::Refused(kind)).map(|(_, item)| item.bytes);
            self.letters.bury(&parcel, refused, words);
        }
        if let Some(words) = reply.fault.as_ref().filter(|_| is_hopeless) {
            self.letters.bury(&parcel, of_fate(Fate::Fault).map(|(_, item)| item.bytes), words);
        }
        drop(raw);
        match self.heard(parcel, place, reply, &tally, now) {
            After::Rest(mut parcel, reply) => {
                parcel.shares_before = shares_before;
                After::Rest(parcel, reply)
            }
            after => after,
        }
    }

    /// What follows from what became of the documents of a piece. An answer with anything done is that of a node that
    /// works; and only what it has no room for says that it has too much to do.
    fn heard(
        &mut self,
        mut parcel: Box<Parcel>,
        place: Place,
        reply: Reply,
        tally: &Tally,
        now: Instant,
    ) -> After {
        let missing = (parcel.piece_documents as u64)
            .saturating_sub(tally.done + tally.pressed + tally.unavailable + tally.faults);
        let (pressed, later) = (tally.pressed + missing, tally.pressed + missing + tally.faults);
        if tally.unavailable > 0 {
            tally.indexes.iter().for_each(|name| self.unavailable.leave(name, now));
            let words = reply.unavailable.as_deref().unwrap_or_default();
            self.letters.held_up(tally.unavailable, words, &tally.indexes.join(", "));
        }
        if pressed > 0 {
            let words =
                reply.later.clone().unwrap_or_else(|| "the answer does not say what became of it".to_owned());
            if tally.done == 0 && tally.unavailable == 0 {
                self.fail(place, None, later, &words);
            } else {
                let uri = self.endpoints.uri(&place);
                self.endpoints.give_back(place, Verdict::Pressed, now);
                self.letters.failed(later, &words, &uri, true, None);
                self.delay(&mut parcel, now);
            }
        } else if later > 0 {
            let uri = self.endpoints.uri(&place);
            self.endpoints.give_back(place, Verdict::Delayed, now);
            self.letters.failed(later, reply.fault.as_deref().unwrap_or_default(), &uri, true, None);
            self.delay(&mut parcel, now);
        } else {
            let verdict = if tally.unavailable > 0 { Verdict::Delayed } else { Verdict::Alive };
            self.endpoints.give_back(place, verdict, now);
        }
        if tally.done > tally.rejected || (later == 0 && tally.unavailable == 0) {
            self.taken(&parcel, now);
        }
        parcel.faults += u32::from(tally.faults > 0);
        if later == 0 {
            return advanced(parcel);
        }
        parcel.request = None;
        After::Rest(parcel, reply)
    }

    /// Some documents, or all of a request, are to be sent again.
    fn fail(&mut self, place: Place, after: Option<Duration>, documents: u64, error: &str) {
        let now = Instant::now();
        let uri = self.endpoints.uri(&place);
        let newly = self.endpoints.give_back(place, Verdict::Failed(after), now);
        let retry_at = self.endpoints.all_left_until().map(|at| at.saturating_duration_since(now));
        let retry_at = retry_at.and_then(|wait| SystemTime::now().checked_add(wait));
        self.letters.failed(documents, error, &uri, newly, retry_at);
    }

    /// A request is not wanted as a whole. Which document is at fault is found out by sending fewer at a time.
    fn halve(&mut self, mut parcel: Box<Parcel>, reason: &Reason, why: Dropped) -> After {
        parcel.request = None;
        parcel.sent = false;
        if parcel.piece_documents > 1 {
            self.letters.refused_in_part(reason);
            parcel.most_documents = parcel.piece_documents / 2;
            return After::Piece(parcel);
        }
        let items = checked(parcel.piece()).map_while(Result::ok).map(|item| item.bytes);
        let lost = match self.letters.bury(&parcel, items, &reason.to_string()) {
            // Nothing in it is a document, so there are no others either.
            0 => {
                self.letters.bury(&parcel, [parcel.piece()].into_iter(), &reason.to_string()).max(parcel.left)
            }
            lost => lost,
        };
        match why {
            Dropped::TooLarge => parcel.lose(lost, |share| &mut share.too_large),
            _ => parcel.lose(lost, |share| &mut share.rejected),
        }
        advanced(parcel)
    }

    /// A request has an answer. One that is worth another attempt is held for it only where `patient` says so.
    pub(super) fn land(&mut self, landed: Landed, patient: bool) {
        let Landed { parcel, place, answer, .. } = landed;
        self.crowded = false;
        if parcel.follows.is_some() {
            self.follow_flies = false;
        }
        match self.hear(parcel, place, answer) {
            After::Done(parcel) => self.settle(*parcel),
            After::Again(parcel) if patient && parcel.follows.is_some() => self.following = Some(parcel),
            // What may be at fault itself goes behind the others.
            After::Again(parcel) if patient && parcel.faults > 0 => self.ready.push_back(parcel),
            After::Again(parcel) if patient => self.ready.push_front(parcel),
            After::Piece(parcel) if patient => self.prepare_next(Next::Piece(parcel)),
            After::Rest(parcel, reply) if patient => self.prepare_next(Next::Rest(parcel, reply)),
            After::Again(_) | After::Piece(_) | After::Rest(..) => self.read_again(),
        }
    }

    /// Enters what became of a parcel.
    pub(super) fn settle(&mut self, mut parcel: Parcel) {
        if let Some(name) = parcel.follows.take() {
            return self.settle_follow(parcel, &name);
        }
        let is_plain =
            |share: &super::shares::Share| share.waits.is_empty() && share.rejected + share.too_large == 0;
        if parcel.shares.iter().all(is_plain) {
            let losses = parcel.shares.iter().fold(Losses::NONE, |sum, share| sum.and(share.losses()));
            return self.inbox.settle_each(parcel.shares.iter().map(|share| share.sequence), losses);
        }
        parcel.shares.into_iter().for_each(|share| self.settle_share(share));
        self.tell();
    }

    /// After the order to stop: requests that are answered soon need not be sent again.
    pub(super) async fn land_rest(&mut self) {
        let deadline = Instant::now() + GRACE;
        while let Ok(Some(landed)) = tokio::time::timeout_at(deadline, self.flight.next()).await {
            self.land(landed, false);
        }
        self.flight.clear();
    }
}

/// Goes on to the next piece.
fn advanced(mut parcel: Box<Parcel>) -> After {
    if parcel.advance() { After::Done(parcel) } else { After::Piece(parcel) }
}

fn plain(mut parcel: Box<Parcel>) -> Box<Parcel> {
    parcel.plain = true;
    parcel
}
