//! The sink `elasticsearch`: sends documents to Elasticsearch 8 and 9, and to OpenSearch, by `_bulk`.
//!
//! Records that came as documents go out as they came, with an `_id` where they had none; all others are translated
//! (`tidegate-elastic`). The decisions are in `design/elasticsearch.md`.
//!
//! Records are joined into batches; a batch becomes a parcel of documents, of which one piece at a time is in flight;
//! several parcels are in flight at a time, and each is settled when all of its documents are done, in any order. The
//! response tells the outcome of each document: documents that the cluster had no room for are retried alone, rejected
//! ones become dead letters, and those of an unavailable index wait for it while the others go on. Records that need more
//! memory than the sink's own part are sent piece by piece when nothing else is in flight.

mod answer;
mod batching;
mod documents;
mod landing;
mod letters;
mod oversize;
mod parcel;
mod peer;
mod reply;
mod settings;
mod setup;
mod shares;
mod sift;
mod source;
mod unavailable;

pub use peer::PeerError;
pub use settings::Settings;
pub use setup::{SetupError, put_templates};

use crate::endpoints::{Endpoints, Place};
use crate::health::UnderWay;
use crate::inbox::{AttachError, Inbox, Record, Sinkable};
use crate::limit::Law;
use crate::need::Need;
use crate::otlp::coder::{BadLevel, Coder};
use crate::otlp::{Compression, coder};
use crate::room::Room;
use crate::stop::Stop;
use answer::Answer;
use documents::Origin;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use letters::Letters;
use oversize::Progress;
use parcel::{Job, MOST_DOCUMENTS, Parcel, Tools, Unfit, prepare};
use peer::Peer;
use source::Source;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tidegate_elastic::documents::WORKING_BYTES;
use tidegate_journal::{Protocol, Signal};
use tokio::time::Instant;
use unavailable::{Oversize, Unavailable};

/// Records of one tenant that go out together.
type Batch = crate::batch::Batch<()>;

/// Batches that are filled at a time: of so many tenants.
const OPEN: usize = 4;
/// How long requests that are on their way may still be answered after the order to stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long a node that found a request too large gets smaller ones before it is asked again.
const SMALLER_FOR: Duration = Duration::from_secs(600);
/// No node is believed to find less than this too large for good: later requests are not made smaller.
const SMALLEST: usize = 64 << 10;

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A node cannot be used.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// Requests cannot be compressed like this.
    #[error(transparent)]
    Level(#[from] BadLevel),
    /// There is nowhere to send to.
    #[error("there is no endpoint to send to: give at least one")]
    NoEndpoint,
}

/// The sink, attached to the journal and ready to run.
pub struct Elasticsearch {
    inbox: Inbox,
    room: Room,
    settings: Arc<Settings>,
    origin: Origin,
    endpoints: Endpoints<Peer>,
    letters: Letters,
    /// Where the journal ended when this began, if the sink had begun before: what was there may have been sent then, by
    /// one that did not live to note it.
    inherited: u64,
    stop: Stop,
    /// Batches that are being filled, at most [`OPEN`].
    open: Vec<Batch>,
    /// What is to be prepared: batches, at most one more than that, and what is left of parcels, at most as many as
    /// may be under way.
    jobs: VecDeque<Job>,
    /// Nothing while it is in use.
    tools: Option<Box<Tools>>,
    packing: Option<BoxFuture<'static, Packed>>,
    /// Parcels with a request to be sent: those that failed, at most as many as may be under way, and one in stock.
    ready: VecDeque<Box<Parcel>>,
    flight: FuturesUnordered<BoxFuture<'static, Landed>>,
    /// A record that was taken and has no place yet.
    held: Option<Record>,
    /// There was no room for it, or for a request; nothing was given back since.
    crowded: bool,
    /// A record that is sent when nothing else is under way.
    oversize: Option<Oversize>,
    /// Documents that wait for an index that takes none now.
    unavailable: Unavailable,
    /// A parcel of those, with a request to be sent; and whether one is under way, beside the others.
    following: Option<Box<Parcel>>,
    follow_flies: bool,
    /// One past the last record that was handed out since the journal was gone back in.
    reached: u64,
    /// What a node said last that failed over a request, and until when that is thought to be known.
    fault: Option<(String, Instant)>,
    /// Something was taken, which until then says that the nodes work.
    alive_until: Option<Instant>,
    /// Everything that is not settled is to be read again, once nothing is under way.
    again: bool,
    /// Records before this one are sent one by one.
    singly_before: u64,
    /// The record that is sent when nothing else is under way, for want of room.
    roomless: Option<u64>,
    /// How long the last batch was, in bytes.
    usual: usize,
    /// How far the record has come that was sent when nothing else was under way.
    progress: Option<Box<Progress>>,
    /// What a node found too large, halved, and until when that is believed.
    smaller: Option<(usize, Instant)>,
    /// The journal was closed and everything was read.
    ended: bool,
}

