//! Channels: the names under which a server numbers requests, and which of those are indexed.
//!
//! A server numbers the requests of a channel from zero, and begins anew when it restarts. So an id that was seen before on the
//! same channel shows a restart: all that wait on the channel are lost, and later requests use another one.

use hyper::header::HeaderValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::futures::Notified;
use tokio::sync::{MutexGuard as TurnGuard, Notify};

/// The most ids that are asked for in one request.
const MAX_ASKED: usize = 128;
/// The most ids with a gap before them that a channel remembers. More come when a load balancer spreads a channel over several
/// servers; then later requests use another channel.
const MAX_SCATTERED: usize = 1024;

/// The channels to one endpoint: one for new requests; others live as long as somebody waits on them.
pub(super) struct Channels(Mutex<Arc<Channel>>);

impl Channels {
    pub(super) fn new() -> Channels {
        Channels(Mutex::new(Arc::new(Channel::new())))
    }

    /// The channel for the next request.
    pub(super) fn current(&self) -> Arc<Channel> {
        let mut current = lock(&self.0);
        if lock(&current.ids).seen.scattered.len() > MAX_SCATTERED {
            *current = Arc::new(Channel::new());
        }
        Arc::clone(&current)
    }

    /// Has later requests use another channel than this one.
    pub(super) fn replace(&self, channel: &Arc<Channel>) {
        let mut current = lock(&self.0);
        if Arc::ptr_eq(&current, channel) {
            *current = Arc::new(Channel::new());
        }
    }
}

/// One channel.
pub(super) struct Channel {
    name: HeaderValue,
    ids: Mutex<Ids>,
    changed: Notify,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Ids {
    seen: SeenIds,
    /// Requests that wait, and whether they are indexed.
    waiting: BTreeMap<u64, bool>,
    is_lost: bool,
}

/// The ids that a server has given out.
#[derive(Default)]
struct SeenIds {
    /// All below.
    below: u64,
    scattered: BTreeSet<u64>,
}

impl SeenIds {
    /// Adds an id; false if it was there.
    fn insert(&mut self, id: u64) -> bool {
        if id < self.below || !self.scattered.insert(id) {
            return false;
        }
        while self.scattered.remove(&self.below) {
            self.below += 1;
        }
        true
    }
}

/// The server does not know the requests of a channel any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostChannel;

/// The state of a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitState {
    Pending,
    Indexed,
    Lost,
}

/// A request that waits; dropped, it is not asked for any more.
pub(super) struct Waiting<'a> {
    channel: &'a Channel,
    id: u64,
}

impl Channel {
    fn new() -> Channel {
        let [high, low]: [u64; 2] = rand::random();
        // A UUID of version 4, as RFC 9562 lays it out.
        let name = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        );
        let name = HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("tidegate"));
        Channel {
            name,
            ids: Mutex::default(),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::const_new(()),
        }
    }

    /// Its name in requests.
    pub(super) fn name(&self) -> &HeaderValue {
        &self.name
    }

    /// Waits for a request that the server has numbered.
    ///
    /// # Errors
    /// When it has given out this number before, so that all other requests of this channel are lost too.
    pub(super) fn expect(&self, id: u64) -> Result<Waiting<'_>, LostChannel> {
        let mut ids = lock(&self.ids);
        if ids.is_lost || !ids.seen.insert(id) {
            drop(ids);
            self.lose();
            return Err(LostChannel);
        }
        ids.waiting.insert(id, false);
        Ok(Waiting { channel: self, id })
    }

    /// The ids to ask for.
    pub(super) fn pending(&self) -> Vec<u64> {
        let ids = lock(&self.ids);
        let pending = ids.waiting.iter().filter(|(_, is_indexed)| !**is_indexed);
        pending.map(|(id, _)| *id).take(MAX_ASKED).collect()
    }

    /// These requests are indexed.
    pub(super) fn acknowledge(&self, indexed: &[u64]) {
        let mut ids = lock(&self.ids);
        for id in indexed {
            if let Some(is_indexed) = ids.waiting.get_mut(id) {
                *is_indexed = true;
            }
        }
        drop(ids);
        self.changed.notify_waiters();
    }

    /// The server does not know the requests of this channel any more.
    pub(super) fn lose(&self) {
        lock(&self.ids).is_lost = true;
        self.changed.notify_waiters();
    }

    /// Waits for the next change.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// The right to ask for all requests of this channel.
    pub(super) async fn turn(&self) -> TurnGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl Waiting<'_> {
    pub(super) fn state(&self) -> WaitState {
        let ids = lock(&self.channel.ids);
        match ids.waiting.get(&self.id) {
            Some(true) => WaitState::Indexed,
            _ if ids.is_lost => WaitState::Lost,
            _ => WaitState::Pending,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.channel.ids).waiting.remove(&self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_uuids() {
        let name = Channel::new().name.to_str().unwrap().to_owned();
        assert_eq!((name.len(), name.matches('-').count(), name.as_bytes()[14]), (36, 4, b'4'));
        assert!(matches!(name.as_bytes()[19], b'8'..=b'9' | b'a'..=b'b'), "{name}");
        assert_ne!(name, Channel::new().name.to_str().unwrap());
    }

    #[test]
    fn a_number_given_out_twice_loses_all_that_wait() {
        let channel = Channel::new();
        let second = channel.expect(1).unwrap();
        let first = channel.expect(0).unwrap();
        channel.acknowledge(&[0, 7]);
        assert_eq!((first.state(), second.state()), (WaitState::Indexed, WaitState::Pending));
        drop(first);
        assert_eq!(channel.pending(), [1]);
        assert!(channel.expect(0).is_err(), "the server has begun anew");
        assert_eq!(second.state(), WaitState::Lost);
        assert!(channel.expect(2).is_err());
    }

    #[test]
    fn scattered_numbers_end_a_channel() {
        let channels = Channels::new();
        let channel = channels.current();
        for id in 0..=MAX_SCATTERED as u64 {
            drop(channel.expect(2 * id + 1).unwrap());
        }
        assert!(!Arc::ptr_eq(&channels.current(), &channel));
        for id in 0..=MAX_SCATTERED as u64 {
            drop(channel.expect(2 * id).unwrap());
        }
        assert_eq!(lock(&channel.ids).seen.scattered.len(), 0);
    }
}
