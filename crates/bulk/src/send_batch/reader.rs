//! Reads the response to one request chunk by chunk, and turns it into replies to its items.

use crate::batch::Id;
use crate::engine::Shared;
use crate::lane::Lane;
use crate::outcome::{
    Failure, FailureKind, FetchedDocument, ItemResponse, Outcome, ResponseBytes, Revision, SearchResponse,
    WriteResponse,
};
use crate::response::{
    DocumentFields, ElementChunk, ElementScanner, ItemFields, ServerError, read_bulk_item,
    read_mget_document, read_msearch_response,
};
use crate::state::{BatchOutcome, ItemReply};
use crate::sync::lock;
use crate::transport::RequestFailure;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::task::Waker;
use tidegate_arena::{ChargeError, Window};

/// The most replies applied under one lock.
const REPLIES: usize = 64;
/// The longest element of a `_bulk` response that is reassembled from chunks, in bytes. Most are in one chunk.
const CARRY_BYTES: usize = 16 << 10;

/// The bytes kept of the end of a longer element: they contain the status.
const TAIL_BYTES: usize = 64;

/// Reads the response to one request.
pub(super) struct BatchResponseReader<'a> {
    shared: &'a Shared,
    lane: Lane,
    elements: ElementScanner,
    /// The bytes read so far.
    seen: usize,
    replies: ReplyQueue<'a>,
    buffer: ResponseBuffer,
}

/// The part of a response that is kept while the rest arrives.
enum ResponseBuffer {
    /// For writes: the beginning of an element that ends in a later chunk.
    Carry { bytes: Vec<u8>, overflowed: bool, has_auto_ids: bool },
    /// For forwarded writes: the same, and the elements whose replies were not applied yet.
    Elements { bytes: Vec<u8>, overflowed: bool, held: Option<Window> },
    /// Of reads: all of it, as the callers get parts of it.
    Whole { window: Option<Window>, short: Option<FailureKind> },
}

