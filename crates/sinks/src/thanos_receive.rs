//! The sink `thanos_receive`: spreads series over the members of Thanos' hashrings, as a Thanos Receive router does.
//!
//! The *distributor* takes records from the journal, hashes each series and copies it to the requests of its members. Each *member*
//! sends its requests one after the other; what it cannot take goes to its log on disk and from there to it, so it costs neither
//! memory nor its neighbours. A record leaves the journal's queue when every request with something of it was answered for good or is
//! on disk. All of it runs as one task. The design is in `design/thanos-receive.md`.
//!
//! Protocol: `thanos.WriteableStore/RemoteWrite` over gRPC (`pkg/store/storepb/rpc.proto` of Thanos).

mod coder;
mod distributor;
mod hashrings;
mod member;
mod peer;
mod request;
mod settings;
mod settlement;
mod verdict;

pub use hashrings::{HashringError, describe as describe_hashrings};
pub use member::MemberReport;
pub use settings::{Hashrings, Layout, Settings};
pub use verdict::ConflictReason;

use crate::egress_budget::EgressBudget;
use crate::journal_consumer::{AttachError, JournalConsumer, Record, SinkContext};
use crate::losses::Losses;
use crate::need::Need;
use crate::stop::StopSignal;
use coder::Coder;
use distributor::{Distributor, Rings};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hashrings::HashringSource;
use member::{Member, MemberContext};
use settlement::Settlement;
use std::sync::Arc;
use std::time::Duration;
use tidegate_handoff::Handoffs;
use tidegate_journal::{Protocol, Signal};
use tidegate_ring::MultiRing;
use tokio::time::Instant;

/// How often the file of hashrings is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long requests in flight may still be answered after the order to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The sink, attached to the journal and ready to run.
pub struct ThanosReceive {
    consumer: JournalConsumer,
    distributor: Distributor,
    context: Arc<MemberContext>,
    handoffs: Handoffs,
    source: HashringSource,
    /// The record that is being distributed.
    distributing: Option<u64>,
    /// Members that left the rings with a backlog.
    left: Vec<Arc<Member>>,
    running: FuturesUnordered<BoxFuture<'static, ()>>,
    stop: StopSignal,
}

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its hashrings.
    #[error(transparent)]
    Hashrings(#[from] HashringError),
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

/// What the sink does next.
#[expect(
    clippy::large_enum_variant,
    reason = "records are the usual case, and a box for each is an allocation"
)]
enum Step {
    Record(Option<Record>),
    Settled,
    Seal,
    Look,
    /// The work for a member ended: it left, or its log was closed.
    Ended,
}

