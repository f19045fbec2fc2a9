//! The answer to one request, read piece by piece, and what it says to each item.

use crate::answer::{DocumentFields, Elements, ItemFields, Part, ServerError, document, item, response};
use crate::batch::Id;
use crate::engine::Shared;
use crate::lane::Lane;
use crate::outcome::{Body, Element, Failure, Found, Hits, Kind, Outcome, Revision, Written};
use crate::state::{Reply, Verdict};
use crate::sync::lock;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::task::Waker;
use tidegate_arena::{ChargeError, Window};

/// So many replies are given out under one lock.
const REPLIES: usize = 64;
/// The longest element of a `_bulk` answer that is put together from pieces, in bytes. Nearly all are in one piece.
const CARRY: usize = 16 << 10;

/// The kept end of a longer response: it contains the status.
const END: usize = 64;

/// Reads the answer to one request.
pub(super) struct Reader<'a> {
    shared: &'a Shared,
    lane: Lane,
    elements: Elements,
    /// How many bytes there were.
    seen: usize,
    replies: Replies<'a>,
    kept: Kept,
}

/// The kept part of a response while it arrives.
enum Kept {
    /// Of writes: the beginning of an element whose end is in a later piece.
    Carry { bytes: Vec<u8>, overflowed: bool, unnamed: bool },
    /// Of forwarded writes: likewise, and the elements whose replies are not given out yet.
    Elements { bytes: Vec<u8>, overflowed: bool, held: Option<Window> },
    /// Of reads: all of it, as the callers get parts of it.
    Whole { window: Option<Window>, short: Option<Kind> },
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, id: Id, lane: Lane, unnamed: bool) -> Reader<'a> {
        let waiting = Vec::with_capacity(REPLIES);
        let replies = Replies { shared, id, waiting, wakers: Vec::new(), elements: Vec::new() };
        let kept = if lane.writes() && shared.settings.forwards {
            Kept::Elements { bytes: Vec::new(), overflowed: false, held: None }
        } else if lane.writes() {
            Kept::Carry { bytes: Vec::new(), overflowed: false, unnamed }
        } else {
            Kept::Whole { window: None, short: None }
        };
        Reader { shared, lane, elements: Elements::of(lane.array()), seen: 0, replies, kept }
    }

    /// Takes a piece of the answer; breaks off when it gets too long.
    pub(super) fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.seen += piece.len();
        let too_large = self.seen > self.shared.settings.answer_bytes;
        match &mut self.kept {
            Kept::Carry { .. } if too_large => return ControlFlow::Break(()),
            Kept::Carry { bytes, overflowed, unnamed } => {
                let replies = &mut self.replies;
                self.elements.feed(piece, |part| {
                    if let Some(reply) = carried(part, bytes, overflowed, *unnamed) {
                        replies.push(reply);
                    }
                });
                // Nobody waits for the next piece.
                replies.flush();
            }
            Kept::Elements { .. } if too_large => return ControlFlow::Break(()),
            Kept::Elements { bytes, overflowed, held } => {
                let (shared, replies) = (self.shared, &mut self.replies);
                self.elements.feed(piece, |part| {
                    let Some(element) = joined(part, bytes, overflowed) else { return };
                    replies.push_element(shared, element, held);
                    if part.last {
                        bytes.clear();
                        *overflowed = false;
                    }
                });
                replies.hand_out(held);
            }
            Kept::Whole { short, .. } if too_large => {
                *short = Some(Kind::TooLarge);
                return ControlFlow::Break(());
            }
            Kept::Whole { window, short } => {
                if let Err(refused) = keep(self.shared, window, piece) {
                    let never = matches!(refused, ChargeError::Never { .. });
                    *short = Some(if never { Kind::TooLarge } else { Kind::NoRoom });
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Gives out the replies there are.
    pub(super) fn flush(&mut self) {
        if let Kept::Elements { held, .. } = &mut self.kept {
            self.replies.hand_out(held);
        }
        self.replies.flush();
    }

    /// The answer is over: what becomes of the items that it does not mention.
    pub(super) fn end(&mut self, status: u16) -> Verdict {
        let short = match &mut self.kept {
            Kept::Carry { .. } | Kept::Elements { .. } => None,
            Kept::Whole { window, short } => {
                if let Some(window) = window.take() {
                    let (window, lane, replies) = (Arc::new(window), self.lane, &mut self.replies);
                    self.elements.feed(&window, |part| {
                        if part.first && part.last {
                            replies.push(read(lane, part, &window));
                        }
                    });
                }
                *short
            }
        };
        self.replies.flush();
        if let Some(kind) = short {
            // Fewer at a time have shorter answers.
            return Verdict::Smaller(Failure::new(kind, status));
        }
        let words = if self.elements.is_complete() {
            "the server answered fewer items than it was sent"
        } else {
            "the answer broke off"
        };
        Verdict::Over(Failure::new(Kind::Unanswered, status).because(words))
    }

    /// A list of wakers that is empty and has room.
    pub(super) fn into_wakers(self) -> Vec<Waker> {
        self.replies.wakers
    }
}

/// Replies that are not given out yet.
struct Replies<'a> {
    shared: &'a Shared,
    id: Id,
    waiting: Vec<Reply>,
    wakers: Vec<Waker>,
    /// Of forwarded items.
    elements: Vec<Forwarded>,
}

/// The response's result for a forwarded item.
struct Forwarded {
    status: u16,
    failed: bool,
    /// Where its element is in the window that holds them, or the words of an error whose element found no room there.
    place: Result<Range<usize>, Option<Box<str>>>,
}

impl Replies<'_> {
    fn push(&mut self, reply: Reply) {
        self.waiting.push(reply);
        if self.waiting.len() >= REPLIES {
            self.flush();
        }
    }

    /// Keeps an element beside those in `held`, if there is memory for it.
    fn push_element(&mut self, shared: &Shared, element: &[u8], held: &mut Option<Window>) {
        let Some(fields) = item(element) else {
            self.hand_out(held);
            return self.push(match status_at_end(element) {
                Some(status) => {
                    let failed = status >= 400;
                    Reply::Final(Outcome::Element(Element { status, failed, body: None, reason: None }))
                }
                None => unreadable(),
            });
        };
        let start = held.as_ref().map_or(0, |window| window.len());
        let place = match keep(shared, held, element) {
            Ok(()) => Ok(start..start + element.len()),
            Err(_) => Err(fields.error.map(|error| error.message().into())),
        };
        let (status, failed) = (fields.status, fields.error.is_some());
        self.elements.push(Forwarded { status, failed, place });
        if self.elements.len() >= REPLIES {
            self.hand_out(held);
        }
    }

    /// Gives out the elements in `held`.
    fn hand_out(&mut self, held: &mut Option<Window>) {
        let window = held.take().map(Arc::new);
        for Forwarded { status, failed, place } in std::mem::take(&mut self.elements) {
            let (body, reason) = match (place, &window) {
                (Ok(range), Some(window)) => (Some(Body::new(window, &range)), None),
                (Ok(_), None) => (None, None),
                (Err(words), _) => (None, words),
            };
            self.waiting.push(Reply::Final(Outcome::Element(Element { status, failed, body, reason })));
        }
        self.flush();
    }

    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        lock(&self.shared.state).resolve(self.id, &mut self.waiting, &mut self.wakers);
        self.waiting.clear();
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// Adds `piece` to what is kept.
fn keep(shared: &Shared, window: &mut Option<Window>, piece: &[u8]) -> Result<(), ChargeError> {
    match window {
        Some(window) => window.append(piece),
        None => {
            let mut first = shared.arena.try_window(shared.settings.share, piece.len())?;
            first.append(piece)?;
            *window = Some(first);
            Ok(())
        }
    }
}

/// The reply of an element of `_bulk` that ends with `part`.
fn carried(part: Part<'_>, carry: &mut Vec<u8>, overflowed: &mut bool, unnamed: bool) -> Option<Reply> {
    let reply = written(joined(part, carry, overflowed)?, unnamed);
    carry.clear();
    *overflowed = false;
    Some(reply)
}

/// The element that ends with `part`: its end alone where it is too long to be put together.
fn joined<'a>(part: Part<'a>, carry: &'a mut Vec<u8>, overflowed: &mut bool) -> Option<&'a [u8]> {
    if part.first && part.last {
        return Some(part.bytes);
    }
    if *overflowed || carry.len() + part.bytes.len() > CARRY {
        *overflowed = true;
        let end = part.bytes.get(part.bytes.len().saturating_sub(END)..).unwrap_or_default();
        carry.drain(..carry.len().saturating_sub(END - end.len()));
        carry.extend_from_slice(end);
    } else {
        carry.extend_from_slice(part.bytes);
    }
    part.last.then_some(carry.as_slice())
}

fn written(element: &[u8], unnamed: bool) -> Reply {
    let Some(fields) = item(element) else { return unreadable() };
    let ItemFields { status, unchanged, version, seq_no, primary_term, .. } = fields;
    if !(200..300).contains(&status) {
        return failed(status, fields.error);
    }
    let id = unnamed.then(|| String::from_utf8_lossy(fields.id).into());
    let revision = Revision { seq_no, primary_term };
    Reply::Final(Outcome::Written(Written { status, unchanged, version, revision, id }))
}

fn read(lane: Lane, part: Part<'_>, window: &Arc<Window>) -> Reply {
    let end = part.at + part.bytes.len();
    if lane == Lane::Search {
        return match response(part.bytes) {
            Some((200..=299, None)) => {
                Reply::Final(Outcome::Hits(Hits { body: Body::new(window, &(part.at..end)) }))
            }
            Some((status, error)) => failed(status, error),
            None => unreadable(),
        };
    }
    let Some(fields) = document(part.bytes) else { return unreadable() };
    let DocumentFields { found, source, version, seq_no, primary_term, error } = fields;
    if error.is_some() {
        return failed(0, error);
    }
    if !found {
        return failed(404, None);
    }
    let source = Body::new(window, &(part.at + source.start..part.at + source.end));
    let revision = Revision { seq_no, primary_term };
    Reply::Final(Outcome::Found(Found { source, version, revision }))
}

/// The status of an element of which there is only the end: servers write it last.
fn status_at_end(end: &[u8]) -> Option<u16> {
    let digits = end.strip_suffix(b"}}")?.rsplit(|byte| *byte == b':').next()?;
    let is_status = end.windows(b"\"status\":".len()).any(|window| window == b"\"status\":");
    str::from_utf8(digits).ok()?.parse().ok().filter(|_| is_status)
}

fn unreadable() -> Reply {
    let failure = Failure::new(Kind::Unanswered, 0).because("the answer to the item cannot be read");
    Reply::Final(Outcome::Failed(failure))
}

/// The verdict of a status, or without one of an error's type.
fn failed(status: u16, error: Option<ServerError<'_>>) -> Reply {
    let kind = error.map_or(&b""[..], |error| error.kind);
    let kind = match (status, kind) {
        (429 | 503, _) => return Reply::Rejected(status),
        (
            0,
            b"es_rejected_execution_exception"
            | b"rejected_execution_exception"
            | b"circuit_breaking_exception",
        ) => {
            return Reply::Rejected(429);
        }
        (0, b"no_shard_available_action_exception" | b"unavailable_shards_exception") => {
            return Reply::Rejected(503);
        }
        (_, b"index_not_found_exception") => Kind::IndexNotFound,
        (404, _) => Kind::NotFound,
        (409, _) => Kind::VersionConflict,
        (401 | 403, _) => Kind::Denied,
        (408 | 504, _) => Kind::Unanswered,
        (413, _) => Kind::TooLarge,
        (400..=499, _) => Kind::Invalid,
        _ => Kind::Server,
    };
    let failure = Failure::new(kind, status);
    Reply::Final(Outcome::Failed(match error {
        Some(error) => failure.because(&error.message()),
        None => failure,
    }))
}
