//! Acts on answers: settles, retries, or examines document by document.

use super::BulkProtocol;
use super::answer::{BulkAnswer, RejectionReason};
use super::bulk_response::{BulkResponse, ItemOutcome};
use super::documents::IdPrefix;
use super::item_filter::index_of;
use super::outbound_request::{OutboundRequest, PendingWork, RemainingWork};
use super::record_shares::RecordShare;
use crate::backoff::Backoff;
use crate::batch::DropReason;
use crate::delivery::{NextStep, Pipeline};
use crate::endpoints::{AttemptResult, Reservation};
use crate::losses::Losses;
use std::sync::Arc;
use std::time::Duration;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_wire::bulk::{Item, Kind, checked_items};
use tokio::time::Instant;

/// How often a document is sent that is answered with 500, before it is one that is not wanted.
const MOST_FAULTS: u32 = 5;
/// How long something that was accepted says that a node works.
const ALIVE_FOR: Duration = Duration::from_secs(60);
/// How long a fault that a node reports is thought to be known.
const FAULT_KNOWN_FOR: Duration = Duration::from_secs(600);
/// About how many bytes of documents share a dead letter.
pub(super) const LETTER: usize = 64 << 10;

/// The step after an answer.
pub(super) enum ResponseAction {
    /// All of the request is done.
    Done(Box<OutboundRequest>),
    /// The next piece.
    Piece(Box<OutboundRequest>),
    /// The unfinished documents of the part.
    Rest(Box<OutboundRequest>, BulkResponse),
    /// The same again.
    Again(Box<OutboundRequest>),
}

/// The outcomes of a part's documents.
#[derive(Debug, Default)]
struct OutcomeCounts {
    /// Those that the node is done with, one way or the other.
    done: u64,
    rejected: u64,
    pressed: u64,
    unavailable: u64,
    faults: u64,
    /// The indexes of those that take nothing now.
    indexes: Vec<Arc<str>>,
}

impl BulkProtocol {
    /// Work that could not be prepared is retried with less memory, or waits.
    pub(super) fn give_up_preparing(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        more: PendingWork,
        why: DropReason,
    ) {
        match more {
            // Requests in flight have their memory already.
            PendingWork::Of(RemainingWork::Piece(mut outbound)) => {
                outbound.plain = true;
                pipeline.prepare_next(PendingWork::Of(RemainingWork::Piece(outbound)));
            }
            PendingWork::Of(RemainingWork::Rest(mut outbound, _)) => {
                outbound.forget_answer();
                pipeline.prepare_next(PendingWork::Of(RemainingWork::Piece(outbound)));
            }
            PendingWork::Follow(batch, _, name) => {
                pipeline.released();
                self.unavailable.is_tried = false;
                // The next attempt is for one record.
                self.unavailable.leave(&name, Instant::now());
                match (why, batch.sequences.as_slice()) {
                    (DropReason::Room(_), [only]) => {
                        self.unavailable.is_tried = self.recall_oversize(pipeline, *only, name);
                    }
                    (DropReason::Damaged, [only]) => self.lose(pipeline, *only, Dropped::Damaged),
                    _ => {}
                }
            }
        }
    }

    /// The step after the answer to a request, with others in flight.
    pub(super) fn heard(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        outbound: Box<OutboundRequest>,
        reservation: Reservation,
        answer: BulkAnswer,
    ) -> NextStep<BulkProtocol> {
        match self.hear(pipeline, outbound, reservation, answer) {
            ResponseAction::Done(outbound) => {
                self.settle(pipeline, *outbound);
                NextStep::Settled
            }
            ResponseAction::Again(outbound) => NextStep::Again(outbound),
            ResponseAction::Piece(outbound) => {
                NextStep::Prepare(PendingWork::Of(RemainingWork::Piece(outbound)))
            }
            ResponseAction::Rest(outbound, reply) => {
                NextStep::Prepare(PendingWork::Of(RemainingWork::Rest(outbound, reply)))
            }
        }
    }

