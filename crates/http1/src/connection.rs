//! One connection: requests one after the other, and nothing held in between.
//!
//! Every value that lives across an await here adds to the cost of an idle connection. So no async function takes a
//! large value by value (its future would hold it twice), no await is inside a `match` that owns something, and a
//! reply is written as soon as it is made: only the bytes that the socket did not accept are kept.

mod intake;
mod link;
mod pace;
mod receive;

use link::{Left, SCRATCH, put, with_scratch};
pub(crate) use link::{Link, Read, Unsent};
pub use pace::Pace;

use crate::certificate::Certificate;
use crate::clock::coarse_ns;
use crate::head::{Framing, Head, Length, Progress, Scan, Version, parse};
use crate::refusal::Refusal;
use crate::reply::{Ending, Reply};
use crate::server::{Ended, Server};
use crate::service::{Admitted, Body, Context, Preparation, Service};
use crate::stream::Stream;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;
use tidegate_arena::{PAGE, STEP, Window};
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// One connection. It borrows what is large from the future that owns it.
pub(crate) struct Connection<'a, 's, S: Service, T> {
    server: &'s Server<S>,
    link: Link<'a, T>,
    /// Resolves when the server shuts down.
    signal: Pin<&'a mut Notified<'s>>,
    peer: &'a SocketAddr,
    ahead: Ahead,
    /// How large the last request was: how much to take for the next at once.
    hint: usize,
    served: u32,
}

/// Bytes received after a request: the beginning of the next.
enum Ahead {
    Nothing,
    Bytes(Window),
    /// There was no memory to keep it, so the next request is refused.
    Lost,
}

/// Why a request could not be received.
enum Fault {
    Refusal(Refusal),
    /// There is nobody to answer, or nothing to answer.
    End(Ended),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Refusal(refusal)
    }
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Fault {
        Fault::End(Ended::Lost)
    }
}

/// An answer that is on its way: what of it is left to send, and what follows. Or the end without one.
type Answered = Result<(Option<Box<Unsent>>, After), Ended>;

/// The next step after an answer.
#[derive(Debug, Clone, Copy)]
struct After {
    ending: Ending,
    /// How the connection ends, if it does.
    ended: Ended,
    /// Before the end, wait for the client to take the answer: it does not know of the end.
    linger: bool,
    /// Before the next request, throw away this much of the body of a refused one.
    discard: usize,
}

impl After {
    /// After the answer to a request that could not be received: where the next would begin is not known.
    const END: After = After {
        ending: Ending { close: true, keep_alive: false, bodiless: false },
        ended: Ended::Refused,
        linger: true,
        discard: 0,
    };
}

/// A request that was let in, and what is left to send of the answers to those before it.
struct Entered<T> {
    window: Window,
    framing: Framing,
    max_body: usize,
    ticket: T,
    unsent: Option<Box<Unsent>>,
}

/// The decision on a request.
enum Decided<T> {
    Entered(Entered<T>),
    /// Nothing yet. Apart, since it comes seldom.
    Later(Box<Later>),
}

/// A request that can be decided on when something has been waited for.
struct Later {
    window: Window,
    /// Where its head is.
    head: (usize, usize),
    /// Of the answers to those before it.
    unsent: Option<Box<Unsent>>,
    preparation: Preparation,
}

/// The event that woke an idle connection.
enum Woken {
    Readable,
    Shutdown,
    Idle,
}

impl<'a, 's, S: Service, T: Stream> Connection<'a, 's, S, T> {
    pub(crate) fn new(
        server: &'s Server<S>,
        link: Link<'a, T>,
        signal: Pin<&'a mut Notified<'s>>,
        peer: &'a SocketAddr,
    ) -> Self {
        Connection { server, link, signal, peer, ahead: Ahead::Nothing, hint: PAGE, served: 0 }
    }

    pub(crate) async fn run(&mut self) -> Ended {
        loop {
            let (unsent, after) = match self.exchange().await {
                Ok(answered) => answered,
                Err(ended) => return ended,
            };
            if let Some(unsent) = unsent {
                let deadline = Instant::now() + self.server.settings.write;
                if self.link.send_rest(&unsent, deadline).await.is_err() {
                    return Ended::Lost;
                }
            }
            if let Some(ended) = self.settle(after).await {
                return ended;
            }
        }
    }

    /// Receives one request, and has it answered.
    async fn exchange(&mut self) -> Answered {
        let (ticket, body, framing) = match self.arrival().await {
            Ok(arrived) => arrived,
            Err(answered) => return answered,
        };
        let reply = self.server.service.answer(ticket, body).await;
        self.served = self.served.saturating_add(1);
        let close = reply.is_closing() || !self.may_go_on(&framing);
        let after = After {
            ending: ending(close, &framing),
            ended: Ended::Answered,
            // Unless it wished the end, the client may be sending its next request.
            linger: framing.persistent,
            discard: 0,
        };
        self.answered(reply, after, coarse_ns())
    }

