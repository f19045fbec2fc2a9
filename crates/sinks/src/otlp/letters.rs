//! What is told of requests: to the pages, to the log, and to the dead letters.

use super::answer::Reason;
use super::parcel::Parcel;
use crate::health::Health;
use crate::secrets::Shown;
use hyper::Uri;
use std::time::{Duration, SystemTime};
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters};
use tidegate_journal::{Meta, Protocol};
use tokio::time::Instant;

/// How often a rejection is logged; all of them are counted and kept.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Tells what became of requests.
pub(super) struct Letters {
    sink: String,
    health: Health,
    dead_letters: DeadLetters,
    /// When a rejection was logged last.
    logged: Option<Instant>,
}

impl Letters {
    pub(super) fn new(sink: &str, health: Health, dead_letters: DeadLetters) -> Letters {
        Letters { sink: sink.to_owned(), health, dead_letters, logged: None }
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// The peer took a request, but for `rejected` items, and may have said something.
    pub(super) fn taken(&mut self, parcel: &Parcel, rejected: u64, words: &str) {
        self.health.succeeded(parcel.request.body().len() as u64);
        if rejected == 0 && words.is_empty() {
            return;
        }
        let says = if words.is_empty() { "nothing about it" } else { words };
        let text = match rejected {
            0 => format!("the peer took a request and warns: {says}"),
            _ => format!("the peer took a request but for {rejected} items, and says: {says}"),
        };
        self.health.noted(&text);
        if self.is_time() {
            tracing::warn!(sink = self.sink, rejected, words, "the peer took a request in part");
        }
    }

    /// A request failed, and is sent again. `newly` says that its endpoint worked before.
    pub(super) fn failed(
        &mut self,
        parcel: &Parcel,
        reason: &Reason,
        uri: &Uri,
        newly: bool,
        retry_at: Option<SystemTime>,
    ) {
        let error = reason.to_string();
        if newly {
            tracing::warn!(sink = self.sink, url = %Shown(uri), error, "the peer does not take requests now; trying again");
        }
        self.health.failed(&error, retry_at);
        self.health.resent(parcel.items);
    }

    /// The peer does not want a request, of which parts are sent next.
    pub(super) fn refused_in_part(&mut self, reason: &Reason) {
        self.health.failed(&reason.to_string(), None);
    }

    /// The peer does not want a request: it is kept, so that somebody can look at it and send it again.
    pub(super) fn bury(&mut self, parcel: &Parcel, reason: &Reason) {
        let reason = reason.to_string();
        self.health.failed(&reason, None);
        if self.is_time() {
            tracing::warn!(
                sink = self.sink,
                items = parcel.items,
                answer = reason,
                "the peer rejects a request; it is kept, see `tidegate journal dead-letters`"
            );
        }
        let meta = Meta {
            protocol: Protocol::Otlp,
            encoding: parcel.request.encoding,
            items: u32::try_from(parcel.items).unwrap_or(u32::MAX),
            raw_len: u32::try_from(parcel.raw_len).unwrap_or(u32::MAX),
            ..parcel.meta
        };
        let body = parcel.request.body();
        let letter = DeadLetter { sink: &self.sink, reason: &reason, meta: &meta, body: &body };
        if let Err(error) = self.dead_letters.add(letter) {
            tracing::error!(sink = self.sink, %error, "a rejected request could not be kept with the dead letters");
        }
    }

    /// Items of a record do not fit into the memory there is.
    pub(super) fn too_large(&mut self, sequence: u64, meta: Meta, items: u64, bytes: usize) {
        self.health.noted(&format!("{items} items of {bytes} bytes do not fit into the memory of this sink"));
        if self.is_time() {
            tracing::warn!(
                sink = self.sink,
                signal = ?meta.signal,
                protocol = ?meta.protocol,
                sequence,
                items,
                bytes,
                "items need more memory than there is and are dropped as too large; raise `memory`"
            );
        }
    }

    fn is_time(&mut self) -> bool {
        let is_time = self.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY);
        if is_time {
            self.logged = Some(Instant::now());
        }
        is_time
    }
}
