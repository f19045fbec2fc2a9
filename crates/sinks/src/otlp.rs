//! The sink `otlp`: requests of OTLP as they came, joined where that needs no decoding.
//!
//! Specification: OTLP 1.x, <https://opentelemetry.io/docs/specs/otlp/>. What is decided, and the law of the
//! adaptive limit, are in `design/otlp.md`.
//!
//! Records are joined by signal and tenant into batches; a batch becomes a request (decoded and compressed
//! again where its records did not come as they go out); several requests are on their way at a time, and each
//! is settled when it is answered, in any order. What does not go the usual way (a request that was refused as
//! a whole and may have one bad record in it, a body that needs more memory than the sink's own) is let go, and
//! read again from the journal once nothing else is under way: so nothing is held twice, and nothing waits for
//! memory that waits for it.

mod answer;
mod batch;
mod coder;
mod endpoints;
mod letters;
mod limit;
mod parcel;
mod peer;
mod response;
mod settings;
mod status;

pub use coder::BadLevel;
pub use peer::PeerError;
pub use settings::{Compression, Settings, Transport};

use crate::health::UnderWay;
use crate::inbox::{AttachError, Inbox, Sinkable};
use crate::losses::Losses;
use crate::room::{NoRoom, Room};
use crate::stop::Stop;
use answer::{Answer, Fault};
use batch::{Batch, Key, Limits, NoBody, Way};
use coder::Coder;
use endpoints::{Endpoints, Place, Verdict};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use letters::Letters;
use parcel::{Parcel, Unfit, Why};
use peer::{PREFIX, Peer};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};
use tidegate_arena::rounded;
use tidegate_journal::{Encoding, IN_FLIGHT, Protocol, Record, Signal};
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// Batches that are filled at a time: one of each signal.
const OPEN: usize = 4;
/// How long requests that are on their way may still be answered after the order to stop.
const GRACE: Duration = Duration::from_secs(2);
/// How long a peer that found a request too large gets smaller ones before it is asked again.
const SMALLER_FOR: Duration = Duration::from_secs(600);
/// The least to which requests are made smaller because a peer found them too large.
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
    endpoints: Endpoints,
    letters: Letters,
    stop: Stop,
    /// Batches that are being filled, at most [`OPEN`].
    open: Vec<Batch>,
    /// Batches to be made requests of, at most one more than that.
    closed: VecDeque<Batch>,
    /// Nothing while it is in use.
    coder: Option<Box<Coder>>,
    packing: Option<BoxFuture<'static, Packed>>,
    /// Requests to be sent, at most as many as may be under way and one more.
    ready: VecDeque<Parcel>,
    flight: FuturesUnordered<BoxFuture<'static, Landed>>,
    /// A record that was taken and has no place yet.
    held: Option<Record>,
    /// There was no room for it, or for a request; nothing was given back since.
    crowded: bool,
    /// A record that is sent when nothing else is under way.
    apart: Option<Record>,
    /// Everything that is not settled is to be read again, once nothing is under way.
    again: bool,
    /// Records before this one are sent one by one.
    singly_before: u64,
    /// The record that is sent when nothing else is under way, for want of room.
    roomless: Option<u64>,
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

impl Otlp {
    /// What a sink with these settings takes beyond payload, in bytes: connections, and the state of coders.
    pub fn bytes(settings: &Settings) -> usize {
        Coder::bytes(settings.compression)
            + peer::bytes(settings)
            + settings.max_in_flight * size_of::<Landed>()
    }

