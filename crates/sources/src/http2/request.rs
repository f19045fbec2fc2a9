//! One request over HTTP/2 that is no gRPC call: routed and answered as over HTTP/1.1.
//!
//! Its head is written down as HTTP/1.1 would have it, and looked at by the same parser. So there is one table of routes, one
//! set of rules for what a head may say, and the sources that look at a head in the window find it there.

use super::answer;
use super::flow::{Body, Flow};
use super::receive::{self, BodyReceiver};
use super::server::Inner;
use crate::http::Ticket;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use tidegate_admission::note_body_length;
use tidegate_arena::{Charge, Share};
use tidegate_http1::{
    Admitted, Body as Whole, BodyLength, Certificate, Refusal, RefusalContext, Service as _, parse_head,
};

/// The charge of a request besides its window and its head: its task, its stream in the codec, its answer.
pub(super) const BYTES: u64 = 4 << 10;

/// A request that was let in.
pub(super) struct Start {
    ticket: Ticket,
    max_body: usize,
    /// As HTTP/1.1 would have it.
    head: Vec<u8>,
    /// The length of the body, where the head announces it.
    length: Option<usize>,
    /// The answer has no body.
    is_head: bool,
    /// The client waits for `100 Continue`.
    expects: bool,
    /// The charge of the request's state.
    charge: Charge,
}

/// Decides on a request's head. Nothing where the answer is given already.
pub(super) fn admit(
    server: &Inner,
    flow: &Flow,
    (peer, certificate): (SocketAddr, Option<&Certificate>),
    (parts, has_end): (&Parts, bool),
    mut respond: SendResponse<Bytes>,
) -> Option<(Start, SendResponse<Bytes>)> {
    let head = written(parts, has_end);
    let is_head = parts.method == Method::HEAD;
    let service = &server.http;
    let decided = parse_head(&head, peer, certificate, |head| {
        service.admit(head).map(|admitted| (admitted, head.length(), head.expects_continue()))
    });
    let refused = |refusal, ticket: Option<&Ticket>| {
        service.refuse(refusal, RefusalContext { peer, ticket, received: head.len() })
    };
    let reply = match decided {
        Ok(Ok((Admitted { max_body, ticket }, length, expects))) => {
            let bytes = BYTES + head.capacity() as u64;
            let charge =
                if flow.is_refused() { None } else { server.arena.try_charge(Share::Ingest, bytes).ok() };
            let Some(charge) = charge else {
                answer::reply(&mut respond, refused(Refusal::Memory, Some(&ticket)), is_head);
                return None;
            };
            let length = match length {
                BodyLength::Sized(length) => Some(usize::try_from(length).unwrap_or(usize::MAX)),
                BodyLength::Chunked => None,
            };
            return Some((Start { ticket, max_body, head, length, is_head, expects, charge }, respond));
        }
        Ok(Err(reply)) => reply,
        Err(refusal) => refused(refusal, None),
    };
    answer::reply(&mut respond, reply, is_head);
    None
}

/// Serves one request to its answer.
pub(super) async fn serve(
    server: &Inner,
    flow: &Flow,
    start: Start,
    way: Body<'_>,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
) {
    let Start { ticket, max_body, head, length, is_head, expects, charge } = start;
    if server.http.is_patient(&ticket) {
        way.be_patient();
    }
    if expects && !body.is_end_stream() {
        let mut go_on = Response::new(());
        *go_on.status_mut() = StatusCode::CONTINUE;
        // It fails only where nobody waits any more.
        let _ = respond.send_informational(go_on);
    }
    // What is announced, until it is there.
    note_body_length(length.unwrap_or(0));
    let intake = BodyReceiver { server, flow, way: &way, most: max_body, passage: ticket.passage() };
    let received = intake.whole(&mut body, &head, length).await;
    let begin = head.len();
    drop(head);
    let reply = match received {
        Ok(window) => {
            note_body_length(window.len().saturating_sub(begin));
            let is_withdrawn = server.http.is_withdrawn_by_leaving(&ticket);
            let mut answer = pin!(server.http.answer(ticket, Whole::received(window, begin)));
            let reply = poll_fn(|context| match answer.as_mut().poll(context) {
                Poll::Ready(reply) => Poll::Ready(Some(reply)),
                Poll::Pending if is_withdrawn => respond.poll_reset(context).map(|_| None),
                Poll::Pending => Poll::Pending,
            });
            match reply.await {
                Some(reply) => reply,
                // The client has reset the stream.
                None => return flow.keep(charge),
            }
        }
        Err(refused) => {
            let reply = server.http.refuse_body(&ticket, refused);
            // Its claims on the limits are returned while the rest of the body is drained.
            drop(ticket);
            reply
        }
    };
    let is_refused = reply.status() >= 400;
    answer::reply(&mut respond, reply, is_head);
    if is_refused {
        receive::discard(&way, body).await;
    }
    flow.keep(charge);
}

/// The head as HTTP/1.1 would have it. What is about a connection of HTTP/1.1 is left out.
fn written(parts: &Parts, has_end: bool) -> Vec<u8> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let lines = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let mut head = Vec::with_capacity(target.len() + lines.sum::<usize>() + 160);
    for part in [parts.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    // RFC 9113, section 8.3.1: it stands for `Host`, which may be there besides.
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    if authority.is_some() || !parts.headers.contains_key("host") {
        line("host", authority.unwrap_or_default().as_bytes());
    }
    for (name, value) in &parts.headers {
        if !(is_of_connection(name.as_str()) || name == "host" && authority.is_some()) {
            line(name.as_str(), value.as_bytes());
        }
    }
    if !has_end && !parts.headers.contains_key("content-length") {
        line("transfer-encoding", b"chunked");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Whether a header is about a connection of HTTP/1.1 (RFC 9113, section 8.2.2).
fn is_of_connection(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" | "te")
}
