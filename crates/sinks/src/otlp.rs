//! The sink `otlp`: requests of OTLP as they came, joined where that needs no decoding.
//!
//! Specification: OTLP 1.x, <https://opentelemetry.io/docs/specs/otlp/>. What is decided, and the law of the
//! adaptive limit, are in `design/otlp.md`.
//!
//! Other formats are translated to OTLP; the ledger goes on counting their items as they came.
//!
//! Records are joined by signal and tenant into batches; a batch becomes a request (decoded and compressed again where its
//! records came in another form than they go out); several requests are in flight at a time, and each is settled when it
//! is answered, in any order. Exceptions (a request that was refused as a whole and may contain one bad record, a body
//! that needs more memory than the sink's own part) are released, and read again from the journal once nothing else is in
//! flight: so nothing is held twice, and no wait for memory depends on itself.

mod answer;
mod batch;
mod batching;
pub(crate) mod coder;
mod landing;
mod letters;
mod need;
mod oversize;
mod parcel;
mod peer;
mod response;
mod settings;
mod status;
mod translation;

pub(crate) use batching::spoken;
pub use coder::BadLevel;
pub use peer::PeerError;
pub use settings::{Compression, Settings, Transport};

use crate::endpoints::{self, Endpoints, Place};
use crate::health::UnderWay;
use crate::inbox::{AttachError, Inbox, Record, Sinkable};
use crate::limit::Law;
use crate::need::Need;
use crate::room::Room;
use crate::stop::Stop;
use answer::Answer;
use batch::{Batch, Way};
use coder::Coder;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use letters::Letters;
use oversize::Cut;
use parcel::{Parcel, Unfit};
use peer::Peer;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_journal::{Protocol, Signal};
use tokio::time::Instant;

/// Batches that are filled at a time: one of each signal.
const OPEN: usize = 4;
/// How long requests that are on their way may still be answered after the order to stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long a peer that found a request too large gets smaller ones before it is asked again.
const SMALLER_FOR: Duration = Duration::from_secs(600);
/// No peer is believed to find less than this too large: what it says so of is not made smaller, but dropped.
const SMALLEST: usize = 64 << 10;

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An endpoint cannot be used.
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
pub struct Otlp {
    inbox: Inbox,
    room: Room,
    settings: Settings,
    endpoints: Endpoints<Peer>,
    letters: Letters,
    stop: Stop,
    /// Batches that are being filled, at most [`OPEN`].
    open: Vec<Batch>,
    /// Batches to be made requests of, at most one more than that.
    closed: VecDeque<Batch>,
    /// Nothing while it is in use.
    coder: Option<Box<Coder>>,
    packing: Option<BoxFuture<'static, Packed>>,
    /// Requests to be sent: those that failed, at most as many as may be under way, and what became of batches
    /// that were closed.
    ready: VecDeque<Parcel>,
    flight: FuturesUnordered<BoxFuture<'static, Landed>>,
    /// A record that was taken and has no place yet.
    held: Option<Record>,
    /// There was no room for it, or for a request; nothing was given back since.
    crowded: bool,
    /// A record that is sent when nothing else is under way.
    oversize: Option<Record>,
    /// Everything that is not settled is to be read again, once nothing is under way.
    again: bool,
    /// Records before this one are sent one by one.
    singly_before: u64,
    /// The record that is sent when nothing else is under way, for want of room.
    roomless: Option<u64>,
    /// How long the last batch was, in bytes.
    usual: usize,
    /// How far the record has come that was being cut.
    cut: Option<Cut>,
    /// What the peer found too large, halved, and until when that is believed.
    smaller: Option<(usize, Instant)>,
    /// The journal was closed and everything was read.
    ended: bool,
}

type Packed = (Result<Parcel, Unfit>, Box<Coder>);

/// A request that has an answer.
struct Landed {
    parcel: Parcel,
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

impl endpoints::Peer for Peer {
    fn uri(&self) -> &hyper::Uri {
        Peer::uri(self)
    }

    fn hang_up(&self) {
        Peer::hang_up(self);
    }