impl<'a> BatchResponseReader<'a> {
    pub(super) fn new(shared: &'a Shared, id: Id, lane: Lane, has_auto_ids: bool) -> BatchResponseReader<'a> {
        let waiting = Vec::with_capacity(REPLIES);
        let replies =
            ReplyQueue { shared, id, waiting, wakers: Vec::new(), elements: Vec::new(), rejected: (0, 0) };
        let buffer = if lane.writes() && shared.settings.forwards {
            ResponseBuffer::Elements { bytes: Vec::new(), overflowed: false, held: None }
        } else if lane.writes() {
            ResponseBuffer::Carry { bytes: Vec::new(), overflowed: false, has_auto_ids }
        } else {
            ResponseBuffer::Whole { window: None, short: None }
        };
        BatchResponseReader {
            shared,
            lane,
            elements: ElementScanner::new(lane.array()),
            seen: 0,
            replies,
            buffer,
        }
    }

    /// Takes a piece of the answer; breaks off when it gets too long.
    pub(super) fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        self.seen += piece.len();
        let too_large = self.seen > self.shared.settings.answer_bytes;
        match &mut self.buffer {
            ResponseBuffer::Carry { .. } if too_large => return ControlFlow::Break(()),
            ResponseBuffer::Carry { bytes, overflowed, has_auto_ids } => {
                let replies = &mut self.replies;
                self.elements.feed(piece, |chunk| {
                    if let Some(reply) = bulk_reply(chunk, bytes, overflowed, *has_auto_ids) {
                        replies.push(reply);
                    }
                });
                // Nobody waits for the next piece.
                replies.flush();
            }
            ResponseBuffer::Elements { .. } if too_large => return ControlFlow::Break(()),
            ResponseBuffer::Elements { bytes, overflowed, held } => {
                let (shared, replies) = (self.shared, &mut self.replies);
                self.elements.feed(piece, |chunk| {
                    let Some(element) = whole_element(chunk, bytes, overflowed) else { return };
                    replies.push_element(shared, element, held);
                    if chunk.last {
                        bytes.clear();
                        *overflowed = false;
                    }
                });
                replies.hand_out(held);
            }
            ResponseBuffer::Whole { short, .. } if too_large => {
                *short = Some(FailureKind::TooLarge);
                return ControlFlow::Break(());
            }
            ResponseBuffer::Whole { window, short } => {
                if let Err(error) = keep(self.shared, window, piece) {
                    let never = matches!(error, ChargeError::Never { .. });
                    *short = Some(if never { FailureKind::TooLarge } else { FailureKind::NoRoom });
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Gives out the replies there are.
    pub(super) fn flush(&mut self) {
        if let ResponseBuffer::Elements { held, .. } = &mut self.buffer {
            self.replies.hand_out(held);
        }
        self.replies.flush();
    }

    /// Ends the response. Returns the outcome of the items that it does not mention.
    pub(super) fn end(&mut self, status: u16) -> BatchOutcome {
        let short = match &mut self.buffer {
            ResponseBuffer::Carry { .. } | ResponseBuffer::Elements { .. } => None,
            ResponseBuffer::Whole { window, short } => {
                if let Some(window) = window.take() {
                    let (window, lane, replies) = (Arc::new(window), self.lane, &mut self.replies);
                    self.elements.feed(&window, |chunk| {
                        if chunk.first && chunk.last {
                            replies.push(read_reply(lane, chunk, &window));
                        }
                    });
                }
                *short
            }
        };
        self.replies.flush();
        if let Some(kind) = short {
            // Fewer at a time have shorter answers.
            return BatchOutcome::Split(Failure::new(kind, status));
        }
        let words = if self.elements.is_complete() {
            "the server answered fewer items than it was sent"
        } else {
            "the answer broke off"
        };
        BatchOutcome::Failed(Failure::new(FailureKind::Unanswered, status).with_reason(words))
    }

    /// The failure of a request of which the server rejected each of `items` forwarded items.
    pub(super) fn rejected_items(&self, items: u32) -> Option<RequestFailure> {
        let (rejected, status) = self.replies.rejected;
        (rejected > 0 && rejected >= items).then_some(RequestFailure::RejectedItems { status, items })
    }

    /// An empty list of wakers with capacity.
    pub(super) fn into_wakers(self) -> Vec<Waker> {
        self.replies.wakers
    }
}

/// Replies that are not given out yet.
struct ReplyQueue<'a> {
    shared: &'a Shared,
    id: Id,
    waiting: Vec<ItemReply>,
    wakers: Vec<Waker>,
    /// Of forwarded items.
    elements: Vec<ForwardedReply>,
    /// Forwarded items that were rejected because the server is overloaded or failing, and the status of the last.
    rejected: (u32, u16),
}

/// The response's result for a forwarded item.
struct ForwardedReply {
    status: u16,
    failed: bool,
    /// The element's range in the shared window, or the error's message if there was no memory for the element.
    body: Result<Range<usize>, Option<Box<str>>>,
}

impl ReplyQueue<'_> {
    fn push(&mut self, reply: ItemReply) {
        self.waiting.push(reply);
        if self.waiting.len() >= REPLIES {
            self.flush();
        }
    }

    /// Keeps an element beside those in `held`, if there is memory for it.
    fn push_element(&mut self, shared: &Shared, element: &[u8], held: &mut Option<Window>) {
        let Some(fields) = read_bulk_item(element) else {
            self.hand_out(held);
            return self.push(match status_at_end(element) {
                Some(status) => {
                    let failed = status >= 400;
                    ItemReply::Final(Outcome::Element(ItemResponse {
                        status,
                        failed,
                        body: None,
                        reason: None,
                    }))
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
        if failed && matches!(status, 429 | 500..) {
            self.rejected = (self.rejected.0 + 1, status);
        }
        self.elements.push(ForwardedReply { status, failed, body: place });
        if self.elements.len() >= REPLIES {
            self.hand_out(held);
        }
    }

    /// Gives out the elements in `held`.
    fn hand_out(&mut self, held: &mut Option<Window>) {
        let window = held.take().map(Arc::new);
        for ForwardedReply { status, failed, body: place } in std::mem::take(&mut self.elements) {
            let (body, reason) = match (place, &window) {
                (Ok(range), Some(window)) => (Some(ResponseBytes::new(window, &range)), None),
                (Ok(_), None) => (None, None),
                (Err(words), _) => (None, words),
            };
            self.waiting.push(ItemReply::Final(Outcome::Element(ItemResponse {
                status,
                failed,
                body,
                reason,
            })));
        }
        self.flush();
    }

    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        lock(&self.shared.state).apply_replies(self.id, &mut self.waiting, &mut self.wakers);
        self.waiting.clear();
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// Appends `piece` to the window.
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
fn bulk_reply(
    chunk: ElementChunk<'_>,
    carry: &mut Vec<u8>,
    overflowed: &mut bool,
    has_auto_ids: bool,
) -> Option<ItemReply> {
    let reply = write_reply(whole_element(chunk, carry, overflowed)?, has_auto_ids);
    carry.clear();
    *overflowed = false;
    Some(reply)
}

/// The element that ends with `part`: its end alone where it is too long to be put together.
fn whole_element<'a>(
    chunk: ElementChunk<'a>,
    carry: &'a mut Vec<u8>,
    overflowed: &mut bool,
) -> Option<&'a [u8]> {
    if chunk.first && chunk.last {
        return Some(chunk.bytes);
    }
    if *overflowed || carry.len() + chunk.bytes.len() > CARRY_BYTES {
        *overflowed = true;
        let end = chunk.bytes.get(chunk.bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        carry.drain(..carry.len().saturating_sub(TAIL_BYTES - end.len()));
        carry.extend_from_slice(end);
    } else {
        carry.extend_from_slice(chunk.bytes);
    }
    chunk.last.then_some(carry.as_slice())
}

fn write_reply(element: &[u8], has_auto_ids: bool) -> ItemReply {
    let Some(fields) = read_bulk_item(element) else { return unreadable() };
    let ItemFields { status, unchanged, version, seq_no, primary_term, .. } = fields;
    if !(200..300).contains(&status) {
        return failed(status, fields.error);
    }
    let id = has_auto_ids.then(|| String::from_utf8_lossy(fields.id).into());
    let revision = Revision { seq_no, primary_term };
    ItemReply::Final(Outcome::Written(WriteResponse { status, unchanged, version, revision, id }))
}

fn read_reply(lane: Lane, chunk: ElementChunk<'_>, window: &Arc<Window>) -> ItemReply {
    let end = chunk.at + chunk.bytes.len();
    if lane == Lane::Search {
        return match read_msearch_response(chunk.bytes) {
            Some((200..=299, None)) => ItemReply::Final(Outcome::Hits(SearchResponse {
                body: ResponseBytes::new(window, &(chunk.at..end)),
            })),
            Some((status, error)) => failed(status, error),
            None => unreadable(),
        };
    }
    let Some(fields) = read_mget_document(chunk.bytes) else { return unreadable() };
    let DocumentFields { found, source, version, seq_no, primary_term, error } = fields;
    if error.is_some() {
        return failed(0, error);
    }
    if !found {
        return failed(404, None);
    }
    let source = ResponseBytes::new(window, &(chunk.at + source.start..chunk.at + source.end));
    let revision = Revision { seq_no, primary_term };
    ItemReply::Final(Outcome::Found(FetchedDocument { source, version, revision }))
}

/// The status of an element of which there is only the end: servers write it last.
fn status_at_end(end: &[u8]) -> Option<u16> {
    let digits = end.strip_suffix(b"}}")?.rsplit(|byte| *byte == b':').next()?;
    let is_status = end.windows(b"\"status\":".len()).any(|window| window == b"\"status\":");
    str::from_utf8(digits).ok()?.parse().ok().filter(|_| is_status)
}

fn unreadable() -> ItemReply {
    let failure =
        Failure::new(FailureKind::Unanswered, 0).with_reason("the answer to the item cannot be read");
    ItemReply::Final(Outcome::Failed(failure))
}

/// The verdict of a status, or without one of an error's type.
fn failed(status: u16, error: Option<ServerError<'_>>) -> ItemReply {
    let kind = error.map_or(&b""[..], |error| error.kind);
    let kind = match (status, kind) {
        (429 | 503, _) => return ItemReply::Rejected(status),
        (
            0,
            b"es_rejected_execution_exception"
            | b"rejected_execution_exception"
            | b"circuit_breaking_exception",
        ) => {
            return ItemReply::Rejected(429);
        }
        (0, b"no_shard_available_action_exception" | b"unavailable_shards_exception") => {
            return ItemReply::Rejected(503);
        }
        (_, b"index_not_found_exception") => FailureKind::IndexNotFound,
        (404, _) => FailureKind::NotFound,
        (409, _) => FailureKind::VersionConflict,
        (401 | 403, _) => FailureKind::Denied,
        (408 | 504, _) => FailureKind::Unanswered,
        (413, _) => FailureKind::TooLarge,
        (400..=499, _) => FailureKind::Invalid,
        _ => FailureKind::Server,
    };
    let failure = Failure::new(kind, status);
    ItemReply::Final(Outcome::Failed(match error {
        Some(error) => failure.with_reason(&error.message()),
        None => failure,
    }))
}
