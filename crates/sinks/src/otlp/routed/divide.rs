//! Divides a request that a receiver refuses, to deliver all of it but what the receiver does not take.
//!
//! A request has items of many senders: one item that is refused must not take the others with it, and a receiver may take shorter requests
//! than this sink sends. So what is refused goes out again in pieces, each half as long as the last one that was refused. What was
//! sent is remembered while the same request is sent again: receivers of OTLP keep what they get twice.

use super::message::Form;
use super::peer::Peer;
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::otlp::answer::{OtlpAnswer, RejectionCause};
use crate::otlp::peer::PREFIX;
use crate::otlp::wire_signal;
use crate::spread::{ConflictReason, Division, MOST_REQUESTS, RequestHead, Tally, Verdict};
use bytes::Bytes;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidegate_arena::Window;
use tidegate_ring::hash_bytes;
use tidegate_wire::otlp::{Piece, split};
use tidegate_wire::output::SliceOutput;
use tokio::time::Instant;

/// How long requests that are longer than the receiver takes go out in pieces at once.
const SHORTER_FOR: Duration = Duration::from_secs(600);

/// A receiver's record of requests that it refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    division: Division,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A request that is being sent in pieces, and failed.
    begun: Option<Progress>,
    /// The most bytes that the receiver took when it refused more, and until when that counts.
    longest: Option<(usize, Instant)>,
}

/// How far a request was sent in pieces.
#[derive(Debug, Clone)]
struct Progress {
    /// The hash of its bytes.
    request: u64,
    /// Items of it that were sent.
    done: u64,
    /// The most bytes of the next piece.
    most: usize,
    requests: u32,
    tally: Tally,
    /// The receiver's last refusal.
    words: String,
}

impl Refusals {
    /// The way to send a request in pieces at once: a part of it was sent before, or it is longer than the receiver takes.
    fn known(&self, message: &[u8]) -> Option<Progress> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(begun) = state.begun.take_if(|begun| begun.request == hash_bytes(message)) {
            return Some(begun);
        }
        let most = state.limit().filter(|most| message.len() > *most)?;
        Some(Progress::new(message, most, "requests as long as this one were refused".to_owned()))
    }

    /// The pieces that follow are to be of at most so many bytes.
    fn shorten(&self, most: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.longest = Some((most, Instant::now() + SHORTER_FOR));
    }

    fn keep(&self, progress: Progress) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).begun = Some(progress);
    }
}

impl State {
    /// The most bytes that the receiver takes, as far as that is known.
    fn limit(&self) -> Option<usize> {
        self.longest.filter(|(_, until)| Instant::now() < *until).map(|(most, _)| most)
    }
}

impl Progress {
    fn new(message: &[u8], most: usize, words: String) -> Progress {
        Progress { request: hash_bytes(message), done: 0, most, requests: 0, tally: Tally::default(), words }
    }
}

impl Peer {
    /// Sends a request, in pieces where the receiver does not take all of it.
    pub(super) async fn deliver(
        &self,
        room: &EgressBudget,
        head: &RequestHead<Form>,
        frame: Bytes,
    ) -> Verdict {
        let message = frame.slice(PREFIX.min(frame.len())..);
        if let Some(progress) = self.refusals.known(&message) {
            return self.divide(room, head, &message, progress).await;
        }
        let (reason, cause) = match self.post(room, head, frame).await {
            OtlpAnswer::Taken { rejected, words, .. } => return taken(head, rejected, words),
            OtlpAnswer::Later { reason, after } => {
                return Verdict::Later { words: reason.to_string(), after };
            }
            OtlpAnswer::Refused { reason, fault } => (reason.to_string(), fault),
        };
        if head.copies < 2 || !self.is_divisible(cause, 1) {
            return Verdict::Rejected { words: reason };
        }
        let most = message.len() / 2;
        self.divide(room, head, &message, Progress::new(&message, most, reason)).await
    }

    /// Whether what was refused, after so many requests, goes out in shorter ones.
    fn is_divisible(&self, cause: RejectionCause, requests: u32) -> bool {
        match cause {
            // The pieces behind it are as short, so that ends by itself.
            RejectionCause::Size => true,
            RejectionCause::Content | RejectionCause::Item => {
                requests < MOST_REQUESTS && !self.refusals.division.is_paused()
            }
            RejectionCause::Other => false,
        }
    }

