//! Spreads items over members: sinks that give each item to the members that hold its key.
//!
//! The *distributor* takes records from the journal, hashes each item and copies it to the requests of its members. Each *member*
//! sends its requests one after the other; what it cannot take goes to its log on disk and from there to it, so it costs neither
//! memory nor its neighbours. A record leaves the journal's queue when every request with something of it was answered for good or is
//! on disk. All of it runs as one task.
//!
//! A [`SpreadProtocol`] says how bodies are walked over, how requests are written and sent, and where members come from. The design is
//! in `design/spread.md`.

mod distributor;
mod division;
mod member;
mod protocol;
mod request;
mod ring_source;
pub(crate) mod series;
mod settings;
mod settlement;
mod verdict;

pub(crate) use distributor::{BodyInfo, CurrentTenant, Distributor, Target};
pub(crate) use division::{Division, MOST_REQUESTS, Tally};
pub use member::{MemberReport, SendDelays};
pub(crate) use protocol::{
    MemberAddress, MemberPeer, MemberSource, Membership, OpenMessage, RequestForm, SpreadProtocol,
};
use request::OpenRequest;
pub(crate) use request::{RequestHead, RequestLen};
pub(crate) use ring_source::RingSource;
pub use ring_source::{RingSourceError, member_name};
pub(crate) use settings::SpreadSettings;
pub use verdict::ConflictReason;
pub(crate) use verdict::Verdict;

use crate::egress_budget::EgressBudget;
use crate::journal_consumer::{AttachError, JournalConsumer, Record, SinkContext};
use crate::losses::Losses;
use crate::prometheus_remote_write::Relabeling;
use crate::stop::StopSignal;
use distributor::Members;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use member::{Member, MemberContext};
use settlement::Settlement;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::GROWTH_STEP;
use tidegate_handoff::Handoffs;
use tokio::time::Instant;

/// How long to wait before the log of a member that left, which could not be read, is read again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long requests in flight may still be answered after the order to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A sink that spreads items, attached to the journal and ready to run.
pub(crate) struct Spread<P: SpreadProtocol> {
    consumer: JournalConsumer,
    distributor: Distributor<P>,
    context: Arc<MemberContext<P>>,
    handoffs: Handoffs,
    source: P::Source,
    /// The record that is being distributed.
    distributing: Option<u64>,
    /// Members that left with a backlog.
    left: Vec<Arc<Member<P>>>,
    /// Why the members that are described cannot be used, if they cannot.
    refusal: Option<String>,
    running: FuturesUnordered<BoxFuture<'static, ()>>,
    stop: StopSignal,
}

/// A sink that spreads items could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpreadError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The folder of what is handed off.
    #[error(transparent)]
    Handoffs(#[from] tidegate_handoff::OpenError),
    /// A member.
    #[error("the member {address}: {error}")]
    Member {
        /// Its address.
        address: String,
        /// Why it cannot be served.
        error: String,
    },
}

/// The next thing to do.
enum Step<T> {
    Record(Option<Record>),
    Settled,
    Seal,
    /// Other members, or why they cannot be used.
    Change(Result<Membership<T>, String>),
    /// The log of a member that left is to be read again.
    Retry,
    /// The work for a member ended: it left, or its log was closed.
    Ended,
}