impl ThanosReceive {
    /// The memory for delivering a record of this protocol and signal; `None` if the sink does not accept it.
    #[must_use]
    pub const fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        match protocol {
            // A series is in two windows of one request at a time; where there is no room for others, they go to disk.
            Protocol::RemoteWrite1 | Protocol::RemoteWrite2 => Some(Need { working: 512 << 10, factor: 4 }),
            Protocol::Otlp if matches!(signal, Signal::Metrics) => {
                Some(Need { working: 768 << 10, factor: 8 })
            }
            _ => None,
        }
    }

    /// Bytes that a member takes beyond payload.
    #[must_use]
    pub fn member_bytes(is_secure: bool) -> usize {
        size_of::<Member>() + peer::bytes(is_secure)
    }

    /// Bytes that the sink takes beyond payload and members: coders.
    #[must_use]
    pub fn bytes() -> usize {
        Coder::BYTES + distributor::otlp::scratch_bytes() + (32 << 10)
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        context: SinkContext<'_>,
        room: EgressBudget,
        settings: Settings,
        stop: StopSignal,
    ) -> Result<ThanosReceive, StartError> {
        let (source, rings) = HashringSource::open(&settings)?;
        let (handoffs, recovery) = Handoffs::open(settings.handoff.clone())?;
        tracing::debug!(sink = context.name, ?recovery, "the handoff logs are open");
        let mut consumer = context.attach()?;
        // There is no way from its metricsets to series.
        consumer.pass_over_all_of(Protocol::Intake);
        consumer.any_order();
        let logs = handoffs.members_with_backlog();
        consumer.restore_handed_off(logs.iter().map(|log| log.backlog().items).sum());
        let members = Arc::new(MemberContext {
            sink: context.name.to_owned(),
            settings,
            settlement: Settlement::default(),
            room,
            health: context.health.clone(),
        });
        let mut known = Vec::new();
        for log in logs {
            known.push(Arc::new(member(log.address(), &handoffs, &members)?));
        }
        let rings = with_members(rings, &known, &handoffs, &members)?;
        let left = known.into_iter().filter(|member| !is_in(&rings, member)).collect();
        let running = FuturesUnordered::new();
        for member in &rings.members {
            running.push(run(member, &members));
        }
        let distributor = Distributor::new(Arc::clone(&members), rings);
        let mut sink = ThanosReceive {
            consumer,
            distributor,
            context: members,
            handoffs,
            source,
            distributing: None,
            left,
            running,
            stop,
        };
        sink.report();
        Ok(sink)
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent or handed off.
    pub async fn run(mut self) {
        let stop = self.stop.clone();
        let _stopped = stop.or(Box::pin(self.work())).await;
        // What is answered now is not sent again after a restart.
        let _late = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.finish()).await;
        self.settle();
        self.handoffs.close();
        self.running.clear();
        for member in &self.distributor.rings.members {
            // The pages keep the member, and its queue holds memory.
            member.queue.clear();
            member.close().await;
        }
    }

    async fn work(&mut self) {
        let mut look_at = Instant::now() + LOOK_EVERY;
        let mut is_ended = false;
        self.reroute().await;
        loop {
            self.settle();
            if is_ended && self.context.settlement.is_idle() {
                return;
            }
            match self.step(is_ended, look_at).await {
                Step::Record(Some(record)) => self.distribute(record).await,
                Step::Record(None) => {
                    is_ended = true;
                    let ThanosReceive { distributor, running, .. } = self;
                    beside(running, Box::pin(distributor.seal_all())).await;
                }
                Step::Settled | Step::Ended => {}
                Step::Seal => {
                    // The members work meanwhile: where memory is short, it is they that give it back.
                    let ThanosReceive { distributor, running, .. } = self;
                    beside(running, Box::pin(distributor.seal_old())).await;
                }
                Step::Look => {
                    look_at = Instant::now() + LOOK_EVERY;
                    self.look().await;
                    // Also those whose logs could not be read.
                    self.reroute().await;
                }
            }
        }
    }

    async fn step(&mut self, is_ended: bool, look_at: Instant) -> Step {
        let due = self.distributor.due();
        let has_room = !is_ended && self.context.settlement.has_room();
        tokio::select! {
            biased;
            _ended = self.running.next(), if !self.running.is_empty() => Step::Ended,
            () = self.context.settlement.changed() => Step::Settled,
            () = at(due), if due.is_some() => Step::Seal,
            () = tokio::time::sleep_until(look_at) => Step::Look,
            record = self.consumer.next(), if has_room => Step::Record(record),
        }
    }

    /// Distributes a record while the members work.
    async fn distribute(&mut self, record: Record) {
        self.distributing = Some(record.sequence);
        let ThanosReceive { consumer, distributor, running, .. } = self;
        beside(running, Box::pin(distributor.distribute(consumer, record))).await;
        self.distributing = None;
    }

    /// Sends the logs of members that left to those that own their series now.
    async fn reroute(&mut self) {
        if self.left.is_empty() {
            return;
        }
        for member in std::mem::take(&mut self.left) {
            let ThanosReceive { distributor, running, .. } = self;
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
            member.close().await;
            self.settle();
        }
        self.report();
    }

    /// Uses the hashrings as they are described now, if that has changed.
    async fn look(&mut self) {
        let found = self.source.changed(&self.context.settings);
        let rings = match found {
            Ok(None) => return,
            Ok(Some(rings)) => {
                with_members(rings, &self.distributor.rings.members, &self.handoffs, &self.context)
            }
            Err(error) => Err(error.into()),
        };
        match rings {
            Ok(rings) => self.change(rings).await,
            Err(error) => {
                let sink = &self.context.sink;
                tracing::warn!(sink, %error, "the hashrings have changed and cannot be used; keeping the old ones");
                self.context.health.noted(&error.to_string());
            }
        }
    }

    /// Uses these rings. What was begun by the old ones goes out by them; what waits for members that left goes elsewhere.
    async fn change(&mut self, rings: Rings) {
        let ThanosReceive { distributor, running, .. } = self;
        beside(running, Box::pin(distributor.seal_all())).await;
        let known = self.distributor.rings.members.clone();
        for member in rings.members.iter().filter(|member| !known.iter().any(|one| Arc::ptr_eq(one, member)))
        {
            self.running.push(run(member, &self.context));
        }
        let (sink, members) = (&self.context.sink, rings.members.len());
        tracing::info!(sink, members, "the hashrings have changed and are in use");
        let gone: Vec<_> = known.into_iter().filter(|member| !is_in(&rings, member)).collect();
        self.distributor.set_rings(rings);
        gone.iter().for_each(|member| member.queue.close());
        while gone.iter().any(|member| !member.is_ended()) {
            if self.running.next().await.is_none() {
                break;
            }
        }
        self.left.extend(gone);
        self.report();
    }

    /// Moves the cursor past records that are done, and enters in the books what became of what was handed off.
    fn settle(&mut self) {
        let mut done = Vec::new();
        let late = self.context.settlement.take(&mut done);
        self.consumer.settle_handed_off(late.delivered, &late.lost());
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
    }

    /// Waits for the requests in flight, and for what waits to be sent.
    async fn finish(&mut self) {
        if let Some(sequence) = self.distributing.take() {
            self.context.settlement.abandon(sequence);
        }
        let ThanosReceive { distributor, running, .. } = self;
        beside(running, Box::pin(distributor.seal_all())).await;
        self.settle();
        while !self.context.settlement.is_idle() {
            let ThanosReceive { running, context, .. } = self;
            tokio::select! {
                ended = running.next() => if ended.is_none() { return },
                () = context.settlement.changed() => self.settle(),
            }
        }
    }

    /// Says to the pages which members there are.
    fn report(&mut self) {
        let shares = shares(&self.distributor.rings, &self.context.settings);
        let in_ring = self.distributor.rings.members.iter().zip(shares);
        let in_ring = in_ring.map(|(member, share)| (Arc::clone(member), true, share));
        let left = self.left.iter().map(|member| (Arc::clone(member), false, None));
        let members: Vec<_> = in_ring.chain(left).collect();
        self.context.health.set_members(move || {
            members.iter().map(|(member, is_in_ring, share)| member.report(*is_in_ring, *share)).collect()
        });
    }
}

