//! Answers over HTTP/2. That an answer cannot be sent means that nobody waits for it.
//!
//! Frequent answers are prepared at startup (`admission::otlp::PreparedRefusal`); the variable parts, the seconds and the date,
//! are written into a buffer of the thread. So a refusal allocates no more than the codec does for any answer.

mod scratch;

use crate::grpc::{CallError, ENCODINGS, PREFIX};
use crate::otlp::LeftOut;
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use scratch::written;
use std::cell::RefCell;
use tidegate_admission::Code;
use tidegate_admission::otlp::{self, Media, PartialSuccess, PreparedRefusal};
use tidegate_arena::Window;
use tidegate_http1::{Content, Reply};

/// A thread's buffers for heads, in bytes.
const RENDERED_BYTES: usize = 4 << 10;
/// A thread's buffers for answers.
pub(super) const WORKER_BYTES: usize = scratch::BYTES + RENDERED_BYTES;
/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

thread_local! {
    static RENDERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// An uncompressed message of no bytes: the empty `Export…ServiceResponse`.
const EMPTY: &[u8] = &[0; 5];

/// Answers a call: with success, or with what is wrong.
pub(super) fn grpc(respond: &mut SendResponse<Bytes>, outcome: Result<&LeftOut, &CallError>) {
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static(ENCODINGS));
    let error = match outcome {
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
        Err(error) => error,
    };
    // Trailers only: the head is the trailers.
    match otlp::ready(&error.refused).filter(|_| error.code.is_none()) {
        Some(ready) => prepared_trailers(ready, headers),
        None => trailers(error, headers),
    }
    let _ = respond.send_response(response, true);
}

/// An uncompressed message that says what was left out.
fn message(partial: &PartialSuccess) -> Bytes {
    // The name is for JSON.
    let response = partial.response(Media::Protobuf, "");
    let len = u32::try_from(response.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(PREFIX + response.len());
    message.push(0);
    message.extend_from_slice(&len.to_be_bytes());
    message.extend_from_slice(&response);
    message.into()
}

fn prepared_trailers(ready: PreparedRefusal, headers: &mut HeaderMap) {
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

fn trailers(error: &CallError, headers: &mut HeaderMap) {
    let answer = otlp::grpc(&error.refused, error.code);
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

/// Answers a request that is no call as it would be over HTTP/1.1. `is_head` says that it has no body.
pub(super) fn reply(respond: &mut SendResponse<Bytes>, reply: Reply, is_head: bool) {
    let (rendered, follows) = RENDERED.with_borrow_mut(|out| {
        out.clear();
        let follows = reply.put_head(out);
        let rendered = written(|buffer| buffer.extend_from_slice(out));
        out.shrink_to(RENDERED_BYTES);
        (rendered, follows)
    });
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(reply.status()).unwrap_or_default();
    let end = rendered.windows(END.len()).position(|bytes| bytes == END).unwrap_or(rendered.len());
    let head = rendered.get(..end).unwrap_or_default();
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let line = line.trim_ascii_end();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let value = rendered.slice_ref(value.get(1..).unwrap_or_default().trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_maybe_shared(value)) {
            response.headers_mut().append(name, unremembered(value));
        }
    }
    let content = reply.into_content();
    if follows && matches!(content, Content::Stream(_)) {
        // No source has one. A client must not take nothing for the whole.
        return respond.send_reset(Reason::INTERNAL_ERROR);
    }
    let body = match follows {
        true => bytes_of(content),
        false => rendered.slice((end + END.len()).min(rendered.len())..),
    };
    let is_empty = is_head || body.is_empty();
    let sent = respond.send_response(response, is_empty);
    if !is_empty {
        let _ = sent.and_then(|mut stream| stream.send_data(body, true));
    }
}

/// The content of an answer, where it lies.
fn bytes_of(content: Content) -> Bytes {
    match content {
        Content::Fixed(bytes) => Bytes::from_static(bytes),
        Content::Owned(bytes) => Bytes::from(bytes),
        Content::Window(window) => Bytes::from_owner(HeldAnswer(window)),
        Content::Empty | Content::Sentence(..) | Content::Stream(_) | Content::Prepared(_) => Bytes::new(),
    }
}

/// An answer in memory that is paid for until it is sent.
struct HeldAnswer(Window);

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
