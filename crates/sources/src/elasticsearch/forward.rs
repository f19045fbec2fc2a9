//! Forwards the items of a `_bulk` to a cluster, and answers as it answers.
//!
//! Nothing is journalled. The items of many clients share the requests of the engine (`tidegate-bulk`); what a client gets
//! is the destination's own answer to each of its items. `design/bulk.md` has the argument.

mod content;
mod lost;
mod names;

use super::answer::{Answer, Name, ReservedBytes};
use super::request_head::Bulk;
use super::rewrite::Defaults;
use super::rights::{Denied, Guard};
use super::{Elasticsearch, RequestHead};
use crate::body::{Inspection, LARGE, Received};
use crate::clock::now_ns;
use content::{Content, look};
use lost::{Lost, judged};
use names::Names;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tidegate_admission::access::BulkRights;
use tidegate_admission::{DecodeBuffer, Gate, Permit, Rejection, answer};
use tidegate_arena::{PAGE, Share, Window};
use tidegate_bulk::{self as bulk, Forward, ItemResponse, Refresh, Ticket};
use tidegate_http1::Reply;
use tidegate_journal::{Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger::{self as ledger, Fate, Forwarded, OpenRequest, Refusal};
use tidegate_wire::bulk::{Item, Items, LineError, checked_items};
use tidegate_wire::json;
use tokio::time::{Instant, Sleep, sleep_until};

/// The most items of a request that are in the engine at a time.
const WINDOW_ITEMS: usize = 256;
/// A body of more than this is given back, where nothing but the names of its items is needed any more.
const SMALL: usize = 2 * PAGE;

/// The cluster that answers, instead of the journal.
#[derive(Clone)]
pub struct Destination {
    /// The engine that joins the items of many clients.
    pub forward: Forward,
    /// For how long no node can be reached, if none can.
    pub unreachable: Arc<dyn Fn() -> Option<Duration> + Send + Sync>,
}

/// An item that was offered to the engine.
enum Offered<'f> {
    Sent(Ticket<'f, ItemResponse>),
    Malformed(LineError),
    Denied(Denied),
    Lost(Lost),
}

/// The items of a body that are still to be offered to the engine, in order.
struct Offers<'a, 'f> {
    items: Items<'a>,
    /// One for which the engine had no room.
    held: Option<Item<'a>>,
    guard: Guard<'a>,
    defaults: &'a Defaults,
    /// Whether there are items that are not to be sent.
    has_refused: bool,
    forward: &'f Forward,
    refresh: Refresh,
    /// Why nothing more is sent.
    ended: Option<Lost>,
}

impl Elasticsearch {
    /// Answers a `_bulk` by what the destination answers to its items.
    pub(super) async fn forward(
        &self,
        destination: &Destination,
        (gate, passage, rights): (&Gate, &Permit, BulkRights),
        open: OpenRequest,
        (form, bulk): (RequestHead, Bulk),
        received: Received,
    ) -> Reply {
        let since = Instant::now();
        let outcome = match self.survey((gate, passage, &rights), form, bulk, received).await {
            Ok((body, content)) => {
                self.exchange(destination, (gate, &rights), open, (bulk, content), body, since).await
            }
            Err(refused) => {
                refused.close(open);
                Err(refused)
            }
        };
        match outcome {
            Ok(window) => super::answer::reply().content(window),
            Err(refused) => answer(refused, tidegate_admission::AnswerFormat::Elastic),
        }
    }

    /// Checks the body, and decompresses it into its own window.
    async fn survey(
        &self,
        (gate, passage, rights): (&Gate, &Permit, &BulkRights),
        form: RequestHead,
        bulk: Bulk,
        mut body: Received,
    ) -> Result<(Received, Content), Rejection> {
        let most = self.0.settings.max_body.min(gate.most_decoded());
        let inspection =
            Inspection { gate, passage, pool: &self.0.pool, encoding: bulk.encoding, most, large: LARGE };
        let mut memory = inspection.begin(&body).await?;
        let looked = inspection.here(&mut body, &mut memory, |body, room, most| {
            look((gate, rights), form, bulk, body, room, most)
        });
        if let Some(looked) = looked {
            return looked.map(|content| (body, content));
        }
        let (its_gate, its_rights) = (gate.clone(), rights.clone());
        let look = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            look((&its_gate, &its_rights), form, bulk, body, room, most)
        };
        inspection.in_pool(body, memory, look).await
    }

    /// Offers the items to the engine, and writes the answers.
    async fn exchange(
        &self,
        destination: &Destination,
        (gate, rights): (&Gate, &BulkRights),
        mut open: OpenRequest,
        (bulk, content): (Bulk, Content),
        body: Received,
        since: Instant,
    ) -> Result<Window, Rejection> {
        open.refuse_items(ledger::ItemRefusal::Malformed, content.left_out);
        open.refuse_items(ledger::ItemRefusal::Forbidden, content.denied);
        if let Err(refused) = self.may_go(destination, gate, &open, &content, &body) {
            refused.close(open);
            return Err(refused);
        }
        let beside = ReservedBytes { ingest: body.window.charged(), decode: 0, len: body.bytes().len() };
        let answer = Answer::promised(&self.0.arena, gate, bulk.fields, beside, content.promised);
        let answer = match answer {
            Ok(answer) => answer,
            Err(refused) => {
                refused.close(open);
                return Err(refused);
            }
        };
        let places = content.taken.items.min(WINDOW_ITEMS as u64) as usize;
        let heap = HELD + 2 * places * size_of::<Offered<'_>>();
        let Ok(_heap) = self.0.arena.try_charge(Share::Ingest, heap as u64) else {
            let refused = gate.no_memory();
            refused.close(open);
            return Err(refused);
        };
        let counts = |items: u64| ledger::Counts::of(ledger::Signal::Logs, items, content.as_sent as u64);
        let forwarded = open.forward(content.taken.items);
        let deadline = Box::pin(sleep_until(since + content.wait));
        let promised = content.promised;
        let mut answers = Answers { gate, answer, forwarded, promised, sent: 0, lost: None, deadline };
        let mut offers = Offers {
            items: checked_items(body.bytes()),
            held: None,
            guard: Guard::new(rights),
            defaults: &content.defaults,
            has_refused: content.left_out + content.denied > 0,
            forward: &destination.forward,
            refresh: content.refresh,
            ended: None,
        };
        let mut waiting = VecDeque::new();
        offers.fill(&mut waiting, gate);
        if let Some(lost) =
            offers.ended.filter(|_| !waiting.iter().any(|offered| matches!(offered, Offered::Sent(_))))
        {
            answers.forwarded.refuse(lost.refusal());
            return Err(lost.refused(gate));
        }
        let names = match offers.are_over() && body.window.charged() > SMALL {
            true => Names::of(&self.0.arena, body.bytes(), &content.defaults),
            false => None,
        };
        match names {
            Some(names) => {
                // From here on the body is the engine's alone.
                drop(body);
                for name in names.iter() {
                    answers.next(&mut waiting, name).await?;
                }
            }
            None => {
                for item in checked_items(body.bytes()).flatten() {
                    if waiting.is_empty() {
                        offers.fill(&mut waiting, gate);
                        tokio::task::yield_now().await;
                    }
                    answers.next(&mut waiting, Name::of(&item, &content.defaults)).await?;
                    offers.fill(&mut waiting, gate);
                }
            }
        }
        answers.finish(since, counts)
    }

    /// Whether a checked body may be forwarded.
    fn may_go(
        &self,
        destination: &Destination,
        gate: &Gate,
        open: &OpenRequest,
        content: &Content,
        body: &Received,
    ) -> Result<(), Rejection> {
        let most = destination.forward.longest_item();
        if content.taken.largest_item > most {
            return Err(Rejection::item_too_large(most));
        }
        if let Some(wait) = (destination.unreachable)() {
            return Err(
                Rejection::new(Refusal::Destination, UNREACHABLE).retry_after(gate.spread(wait.as_secs()))
            );
        }
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Layout::Bulk,
            encoding: Encoding::Identity,
            items: number(content.taken.items),
            raw_len: number(body.bytes().len() as u64),
            received_at_ns: now_ns(),
        };
        gate.forward(open, meta, body.bytes())
    }
}