    /// Takes in an answer.
    pub(super) fn hear(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        mut outbound: Box<OutboundRequest>,
        reservation: Reservation,
        answer: BulkAnswer,
    ) -> ResponseAction {
        let now = Instant::now();
        let again = std::mem::replace(&mut outbound.sent, true);
        match answer {
            BulkAnswer::Taken(reply) if reply.is_clean(outbound.piece_documents) => {
                pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
                self.accepted(pipeline, &outbound, now);
                advanced(outbound)
            }
            BulkAnswer::Taken(reply) => self.hear_each(pipeline, outbound, reservation, reply, again),
            BulkAnswer::Later { reason, after } => {
                let documents = outbound.piece_documents as u64;
                pipeline.endpoint_failed(reservation, after, documents, &reason.to_string());
                ResponseAction::Again(outbound)
            }
            BulkAnswer::TooLarge(reason) => {
                pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
                pipeline.found_too_large(outbound.piece().len());
                halve(pipeline, outbound, &reason, Dropped::TooLarge)
            }
            BulkAnswer::Refused(reason) => {
                pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
                halve(pipeline, outbound, &reason, Dropped::Rejected)
            }
            BulkAnswer::Fault(reason) => self.hear_fault(pipeline, outbound, reservation, reason, now),
        }
    }

    /// A request failed, and may fail again. The first time that may be the node; when it says the same again it is
    /// the request, of which halves are sent. A document alone is only at fault where the node takes others.
    fn hear_fault(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        mut outbound: Box<OutboundRequest>,
        reservation: Reservation,
        reason: RejectionReason,
        now: Instant,
    ) -> ResponseAction {
        let is_known =
            self.fault.as_ref().is_some_and(|(words, until)| *words == reason.words && now < *until);
        self.fault = Some((reason.words.clone(), now + FAULT_KNOWN_FOR));
        let documents = outbound.piece_documents as u64;
        if !is_known {
            pipeline.endpoint_failed(reservation, None, documents, &reason.to_string());
            return ResponseAction::Again(outbound);
        }
        if outbound.piece_documents > 1 {
            pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
            return halve(pipeline, outbound, &reason, Dropped::Rejected);
        }
        outbound.faults += 1;
        if self.alive_until.is_some_and(|until| now < until) && outbound.faults > 1 {
            pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
            return halve(pipeline, outbound, &reason, Dropped::Rejected);
        }
        // Others go before it, and say whether it is the node.
        pipeline.endpoint_failed(reservation, None, documents, &reason.to_string());
        self.delay(&mut outbound, now);
        ResponseAction::Again(outbound)
    }

    /// Something was accepted.
    fn accepted(&mut self, pipeline: &Pipeline<BulkProtocol>, outbound: &OutboundRequest, now: Instant) {
        self.alive_until = Some(now + ALIVE_FOR);
        pipeline.report.accepted(outbound.request.as_ref().map_or(0, |request| request.body.len()));
    }

    /// Holds a request back for a while, longer each time.
    fn delay(&self, outbound: &mut OutboundRequest, now: Instant) {
        let mut backoff = Backoff::new(self.settings.backoff.0, self.settings.backoff.1);
        let mut wait = backoff.wait(None);
        outbound.refusals += 1;
        for _ in 1..outbound.refusals.min(16) {
            wait = backoff.wait(None);
        }
        outbound.not_before = Some(now + wait);
    }