    async fn close(&self) {
        Peer::close(self).await;
    }
}

impl Otlp {
    /// What a sink with these settings takes beyond payload, in bytes: connections, and the state of coders.
    pub fn bytes(settings: &Settings) -> usize {
        Coder::bytes(settings.compression)
            + peer::bytes(settings)
            + settings.max_in_flight * size_of::<Landed>()
    }

    /// What a sink needs to deliver a record of this protocol and signal; nothing when it does not take that.
    ///
    /// A body is held as it came, decoded, and then decoded beside one piece of what goes out. The largest item (with
    /// what encloses it) is such a piece alone, and goes uncompressed where there is no room to compress it.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        need::of(protocol, signal)
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
    ) -> Result<Otlp, StartError> {
        settings.max_in_flight = settings.max_in_flight.max(1);
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Peer::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        let endpoints = Endpoints::new(peers, Law::Requests(settings.max_in_flight), settings.backoff);
        let coder = Box::new(Coder::new(settings.compression)?);
        let letters = Letters::new(sinkable.name, sinkable.health.clone(), sinkable.dead_letters.clone());
        let mut inbox = sinkable.attach()?;
        inbox.any_order();
        Ok(Otlp {
            inbox,
            room,
            settings,
            endpoints,
            letters,
            stop,
            open: Vec::with_capacity(OPEN),
            closed: VecDeque::new(),
            coder: Some(coder),
            packing: None,
            ready: VecDeque::new(),
            flight: FuturesUnordered::new(),
            held: None,
            crowded: false,
            oversize: None,
            again: false,
            singly_before: 0,
            roomless: None,
            usual: 0,
            cut: None,
            smaller: None,
            ended: false,
        })
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            self.go_on();
            if self.is_idle() {
                if let Some(record) = self.oversize.take() {
                    let mut sending = Box::pin(self.send_oversize(record));
                    if stop.or(&mut sending).await.is_some() {
                        continue;
                    }
                    // Its request may be answered soon; if not, it is sent again.
                    drop(tokio::time::timeout(GRACE, sending).await);
                    break;
                }
                if self.ended && self.held.is_none() {
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
            (self.held, self.oversize) = (None, None);
            self.inbox.rewind();
        }
        while !self.crowded || self.is_waiting_for_nothing() {
            let Some(batch) = self.closed.pop_front() else { break };
            if batch.key.way == Way::Join {
                self.ready.push_back(Parcel::joined(batch));
            } else if let Some(coder) = self.coder.take() {
                self.packing = Some(Box::pin(parcel::pack(batch, coder, self.room.clone())));
            } else {
                self.closed.push_front(batch);
                break;
            }
        }
        while self.flight.len() < self.settings.max_in_flight
            && let Some(parcel) = self.ready.front()
            && let Some((place, peer)) = self.endpoints.place(parcel.request.frame.len(), Instant::now())
            && let Some(parcel) = self.ready.pop_front()
        {
            let under_way = self.letters.health().under_way();
            self.flight.push(Box::pin(async move {
                let answer = peer.send(&parcel.request).await;
                Landed { parcel, place, answer, _under_way: under_way }
            }));
        }
    }

    /// Whether nothing is being filled, made or sent.
    fn is_idle(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty() && self.is_waiting_for_nothing()
    }

    /// Whether nothing will be given back by itself.
    fn is_waiting_for_nothing(&self) -> bool {
        self.packing.is_none() && self.ready.is_empty() && self.flight.is_empty()
    }

    async fn event(&mut self) -> Event {
        let wake = self.wake_at();
        // One request in stock is enough: more would only hold memory.
        let takes = self.held.is_none()
            && self.oversize.is_none()
            && !self.again
            && !self.ended
            && self.closed.is_empty()
            && self.ready.is_empty();
        let Otlp { inbox, flight, packing, .. } = self;
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
        let waits = !self.ready.is_empty() && self.flight.len() < self.settings.max_in_flight;
        let trial = if waits { self.endpoints.next_trial() } else { None };
        full.into_iter().chain(trial).min()
    }

    fn close_all(&mut self) {
        self.closed.extend(self.open.drain(..));
    }

    /// Closes the batches that have waited long enough.
    fn close_old(&mut self) {
        let now = Instant::now();
        let linger = self.settings.linger;
        self.closed.extend(self.open.extract_if(.., |batch| batch.opened + linger <= now));
    }
}