    /// Attaches the sink to the journal.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        sinkable: Sinkable<'_>,
        room: Room,
        settings: Settings,
        stop: Stop,
    ) -> Result<Otlp, StartError> {
        let peers: Result<Vec<_>, _> =
            settings.endpoints.iter().map(|uri| Peer::new(uri, &settings)).collect();
        let peers = Some(peers?).filter(|peers| !peers.is_empty()).ok_or(StartError::NoEndpoint)?;
        let endpoints = Endpoints::new(peers, settings.max_in_flight, settings.backoff);
        let coder = Box::new(Coder::new(settings.compression)?);
        let letters = Letters::new(sinkable.name, sinkable.health.clone(), sinkable.dead_letters.clone());
        let inbox = sinkable.attach()?;
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
            apart: None,
            again: false,
            singly_before: 0,
            roomless: None,
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
                if let Some(record) = self.apart.take() {
                    if stop.or(Box::pin(self.send_apart(record))).await.is_none() {
                        break;
                    }
                    continue;
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

    /// How a record goes out; nothing when the protocol of the peer has no way to say it.
    fn way(&self, record: &Record) -> Option<Way> {
        let meta = &record.meta;
        if meta.protocol != Protocol::Otlp || !peer::is_spoken(meta.signal) {
            return None;
        }
        let goes_out = match self.settings.compression {
            Compression::None => Encoding::Identity,
            Compression::Gzip(_) => Encoding::Gzip,
            Compression::Zstd(_) => Encoding::Zstd,
        };
        let joins = goes_out == Encoding::Identity || self.settings.join_members;
        Some(if meta.encoding == goes_out && joins { Way::Join } else { Way::Recode })
    }

    /// Takes the record that came last.
    async fn take(&mut self, record: Record) {
        let Some(way) = self.way(&record) else {
            let losses = Losses::of(Dropped::Untranslatable, u64::from(record.meta.items));
            self.inbox.settle_each([record.sequence], losses);
            return;
        };
        let key = Key { signal: record.meta.signal, tenant: record.meta.tenant, way };
        if self.roomless == Some(record.sequence) || needed(&record, way) > self.room.part() {
            self.apart = Some(record);
            self.close_all();
            return;
        }
        let (limits, singly) = (self.limits(), record.sequence < self.singly_before);
        // Profiles have tables that the rest refers to by number.
        let alone = singly || record.meta.signal == Signal::Profiles;
        if let Some(at) = self.open.iter().position(|batch| batch.key == key && !alone)
            && let Some(batch) = self.open.get_mut(at)
        {
            let added = batch.add(&record, limits, &mut self.inbox);
            if !added || batch.is_full(limits) {
                self.closed.push_back(self.open.remove(at));
            }
            if added {
                return;
            }
        }
        if self.open.len() == OPEN {
            self.closed.push_back(self.open.remove(0));
        }
        // A request that is compressed is short; one that passes is as long as the last of them.
        match Batch::of(&record, key, 0, &self.room, &mut self.inbox).await {
            Ok(batch) if alone || batch.is_full(limits) => self.closed.push_back(batch),
            Ok(batch) => self.open.push(batch),
            // The journal counts it, and goes on to the next.
            Err(NoBody::Damaged) => {}
            Err(NoBody::Room(_)) => {
                self.close_all();
                // Something that is held is given back some day, if there is anything.
                self.crowded = !self.is_idle();
                if self.crowded {
                    self.held = Some(record);
                } else {
                    self.apart = Some(record);
                }
            }
        }
    }

    /// How large a batch may become now.
    fn limits(&self) -> Limits {
        let smaller = self.smaller.filter(|(_, until)| Instant::now() < *until).map(|(most, _)| most);
        let kept = batch::joined_most(self.room.part());
        let raw = self.settings.max_request_bytes.min(kept).min(smaller.unwrap_or(usize::MAX));
        // All that are on their way, and those that are being filled, are in the window of the cursor.
        let records = IN_FLIGHT / (self.settings.max_in_flight + OPEN).max(1);
        Limits { raw, kept, records: records.max(1) }
    }

    /// Does what can be done without waiting.
    fn go_on(&mut self) {
        if self.again && self.is_idle() {
            self.again = false;
            self.ended = false;
            (self.held, self.apart) = (None, None);
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
            && self.apart.is_none()
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

    /// A batch has become a request, or has not.
    fn unpack(&mut self, (packed, coder): Packed) {
        self.packing = None;
        self.coder = Some(coder);
        match packed {
            Ok(parcel) => self.ready.push_back(parcel),
            Err(Unfit { batch, why }) => match (why, batch.sequences.as_slice()) {
                (Why::Room(_), _) if !self.is_waiting_for_nothing() => {
                    self.crowded = true;
                    self.closed.push_front(batch);
                }
                (Why::Room(_), [only]) => {
                    self.roomless = Some(*only);
                    self.read_again();
                }
                (Why::Damaged, [only]) => {
                    self.inbox.settle_each([*only], Losses::of(Dropped::Damaged, batch.items));
                }
                _ => {
                    self.singly_before = batch.last() + 1;
                    self.read_again();
                }
            },
        }
    }

    /// Lets go of what is not on its way, to read it again once nothing is.
    fn read_again(&mut self) {
        self.again = true;
        self.open.clear();
        self.closed.clear();
    }

    /// A request has an answer. One that is worth another attempt is held for it only where `patient` says so.
    fn land(&mut self, landed: Landed, patient: bool) {
        let Landed { parcel, place, answer, .. } = landed;
        let now = Instant::now();
        self.crowded = false;
        match answer {
            Answer::Taken { rejected, words } => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                let rejected = rejected.min(parcel.items);
                self.letters.taken(&parcel, rejected, &words);
                self.inbox.settle_each(parcel.sequences, Losses::of(Dropped::Rejected, rejected));
            }
            Answer::Later { reason, after } => {
                let uri = self.endpoints.uri(&place);
                let newly = self.endpoints.give_back(place, Verdict::Failed(after), now);
                let retry_at = self.endpoints.all_left_until().map(|at| at.saturating_duration_since(now));
                let retry_at = retry_at.and_then(|wait| SystemTime::now().checked_add(wait));
                self.letters.failed(&parcel, &reason, &uri, newly, retry_at);
                if patient {
                    self.ready.push_front(parcel);
                } else {
                    self.read_again();
                }
            }
            Answer::Refused { reason, fault } => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                if fault == Fault::Size {
                    let most = (parcel.raw_len / 2).max(SMALLEST);
                    self.smaller = Some((most, now + SMALLER_FOR));
                }
                match parcel.sequences.as_slice() {
                    // Which record is at fault is found out by sending each alone.
                    [_, .., last] if fault != Fault::Other => {
                        self.letters.refused_together(&reason);
                        self.singly_before = self.singly_before.max(last + 1);
                        self.read_again();
                    }
                    _ => {
                        self.letters.bury(&parcel, &reason);
                        let why = if fault == Fault::Size { Dropped::TooLarge } else { Dropped::Rejected };
                        self.inbox.settle_each(parcel.sequences, Losses::of(why, parcel.items));
                    }
                }
            }
        }
    }

    /// Sends a record that needs more than the usual memory, or all of it. Nothing else is under way. Whatever
    /// is held is given back before it is tried again.
    async fn send_apart(&mut self, record: Record) {
        while !self.endpoints.is_open(Instant::now()) {
            match self.endpoints.next_trial() {
                Some(at) => tokio::time::sleep_until(at).await,
                None => break,
            }
        }
        let Some(way) = self.way(&record) else { return };
        let items = u64::from(record.meta.items);
        let _turn = self.room.turn().await;
        let key = Key { signal: record.meta.signal, tenant: record.meta.tenant, way };
        let batch = match Batch::of(&record, key, 0, &self.room, &mut self.inbox).await {
            Ok(batch) => batch,
            Err(NoBody::Damaged) => return,
            Err(NoBody::Room(_)) => {
                // It was accepted when there was more memory.
                self.inbox.settle_each([record.sequence], Losses::of(Dropped::TooLarge, items));
                return;
            }
        };
        let Some(coder) = self.coder.take() else { return };
        let (packed, coder) = Box::pin(parcel::pack(batch, coder, self.room.clone())).await;
        self.coder = Some(coder);
        let parcel = match packed {
            Ok(parcel) => parcel,
            Err(Unfit { why, .. }) => {
                let why = match why {
                    Why::Room(NoRoom::Never | NoRoom::WithoutTurn) => Dropped::TooLarge,
                    Why::Damaged => Dropped::Damaged,
                };
                self.inbox.settle_each([record.sequence], Losses::of(why, items));
                return;
            }
        };
        let Some((place, peer)) = self.endpoints.place(parcel.request.frame.len(), Instant::now()) else {
            self.read_again();
            return;
        };
        let under_way = self.letters.health().under_way();
        let answer = peer.send(&parcel.request).await;
        self.land(Landed { parcel, place, answer, _under_way: under_way }, false);
    }

    /// After the order to stop: requests that are answered soon need not be sent again.
    async fn land_rest(&mut self) {
        let deadline = Instant::now() + GRACE;
        while let Ok(Some(landed)) = tokio::time::timeout_at(deadline, self.flight.next()).await {
            self.land(landed, false);
        }
        self.flight.clear();
    }
}

/// What a record needs of the room when it is sent alone, in whole steps.
fn needed(record: &Record, way: Way) -> usize {
    let kept = rounded(PREFIX + record.body_len as usize);
    let raw = record.meta.raw_len as usize;
    match way {
        Way::Join => kept,
        // In both forms, and what is made of it.
        Way::Recode => kept + rounded(PREFIX + raw + coder::SLACK) + rounded(PREFIX + raw / 4),
    }
}