    /// Takes in what became of each document.
    fn hear_each(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        mut outbound: Box<OutboundRequest>,
        reservation: Reservation,
        reply: BulkResponse,
        again: bool,
    ) -> ResponseAction {
        let now = Instant::now();
        let raw = outbound.raw.slice(outbound.piece.clone());
        let items = || checked_items(&raw).map_while(Result::ok).enumerate();
        let said = &reply;
        let of_fate = |wanted: ItemOutcome| items().filter(move |(number, _)| said.fate(*number) == wanted);
        // A document made by tidegate or sent before exists because it was sent before.
        let again = again || outbound.follows.is_some();
        let again = again || outbound.shares.first().is_some_and(|first| first.sequence < self.inherited);
        let is_foreign = |item: &Item<'_>, origin: &IdPrefix| {
            item.action.kind != Kind::Create || !(again || origin.made(item))
        };
        // Something that failed often enough, and not with the node, is not wanted.
        let is_hopeless = outbound.faults + 1 >= MOST_FAULTS;
        let mut tally = OutcomeCounts::default();
        let shares_before = outbound.shares.clone();
        let runs = std::mem::take(&mut outbound.runs);
        for ((number, item), (share, at)) in items().zip(runs.each()) {
            let Some(share) = outbound.shares.get_mut(share) else { continue };
            let is_rejected = match reply.fate(number) {
                ItemOutcome::Done => false,
                ItemOutcome::Conflict => is_foreign(&item, &self.origin),
                ItemOutcome::Refused(_) => true,
                ItemOutcome::Fault if is_hopeless => true,
                ItemOutcome::Fault => {
                    tally.faults += 1;
                    continue;
                }
                ItemOutcome::Later => {
                    tally.pressed += 1;
                    continue;
                }
                ItemOutcome::Unavailable => {
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
        outbound.runs = runs;
        if let Some(words) = &reply.conflict {
            let foreign = of_fate(ItemOutcome::Conflict).filter(|(_, item)| is_foreign(item, &self.origin));
            keep(pipeline, &outbound.meta, foreign.map(|(_, item)| item.bytes), words);
        }
        for (kind, words) in (0..).zip(&reply.refusals) {
            let refused = of_fate(ItemOutcome::Refused(kind)).map(|(_, item)| item.bytes);
            keep(pipeline, &outbound.meta, refused, words);
        }
        if let Some(words) = reply.fault.as_ref().filter(|_| is_hopeless) {
            keep(pipeline, &outbound.meta, of_fate(ItemOutcome::Fault).map(|(_, item)| item.bytes), words);
        }
        drop(raw);
        match self.after_documents(pipeline, outbound, reservation, reply, &tally, now) {
            ResponseAction::Rest(mut outbound, reply) => {
                outbound.shares_before = shares_before;
                ResponseAction::Rest(outbound, reply)
            }
            after => after,
        }
    }

    /// The step after the outcomes of a part's documents. If anything was done, the node works; only rejections for
    /// lack of resources mean that it is overloaded.
    fn after_documents(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        mut outbound: Box<OutboundRequest>,
        reservation: Reservation,
        reply: BulkResponse,
        tally: &OutcomeCounts,
        now: Instant,
    ) -> ResponseAction {
        let missing = (outbound.piece_documents as u64)
            .saturating_sub(tally.done + tally.pressed + tally.unavailable + tally.faults);
        let (pressed, later) = (tally.pressed + missing, tally.pressed + missing + tally.faults);
        if tally.unavailable > 0 {
            tally.indexes.iter().for_each(|name| self.unavailable.leave(name, now));
            let words = reply.unavailable.as_deref().unwrap_or_default();
            pipeline.report.held_up(tally.unavailable, words, &tally.indexes.join(", "));
        }
        if pressed > 0 {
            let words =
                reply.later.clone().unwrap_or_else(|| "the answer does not contain its result".to_owned());
            if tally.done == 0 && tally.unavailable == 0 {
                pipeline.endpoint_failed(reservation, None, later, &words);
            } else {
                let uri = pipeline.endpoints.uri(&reservation);
                pipeline.endpoints.give_back(reservation, AttemptResult::Pressed, now);
                pipeline.report.failed(later, &words, &uri, true, None);
                self.delay(&mut outbound, now);
            }
        } else if later > 0 {
            let uri = pipeline.endpoints.uri(&reservation);
            pipeline.endpoints.give_back(reservation, AttemptResult::Delayed, now);
            pipeline.report.failed(later, reply.fault.as_deref().unwrap_or_default(), &uri, true, None);
            self.delay(&mut outbound, now);
        } else {
            let verdict = if tally.unavailable > 0 { AttemptResult::Delayed } else { AttemptResult::Alive };
            pipeline.endpoints.give_back(reservation, verdict, now);
        }
        if tally.done > tally.rejected || (later == 0 && tally.unavailable == 0) {
            self.accepted(pipeline, &outbound, now);
        }
        outbound.faults += u32::from(tally.faults > 0);
        if later == 0 {
            return advanced(outbound);
        }
        outbound.request = None;
        ResponseAction::Rest(outbound, reply)
    }

    /// Enters what became of a request.
    pub(super) fn settle(&mut self, pipeline: &mut Pipeline<BulkProtocol>, mut outbound: OutboundRequest) {
        if let Some(name) = outbound.follows.take() {
            return self.settle_follow(pipeline, outbound, &name);
        }
        let is_plain = |share: &RecordShare| share.waits.is_empty() && share.rejected + share.too_large == 0;
        if outbound.shares.iter().all(is_plain) {
            let losses = outbound.shares.iter().fold(Losses::NONE, |sum, share| sum.and(share.losses()));
            return pipeline.settle(outbound.shares.iter().map(|share| share.sequence), losses);
        }
        outbound.shares.into_iter().for_each(|share| self.settle_share(pipeline, share));
        self.show_held_up(pipeline);
    }
}

/// A request is not wanted as a whole. Which document is at fault is found out by sending fewer at a time.
fn halve(
    pipeline: &mut Pipeline<BulkProtocol>,
    mut outbound: Box<OutboundRequest>,
    reason: &RejectionReason,
    why: Dropped,
) -> ResponseAction {
    let reason = reason.to_string();
    outbound.request = None;
    outbound.sent = false;
    if outbound.piece_documents > 1 {
        pipeline.report.refused_in_part(&reason);
        outbound.most_documents = outbound.piece_documents / 2;
        return ResponseAction::Piece(outbound);
    }
    let items = checked_items(outbound.piece()).map_while(Result::ok).map(|item| item.bytes);
    let lost = match keep(pipeline, &outbound.meta, items, &reason) {
        // Nothing in it is a document, so there are no others either.
        0 => keep(pipeline, &outbound.meta, [outbound.piece()].into_iter(), &reason).max(outbound.left),
        lost => lost,
    };
    match why {
        Dropped::TooLarge => outbound.lose(lost, |share| &mut share.too_large),
        _ => outbound.lose(lost, |share| &mut share.rejected),
    }
    advanced(outbound)
}

/// The node does not want these documents: they are kept, so that somebody can look at them and send them again. How many
/// there are.
fn keep<'a>(
    pipeline: &mut Pipeline<BulkProtocol>,
    first: &Meta,
    items: impl Iterator<Item = &'a [u8]>,
    reason: &str,
) -> u64 {
    let report = &mut pipeline.report;
    let letter = |body: &[u8], documents: u32| {
        let meta = Meta {
            signal: Signal::Logs,
            protocol: Protocol::Bulk,
            encoding: Encoding::Identity,
            items: documents,
            raw_len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            ..*first
        };
        report.keep(&meta, body, reason);
    };
    let (mut body, mut count, mut all) = (Vec::new(), 0, 0);
    for item in items {
        if !body.is_empty() && body.len() + item.len() > LETTER {
            letter(&body, count);
            (body, count) = (Vec::new(), 0);
        }
        all += 1;
        if item.len() > LETTER {
            letter(item, 1);
        } else {
            body.extend_from_slice(item);
            count += 1;
        }
    }
    if count > 0 {
        letter(&body, count);
    }
    if all > 0 {
        report.rejected(all, reason);
    }
    all
}

/// Goes on to the next piece.
fn advanced(mut outbound: Box<OutboundRequest>) -> ResponseAction {
    if outbound.advance() { ResponseAction::Done(outbound) } else { ResponseAction::Piece(outbound) }
}