impl<P: SpreadProtocol> Spread<P> {
    /// Bytes that a member takes beyond payload and its connection.
    pub(crate) const MEMBER_BYTES: usize = size_of::<Member<P>>();
    /// Bytes that each replica of each member takes beyond payload: a request that fills.
    pub(crate) const REQUEST_BYTES: usize = OpenRequest::<P>::BYTES;
    /// Bytes that the sink takes beyond payload, members and requests: records in flight, and the task.
    pub(crate) const BYTES: usize = Settlement::BYTES + (32 << 10);

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`SpreadError`].
    pub(crate) fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        (protocol, settings): (P, SpreadSettings),
        (source, membership): (P::Source, Membership<P::Placement>),
        stop: StopSignal,
    ) -> Result<Spread<P>, SpreadError> {
        let (handoffs, recovery) = Handoffs::open(settings.handoff.clone())?;
        tracing::debug!(sink = context.name, ?recovery, "the handoff logs are open");
        let sent_before = context.journal.stats().head;
        let mut consumer = context.attach()?;
        protocol.attached(&mut consumer);
        consumer.any_order();
        let logs = handoffs.members_with_backlog();
        consumer.restore_handed_off(logs.iter().map(|log| log.backlog().items).sum());
        let max_request_bytes = settings.max_request_bytes;
        let shared = Arc::new(MemberContext {
            sink: context.name.to_owned(),
            protocol,
            settings,
            settlement: Settlement::default(),
            room: room.with_reserve(log_reserve(room.part(), max_request_bytes)),
            log_room: room,
            health: context.health.clone(),
        });
        let members = with_members(membership, &[], &handoffs, &shared)?;
        let left = logs.into_iter().filter(|log| !members.has(log.address()));
        let left = left.map(|log| Arc::new(Member::departed(log))).collect();
        let running = FuturesUnordered::new();
        for member in &members.list {
            running.push(run(member, &shared));
        }
        let relabeling = context.pipeline.and_then(Relabeling::new);
        let mut distributor = Distributor::new(Arc::clone(&shared), members, relabeling);
        distributor.sent_before = sent_before;
        let mut sink = Spread {
            consumer,
            distributor,
            context: shared,
            handoffs,
            source,
            distributing: None,
            left,
            refusal: None,
            running,
            stop,
        };
        sink.report();
        Ok(sink)
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent or handed off.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        let _stopped = stop.or(Box::pin(self.work())).await;
        // What is answered now is not sent again after a restart.
        let _late = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.finish()).await;
        self.settle();
        self.handoffs.close();
        self.running.clear();
        for member in &self.distributor.members.list {
            // The pages keep the member, and its queue holds memory.
            member.queue.clear();
            member.close().await;
        }
    }

    async fn work(&mut self) {
        let mut retry_at = Instant::now() + RETRY_AFTER;
        let mut is_ended = false;
        self.reroute().await;
        loop {
            self.settle();
            if is_ended && self.context.settlement.is_idle() {
                return;
            }
            match self.step(is_ended, retry_at).await {
                Step::Record(Some(record)) => self.distribute(record).await,
                Step::Record(None) => {
                    is_ended = true;
                    let Spread { distributor, running, .. } = self;
                    beside(running, Box::pin(distributor.seal_all())).await;
                }
                Step::Settled | Step::Ended => {}
                Step::Seal => {
                    // The members work meanwhile: where memory is short, it is they that give it back.
                    let Spread { distributor, running, .. } = self;
                    beside(running, Box::pin(distributor.seal_old())).await;
                }
                Step::Change(found) => {
                    self.consider(found).await;
                    self.reroute().await;
                    retry_at = Instant::now() + RETRY_AFTER;
                }
                Step::Retry => {
                    self.reroute().await;
                    retry_at = Instant::now() + RETRY_AFTER;
                }
            }
        }
    }

    async fn step(&mut self, is_ended: bool, retry_at: Instant) -> Step<P::Placement> {
        let due = self.distributor.due();
        let has_members = !self.distributor.members.list.is_empty();
        let has_room = has_members && !is_ended && self.context.settlement.has_room();
        tokio::select! {
            biased;
            _ended = self.running.next(), if !self.running.is_empty() => Step::Ended,
            () = self.context.settlement.changed() => Step::Settled,
            () = at(due), if due.is_some() => Step::Seal,
            found = self.source.changed(&self.context.protocol) => Step::Change(found),
            () = tokio::time::sleep_until(retry_at), if !self.left.is_empty() => Step::Retry,
            record = self.consumer.next(), if has_room => Step::Record(record),
        }
    }

    /// Distributes a record while the members work.
    async fn distribute(&mut self, record: Record) {
        self.distributing = Some(record.sequence);
        let Spread { consumer, distributor, running, .. } = self;
        beside(running, Box::pin(distributor.distribute(consumer, record))).await;
        self.distributing = None;
    }

    /// Sends the logs of members that left to those that own their series now.
    async fn reroute(&mut self) {
        // Where names are looked up, nobody is known at the start.
        if self.left.is_empty() || self.distributor.members.list.is_empty() {
            return;
        }
        // Requests that fill hold memory that it takes to read the logs.
        let Spread { distributor, running, .. } = self;
        beside(running, Box::pin(distributor.seal_all())).await;
        for member in std::mem::take(&mut self.left) {
            let Spread { distributor, running, .. } = self;
            let backlog = member.log.backlog();
            if beside(running, Box::pin(distributor.reroute(&member))).await.is_err() {
                self.context.health.noted("the log of a member that left cannot be read now");
                self.left.push(member);
                continue;
            }
            if backlog.records > 0 {
                let (sink, member) = (&self.context.sink, &member.address);
                tracing::info!(sink, %member, items = backlog.items, "the backlog of a member that left went to others");
            }
            member.count_losses(&self.context);
            member.close().await;
            self.settle();
        }
        self.report();
    }

    /// Uses other members, if they can be used.
    async fn consider(&mut self, found: Result<Membership<P::Placement>, String>) {
        let known = &self.distributor.members.list;
        // One that comes back has its log back.
        self.left.iter().for_each(|member| member.count_losses(&self.context));
        let is_described = found.is_ok();
        let members = found.and_then(|membership| {
            with_members(membership, known, &self.handoffs, &self.context).map_err(|error| error.to_string())
        });
        if is_described {
            self.source.settled(members.is_ok());
        }
        match members {
            Ok(members) => {
                self.refusal = None;
                self.change(members).await;
            }
            Err(error) => {
                self.context.health.noted(&error);
                // The same ones are tried again and again.
                if self.refusal.as_ref() != Some(&error) {
                    let sink = &self.context.sink;
                    tracing::warn!(sink, error, "new members cannot be used; keeping the old ones");
                    self.refusal = Some(error);
                }
            }
        }
    }

    /// Uses these members. What was begun for the old ones goes out to them; what waits for members that left goes elsewhere.
    async fn change(&mut self, members: Members<P>) {
        let Spread { distributor, running, .. } = self;
        beside(running, Box::pin(distributor.seal_all())).await;
        let known = self.distributor.members.list.clone();
        let is_new = |member: &&Arc<Member<P>>| !known.iter().any(|one| Arc::ptr_eq(one, member));
        let new: Vec<_> = members.list.iter().filter(is_new).map(Arc::clone).collect();
        let (sink, count) = (&self.context.sink, members.list.len());
        tracing::info!(sink, members = count, "the members have changed and are in use");
        let gone: Vec<_> = known.into_iter().filter(|member| !members.has(&member.address)).collect();
        self.left.retain(|member| !members.has(&member.address));
        self.distributor.set_members(members);
        for member in &gone {
            member.queue.close();
            // What it has in memory is to reach its log, from where others take it.
            member.log.lift_quotas();
        }
        while gone.iter().any(|member| !member.is_ended()) {
            if self.running.next().await.is_none() {
                break;
            }
        }
        for member in &gone {
            // The new ones connect now, and memory is planned for as many as there may be at a time.
            member.close().await;
        }
        for member in &new {
            self.running.push(run(member, &self.context));
        }
        self.left.extend(gone);
        self.report();
    }

    /// Moves the cursor past records that are done, and enters in the books what became of what was handed off.
    fn settle(&mut self) {
        let mut done = Vec::new();
        let late = self.context.settlement.take(&mut done);
        let mut together = Vec::new();
        for (sequence, losses) in done {
            if losses == Losses::NONE {
                together.push(sequence);
            } else {
                self.consumer.settle_each([sequence], losses);
            }
        }
        if !together.is_empty() {
            self.consumer.settle_each(together, Losses::NONE);
        }
        // Items are handed off in the books before they are delivered from there.
        self.consumer.settle_handed_off(late.delivered, &late.lost());
    }

    /// Waits for the requests in flight, and for what waits to be sent.
    async fn finish(&mut self) {
        if let Some(sequence) = self.distributing.take() {
            self.context.settlement.abandon(sequence);
        }
        let Spread { distributor, running, .. } = self;
        beside(running, Box::pin(distributor.seal_all())).await;
        self.settle();
        while !self.context.settlement.is_idle() {
            let Spread { running, context, .. } = self;
            tokio::select! {
                ended = running.next() => if ended.is_none() { return },
                () = context.settlement.changed() => self.settle(),
            }
        }
    }

    /// Says to the pages which members there are.
    fn report(&mut self) {
        let Members { placement, list } = &self.distributor.members;
        let shares = self.context.protocol.shares(placement, list.len());
        let in_ring = list.iter().zip(shares).map(|(member, share)| (Arc::clone(member), true, share));
        let left = self.left.iter().map(|member| (Arc::clone(member), false, None));
        let members: Vec<_> = in_ring.chain(left).collect();
        self.context.health.set_members(move || {
            members.iter().map(|(member, is_in_ring, share)| member.report(*is_in_ring, *share)).collect()
        });
    }
}

