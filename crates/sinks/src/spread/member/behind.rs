//! A member that cannot take what comes: it goes to the log, and from there to the member.

use super::live::HeadOfLog;
use super::{Ended, Member, MemberContext};
use crate::backoff::Backoff;
use crate::egress_budget::BudgetError;
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::{RequestHead, SealedRequest};
use crate::spread::settlement::Outcome;
use crate::spread::verdict::Verdict;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_handoff::{ReadError, Record};
use tidegate_ledger::Dropped;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long to wait when a log cannot be read for a passing reason.
const PASSING: Duration = Duration::from_secs(1);
/// After an answer, a member that catches up is left alone for a part of the time that it took, so that what others send to it
/// finds room too; at most this long.
const LONGEST_REST: Duration = Duration::from_millis(100);

impl<P: SpreadProtocol> Member<P> {
    /// Hands off what comes and sends what is in the log, until the log is empty; or, of a member that left, until what came is in
    /// the log. Where an empty log takes nothing, since others fill the disk, the request that it refused is returned: it is next.
    pub(super) async fn catch_up<'m>(
        &'m self,
        context: &'m MemberContext<P>,
        head: Option<HeadOfLog<'m>>,
        backoff: &mut Backoff,
    ) -> Result<Option<SealedRequest<P::Form>>, Ended> {
        let (appending, appended, waits) = (AtomicBool::new(false), Notify::new(), Notify::new());
        let appends = async {
            while let Some(request) = self.queue.next().await {
                appending.store(true, Relaxed);
                let mut drained = Box::pin(async {
                    while self.log.backlog().records > 0 {
                        waits.notified().await;
                    }
                });
                if let Some(()) = self.hand_off_unless(context, &request, &mut drained).await? {
                    return Ok(Some(request));
                }
                appending.store(false, Relaxed);
                appended.notify_one();
            }
            // The member left: its log goes to those that own its series now.
            Err(Ended)
        };
        let sends = async {
            self.finish_head(context, head, backoff).await?;
            loop {
                match self.log.next().await {
                    Ok(Some(record)) => self.send_record(context, &record, backoff).await?,
                    Ok(None) if appending.load(Relaxed) || !self.queue.is_empty() => {
                        waits.notify_one();
                        appended.notified().await;
                    }
                    Ok(None) => return Ok(None),
                    Err(ReadError::Closed) => return Err(Ended),
                    Err(_) => tokio::time::sleep(PASSING).await,
                }
            }
        };
        tokio::select! {
            biased;
            sent = sends => sent,
            left = appends => left,
        }
    }

    /// Waits for the answer to the first record, which was sent before it was handed off.
    async fn finish_head(
        &self,
        context: &MemberContext<P>,
        head: Option<HeadOfLog<'_>>,
        backoff: &mut Backoff,
    ) -> Result<(), Ended> {
        match head {
            None => Ok(()),
            Some(HeadOfLog::At(at)) => {
                tokio::time::sleep_until(at).await;
                Ok(())
            }
            Some(HeadOfLog::InFlight(sending, record)) => {
                let verdict = sending.await;
                match record {
                    Some(record) => self.finish(context, &record, verdict, backoff).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Sends a record of the log once.
    async fn send_record(
        &self,
        context: &MemberContext<P>,
        record: &Record,
        backoff: &mut Backoff,
    ) -> Result<(), Ended> {
        let Some(head) = RequestHead::of_note(&record.meta.note, P::NOTE) else {
            return self.give_up(context, record).await;
        };
        let body = match self.read(context, record).await {
            Ok(body) => body,
            // It was counted as damaged, dropped or completed: the next one is asked for.
            Err(ReadError::Damaged | ReadError::Gone) => {
                self.count_losses(context);
                return Ok(());
            }
            Err(ReadError::Closed) => return Err(Ended),
            Err(ReadError::WindowTooSmall | ReadError::Disk(_)) => {
                tokio::time::sleep(PASSING).await;
                return Ok(());
            }
        };
        let begun = Instant::now();
        let guard = self.counters.under_way();
        let under_way = context.health.under_way(1);
        let verdict = self.send(context, &head, body).await;
        drop((guard, under_way));
        let rest = (begun.elapsed() / 2).min(LONGEST_REST);
        self.finish(context, record, verdict, backoff).await?;
        tokio::time::sleep(rest).await;
        Ok(())
    }

    /// Takes in the answer to a record.
    async fn finish(
        &self,
        context: &MemberContext<P>,
        record: &Record,
        verdict: Verdict,
        backoff: &mut Backoff,
    ) -> Result<(), Ended> {
        if let Verdict::Later { words, after } = &verdict {
            let wait = self.failed(context, backoff, (words, *after));
            tokio::time::sleep(wait).await;
            return Ok(());
        }
        backoff.reset();
        context.health.succeeded(u64::from(record.body_len));
        let head = RequestHead::<P::Form>::of_note(&record.meta.note, P::NOTE);
        let copies = head.map_or(0, |head| head.copies);
        let completed = self.log.complete(record);
        let outcome = self.conclude(context, verdict, completed.items, copies);
        context.settlement.settle_handed_off(completed.items, outcome.unwrap_or(Outcome::HandedOff));
        self.count_losses(context);
        Ok(())
    }

    /// Passes over a record that another version or protocol wrote.
    async fn give_up(&self, context: &MemberContext<P>, record: &Record) -> Result<(), Ended> {
        self.note(
            context,
            "its handoff log has a record of another version or kind of sink, which is dropped",
        );
        let completed = self.log.complete(record);
        context.settlement.settle_handed_off(completed.items, Outcome::Dropped(Dropped::Damaged));
        Ok(())
    }

    /// Enters in the books what the log lost by itself.
    pub(in crate::spread) fn count_losses(&self, context: &MemberContext<P>) {
        let stats = self.log.stats();
        let (dropped, damaged) = self.counters.new_losses(stats.dropped.items, stats.damaged.items);
        context.settlement.settle_handed_off(dropped, Outcome::Dropped(Dropped::Quota));
        context.settlement.settle_handed_off(damaged, Outcome::Dropped(Dropped::Damaged));
    }

    /// The body of a record, in memory of the sink's own.
    pub(in crate::spread) async fn read(
        &self,
        context: &MemberContext<P>,
        record: &Record,
    ) -> Result<Bytes, ReadError> {
        let room = &context.log_room;
        let charged = loop {
            match room.window(record.body_len as usize).await {
                Ok(window) => break window,
                Err(BudgetError::Never) => {
                    self.note(
                        context,
                        "a record of its handoff log does not fit into memory: raise `memory`",
                    );
                    return Err(ReadError::WindowTooSmall);
                }
                Err(BudgetError::WithoutTurn) if room.held() > 0 => {
                    room.falls_to(room.held().saturating_sub(1)).await;
                }
                Err(BudgetError::WithoutTurn) => {
                    self.note(
                        context,
                        "a record of its handoff log needs more memory than the sink has: raise `memory`",
                    );
                    return Err(ReadError::WindowTooSmall);
                }
            }
        };
        let (window, charge) = charged.into_parts();
        let window = self.log.read(record, window).await?;
        Ok(Bytes::from_owner(charge.of(window)))
    }
}
