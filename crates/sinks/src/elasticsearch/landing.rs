//! From answers to the books: what is settled, sent again, looked at more closely.

use super::answer::{Answer, Reason};
use super::parcel::{Job, Parcel, Unfit};
use super::reply::{Fate, Reply};
use super::{Elasticsearch, GRACE, Landed, Packed, SMALLER_FOR, SMALLEST};
use crate::batch::Why;
use crate::endpoints::{Place, Verdict};
use crate::losses::Losses;
use futures_util::stream::StreamExt;
use std::time::SystemTime;
use tidegate_ledger::Dropped;
use tidegate_wire::bulk::{Kind, checked};
use tokio::time::Instant;

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

impl Elasticsearch {
    /// A job has become a request, or has not.
    pub(super) fn unpack(&mut self, (packed, tools): Packed) {
        self.packing = None;
        self.tools = Some(tools);
        let Unfit { job, why } = match packed {
            // Of all that was in it nothing could be said.
            Ok(parcel) if parcel.documents == 0 => return self.settle(*parcel),
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
            Job::Piece(parcel) => self.jobs.push_front(Job::Piece(plain(parcel))),
            Job::Rest(parcel, _) => self.jobs.push_front(Job::Piece(parcel)),
            Job::Batch(batch) => match (why, batch.sequences.as_slice()) {
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

    /// Lets go of what is not documents yet, to read it again once nothing is under way.
    pub(super) fn read_again(&mut self) {
        self.again = true;
        self.open.clear();
        self.jobs.retain(|job| !matches!(job, Job::Batch(_)));
    }

    /// Takes in an answer.
    pub(super) fn hear(&mut self, mut parcel: Box<Parcel>, place: Place, answer: Answer) -> After {
        let now = Instant::now();
        let again = std::mem::replace(&mut parcel.sent, true);
        match answer {
            Answer::Taken(reply) if reply.is_clean(parcel.piece_documents) => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                self.letters.taken(parcel.request.as_ref().map_or(0, |request| request.body.len()));
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
        }
    }

    /// Takes in what became of each document.
    fn hear_each(&mut self, mut parcel: Box<Parcel>, place: Place, reply: Reply, again: bool) -> After {
        let fates = |wanted: Fate| {
            let items = checked(parcel.piece()).map_while(Result::ok).enumerate();
            let reply = &reply;
            items.filter(move |(number, _)| reply.fate(*number) == wanted).map(|(_, item)| item)
        };
        let later = fates(Fate::Later).count() as u64;
        let mut rejected = 0;
        if let Some(words) = &reply.conflict {
            // What was made here, or sent before, is there because it was sent before.
            let again = again || parcel.sequences.first().is_some_and(|first| *first < self.inherited);
            let foreign = fates(Fate::Conflict)
                .filter(|item| item.action.kind != Kind::Create || !(again || self.origin.made(item)));
            rejected += self.letters.bury(&parcel, foreign.map(|item| item.bytes), words);
        }
        for (kind, words) in (0..).zip(&reply.refusals) {
            let items = fates(Fate::Refused(kind)).map(|item| item.bytes);
            rejected += self.letters.bury(&parcel, items, words);
        }
        parcel.rejected += rejected;
        if later == 0 {
            self.endpoints.give_back(place, Verdict::Alive, Instant::now());
            self.letters.taken(parcel.request.as_ref().map_or(0, |request| request.body.len()));
            return advanced(parcel);
        }
        let words =
            reply.later.clone().unwrap_or_else(|| "the answer does not say what became of it".to_owned());
        self.fail(place, None, later, &words);
        parcel.request = None;
        After::Rest(parcel, reply)
    }

    /// Some documents, or all of a request, are to be sent again.
    fn fail(&mut self, place: Place, after: Option<std::time::Duration>, documents: u64, error: &str) {
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
            Dropped::TooLarge => parcel.too_large += lost,
            _ => parcel.rejected += lost,
        }
        advanced(parcel)
    }

    /// A request has an answer. One that is worth another attempt is held for it only where `patient` says so.
    pub(super) fn land(&mut self, landed: Landed, patient: bool) {
        let Landed { parcel, place, answer, .. } = landed;
        self.crowded = false;
        match self.hear(parcel, place, answer) {
            After::Done(parcel) => self.settle(*parcel),
            After::Again(parcel) if patient => self.ready.push_front(parcel),
            After::Piece(parcel) if patient => self.jobs.push_front(Job::Piece(parcel)),
            After::Rest(parcel, reply) if patient => self.jobs.push_front(Job::Rest(parcel, reply)),
            After::Again(_) | After::Piece(_) | After::Rest(..) => self.read_again(),
        }
    }

    /// Enters what became of a parcel.
    pub(super) fn settle(&mut self, parcel: Parcel) {
        let Parcel { items, documents, untranslatable, rejected, too_large, .. } = parcel;
        let said = items.saturating_sub(untranslatable);
        // Where documents are not items, as many of these are lost in proportion.
        let of = |lost: u64| match documents {
            0 => 0,
            _ => u64::try_from((u128::from(lost) * u128::from(said)).div_ceil(u128::from(documents)))
                .unwrap_or(u64::MAX),
        };
        let mut losses = Losses::of(Dropped::Untranslatable, untranslatable);
        losses.add(Dropped::Rejected, of(rejected));
        losses.add(Dropped::TooLarge, of(too_large));
        self.inbox.settle_each(parcel.sequences, losses);
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