/// The memory in bytes that a sink with a part of `part` bytes leaves to what waits on disk: enough for the longest request that is not a
/// single item. Records of the journal have the rest.
#[must_use]
pub fn log_reserve(part: usize, max_request_bytes: usize) -> usize {
    (distributor::longest_request(part, max_request_bytes) + GROWTH_STEP).min(part / 4)
}

/// Waits for `work` while the members work. Members that end are none of its business: they end with the sink.
async fn beside<F: Future>(running: &mut FuturesUnordered<BoxFuture<'static, ()>>, work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            output = &mut work => return output,
            _ended = running.next(), if !running.is_empty() => {}
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn run<P: SpreadProtocol>(
    member: &Arc<Member<P>>,
    context: &Arc<MemberContext<P>>,
) -> BoxFuture<'static, ()> {
    let (member, context) = (Arc::clone(member), Arc::clone(context));
    Box::pin(async move {
        member.run(&context).await;
        member.set_ended();
    })
}

/// The member at `address`, with its log.
fn member<P: SpreadProtocol>(
    address: &MemberAddress,
    handoffs: &Handoffs,
    context: &MemberContext<P>,
) -> Result<Member<P>, SpreadError> {
    let failed = |error: String| SpreadError::Member { address: address.name.to_string(), error };
    let log = handoffs.member(&address.name).map_err(|error| failed(error.to_string()))?;
    Member::new(&address.target, log, &context.protocol).map_err(|error| failed(error.to_string()))
}

/// The members at these addresses: those that are known, and new ones.
fn with_members<P: SpreadProtocol>(
    membership: Membership<P::Placement>,
    known: &[Arc<Member<P>>],
    handoffs: &Handoffs,
    context: &MemberContext<P>,
) -> Result<Members<P>, SpreadError> {
    let Membership { placement, addresses } = membership;
    let mut list = Vec::with_capacity(addresses.len());
    for address in addresses {
        let found = known.iter().find(|member| member.address == address.name);
        list.push(match found {
            Some(member) => Arc::clone(member),
            None => Arc::new(member(&address, handoffs, context)?),
        });
    }
    Ok(Members { placement, list })
}
