//! One connection: requests one after the other, and nothing held in between.
//!
//! Every value that lives across an await here adds to the cost of an idle connection. So no async function takes a
//! large value by value (its future would hold it twice), no await is inside a `match` that owns something, and a
//! reply is written as soon as it is made: only the bytes that the socket did not accept are kept.

mod answer_future;
mod body_deadlines;
mod body_receiver;
mod receive;
mod timed_stream;

use answer_future::AnswerFuture;
pub use body_deadlines::BodyDeadlines;
pub(crate) use timed_stream::{ReadOutcome, TimedStream, UnsentAnswer};
use timed_stream::{UnsentContent, WRITE_BUFFER_LEN, put, with_scratch};

use crate::certificate::Certificate;
use crate::clock::coarse_ns;
use crate::head::{AnswerFraming, BodyLength, Framing, Head, HeadScanner, ScanProgress, Version, parse};
use crate::refusal::Refusal;
use crate::reply::{ConnectionHeaders, Reply};
use crate::server::{ConnectionEnd, Server};
use crate::service::{AdmissionFuture, Admitted, Body, RefusalContext, Service};
use crate::stream::Stream;
use crate::upgrade::{ReceivedBehind, Upgraded};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use tidegate_arena::{GROWTH_STEP, PAGE, Window};
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// One connection. It borrows what is large from the future that owns it.
pub(crate) struct Connection<'a, 's, S: Service, T> {
    server: &'s Server<S>,
    link: TimedStream<'a, T>,
    /// Resolves when the server shuts down.
    signal: Pin<&'a mut Notified<'s>>,
    peer: &'a SocketAddr,
    /// The beginning of the next request.
    ahead: Ahead<S::RequestState>,
    /// How large the last request was: how much to take for the next at once.
    hint: u32,
    served: u32,
}

/// The bytes that follow the last request.
enum Ahead<T> {
    /// The beginning of the next one.
    Received(ReceivedBehind),
    /// Another protocol: the request that changes to it, and what was received behind that. In the same place, so that connections which
    /// stay with HTTP have no room for it.
    Upgrade(Box<(T, ReceivedBehind)>),
}

/// A request that is complete.
struct ArrivedRequest<T> {
    ticket: T,
    body: Body,
    /// The length of the body, as far as it goes into this: every connection keeps it until the answer.
    bytes: u32,
    framing: AnswerFraming,
    handling: Handling,
}

/// Why a request could not be received.
enum ReceiveError {
    Refusal(Refusal),
    /// There is nobody to answer, or nothing to answer.
    End(ConnectionEnd),
}

impl From<Refusal> for ReceiveError {
    fn from(refusal: Refusal) -> ReceiveError {
        ReceiveError::Refusal(refusal)
    }
}

impl From<io::Error> for ReceiveError {
    fn from(_: io::Error) -> ReceiveError {
        ReceiveError::End(ConnectionEnd::Lost)
    }
}

/// An answer that is on its way: what of it is left to send, and what follows. Or the end without one.
type SentAnswer = Result<(Option<Box<UnsentAnswer>>, NextStep), ConnectionEnd>;

/// The next step after an answer.
#[derive(Debug, Clone, Copy)]
struct NextStep {
    ending: ConnectionHeaders,
    /// How the connection ends, if it does.
    ended: ConnectionEnd,
    /// Before the end, wait for the client to take the answer: it does not know of the end.
    linger: bool,
    /// Before the next request, throw away this much of the body of a refused one.
    discard: usize,
}

impl NextStep {
    /// After the answer to a request that could not be received: where the next would begin is not known.
    const END: NextStep = NextStep {
        ending: ConnectionHeaders { close: true, keep_alive: false, bodiless: false },
        ended: ConnectionEnd::Refused,
        linger: true,
        discard: 0,
    };
}

/// A request that was let in, and what is left to send of the answers to those before it.
struct AdmittedRequest<T> {
    window: Window,
    framing: Framing,
    max_body: usize,
    ticket: T,
    unsent: Option<Box<UnsentAnswer>>,
}

/// The decision on a request.
enum Decision<T> {
    Entered(AdmittedRequest<T>),
    /// Nothing yet. Apart, since it comes seldom.
    Later(Box<DeferredDecision>),
}

/// A request that can be decided on when something has been waited for.
struct DeferredDecision {
    window: Window,
    /// Where its head is.
    head: (usize, usize),
    /// Of the answers to those before it.
    unsent: Option<Box<UnsentAnswer>>,
    preparation: AdmissionFuture,
}