impl<'a, 'f> Offers<'a, 'f> {
    /// Offers items until the engine takes no more, or enough wait.
    fn fill(&mut self, waiting: &mut VecDeque<Offered<'f>>, gate: &Gate) {
        while waiting.len() < WINDOW_ITEMS {
            let Some(item) = self.held.take().or_else(|| self.items.next().and_then(Result::ok)) else {
                return;
            };
            let offered = match self.offer(&item) {
                Ok(offered) => offered,
                Err(bulk::BulkSubmitError::Full { .. }) if !waiting.is_empty() => {
                    self.held = Some(item);
                    return;
                }
                Err(refused) => {
                    let lost = match refused {
                        bulk::BulkSubmitError::Full { retry_after } => {
                            Lost::Busy(gate.spread(seconds(retry_after)))
                        }
                        bulk::BulkSubmitError::Stopping => Lost::Stopping,
                        bulk::BulkSubmitError::TooLarge { .. } | bulk::BulkSubmitError::Invalid(_) => {
                            Lost::TooLarge
                        }
                    };
                    // An item that is too large is the only one.
                    self.ended = Some(lost).filter(|lost| *lost != Lost::TooLarge);
                    Offered::Lost(lost)
                }
            };
            waiting.push_back(offered);
        }
    }

    fn offer(&mut self, item: &Item<'a>) -> Result<Offered<'f>, bulk::BulkSubmitError> {
        if self.has_refused {
            if let Err(error) = item.check() {
                return Ok(Offered::Malformed(error));
            }
            if let Some(why) = self.guard.look(item, self.defaults) {
                return Ok(Offered::Denied(why));
            }
        }
        if let Some(lost) = self.ended {
            return Ok(Offered::Lost(lost));
        }
        let index = item.action.index.or(self.defaults.index()).unwrap_or_default();
        let more = self.defaults.missing(&item.action);
        self.forward.forward(item, &more, index, self.refresh).map(Offered::Sent)
    }

    /// Whether every item was offered.
    fn are_over(&self) -> bool {
        self.held.is_none() && self.items.clone().next().is_none()
    }
}

/// The answers to the items of a request, written in their order.
struct Answers<'a> {
    gate: &'a Gate,
    answer: Answer,
    forwarded: Forwarded,
    /// The room that short entries of the items need that have none yet.
    promised: usize,
    /// Items that the destination has answered.
    sent: u64,
    /// Why the first item that was lost has no answer.
    lost: Option<Lost>,
    deadline: Pin<Box<Sleep>>,
}