/// The part of the keys of the default tenant that each member holds, by an even sample of all hashes.
fn shares(rings: &Rings, settings: &Settings) -> Vec<Option<f64>> {
    const SAMPLES: u32 = 1 << 14;
    let mut counts = vec![0_u32; rings.members.len()];
    let Ok(ring) = rings.rings.for_tenant(settings.default_tenant.as_str()) else {
        return vec![None; counts.len()];
    };
    let step = u64::MAX / u64::from(SAMPLES);
    for sample in 0..SAMPLES {
        for member in ring.members(u64::from(sample) * step + u64::from(sample)).iter() {
            if let Some(count) = counts.get_mut(usize::from(*member)) {
                *count += 1;
            }
        }
    }
    let share = |count: u32| (count > 0).then(|| f64::from(count) / f64::from(SAMPLES));
    counts.into_iter().map(share).collect()
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

fn run(member: &Arc<Member>, context: &Arc<MemberContext>) -> BoxFuture<'static, ()> {
    let (member, context) = (Arc::clone(member), Arc::clone(context));
    Box::pin(async move {
        member.run(&context).await;
        member.set_ended();
    })
}

fn is_in(rings: &Rings, member: &Arc<Member>) -> bool {
    rings.members.iter().any(|one| Arc::ptr_eq(one, member))
}

/// The member at `address`, with its log.
fn member(address: &str, handoffs: &Handoffs, context: &MemberContext) -> Result<Member, StartError> {
    let failed = |error: String| StartError::Member { address: address.to_owned(), error };
    let log = handoffs.member(address).map_err(|error| failed(error.to_string()))?;
    Member::new(address, log, &context.settings).map_err(|error| failed(error.to_string()))
}

/// The rings with their members: those that are known, and new ones.
fn with_members(
    rings: MultiRing,
    known: &[Arc<Member>],
    handoffs: &Handoffs,
    context: &MemberContext,
) -> Result<Rings, StartError> {
    let mut members = Vec::with_capacity(rings.members().len());
    for wanted in rings.members() {
        let found = known.iter().find(|member| member.address == wanted.address);
        members.push(match found {
            Some(member) => Arc::clone(member),
            None => Arc::new(member(&wanted.address, handoffs, context)?),
        });
    }
    Ok(Rings { rings, members })
}
