//! Answers over HTTP/2. That an answer cannot be sent means that nobody waits for it.
//!
//! What is said by the thousand is put together at the start (`admission::otlp::Ready`); what differs, the seconds and
//! the date, is written into a buffer of the thread. So a refusal takes nothing from the heap but what the codec takes for
//! any answer.

mod scratch;

pub(super) use scratch::BYTES as SCRATCH_BYTES;

use crate::grpc::{ENCODINGS, Fault, PREFIX};
use crate::otlp::{Form, LeftOut};
use bytes::Bytes;
use h2::server::SendResponse;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, DATE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use scratch::written;
use std::fmt::Write as _;
use std::time::SystemTime;
use tidegate_admission::access::CHALLENGE;
use tidegate_admission::otlp::{self, Media, Partial, Ready};
use tidegate_admission::{Code, Refused};
use tidegate_ledger::Refusal;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// An uncompressed message of no bytes: the empty `Export…ServiceResponse`.
const EMPTY: &[u8] = &[0; 5];

/// Answers a call: with success, or with what is wrong.
pub(super) fn grpc(respond: &mut SendResponse<Bytes>, outcome: Result<&LeftOut, &Fault>) {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
    let fault = match outcome {
        Ok(left_out) => {
            let message = left_out.as_deref().map_or_else(|| Bytes::from_static(EMPTY), message);
            let sent = respond.send_response(response, false).and_then(|mut stream| {
                stream.send_data(message, false)?;
                let mut trailers = HeaderMap::new();
                trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
                stream.send_trailers(trailers)
            });
            return drop(sent);
        }
        Err(fault) => fault,
    };
    // Trailers only: the head is the trailers.
    match otlp::ready(&fault.refused).filter(|_| fault.code.is_none()) {
        Some(ready) => prepared_trailers(ready, headers),
        None => trailers(fault, headers),
    }
    let _ = respond.send_response(response, true);
}

/// An uncompressed message that says what was left out.
fn message(partial: &Partial) -> Bytes {
    // The name is for JSON.
    let response = partial.response(Media::Protobuf, "");
    let len = u32::try_from(response.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(PREFIX + response.len());
    message.push(0);
    message.extend_from_slice(&len.to_be_bytes());
    message.extend_from_slice(&response);
    message.into()
}

fn prepared_trailers(ready: Ready, headers: &mut HeaderMap) {
    headers.insert(GRPC_STATUS, HeaderValue::from_static(digits(ready.code())));
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static(ready.message()));
    let details = written(|out| ready.details(|part| out.extend_from_slice(part)));
    if let Ok(details) = HeaderValue::from_maybe_shared(details) {
        headers.insert(GRPC_DETAILS, unremembered(details));
    }
}

/// A value that differs from answer to answer. The codec would remember each of them in its table of headers, which
/// grows to as much as a page of the smallest for as long as the connection lives.
fn unremembered(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

fn trailers(fault: &Fault, headers: &mut HeaderMap) {
    let answer = otlp::grpc(&fault.refused, fault.code);
    headers.insert(GRPC_STATUS, HeaderValue::from_static(digits(answer.code)));
    if let Ok(message) = HeaderValue::try_from(answer.message) {
        headers.insert(GRPC_MESSAGE, unremembered(message));
    }
    if let Some(Ok(details)) = answer.details.map(HeaderValue::try_from) {
        headers.insert(GRPC_DETAILS, unremembered(details));
    }
}

const fn digits(code: Code) -> &'static str {
    match code {
        Code::Cancelled => "1",
        Code::InvalidArgument => "3",
        Code::DeadlineExceeded => "4",
        Code::PermissionDenied => "7",
        Code::ResourceExhausted => "8",
        Code::Unimplemented => "12",
        Code::Internal => "13",
        Code::Unavailable => "14",
        Code::Unauthenticated => "16",
    }
}

/// What is said to a request over HTTP that was taken.
pub(super) fn response(left_out: LeftOut, form: Form) -> Bytes {
    match left_out {
        Some(partial) => partial.response(form.media, form.items()).into(),
        None => Bytes::from_static(if form.media == Media::Json { b"{}" } else { b"" }),
    }
}

/// Answers a request of OTLP over HTTP: with a response, or with what is wrong.
pub(super) fn http(respond: &mut SendResponse<Bytes>, outcome: Result<Bytes, Refused>, media: Media) {
    let mut response = Response::new(());
    let body = outcome.unwrap_or_else(|refused| refusal(&refused, media, &mut response));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    send(respond, response, body);
}

/// Puts the head of a refusal together, and its body.
fn refusal(refused: &Refused, media: Media, response: &mut Response<()>) -> Bytes {
    let (status, seconds, body) = match otlp::ready(refused) {
        Some(ready) => {
            let body = written(|out| ready.body(media, |part| out.extend_from_slice(part)));
            (ready.status(), Some(ready.seconds()), body)
        }
        None => {
            let answer = otlp::http(refused, media);
            (answer.status, answer.retry_after, Bytes::from(answer.body))
        }
    };
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    if let Some(Ok(seconds)) = seconds.map(|seconds| shown(seconds.into())) {
        headers.insert(RETRY_AFTER, unremembered(seconds));
    }
    if refused.reason == Refusal::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    }
    if refused.reason == Refusal::Method {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    body
}

/// Answers a request that leads nowhere.
pub(super) fn nowhere(respond: &mut SendResponse<Bytes>, words: &'static str) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    send(respond, response, Bytes::from_static(words.as_bytes()));
}

fn send(respond: &mut SendResponse<Bytes>, mut response: Response<()>, body: Bytes) {
    if let Ok(length) = shown(body.len() as u64) {
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    // RFC 9110, section 6.6.1. Writing to a buffer that grows does not fail.
    let date = written(|out| _ = write!(out, "{}", httpdate::HttpDate::from(SystemTime::now())));
    if let Ok(date) = HeaderValue::from_maybe_shared(date) {
        response.headers_mut().insert(DATE, unremembered(date));
    }
    let sent = respond.send_response(response, body.is_empty());
    if !body.is_empty() {
        let _ = sent.and_then(|mut stream| stream.send_data(body, true));
    }
}

fn shown(number: u64) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    HeaderValue::from_maybe_shared(written(|out| _ = write!(out, "{number}")))
}