type Packed = (Result<Box<Parcel>, Unfit>, Box<Tools>);

/// A request that has an answer.
struct Landed {
    parcel: Box<Parcel>,
    place: Place,
    answer: Answer,
    _under_way: UnderWay,
}

/// What a sink waits for.
enum Event {
    Landed(Landed),
    Packed(Packed),
    Record(Option<Record>),
    Time,
}

impl Elasticsearch {
    /// What a sink with these settings takes beyond payload, in bytes: connections, coders, what is remembered of
    /// documents under way.
    pub fn bytes(settings: &Settings) -> usize {
        let each = size_of::<Landed>() + size_of::<Parcel>() + MOST_DOCUMENTS;
        coder::Coder::bytes(compression(settings))
            + peer::bytes(settings)
            + Letters::BYTES
            + WORKING_BYTES
            + Unavailable::BYTES
            + Source::BYTES
            + 2 * settings.max_in_flight * each
    }

    /// What a record of this protocol and signal needs to be delivered, if the sink takes it.
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        documents::need(protocol, signal)
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        sinkable: Sinkable<'_>,
        room: Room,
        mut settings: Settings,
        stop: Stop,
    ) -> Result<Elasticsearch, StartError> {
        settings.max_in_flight = settings.max_in_flight.max(1);
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Peer::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        // Of what is about a full request with this much memory.
        let step = settings.max_request_bytes.min(room.part() / 6);
        let law = Law::Bytes { steps: settings.max_in_flight, step };
        let endpoints = Endpoints::new(peers, law, settings.backoff);
        let origin = Origin::new(sinkable.journal.id());
        let tools = Tools { coder: Coder::new(compression(&settings))?, origin: origin.clone() };
        let letters = Letters::new(sinkable.name, sinkable.health.clone(), sinkable.dead_letters.clone());
        let had_begun = sinkable.journal.sinks().iter().any(|name| name == sinkable.name);
        let mut inbox = sinkable.attach()?;
        sinkable.health.held_up(Vec::new());
        inbox.any_order();
        let inherited = if had_begun { sinkable.journal.stats().head } else { 0 };
        let unavailable = Unavailable::new(settings.backoff);
        Ok(Elasticsearch {
            inbox,
            room,
            settings: Arc::new(settings),
            origin,
            endpoints,
            letters,
            inherited,
            stop,
            open: Vec::with_capacity(OPEN),
            jobs: VecDeque::new(),
            tools: Some(Box::new(tools)),
            packing: None,
            ready: VecDeque::new(),
            flight: FuturesUnordered::new(),
            held: None,
            crowded: false,
            oversize: None,
            unavailable,
            following: None,
            follow_flies: false,
            reached: 0,
            fault: None,
            alive_until: None,
            again: false,
            singly_before: 0,
            roomless: None,
            usual: 0,
            progress: None,
            smaller: None,
            ended: false,
        })
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            if self.unavailable.next().is_some_and(|at| at <= Instant::now()) {
                Box::pin(self.follow_up()).await;
            }
            self.go_on();
            if self.is_idle() {
                if let Some(oversize) = self.oversize.take() {
                    let mut sending = Box::pin(self.send_oversize(oversize));
                    if stop.or(&mut sending).await.is_some() {
                        continue;
                    }
                    // Its request may be answered soon; if not, it is sent again.
                    drop(tokio::time::timeout(GRACE, sending).await);
                    break;
                }
                if self.ended && self.held.is_none() && !self.again && self.unavailable.is_empty() {
                    break;
                }
            }
            match stop.or(Box::pin(self.event())).await {
                Some(Event::Landed(landed)) => self.land(landed, true),
                Some(Event::Packed(packed)) => self.unpack(packed),
                Some(Event::Record(Some(record))) => Box::pin(self.take(record)).await,
                Some(Event::Record(None)) => {
                    self.ended = true;
                    self.close_all();
                }
                Some(Event::Time) => self.close_old(),
                None => break,
            }
            if let Some(record) = self.held.take_if(|_| !self.crowded) {
                Box::pin(self.take(record)).await;
            }
        }
        self.land_rest().await;
        self.endpoints.close().await;
    }

    /// Does what can be done without waiting.
    fn go_on(&mut self) {
        if self.again && self.is_idle() {
            self.again = false;
            self.ended = false;
            self.held = None;
            if self.oversize.take().is_some_and(|oversize| oversize.follows.is_some()) {
                self.unavailable.is_tried = false;
            }
            self.reached = 0;
            self.inbox.rewind();
        }
        if (!self.crowded || self.is_waiting_for_nothing())
            && self.tools.is_some()
            && let Some(mut job) = self.jobs.pop_front()
            && let Some(tools) = self.tools.take()
        {
            if let Job::Batch(_, pick, None) = &mut job {
                *pick = self.unavailable.pick();
            }
            let (most, room) = (self.most(), self.room.clone());
            let settings = Arc::clone(&self.settings);
            self.packing = Some(Box::pin(prepare(job, most, tools, room, settings)));
        }
        let now = Instant::now();
        let is_due = |parcel: &Parcel| parcel.not_before.is_none_or(|at| at <= now);
        while self.flights() < self.settings.max_in_flight
            && let Some(at) = self.ready.iter().position(|parcel| is_due(parcel))
            && let Some(len) = self.ready.get(at).map(|parcel| parcel.piece().len())
            && let Some((place, peer)) = self.endpoints.place(len, now)
            && let Some(parcel) = self.ready.remove(at)
        {
            self.fly(parcel, place, peer);
        }
        if !self.follow_flies
            && let Some(parcel) = self.following.take_if(|parcel| is_due(parcel))
        {
            match self.endpoints.place(parcel.piece().len(), now) {
                Some((place, peer)) => {
                    self.follow_flies = true;
                    self.fly(parcel, place, peer);
                }
                None => self.following = Some(parcel),
            }
        }
    }

    /// Sends a request.
    fn fly(&mut self, mut parcel: Box<Parcel>, place: Place, peer: Arc<Peer>) {
        let under_way = self.letters.health().under_way();
        // What a parcel without one has is sent again by its pieces.
        let request = parcel.request.clone().unwrap_or_else(|| parcel.unpacked());
        parcel.not_before = None;
        self.flight.push(Box::pin(async move {
            let answer = peer.send(&request).await;
            // What is left to be sent of it belongs to the connection now.
            drop(request);
            Landed { parcel, place, answer, _under_way: under_way }
        }));
    }

    /// Requests under way, without the one that follows what waits for an index.
    fn flights(&self) -> usize {
        self.flight.len().saturating_sub(usize::from(self.follow_flies))
    }

    /// Whether nothing is being filled, made or sent.
    fn is_idle(&self) -> bool {
        self.open.is_empty() && self.jobs.is_empty() && self.is_waiting_for_nothing()
    }

    /// Whether nothing will be given back by itself.
    fn is_waiting_for_nothing(&self) -> bool {
        self.packing.is_none() && self.ready.is_empty() && self.following.is_none() && self.flight.is_empty()
    }

    async fn event(&mut self) -> Event {
        let wake = self.wake_at();
        // One request in stock is enough: more would only hold memory.
        let takes = self.held.is_none()
            && self.oversize.is_none()
            && !self.again
            && !self.ended
            && self.jobs.is_empty()
            // What may be at fault itself holds up nothing else.
            && self.ready.len() < self.settings.max_in_flight
            && self.ready.iter().all(|parcel| parcel.faults > 0);
        let Elasticsearch { inbox, flight, packing, .. } = self;
        let time = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let packed = async {
            match packing {
                Some(packing) => packing.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(landed) = flight.next() => Event::Landed(landed),
            packed = packed => Event::Packed(packed),
            () = time => Event::Time,
            record = inbox.next(), if takes => Event::Record(record),
        }
    }

    /// When there is something to be done although nothing happens.
    fn wake_at(&self) -> Option<Instant> {
        let full = self.open.iter().map(|batch| batch.opened + self.settings.linger).min();
        let now = Instant::now();
        let mut waits = self.following.is_some() && !self.follow_flies;
        waits |= !self.ready.is_empty() && self.flights() < self.settings.max_in_flight;
        let trial = if waits { self.endpoints.next_trial() } else { None };
        let parcels = self.ready.iter().chain(&self.following);
        let delayed = parcels.filter_map(|parcel| parcel.not_before).filter(|at| *at > now).min();
        let follow = if self.again || self.oversize.is_some() { None } else { self.unavailable.next() };
        full.into_iter().chain(trial).chain(delayed).chain(follow).min()
    }
}

fn compression(settings: &Settings) -> Compression {
    settings.gzip.map_or(Compression::None, Compression::Gzip)
}