/// How a request is handled. Decided where it is received: asking with the ticket later would keep that in the connection's
/// future until the answer is there.
enum Handling {
    Answer,
    /// Unless its client leaves before.
    AnswerUnlessLeft,
    /// The service takes the connection over.
    Upgrade,
}

impl Handling {
    fn of<S: Service>(service: &S, ticket: &S::RequestState) -> Handling {
        match (service.is_upgrade(ticket), service.is_withdrawn_by_leaving(ticket)) {
            (true, _) => Handling::Upgrade,
            (false, true) => Handling::AnswerUnlessLeft,
            (false, false) => Handling::Answer,
        }
    }
}

/// The event that woke an idle connection.
enum WakeReason {
    Readable,
    Shutdown,
    Idle,
}

impl<'a, 's, S: Service, T: Stream> Connection<'a, 's, S, T> {
    pub(crate) fn new(
        server: &'s Server<S>,
        link: TimedStream<'a, T>,
        signal: Pin<&'a mut Notified<'s>>,
        peer: &'a SocketAddr,
    ) -> Self {
        Connection {
            server,
            link,
            signal,
            peer,
            ahead: Ahead::Received(ReceivedBehind::Nothing),
            hint: PAGE as u32,
            served: 0,
        }
    }

    pub(crate) async fn run(&mut self) -> ConnectionEnd {
        loop {
            let (unsent, after) = match self.exchange().await {
                Ok(answered) => answered,
                Err(ended) => return ended,
            };
            if let Some(mut unsent) = unsent {
                let deadline = Instant::now() + self.server.settings.write;
                if self.link.send_rest(&unsent, deadline).await.is_err() {
                    return ConnectionEnd::Lost;
                }
                if let Some(stream) = unsent.stream() {
                    // On the heap: nearly no answer has one.
                    let (patience, shutdown) = (self.server.settings.write, &self.server.shutdown);
                    let sent = Box::pin(self.link.send_stream(stream, patience, shutdown));
                    if sent.await.is_err() {
                        return ConnectionEnd::Lost;
                    }
                }
            }
            if let Some(ended) = self.settle(after).await {
                return ended;
            }
        }
    }

    /// The request that has changed the protocol, if one has, and the connection for its service.
    pub(crate) fn into_upgrade(self) -> Option<(S::RequestState, Upgraded<'a, T>)> {
        let Ahead::Upgrade(upgrade) = self.ahead else { return None };
        let (ticket, received) = *upgrade;
        let (stream, timer) = self.link.into_parts();
        let upgraded = Upgraded {
            stream,
            timer,
            signal: self.signal,
            shutdown: &self.server.shutdown,
            arena: &self.server.arena,
            peer: *self.peer,
            received,
        };
        Some((ticket, upgraded))
    }

    /// Receives one request, and has it answered.
    async fn exchange(&mut self) -> SentAnswer {
        let ArrivedRequest { ticket, body, bytes, framing, handling } = match self.arrival().await {
            Ok(arrived) => arrived,
            Err(answered) => return answered,
        };
        let reply = match handling {
            Handling::Answer => {
                let service = &self.server.service;
                AnswerFuture { service, peer: self.peer, bytes, answer: service.answer(ticket, body) }.await
            }
            // On the heap: nearly no request is.
            Handling::AnswerUnlessLeft => Box::pin(self.answered_unless_left(ticket, body, bytes))
                .await
                .ok_or(ConnectionEnd::ByClient)?,
            Handling::Upgrade => {
                let received = self.take_ahead();
                self.ahead = Ahead::Upgrade(Box::new((ticket, received)));
                return Err(ConnectionEnd::Answered);
            }
        };
        self.served = self.served.saturating_add(1);
        let close = reply.is_closing() || !self.may_go_on(framing);
        let after = NextStep {
            ending: ending(close, framing),
            ended: ConnectionEnd::Answered,
            // Unless it wished the end, the client may be sending its next request.
            linger: framing.persistent,
            discard: 0,
        };
        self.answered(reply, after, coarse_ns())
    }

