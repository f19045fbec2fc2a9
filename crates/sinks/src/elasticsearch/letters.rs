//! What is told of requests: to the pages, to the log, and to the dead letters.

use super::answer::Reason;
use super::parcel::Parcel;
use crate::health::Health;
use crate::secrets::Shown;
use hyper::Uri;
use std::time::{Duration, SystemTime};
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters};
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tokio::time::Instant;

/// How often a rejection or a failure is logged; all of them are counted, and what is rejected is kept.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// About how many bytes of documents share a letter.
const LETTER: usize = 64 << 10;

/// Tells what became of requests.
pub(super) struct Letters {
    sink: String,
    health: Health,
    dead_letters: DeadLetters,
    /// When a rejection was logged last, and when a failure.
    logged: Option<Instant>,
    failed: Option<Instant>,
}

impl Letters {
    /// What they take on the heap, in bytes.
    pub(super) const BYTES: usize = LETTER;

    pub(super) fn new(sink: &str, health: Health, dead_letters: DeadLetters) -> Letters {
        Letters { sink: sink.to_owned(), health, dead_letters, logged: None, failed: None }
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// The node took a request, or a part of it.
    pub(super) fn taken(&self, bytes: usize) {
        self.health.succeeded(bytes as u64);
    }

    /// A request failed, or a part of it, and is sent again. `newly` says that its endpoint worked before.
    pub(super) fn failed(
        &mut self,
        documents: u64,
        error: &str,
        uri: &Uri,
        newly: bool,
        retry_at: Option<SystemTime>,
    ) {
        // A node whose queue is full now and then fails and works by turns.
        if newly && is_time(&mut self.failed) {
            tracing::warn!(sink = self.sink, url = %Shown(uri), error, "the node does not take everything now; trying again");
        }
        self.health.failed(error, retry_at);
        self.health.resent(documents);
    }

    /// Documents wait for an index that takes nothing now; the node works.
    pub(super) fn held_up(&mut self, documents: u64, error: &str, indexes: &str) {
        if is_time(&mut self.failed) {
            tracing::warn!(
                sink = self.sink,
                indexes,
                documents,
                error,
                "an index takes nothing now; its documents wait behind the others"
            );
        }
        self.health.noted(error);
        self.health.resent(documents);
    }

    /// A document does not fit into all the memory that there is.
    pub(super) fn too_large(&mut self, sequence: u64, bytes: usize, what: &str) {
        if is_time(&mut self.logged) {
            tracing::warn!(
                sink = self.sink,
                record = sequence,
                bytes,
                "{what} does not fit into the memory that this sink can have, and is dropped as too_large; raise `memory`"
            );
        }
        self.health.noted(&format!("{what} of {bytes} bytes does not fit into memory: raise `memory`"));
    }

    /// The node does not want a request, of which parts are sent next.
    pub(super) fn refused_in_part(&mut self, reason: &Reason) {
        self.health.failed(&reason.to_string(), None);
    }

    /// The node does not want these documents: they are kept, so that somebody can look at them and send them again.
    pub(super) fn bury<'a>(
        &mut self,
        parcel: &Parcel,
        items: impl Iterator<Item = &'a [u8]>,
        reason: &str,
    ) -> u64 {
        let (mut body, mut count, mut all) = (Vec::new(), 0, 0);
        for item in items {
            if !body.is_empty() && body.len() + item.len() > LETTER {
                self.send(parcel, &body, count, reason);
                (body, count) = (Vec::new(), 0);
            }
            all += 1;
            if item.len() > LETTER {
                self.send(parcel, item, 1, reason);
            } else {
                body.extend_from_slice(item);
                count += 1;
            }
        }
        if count > 0 {
            self.send(parcel, &body, count, reason);
        }
        if all > 0 {
            self.tell(all, reason);
        }
        all
    }

    fn tell(&mut self, documents: u64, reason: &str) {
        self.health.failed(reason, None);
        if is_time(&mut self.logged) {
            tracing::warn!(
                sink = self.sink,
                documents,
                answer = reason,
                "documents are not wanted; they are kept, see `tidegate journal dead-letters`"
            );
        }
    }

    fn send(&self, parcel: &Parcel, body: &[u8], documents: u32, reason: &str) {
        let meta = Meta {
            signal: Signal::Logs,
            protocol: Protocol::Bulk,
            encoding: Encoding::Identity,
            items: documents,
            raw_len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            ..parcel.meta
        };
        let letter = DeadLetter { sink: &self.sink, reason, meta: &meta, body };
        if let Err(error) = self.dead_letters.add(letter) {
            tracing::error!(sink = self.sink, %error, "rejected documents could not be kept with the dead letters");
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
