//! One connection: requests one after the other, and nothing held in between.

mod link;
mod pace;
mod receive;

pub(crate) use link::Link;

use crate::head::{Framing, Length, Version, parse};
use crate::refusal::Refusal;
use crate::reply::{Ending, Reply};
use crate::server::{Ended, Server};
use crate::service::{Admitted, Body, Context, Service};
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
    peer: SocketAddr,
    ahead: Ahead,
    /// How large the last request was: how much to take for the next at once.
    hint: usize,
    served: u32,
}

/// What arrived behind a request: the beginning of the next.
enum Ahead {
    Nothing,
    Bytes(Window),
    /// There was no memory to keep it, so the next request is refused.
    Lost,
}

/// Why a request could not be received.
enum Fault {
    Refusal(Refusal),
    /// The transport failed: nobody is there to answer.
    Lost,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Refusal(refusal)
    }
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Fault {
        Fault::Lost
    }
}

/// What woke an idle connection.
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
        peer: SocketAddr,
    ) -> Self {
        Connection { server, link, signal, peer, ahead: Ahead::Nothing, hint: PAGE, served: 0 }
    }

    pub(crate) async fn run(mut self) -> Ended {
        loop {
            let window = match std::mem::replace(&mut self.ahead, Ahead::Nothing) {
                Ahead::Bytes(window) => Ok(window),
                Ahead::Lost => Err(Fault::Refusal(Refusal::Memory)),
                Ahead::Nothing => match self.first_bytes().await {
                    Ok(first) => first,
                    Err(ended) => return ended,
                },
            };
            let window = match window {
                Ok(window) => window,
                Err(fault) => return self.fail(fault, None, 0).await,
            };
            if let Err(ended) = self.exchange(window).await {
                return ended;
            }
        }
    }

    /// Waits, without a buffer, for the first bytes of the next request. The outer error is an end without
    /// an answer, the inner one a request that cannot be received.
    async fn first_bytes(&mut self) -> Result<Result<Window, Fault>, Ended> {
        let deadline = Instant::now() + self.server.settings.idle;
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
                Woken::Idle => return Err(Ended::Idle),
            };
            let mut window = match self.window(self.hint, last).await {
                Ok(window) => window,
                Err(_) if last => return Err(Ended::Shutdown),
                Err(refusal) => return Ok(Err(refusal.into())),
            };
            match self.link.try_read(window.spare_mut()).await {
                Poll::Ready(Ok(0)) => return Err(Ended::ByClient),
                Poll::Ready(Ok(read)) => {
                    window.advance(read);
                    return Ok(Ok(window));
                }
                Poll::Ready(Err(_)) => return Err(Ended::Lost),
                Poll::Pending if last => return Err(Ended::Shutdown),
                // Woken in vain: the window goes back, and the wait goes on.
                Poll::Pending => {}
            }
        }
    }

    /// Receives and answers one request whose first bytes are in `window`. The error is the end of the
    /// connection.
    async fn exchange(&mut self, mut window: Window) -> Result<(), Ended> {
        let (framing, admitted) = match self.receive_head(&mut window).await {
            Ok((start, end)) => {
                let bytes = window.get(start..end).unwrap_or_default();
                let service = &self.server.service;
                match parse(bytes, self.peer, |head| (head.framing, service.admit(head))) {
                    // From here on the head is all that comes before the body.
                    Ok((framing, admitted)) => (Framing { head: end, ..framing }, admitted),
                    Err(refusal) => return self.fail_with(refusal, window).await,
                }
            }
            Err(Fault::Refusal(refusal)) => return self.fail_with(refusal, window).await,
            Err(Fault::Lost) => return Err(Ended::Lost),
        };
        let Admitted { max_body, ticket } = match admitted {
            Ok(admitted) => admitted,
            Err(reply) => return self.decline(reply, framing, window).await,
        };
        match self.receive_body(&mut window, &framing, max_body).await {
            Ok(extent) => {
                self.hint = window.len().clamp(PAGE, STEP);
                if framing.persistent {
                    self.keep_ahead(&window, extent.rest);
                }
                window.truncate(extent.body);
            }
            Err(fault) => {
                let received = window.len();
                drop(window);
                return Err(self.fail(fault, Some(ticket), received).await);
            }
        }
        let reply = self.server.service.answer(ticket, Body::new(window, framing.head)).await;
        self.served = self.served.saturating_add(1);
        let close = reply.is_closing() || !self.may_go_on(&framing);
        self.send(&reply, close, &framing).await?;
        if !close {
            return Ok(());
        }
        if framing.persistent {
            // The client does not know yet, and may be sending its next request.
            drop(reply);
            self.link.linger(&self.server.settings).await;
        }
        Err(Ended::Answered)
    }

    /// Answers a request that the service did not let in. If little of its body is missing, that is thrown
    /// away and the connection goes on; else it ends.
    async fn decline(&mut self, reply: Reply, framing: Framing, mut window: Window) -> Result<(), Ended> {
        let arrived = window.len().saturating_sub(framing.head);
        let missing = match framing.length {
            Length::Chunked => None,
            Length::Sized(length) => {
                usize::try_from(length).ok().map(|length| length.saturating_sub(arrived))
            }
        };
        // A client that was not told to continue may or may not send the body: no telling where it ends.
        let known = missing.filter(|missing| {
            *missing == 0 || (!framing.expects && *missing <= self.server.settings.linger_bytes)
        });
        self.served = self.served.saturating_add(1);
        let close = known.is_none() || reply.is_closing() || !self.may_go_on(&framing);
        if let (Length::Sized(length), Some(0)) = (framing.length, known) {
            // `arrived` is at least this much, so it fits.
            let end = framing.head + usize::try_from(length).unwrap_or(arrived);
            if end < window.len() && !close {
                window.copy_within(end.., 0);
                window.truncate(window.len() - end);
                self.ahead = Ahead::Bytes(window);
            } else {
                drop(window);
            }
        } else {
            drop(window);
        }
        self.send(&reply, close, &framing).await?;
        drop(reply);
        let settings = &self.server.settings;
        match known {
            Some(missing) if !close => {
                let deadline = Instant::now() + settings.linger;
                match self.link.discard(missing, deadline).await {
                    Ok(discarded) if discarded == missing => Ok(()),
                    Ok(_) => Err(Ended::Refused),
                    Err(_) => Err(Ended::Lost),
                }
            }
            _ => {
                self.link.linger(settings).await;
                Err(Ended::Refused)
            }
        }
    }

    async fn fail_with(&mut self, refusal: Refusal, window: Window) -> Result<(), Ended> {
        let received = window.len();
        drop(window);
        Err(self.fail(Fault::Refusal(refusal), None, received).await)
    }

    /// Answers a request that could not be received, and ends the connection: where the next request
    /// would begin is not known.
    async fn fail(&mut self, fault: Fault, ticket: Option<S::Ticket>, received: usize) -> Ended {
        let Fault::Refusal(refusal) = fault else { return Ended::Lost };
        let context = Context { peer: self.peer, ticket: ticket.as_ref(), received };
        let reply = self.server.service.refuse(refusal, context);
        drop(ticket);
        let settings = &self.server.settings;
        let ending = Ending { close: true, keep_alive: false, bodiless: false };
        if self.link.send(&reply, ending, settings.write).await.is_err() {
            return Ended::Lost;
        }
        drop(reply);
        self.link.linger(settings).await;
        Ended::Refused
    }

    async fn send(&mut self, reply: &Reply, close: bool, framing: &Framing) -> Result<(), Ended> {
        let keep_alive = !close && framing.version == Version::Http10;
        let ending = Ending { close, keep_alive, bodiless: framing.bodiless };
        self.link.send(reply, ending, self.server.settings.write).await.map_err(|_| Ended::Lost)
    }

    fn may_go_on(&self, framing: &Framing) -> bool {
        framing.persistent
            && self.served < self.server.settings.max_requests
            && !self.server.shutdown.has_begun()
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