    /// The answer to a request; nothing when the client leaves before.
    async fn answered_unless_left(
        &mut self,
        ticket: S::RequestState,
        body: Body,
        bytes: u32,
    ) -> Option<Reply> {
        let service = &self.server.service;
        let answer = service.answer(ticket, body);
        let mut answer = pin!(AnswerFuture { service, peer: self.peer, bytes, answer });
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending => self.link.poll_closed(context).map(|()| None),
        })
        .await
    }

    /// Begins to send an answer.
    fn answered(&mut self, reply: Reply, after: NextStep, now_ns: u64) -> SentAnswer {
        match self.link.begin(reply, after.ending, now_ns) {
            Ok(unsent) => Ok((unsent, after)),
            Err(_) => Err(ConnectionEnd::Lost),
        }
    }

    /// Waits for a request, and receives it. The error is what came of one that was not let in.
    async fn arrival(&mut self) -> Result<ArrivedRequest<S::RequestState>, SentAnswer> {
        let mut window = match self.first_bytes().await {
            Ok(window) => window,
            Err(fault) => return Err(self.failed(fault, None, 0, NextStep::END)),
        };
        let head = match self.receive_head(&mut window).await {
            Ok(found) => found,
            Err(fault) => return Err(self.failed(fault, None, window.len(), NextStep::END)),
        };
        let entered = match self.decide(window, head, false)? {
            Decision::Entered(entered) => entered,
            // On the heap: nearly no request waits for this, and every connection would have the room.
            Decision::Later(later) => Box::pin(self.decide_later(later)).await?,
        };
        let AdmittedRequest { mut window, framing, max_body, mut ticket, unsent } = entered;
        if let Some(unsent) = unsent {
            let deadline = Instant::now() + self.server.settings.write;
            if self.link.send_rest(&unsent, deadline).await.is_err() {
                return Err(Err(ConnectionEnd::Lost));
            }
        }
        let patient = self.server.service.is_patient(&ticket);
        match self.receive_body(&mut window, &framing, max_body, patient, &mut ticket).await {
            Ok(extent) => {
                self.hint = u32::try_from(window.len().clamp(PAGE, GROWTH_STEP)).unwrap_or(u32::MAX);
                if framing.answer.persistent {
                    self.keep_ahead(&window, extent.rest);
                }
                window.truncate(extent.body);
                let handling = Handling::of(&self.server.service, &ticket);
                let body = Body::received(window, framing.head);
                let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
                Ok(ArrivedRequest { ticket, body, bytes, framing: framing.answer, handling })
            }
            Err(fault) => {
                let after = NextStep { ending: ending(true, framing.answer), ..NextStep::END };
                Err(self.failed(fault, Some(&ticket), window.len(), after))
            }
        }
    }

    /// Waits for what a request can be decided on then, and decides; again where another is behind it of which the same is so.
    async fn decide_later(
        &mut self,
        mut later: Box<DeferredDecision>,
    ) -> Result<AdmittedRequest<S::RequestState>, SentAnswer> {
        loop {
            if let Some(unsent) = &later.unsent {
                let deadline = Instant::now() + self.server.settings.write;
                if self.link.send_rest(unsent, deadline).await.is_err() {
                    return Err(Err(ConnectionEnd::Lost));
                }
            }
            later.preparation.as_mut().await;
            match self.decide(later.window, later.head, true)? {
                Decision::Entered(entered) => return Ok(entered),
                Decision::Later(next) => later = next,
            }
        }
    }

    /// Asks whether the request whose head is in the window may send its body. Where it may not, those behind it are
    /// asked about as well, as long as their heads are there already, and the answers leave together: a client that
    /// sends many at once is refused with one write.
    fn decide(
        &mut self,
        mut window: Window,
        (mut start, mut end): (usize, usize),
        mut is_prepared: bool,
    ) -> Result<Decision<S::RequestState>, SentAnswer> {
        let server = self.server;
        with_scratch(|out| {
            let (left, after) = loop {
                let now_ns = coarse_ns();
                let bytes = window.get(start..end).unwrap_or_default();
                let look =
                    |head: &Head<'_>| match (!is_prepared).then(|| server.service.prepare(head)).flatten() {
                        Some(preparation) => Err(preparation),
                        None => Ok((head.framing, server.service.admit(head))),
                    };
                let (reply, after) = match parse(bytes, *self.peer, self.link.certificate(), now_ns, look) {
                    Ok(Err(preparation)) => {
                        let unsent = match out.is_empty() {
                            true => None,
                            false => self
                                .link
                                .send(out, UnsentContent::NOTHING)
                                .map_err(|_| Err(ConnectionEnd::Lost))?,
                        };
                        let head = (start, end);
                        return Ok(Decision::Later(Box::new(DeferredDecision {
                            window,
                            head,
                            unsent,
                            preparation,
                        })));
                    }
                    Ok(Ok((framing, Ok(Admitted { max_body, ticket })))) => {
                        // From here on the head is all that comes before the body.
                        let framing = Framing { head: end, ..framing };
                        let unsent = match out.is_empty() {
                            true => None,
                            false => self
                                .link
                                .send(out, UnsentContent::NOTHING)
                                .map_err(|_| Err(ConnectionEnd::Lost))?,
                        };
                        return Ok(Decision::Entered(AdmittedRequest {
                            window,
                            framing,
                            max_body,
                            ticket,
                            unsent,
                        }));
                    }
                    Ok(Ok((framing, Err(reply)))) => {
                        let after = self.declined(&reply, &Framing { head: end, ..framing }, window);
                        (reply, after)
                    }
                    Err(refusal) => {
                        let context =
                            RefusalContext { peer: *self.peer, ticket: None, received: window.len() };
                        (server.service.refuse(refusal, context), NextStep::END)
                    }
                };
                let left = put(reply, after.ending, now_ns, out);
                let goes_on = !after.ending.close && after.discard == 0;
                let has_room = left.is_nothing() && out.len() < WRITE_BUFFER_LEN / 2;
                let next = if goes_on && has_room { self.next_head() } else { None };
                match next {
                    Some(next) => ((window, (start, end)), is_prepared) = (next, false),
                    None => break (left, after),
                }
            };
            let sent = self.link.send(out, left);
            Err(sent.map(|unsent| (unsent, after)).map_err(|_| ConnectionEnd::Lost))
        })
    }

    /// Bytes received ahead, if they hold a whole head, and the head's position.
    fn next_head(&mut self) -> Option<(Window, (usize, usize))> {
        let Ahead::Received(ReceivedBehind::Bytes(window)) = &self.ahead else { return None };
        let Ok(ScanProgress::Complete { start, end }) =
            HeadScanner::default().advance(window, self.server.settings.max_head)
        else {
            return None;
        };
        match self.take_ahead() {
            ReceivedBehind::Bytes(window) => Some((window, (start, end))),
            _ => None,
        }
    }

    /// Takes the bytes that were received behind the last request.
    fn take_ahead(&mut self) -> ReceivedBehind {
        match std::mem::replace(&mut self.ahead, Ahead::Received(ReceivedBehind::Nothing)) {
            Ahead::Received(received) => received,
            // The codec does nothing more then.
            Ahead::Upgrade(_) => ReceivedBehind::Nothing,
        }
    }

    /// Gives what arrived ahead, or waits, without a buffer, for the first bytes of the next request.
    async fn first_bytes(&mut self) -> Result<Window, ReceiveError> {
        match self.take_ahead() {
            ReceivedBehind::Bytes(window) => return Ok(window),
            ReceivedBehind::Lost => return Err(Refusal::Memory.into()),
            ReceivedBehind::Nothing => {}
        }
        let idle = self.server.settings.idle;
        // Nobody waits with a certificate that has expired: who comes back shows the next one.
        let left = self.link.certificate().and_then(Certificate::time_left);
        let deadline = Instant::now() + left.map_or(idle, |left| left.min(idle));
        loop {
            let woken = poll_fn(|context| {
                if self.link.poll_readable(context).is_ready() {
                    Poll::Ready(WakeReason::Readable)
                } else if self.server.shutdown.has_begun() || self.signal.as_mut().poll(context).is_ready() {
                    Poll::Ready(WakeReason::Shutdown)
                } else {
                    self.link.poll_late(context, deadline).map(|()| WakeReason::Idle)
                }
            });
            // At a shutdown a request may just have arrived: one more look, so that it is answered.
            let last = match woken.await {
                WakeReason::Readable => false,
                WakeReason::Shutdown => true,
                WakeReason::Idle => return Err(ReceiveError::End(ConnectionEnd::Idle)),
            };
            let mut window = match self.window(self.hint as usize, last).await {
                Ok(window) => window,
                Err(_) if last => return Err(ReceiveError::End(ConnectionEnd::Shutdown)),
                Err(refusal) => return Err(refusal.into()),
            };
            match self.link.try_read(window.spare_mut()).await {
                Poll::Ready(Ok(ReadOutcome::End | ReadOutcome::Late)) => {
                    return Err(ReceiveError::End(ConnectionEnd::ByClient));
                }
                // It is there, and lacks room alone.
                Poll::Ready(Ok(ReadOutcome::Short(room))) => {
                    self.reserve(&mut window, room).await?;
                    if let Poll::Ready(Ok(ReadOutcome::Bytes(read))) =
                        self.link.try_read(window.spare_mut()).await
                    {
                        window.advance(read);
                        return Ok(window);
                    }
                }
                Poll::Ready(Ok(ReadOutcome::Bytes(read))) => {
                    window.advance(read);
                    return Ok(window);
                }
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending if last => return Err(ReceiveError::End(ConnectionEnd::Shutdown)),
                // A request has begun, and has as long as its head may take.
                Poll::Pending if self.link.has_begun() => return Ok(window),
                // Woken in vain: the window goes back, and the wait goes on.
                Poll::Pending => {}
            }
        }
    }

    /// The outcome of a request that could not be received.
    fn failed(
        &mut self,
        fault: ReceiveError,
        ticket: Option<&S::RequestState>,
        received: usize,
        after: NextStep,
    ) -> SentAnswer {
        match fault {
            ReceiveError::Refusal(refusal) => {
                let context = RefusalContext { peer: *self.peer, ticket, received };
                let reply = self.server.service.refuse(refusal, context);
                self.answered(reply, after, coarse_ns())
            }
            ReceiveError::End(ended) => Err(ended),
        }
    }

    /// The next step after the answer to a request that the service refused. If little of its body is missing, the
    /// codec discards that and keeps the connection; else it closes it.
    fn declined(&mut self, reply: &Reply, framing: &Framing, mut window: Window) -> NextStep {
        self.served = self.served.saturating_add(1);
        let end = match framing.length {
            BodyLength::Sized(length) => {
                usize::try_from(length).ok().and_then(|l| framing.head.checked_add(l))
            }
            BodyLength::Chunked => None,
        };
        let after = NextStep { ending: ending(true, framing.answer), ..NextStep::END };
        let Some(end) = end.filter(|_| !reply.is_closing() && self.may_go_on(framing.answer)) else {
            return after;
        };
        let missing = end.saturating_sub(window.len());
        // A client that was not told to continue may or may not send the body: no telling where it ends.
        if missing > 0 && (framing.expects || missing > self.server.settings.skip_bytes) {
            return after;
        }
        if end < window.len() {
            window.copy_within(end.., 0);
            window.truncate(window.len() - end);
            self.ahead = Ahead::Received(ReceivedBehind::Bytes(window));
        }
        NextStep { ending: ending(false, framing.answer), discard: missing, ..after }
    }

    /// Does what follows an answer. Returns how the connection ended, if it did.
    async fn settle(&mut self, after: NextStep) -> Option<ConnectionEnd> {
        let settings = &self.server.settings;
        if !after.ending.close {
            if after.discard == 0 {
                return None;
            }
            let shutdown = &self.server.shutdown;
            return match self.link.discard(after.discard, settings, || shutdown.has_begun()).await {
                Ok(discarded) if discarded == after.discard => None,
                Ok(_) => Some(after.ended),
                Err(_) => Some(ConnectionEnd::Lost),
            };
        }
        if after.linger {
            let shutdown = &self.server.shutdown;
            self.link.linger(settings, || shutdown.has_begun()).await;
        }
        Some(after.ended)
    }

    fn may_go_on(&self, framing: AnswerFraming) -> bool {
        framing.persistent
            && self.served < self.server.settings.max_requests
            && !self.server.shutdown.has_begun()
            && !self.link.certificate().is_some_and(Certificate::has_expired)
    }

    /// Moves what arrived behind the request to a window of its own. It does not wait for one: the request
    /// that is complete holds memory itself.
    fn keep_ahead(&mut self, window: &Window, rest: usize) {
        let tail = window.get(rest..).unwrap_or_default();
        if tail.is_empty() {
            return;
        }
        let kept = self.server.arena.try_window(self.server.settings.share, tail.len());
        let kept = kept.and_then(|mut kept| kept.append(tail).map(|()| kept));
        self.ahead = Ahead::Received(kept.map_or(ReceivedBehind::Lost, ReceivedBehind::Bytes));
    }
}

fn ending(close: bool, framing: AnswerFraming) -> ConnectionHeaders {
    let keep_alive = !close && framing.version == Version::Http10;
    ConnectionHeaders { close, keep_alive, bodiless: framing.bodiless }
}
