//! One member: what it takes is sent as it comes; what it cannot take goes to disk, and from there in the same order.
//!
//! A member is *live* or *behind*. While it is live, requests are sent one after the other. When one fails, or is not answered in
//! time, it is handed off, and the member is behind: all that comes is handed off behind it, and sent from the log, until the log is
//! empty. So the samples of a series arrive in order, and nobody waits for the member but its log.

mod behind;
mod delay;
mod hand_off;
mod live;
mod queue;
mod report;

use super::protocol::{MemberPeer, SpreadProtocol};
use super::request::{RequestHead, SealedRequest};
use super::settings::SpreadSettings;
use super::settlement::{Outcome, Settlement};
use super::verdict::Verdict;
use crate::backoff::Backoff;
use crate::delivery::EndpointError;
use crate::egress_budget::EgressBudget;
use crate::health::Health;
use bytes::Bytes;
pub use delay::SendDelays;
use live::HeadOfLog;
pub(super) use queue::MemberQueue;
use report::MemberCounters;
pub use report::MemberReport;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_handoff::MemberLog;
use tidegate_ledger::Dropped;
use tokio::sync::Notify;

/// The part of the sink that all members share.
pub(crate) struct MemberContext<P: SpreadProtocol> {
    pub(super) sink: String,
    pub(crate) protocol: P,
    pub(crate) settings: SpreadSettings,
    pub(super) settlement: Settlement,
    /// The memory for everything but records of logs.
    pub(crate) room: EgressBudget,
    /// The same memory with what is left to records of logs: where all else is taken by requests that wait for a member, they wait for its
    /// log, and the log has to be read.
    pub(super) log_room: EgressBudget,
    pub(crate) health: Health,
}

/// A member that items are spread over.
pub(super) struct Member<P: SpreadProtocol> {
    pub(super) address: Box<str>,
    /// None of a member that left before the start: only its log is left of it.
    peer: Option<P::Peer>,
    pub(super) log: MemberLog,
    pub(super) queue: MemberQueue<P::Form>,
    /// Its requests hold memory that another member's need.
    pressed: Notify,
    pub(super) counters: MemberCounters,
    is_ended: AtomicBool,
}

/// The end of work for a member: its log was closed, or it left.
pub(super) struct Ended;

impl<P: SpreadProtocol> Member<P> {
    /// The member at `target`, with its log.
    ///
    /// # Errors
    /// When the address or the TLS settings cannot be used.
    pub(super) fn new(target: &str, log: MemberLog, protocol: &P) -> Result<Member<P>, EndpointError> {
        Ok(Member { peer: Some(protocol.peer(target)?), ..Member::departed(log) })
    }

    /// A member that left before the start.
    pub(super) fn departed(log: MemberLog) -> Member<P> {
        Member {
            address: log.address().into(),
            peer: None,
            counters: MemberCounters::since(&log.stats()),
            log,
            queue: MemberQueue::default(),
            pressed: Notify::new(),
            is_ended: AtomicBool::new(false),
        }
    }

    /// Sends what comes, until the queue is closed and empty or the log is closed. What a member that left cannot take at once is
    /// in its log then.
    pub(super) async fn run(&self, context: &MemberContext<P>) {
        let (min, max) = context.settings.backoff;
        let mut backoff = Backoff::new(min, max);
        let mut first = None;
        loop {
            if first.is_none() && self.log.backlog().records > 0 {
                let Ok(next) = self.behind(context, None, &mut backoff).await else { return };
                first = next;
            }
            let request = match first.take() {
                Some(request) => Some(request),
                None => self.queue.next().await,
            };
            let Some(request) = request else { return };
            match Box::pin(self.send_live(context, request, &mut backoff)).await {
                Ok(None) => {}
                Ok(head) => {
                    let Ok(next) = self.behind(context, head, &mut backoff).await else { return };
                    first = next;
                }
                Err(Ended) => return,
            }
        }
    }

    async fn behind<'m>(
        &'m self,
        context: &'m MemberContext<P>,
        head: Option<HeadOfLog<'m>>,
        backoff: &mut Backoff,
    ) -> Result<Option<SealedRequest<P::Form>>, Ended> {
        self.counters.set_behind(true);
        let next = Box::pin(self.catch_up(context, head, backoff)).await?;
        self.counters.set_behind(false);
        Ok(next)
    }

    /// Notes that [`run`](Self::run) has ended.
    pub(super) fn set_ended(&self) {
        self.is_ended.store(true, Relaxed);
    }

    /// Whether [`run`](Self::run) has ended.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Relaxed)
    }

    /// Whether it has a request that waits or is in flight.
    pub(super) fn is_busy(&self) -> bool {
        !self.queue.is_empty() || self.counters.in_flight.load(Relaxed) > 0
    }

    /// Whether what comes for it goes to its log.
    pub(super) fn is_behind(&self) -> bool {
        self.counters.is_behind.load(Relaxed)
    }

    /// Has a request that is in flight handed off, so that what is behind it need not stay in memory.
    pub(super) fn press(&self) {
        self.pressed.notify_waiters();
    }

    /// Ends all connections, and waits until what they hold is given back.
    pub(super) async fn close(&self) {
        if let Some(peer) = &self.peer {
            peer.close().await;
        }
    }

    /// Ends all connections that no request waits on.
    pub(super) fn hang_up(&self) {
        if let Some(peer) = &self.peer {
            peer.hang_up();
        }
    }

    /// Sends a request and waits for the answer.
    async fn send(&self, context: &MemberContext<P>, head: &RequestHead<P::Form>, body: Bytes) -> Verdict {
        match &self.peer {
            Some(peer) => peer.send(&context.room, head, body).await,
            None => Verdict::Later { words: "it left".to_owned(), after: None },
        }
    }

    /// Keeps the last error for the pages.
    fn note(&self, context: &MemberContext<P>, error: &str) {
        self.counters.failed(error);
        context.health.noted(&format!("{}: {error}", self.address));
    }

    /// Takes in a final verdict on `items` items, `copies` copies; what became of the items.
    fn conclude(
        &self,
        context: &MemberContext<P>,
        verdict: Verdict,
        items: u64,
        copies: u32,
    ) -> Option<Outcome> {
        let all = u64::from(copies);
        let (rejected, lost, words) = match verdict {
            Verdict::Accepted => (0, 0, None),
            Verdict::Conflict { counts, words } => {
                let known: u64 = counts.iter().sum();
                self.counters.conflicts(counts, if known == 0 { all } else { 0 });
                // Where the member does not say how many, none may be stored.
                if known == 0 { (items, all, Some(words)) } else { (known.min(items), known, Some(words)) }
            }
            Verdict::Rejected { words } => {
                self.counters.rejected(all);
                self.note(context, &words);
                return Some(Outcome::Dropped(Dropped::Rejected));
            }
            Verdict::Later { .. } => return None,
        };
        if let Some(words) = words {
            self.counters.failed(&words);
        }
        self.counters.delivered(all.saturating_sub(lost));
        Some(Outcome::Delivered { rejected })
    }

    /// How long to leave the member alone after a failure.
    fn failed(
        &self,
        context: &MemberContext<P>,
        backoff: &mut Backoff,
        (words, after): (&str, Option<Duration>),
    ) -> Duration {
        let wait = backoff.wait(after);
        self.counters.failed(words);
        let error = format!("{}: {words}", self.address);
        context.health.failed(&error, std::time::SystemTime::now().checked_add(wait));
        wait
    }
}