    /// Begins to send an answer.
    fn answered(&mut self, reply: Reply, after: After, now_ns: u64) -> Answered {
        match self.link.begin(reply, after.ending, now_ns) {
            Ok(unsent) => Ok((unsent, after)),
            Err(_) => Err(Ended::Lost),
        }
    }

    /// Waits for a request, and receives it. The error is what came of one that was not let in.
    async fn arrival(&mut self) -> Result<(S::Ticket, Body, Framing), Answered> {
        let mut window = match self.first_bytes().await {
            Ok(window) => window,
            Err(fault) => return Err(self.failed(fault, None, 0, After::END)),
        };
        let head = match self.receive_head(&mut window).await {
            Ok(found) => found,
            Err(fault) => return Err(self.failed(fault, None, window.len(), After::END)),
        };
        let entered = match self.decide(window, head, false)? {
            Decided::Entered(entered) => entered,
            // On the heap: nearly no request waits for this, and every connection would have the room.
            Decided::Later(later) => Box::pin(self.decide_later(later)).await?,
        };
        let Entered { mut window, framing, max_body, mut ticket, unsent } = entered;
        if let Some(unsent) = unsent {
            let deadline = Instant::now() + self.server.settings.write;
            if self.link.send_rest(&unsent, deadline).await.is_err() {
                return Err(Err(Ended::Lost));
            }
        }
        let patient = self.server.service.is_patient(&ticket);
        match self.receive_body(&mut window, &framing, max_body, patient, &mut ticket).await {
            Ok(extent) => {
                self.hint = window.len().clamp(PAGE, STEP);
                if framing.persistent {
                    self.keep_ahead(&window, extent.rest);
                }
                window.truncate(extent.body);
                Ok((ticket, Body::received(window, framing.head), framing))
            }
            Err(fault) => {
                let after = After { ending: ending(true, &framing), ..After::END };
                Err(self.failed(fault, Some(&ticket), window.len(), after))
            }
        }
    }