impl Answers<'_> {
    /// Waits for the answer to the next item, and writes it.
    async fn next(&mut self, waiting: &mut VecDeque<Offered<'_>>, name: Name<'_>) -> Result<(), Rejection> {
        self.promised = self.promised.saturating_sub(name.entry_len());
        let outcome = match waiting.pop_front() {
            Some(Offered::Sent(ticket)) => self.wait(ticket).await,
            Some(Offered::Lost(lost)) => Err(lost),
            Some(Offered::Malformed(error)) => {
                let reason = format!("failed to parse: {error}");
                return self.short(name, 400, Some(("document_parsing_exception", &reason)));
            }
            Some(Offered::Denied(why)) => {
                return self.short(name, 403, Some(("security_exception", why.reason())));
            }
            None => Err(Lost::Stopping),
        };
        let element = match outcome {
            Ok(element) => element,
            Err(lost) => {
                self.forwarded.enter(lost.fate());
                self.lost = self.lost.or(Some(lost));
                let (status, kind, reason) = lost.words();
                return self.short(name, status, Some((kind, reason)));
            }
        };
        self.sent += 1;
        self.forwarded.enter(if element.failed { Fate::Rejected } else { Fate::Answered });
        let whole = element
            .body
            .as_ref()
            .is_some_and(|body| self.answer.element(body, element.failed, self.promised));
        if whole {
            return Ok(());
        }
        let error = element.failed.then(|| words_of(element.reason.as_deref().unwrap_or_default()));
        self.short(name, element.status, error)
    }

    fn short(&mut self, name: Name<'_>, status: u16, error: Option<(&str, &str)>) -> Result<(), Rejection> {
        self.answer.short(self.gate, name, status, error)
    }

    /// Waits until the deadline; an item that is not sent by then is taken back.
    async fn wait(&mut self, mut ticket: Ticket<'_, ItemResponse>) -> Result<ItemResponse, Lost> {
        let answered = poll_fn(|context| match Pin::new(&mut ticket).poll(context) {
            Poll::Ready(answered) => Poll::Ready(Some(answered)),
            Poll::Pending => self.deadline.as_mut().poll(context).map(|()| None),
        });
        match answered.await {
            None if ticket.withdraw() => Err(Lost::Late),
            None => Err(Lost::Unanswered),
            Some(Ok(element)) => Ok(element),
            Some(Err(failure)) => judged(failure),
        }
    }

    /// The whole response, if the destination has answered one item, or if there is nothing that it should have.
    fn finish(mut self, since: Instant, counts: impl Fn(u64) -> ledger::Counts) -> Result<Window, Rejection> {
        if let (0, Some(lost)) = (self.sent, self.lost) {
            self.forwarded.refuse(lost.refusal());
            return Err(lost.refused(self.gate));
        }
        self.answer.took(since.elapsed().as_millis());
        match self.answer.finish(self.gate) {
            Ok(window) => {
                self.forwarded.accept(counts(self.sent));
                Ok(window)
            }
            Err(refused) => {
                self.forwarded.refuse(refused.reason);
                Err(refused)
            }
        }
    }
}

const UNREACHABLE: &str = "the destination cannot be reached; retry later\n";

/// Type and reason out of the words that the engine keeps of an error, short enough for a short entry.
fn words_of(words: &str) -> (&str, &str) {
    const MOST: usize = 120;
    let (kind, reason) = words.split_once(": ").unwrap_or(("", words));
    let is_type = |kind: &&str| !kind.is_empty() && kind.len() < 64 && json::is_plain(kind.as_bytes());
    let kind = Some(kind).filter(is_type).unwrap_or("illegal_argument_exception");
    let reason = reason.get(..reason.floor_char_boundary(MOST)).unwrap_or_default();
    (kind, if json::is_plain(reason.as_bytes()) { reason } else { "the destination rejected the item" })
}

/// A waiting request's heap memory, without the slot of each item: its future, and a few names.
const HELD: usize = 3 << 10;

/// Whole seconds, at least one.
fn seconds(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}
