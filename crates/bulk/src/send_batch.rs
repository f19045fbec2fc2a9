//! One request: sent, and its answer given to its items.

mod reader;

use crate::clock;
use crate::engine::Shared;
use crate::lane::Lane;
use crate::outcome::{Failure, FailureKind};
use crate::state::{BatchOutcome, BatchRequest};
use crate::sync::lock;
use crate::transport::{
    Payload, RequestFailure, Transport, TransportError, TransportRequest, TransportResponse,
};
use reader::BatchResponseReader;
use std::sync::Arc;
use tidegate_arena::Window;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Sends one request, and answers each of its items or leaves it in the batch for the next attempt.
pub(crate) async fn send_batch<T: Transport>(shared: &Shared, transport: &T, batch_request: BatchRequest) {
    let BatchRequest { id, lane, window, end, items, has_auto_ids } = batch_request;
    let since = clock::now();
    let window = Arc::new(window);
    let body = Payload { window: Arc::clone(&window), end };
    let forwards = shared.settings.forwards;
    let path = if forwards { lane.whole_path() } else { lane.path() };
    let content_type = lane.content_type();
    let request = TransportRequest { path, content_type, body, items, writes: lane.writes() };
    let mut reader = BatchResponseReader::new(shared, id, lane, has_auto_ids);
    let result = {
        let mut answer = |piece: &[u8]| reader.take(piece);
        timeout(shared.settings.timeout, transport.send(request, &mut answer)).await
    };
    let failure = request_failure(&result);
    let outcome = batch_outcome(result, lane, &mut reader);
    let unfinished = lock(&shared.state).unfinished(id);
    let failure = failure.or_else(|| missing_answers(&outcome, unfinished)).or(reader.rejected_items(items));
    let window = recovered(shared, window, unfinished > 0);
    let now = clock::now();
    shared.histograms.observe_request(lane, items, now.saturating_duration_since(since));
    let mut wakers = reader.into_wakers();
    let window = lock(&shared.state).finish_request(id, window, outcome, now, &mut wakers);
    drop(window);
    wakers.into_iter().for_each(std::task::Waker::wake);
    transport.ended(failure.map_or(Ok(end), Err));
}

/// The failure of a request as a whole, as far as its result shows.
fn request_failure(
    result: &Result<Result<TransportResponse, TransportError>, Elapsed>,
) -> Option<RequestFailure> {
    match result {
        Ok(Ok(TransportResponse { status: 200..=299 | 400 | 413, .. })) => None,
        Ok(Ok(TransportResponse { status, excerpt, .. })) => {
            Some(RequestFailure::Refused { status: *status, excerpt: excerpt.clone() })
        }
        Ok(Err(TransportError::NotSent(words))) => Some(RequestFailure::NotSent(words.clone())),
        Ok(Err(TransportError::Broken(words))) => Some(RequestFailure::Unanswered(words.clone())),
        Err(_) => Some(RequestFailure::Unanswered(NO_RESPONSE.to_owned())),
    }
}

/// The failure of a request whose response lacks the answers of some items.
fn missing_answers(outcome: &BatchOutcome, unfinished: u32) -> Option<RequestFailure> {
    match outcome {
        BatchOutcome::Failed(failure) if unfinished > 0 && failure.kind == FailureKind::Unanswered => {
            Some(RequestFailure::Unanswered(failure.reason.as_deref().unwrap_or_default().to_owned()))
        }
        _ => None,
    }
}

const NO_RESPONSE: &str = "no response in time";

/// The outcome, at the end of a request, of items without an answer of their own.
fn batch_outcome(
    result: Result<Result<TransportResponse, TransportError>, Elapsed>,
    lane: Lane,
    reader: &mut BatchResponseReader<'_>,
) -> BatchOutcome {
    // A read can be repeated. The outcome of a possible write is unknown.
    let unknown = |words: &str| {
        if lane.writes() {
            BatchOutcome::Failed(Failure::new(FailureKind::Unanswered, 0).with_reason(words))
        } else {
            BatchOutcome::Retry { status: 0, retry_after: None }
        }
    };
    let response = match result {
        Ok(Ok(result)) => result,
        Ok(Err(TransportError::NotSent(_))) => return BatchOutcome::Retry { status: 0, retry_after: None },
        Ok(Err(TransportError::Broken(words))) => {
            reader.flush();
            return unknown(&words);
        }
        Err(_) => {
            reader.flush();
            return unknown(NO_RESPONSE);
        }
    };
    let TransportResponse { status, retry_after, excerpt } = response;
    let failure = |kind| Failure::new(kind, status).with_reason(&excerpt);
    match status {
        200..=299 => reader.end(status),
        429 | 503 => BatchOutcome::Retry { status, retry_after },
        413 => BatchOutcome::Split(failure(FailureKind::TooLarge)),
        // One item that the server cannot read spoils the request for all of them.
        400 => BatchOutcome::Split(failure(FailureKind::Invalid)),
        401 | 403 => BatchOutcome::Failed(failure(FailureKind::Denied)),
        502 | 504 if !lane.writes() => BatchOutcome::Retry { status, retry_after },
        502 | 504 => BatchOutcome::Failed(failure(FailureKind::Unanswered)),
        _ => BatchOutcome::Failed(failure(FailureKind::Server)),
    }
}

/// The window, from which the remaining items are sent again: a copy where the transport still holds it.
fn recovered(shared: &Shared, window: Arc<Window>, needed: bool) -> Option<Window> {
    match Arc::try_unwrap(window) {
        Ok(window) => Some(window),
        Err(held) if needed => {
            let mut copy = shared.arena.try_window(shared.settings.share, held.len()).ok()?;
            copy.append(&held).ok()?;
            Some(copy)
        }
        Err(_) => None,
    }
}