    async fn divide(
        &self,
        room: &EgressBudget,
        head: &RequestHead<Form>,
        message: &[u8],
        mut progress: Progress,
    ) -> Verdict {
        match Box::pin(self.send_pieces(room, head, message, &mut progress)).await {
            Ok(None) => self.refusals.division.divided(progress.tally),
            Ok(Some(later)) => {
                self.refusals.keep(progress);
                later
            }
            Err(error) if self.refusals.division.is_passing(error) => {
                let words = progress.words.clone();
                self.refusals.keep(progress);
                Verdict::Later { words, after: None }
            }
            Err(_) => {
                let left = u64::from(head.copies).saturating_sub(progress.done);
                progress.tally.reject(progress.words, left);
                self.refusals.division.divided(progress.tally)
            }
        }
    }

    /// Sends all that is left of a request. Returns a verdict where it is to be sent again.
    async fn send_pieces(
        &self,
        room: &EgressBudget,
        head: &RequestHead<Form>,
        message: &[u8],
        progress: &mut Progress,
    ) -> Result<Option<Verdict>, BudgetError> {
        let Form(signal) = head.form;
        let Some(signal) = wire_signal(signal) else { return Err(BudgetError::Never) };
        let mut pieces = split(signal, message, progress.most);
        pieces.skip_items(progress.done);
        loop {
            // Walking over a request takes a while, and pieces without items are not waited for.
            tokio::task::yield_now().await;
            pieces.limit(progress.most);
            let before = pieces.clone();
            let Some(piece) = pieces.next() else { return Ok(None) };
            let (items, len) = (piece.items(), piece.len());
            if items == 0 {
                continue;
            }
            let frame = Bytes::from_owner(written(room, &piece).await?);
            progress.requests += 1;
            match self.post(room, head, frame).await {
                OtlpAnswer::Taken { rejected, words, .. } => {
                    let rejected = rejected.min(items);
                    progress.tally.take(items - rejected);
                    if rejected > 0 {
                        progress.tally.reject(words, rejected);
                    }
                    progress.most = self.longer(progress.most, message.len());
                }
                OtlpAnswer::Later { reason, after } => {
                    return Ok(Some(Verdict::Later { words: reason.to_string(), after }));
                }
                OtlpAnswer::Refused { reason, fault }
                    if items > 1 && self.is_divisible(fault, progress.requests) =>
                {
                    progress.words = reason.to_string();
                    progress.most = len.min(progress.most) / 2;
                    if fault == RejectionCause::Size {
                        self.refusals.shorten(progress.most);
                    }
                    pieces = before;
                    continue;
                }
                OtlpAnswer::Refused { reason, .. } => progress.tally.reject(reason.to_string(), items),
            }
            progress.done += items;
        }
    }

    /// The most bytes of the piece after one that was taken: what one item made short need not stay so.
    fn longer(&self, most: usize, all: usize) -> usize {
        let state = self.refusals.state.lock().unwrap_or_else(PoisonError::into_inner);
        most.saturating_mul(2).min(all).min(state.limit().unwrap_or(usize::MAX).max(most))
    }
}

/// The verdict on a request of which so many items were rejected.
fn taken(head: &RequestHead<Form>, rejected: u64, words: String) -> Verdict {
    let mut counts = [0; ConflictReason::COUNT];
    if rejected == 0 {
        return Verdict::Accepted;
    }
    if let Some(count) = counts.get_mut(ConflictReason::of(&words) as usize) {
        // Whatever the receiver says, there were no more.
        *count = rejected.min(u64::from(head.copies));
    }
    Verdict::Conflict { counts, words }
}

/// A piece, behind [`PREFIX`] bytes.
async fn written(room: &EgressBudget, piece: &Piece<'_>) -> Result<Charged<Window>, BudgetError> {
    let mut frame = room.window(PREFIX + piece.len()).await?;
    frame.skip(PREFIX);
    let mut out = SliceOutput::new(frame.spare_mut());
    // The window is as long as the piece.
    let _fits = piece.write(&mut out);
    let len = out.len();
    frame.advance(len);
    Ok(frame)
}