    /// Waits for what a request can be decided on then, and decides; again where another is behind it of which the same is so.
    async fn decide_later(&mut self, mut later: Box<Later>) -> Result<Entered<S::Ticket>, Answered> {
        loop {
            if let Some(unsent) = &later.unsent {
                let deadline = Instant::now() + self.server.settings.write;
                if self.link.send_rest(unsent, deadline).await.is_err() {
                    return Err(Err(Ended::Lost));
                }
            }
            later.preparation.as_mut().await;
            match self.decide(later.window, later.head, true)? {
                Decided::Entered(entered) => return Ok(entered),
                Decided::Later(next) => later = next,
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
    ) -> Result<Decided<S::Ticket>, Answered> {
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
                            false => self.link.send(out, Left::NOTHING).map_err(|_| Err(Ended::Lost))?,
                        };
                        let head = (start, end);
                        return Ok(Decided::Later(Box::new(Later { window, head, unsent, preparation })));
                    }
                    Ok(Ok((framing, Ok(Admitted { max_body, ticket })))) => {
                        // From here on the head is all that comes before the body.
                        let framing = Framing { head: end, ..framing };
                        let unsent = match out.is_empty() {
                            true => None,
                            false => self.link.send(out, Left::NOTHING).map_err(|_| Err(Ended::Lost))?,
                        };
                        return Ok(Decided::Entered(Entered { window, framing, max_body, ticket, unsent }));
                    }
                    Ok(Ok((framing, Err(reply)))) => {
                        let after = self.declined(&reply, &Framing { head: end, ..framing }, window);
                        (reply, after)
                    }
                    Err(refusal) => {
                        let context = Context { peer: *self.peer, ticket: None, received: window.len() };
                        (server.service.refuse(refusal, context), After::END)
                    }
                };
                let left = put(reply, after.ending, now_ns, out);
                let goes_on = !after.ending.close && after.discard == 0;
                let has_room = left.is_nothing() && out.len() < SCRATCH / 2;
                let next = if goes_on && has_room { self.next_head() } else { None };
                match next {
                    Some(next) => ((window, (start, end)), is_prepared) = (next, false),
                    None => break (left, after),
                }
            };
            let sent = self.link.send(out, left);
            Err(sent.map(|unsent| (unsent, after)).map_err(|_| Ended::Lost))
        })
    }

    /// Bytes received ahead, if they hold a whole head, and the head's position.
    fn next_head(&mut self) -> Option<(Window, (usize, usize))> {
        let Ahead::Bytes(window) = &self.ahead else { return None };
        let Ok(Progress::Complete { start, end }) =
            Scan::default().advance(window, self.server.settings.max_head)
        else {
            return None;
        };
        match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
            Ahead::Bytes(window) => Some((window, (start, end))),
            _ => None,
        }
    }

    /// Gives what arrived ahead, or waits, without a buffer, for the first bytes of the next request.
    async fn first_bytes(&mut self) -> Result<Window, Fault> {
        match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
            Ahead::Bytes(window) => return Ok(window),
            Ahead::Lost => return Err(Refusal::Memory.into()),
            Ahead::Nothing => {}
        }
        let idle = self.server.settings.idle;
        // Nobody waits with a certificate that has expired: who comes back shows the next one.
        let left = self.link.certificate().and_then(Certificate::time_left);
        let deadline = Instant::now() + left.map_or(idle, |left| left.min(idle));
        loop {
            let woken = poll_fn(|context| {
                if self.link.poll_readable(context).is_ready() {
                    Poll::Ready(Woken::Readable)
                } else if self.server.shutdown.has_begun() || self.signal.as_mut().poll(context).is_ready() {
                    Poll::Ready(Woken::Shutdown)
                } else {
                    self.link.poll_late(context, deadline).map(|()| Woken::Idle)
                }
            });
            // At a shutdown a request may just have arrived: one more look, so that it is answered.
            let last = match woken.await {
                Woken::Readable => false,
                Woken::Shutdown => true,
                Woken::Idle => return Err(Fault::End(Ended::Idle)),
            };
            let mut window = match self.window(self.hint, last).await {
                Ok(window) => window,
                Err(_) if last => return Err(Fault::End(Ended::Shutdown)),
                Err(refusal) => return Err(refusal.into()),
            };
            match self.link.try_read(window.spare_mut()).await {
                Poll::Ready(Ok(Read::End | Read::Late)) => return Err(Fault::End(Ended::ByClient)),
                // It is there, and lacks room alone.
                Poll::Ready(Ok(Read::Short(room))) => {
                    self.reserve(&mut window, room).await?;
                    if let Poll::Ready(Ok(Read::Bytes(read))) = self.link.try_read(window.spare_mut()).await {
                        window.advance(read);
                        return Ok(window);
                    }
                }
                Poll::Ready(Ok(Read::Bytes(read))) => {
                    window.advance(read);
                    return Ok(window);
                }
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending if last => return Err(Fault::End(Ended::Shutdown)),
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
        fault: Fault,
        ticket: Option<&S::Ticket>,
        received: usize,
        after: After,
    ) -> Answered {
        match fault {
            Fault::Refusal(refusal) => {
                let context = Context { peer: *self.peer, ticket, received };
                let reply = self.server.service.refuse(refusal, context);
                self.answered(reply, after, coarse_ns())
            }
            Fault::End(ended) => Err(ended),
        }
    }

    /// The next step after the answer to a request that the service refused. If little of its body is missing, the
    /// codec discards that and keeps the connection; else it closes it.
    fn declined(&mut self, reply: &Reply, framing: &Framing, mut window: Window) -> After {
        self.served = self.served.saturating_add(1);
        let end = match framing.length {
            Length::Sized(length) => usize::try_from(length).ok().and_then(|l| framing.head.checked_add(l)),
            Length::Chunked => None,
        };
        let after = After { ending: ending(true, framing), ..After::END };
        let Some(end) = end.filter(|_| !reply.is_closing() && self.may_go_on(framing)) else {
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
            self.ahead = Ahead::Bytes(window);
        }
        After { ending: ending(false, framing), discard: missing, ..after }
    }

    /// Does what follows an answer. Returns how the connection ended, if it did.
    async fn settle(&mut self, after: After) -> Option<Ended> {
        let settings = &self.server.settings;
        if !after.ending.close {
            if after.discard == 0 {
                return None;
            }
            let shutdown = &self.server.shutdown;
            return match self.link.discard(after.discard, settings, || shutdown.has_begun()).await {
                Ok(discarded) if discarded == after.discard => None,
                Ok(_) => Some(after.ended),
                Err(_) => Some(Ended::Lost),
            };
        }
        if after.linger {
            let shutdown = &self.server.shutdown;
            self.link.linger(settings, || shutdown.has_begun()).await;
        }
        Some(after.ended)
    }

    fn may_go_on(&self, framing: &Framing) -> bool {
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
        self.ahead = kept.map_or(Ahead::Lost, Ahead::Bytes);
    }
}

fn ending(close: bool, framing: &Framing) -> Ending {
    let keep_alive = !close && framing.version == Version::Http10;
    Ending { close, keep_alive, bodiless: framing.bodiless }
}
