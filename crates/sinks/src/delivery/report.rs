//! Reports what became of requests: to the pages, to the log, and to the dead letters.

use crate::health::Health;
use crate::journal_consumer::SinkContext;
use crate::secrets::Shown;
use hyper::Uri;
use std::time::{Duration, SystemTime};
use tidegate_journal::Meta;
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters};
use tokio::time::Instant;

/// How often a rejection or a failure is logged; all of them are counted, and what is rejected is kept.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Reports what became of requests.
pub(crate) struct DeliveryReport {
    sink: String,
    health: Health,
    dead_letters: DeadLetters,
    /// When each was logged last.
    rejection_logged: Option<Instant>,
    failure_logged: Option<Instant>,
    index_logged: Option<Instant>,
    /// An endpoint has failed, and it was not the time to say so.
    unlogged: bool,
}

impl DeliveryReport {
    pub(crate) fn new(context: &SinkContext<'_>) -> DeliveryReport {
        DeliveryReport {
            sink: context.name.to_owned(),
            health: context.health.clone(),
            dead_letters: context.dead_letters.clone(),
            rejection_logged: None,
            failure_logged: None,
            index_logged: None,
            unlogged: false,
        }
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The peer accepted a request of `bytes` bytes, or a part of it.
    pub(crate) fn accepted(&self, bytes: usize) {
        self.health.succeeded(bytes as u64);
    }

    /// The peer accepted a request, except `rejected` items, and said something.
    pub(crate) fn accepted_in_part(&mut self, rejected: u64, words: &str) {
        let says = if words.is_empty() { "nothing about it" } else { words };
        let text = match rejected {
            0 => format!("the peer accepted a request with a warning: {says}"),
            _ => format!("the peer accepted a request but rejected {rejected} of its items: {says}"),
        };
        self.health.noted(&text);
        if is_time(&mut self.rejection_logged) {
            tracing::warn!(sink = self.sink, rejected, words, "the peer took a request in part");
        }
    }

    /// A request failed, or items of it, and is sent again. `newly` says that its endpoint worked before.
    pub(crate) fn failed(
        &mut self,
        items: u64,
        error: &str,
        uri: &Uri,
        newly: bool,
        retry_at: Option<SystemTime>,
    ) {
        // An endpoint whose queue is full now and then fails and works by turns.
        self.unlogged |= newly;
        if self.unlogged && is_time(&mut self.failure_logged) {
            self.unlogged = false;
            tracing::warn!(sink = self.sink, url = %Shown(uri), error, "the peer does not take requests now; trying again");
        }
        self.health.failed(error, retry_at);
        self.health.resent(items);
    }

    /// Documents wait for an unavailable index now; the peer works.
    pub(crate) fn held_up(&mut self, documents: u64, error: &str, indexes: &str) {
        if is_time(&mut self.index_logged) {
            tracing::warn!(
                sink = self.sink,
                indexes,
                documents,
                error,
                "an index is unavailable; its documents wait, the others go on"
            );
        }
        // The peer has said that it did not take them, so they are not among those that it may get twice.
        self.health.noted(error);
    }

    /// The peer refused a request, of which parts are sent next.
    pub(crate) fn refused_in_part(&mut self, reason: &str) {
        self.health.failed(reason, None);
    }

    /// The peer rejected items, which are kept as dead letters.
    pub(crate) fn rejected(&mut self, items: u64, reason: &str) {
        self.health.failed(reason, None);
        if is_time(&mut self.rejection_logged) {
            tracing::warn!(
                sink = self.sink,
                items,
                answer = reason,
                "the peer rejects items; they become dead letters, see `tidegate journal dead-letters`"
            );
        }
    }

    /// Keeps a body that the peer rejected, so that somebody can look at it and send it again.
    pub(crate) fn keep(&self, meta: &Meta, body: &[u8], reason: &str) {
        let letter = DeadLetter { sink: &self.sink, reason, meta, body };
        if let Err(error) = self.dead_letters.add(letter) {
            tracing::error!(sink = self.sink, %error, "rejected items could not be written to the dead letters");
        }
    }

    /// Items of a record do not fit into the memory that the sink can have.
    pub(crate) fn too_large(&mut self, sequence: u64, meta: &Meta, items: u64, bytes: usize) {
        self.health.noted(&format!(
            "{items} items of {bytes} bytes do not fit into the memory of this sink: raise `memory`"
        ));
        if is_time(&mut self.rejection_logged) {
            tracing::warn!(
                sink = self.sink,
                signal = ?meta.signal,
                protocol = ?meta.protocol,
                record = sequence,
                items,
                bytes,
                "items need more memory than there is and are dropped as too_large; raise `memory`"
            );
        }
    }
}

/// Whether it is time to log something again that was logged then.
fn is_time(logged: &mut Option<Instant>) -> bool {
    let is_time = logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY);
    if is_time {
        *logged = Some(Instant::now());
    }
    is_time
}
