//! One request: sent, and its answer given to its items.

mod reader;

use crate::clock;
use crate::engine::Shared;
use crate::lane::Lane;
use crate::outcome::{Failure, Kind};
use crate::state::{Takeoff, Verdict};
use crate::sync::lock;
use crate::transport::{Answered, NoAnswer, Payload, Request, Transport};
use reader::Reader;
use std::sync::Arc;
use tidegate_arena::Window;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Sends what `takeoff` has, and gives every item its answer or its place in what is sent again.
pub(crate) async fn fly<T: Transport>(shared: &Shared, transport: &T, takeoff: Takeoff) {
    let Takeoff { id, lane, window, end, items, unnamed } = takeoff;
    let since = clock::now();
    let window = Arc::new(window);
    let body = Payload { window: Arc::clone(&window), end };
    let forwards = shared.settings.forwards;
    let path = if forwards { lane.whole_path() } else { lane.path() };
    let content_type = lane.content_type();
    let request = Request { path, content_type, body, items, writes: lane.writes() };
    let mut reader = Reader::new(shared, id, lane, unnamed);
    let answered = {
        let mut answer = |piece: &[u8]| reader.take(piece);
        timeout(shared.settings.timeout, transport.send(request, &mut answer)).await
    };
    let verdict = verdict(answered, lane, &mut reader);
    let window = recovered(shared, window, lock(&shared.state).left(id) > 0);
    let now = clock::now();
    shared.measures.landed(lane, items, now.saturating_duration_since(since));
    let mut wakers = reader.into_wakers();
    let window = lock(&shared.state).land(id, window, verdict, now, &mut wakers);
    drop(window);
    wakers.into_iter().for_each(std::task::Waker::wake);
}

/// The outcome, at the end of a request, of items without an answer of their own.
fn verdict(
    answered: Result<Result<Answered, NoAnswer>, Elapsed>,
    lane: Lane,
    reader: &mut Reader<'_>,
) -> Verdict {
    // A read can be repeated. The outcome of a possible write is unknown.
    let unknown = |words: &str| {
        if lane.writes() {
            Verdict::Over(Failure::new(Kind::Unanswered, 0).because(words))
        } else {
            Verdict::Again { status: 0, asked: None }
        }
    };
    let answered = match answered {
        Ok(Ok(answered)) => answered,
        Ok(Err(NoAnswer::NotSent(_))) => return Verdict::Again { status: 0, asked: None },
        Ok(Err(NoAnswer::Broken(words))) => {
            reader.flush();
            return unknown(&words);
        }
        Err(_) => {
            reader.flush();
            return unknown("no answer in time");
        }
    };
    let Answered { status, retry_after, excerpt } = answered;
    let failure = |kind| Failure::new(kind, status).because(&excerpt);
    match status {
        200..=299 => reader.end(status),
        429 | 503 => Verdict::Again { status, asked: retry_after },
        413 => Verdict::Smaller(failure(Kind::TooLarge)),
        // One item that the server cannot read spoils the request for all of them.
        400 => Verdict::Smaller(failure(Kind::Invalid)),
        401 | 403 => Verdict::Over(failure(Kind::Denied)),
        502 | 504 if !lane.writes() => Verdict::Again { status, asked: retry_after },
        502 | 504 => Verdict::Over(failure(Kind::Unanswered)),
        _ => Verdict::Over(failure(Kind::Server)),
    }
}

/// The window, from which the rest is sent again. Where the transport still holds it, a copy.
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
