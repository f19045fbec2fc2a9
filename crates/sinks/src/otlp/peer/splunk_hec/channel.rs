//! Channels: the names under which a server numbers requests, and which of those are indexed.
//!
//! A server numbers the requests of a channel from zero, and begins anew when it restarts. So an id that was seen before on the
//! same channel shows a restart: all that wait on the channel are lost, and later requests use another one.
//!
//! The word for an id counts only when every request that was on its way meanwhile has been answered: had the server restarted, one
//! of those may have been given that id, and the word may be about it.

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
        if lock(&current.ids).is_used_up() {
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
    /// Requests that wait.
    waiting: BTreeMap<u64, Word>,
    /// The numbers of requests that are not answered yet; counted here, and unknown to the server.
    open: BTreeSet<u64>,
    begun: u64,
    is_lost: bool,
}

/// The server's last word about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    None,
    /// It is indexed, if none of the requests before this number is found to have the same id.
    IndexedBefore(u64),
    Indexed,
}

impl Ids {
    /// Whether later requests need another channel.
    fn is_used_up(&self) -> bool {
        self.is_lost || self.seen.scattered.len() > MAX_SCATTERED
    }

    /// Believes the words that no open request can contradict any more.
    fn settle(&mut self) {
        let first = self.open.first().copied().unwrap_or(u64::MAX);
        for word in self.waiting.values_mut() {
            if matches!(word, Word::IndexedBefore(bound) if *bound <= first) {
                *word = Word::Indexed;
            }
        }
    }
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

/// A request that is on its way. Dropped without an answer it may have been received, so that the channel is lost.
pub(super) struct OpenRequest<'a> {
    channel: &'a Channel,
    number: u64,
    is_answered: bool,
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

    /// Counts a request before it is sent.
    pub(super) fn begin(&self) -> OpenRequest<'_> {
        let mut ids = lock(&self.ids);
        let number = ids.begun;
        ids.begun += 1;
        ids.open.insert(number);
        OpenRequest { channel: self, number, is_answered: false }
    }

    /// The ids to ask for.
    pub(super) fn pending(&self) -> Vec<u64> {
        let ids = lock(&self.ids);
        let pending = ids.waiting.iter().filter(|(_, word)| **word == Word::None);
        pending.map(|(id, _)| *id).take(MAX_ASKED).collect()
    }

    /// The server says that these requests are indexed. It is not believed once the channel is lost.
    pub(super) fn acknowledge(&self, indexed: &[u64]) {
        let mut ids = lock(&self.ids);
        if ids.is_lost {
            return;
        }
        let bound = ids.begun;
        for id in indexed {
            if let Some(word) = ids.waiting.get_mut(id).filter(|word| **word == Word::None) {
                *word = Word::IndexedBefore(bound);
            }
        }
        ids.settle();
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

impl<'a> OpenRequest<'a> {
    /// The server has answered, and has taken nothing.
    pub(super) fn refused(mut self) {
        self.answered();
    }

    /// The server has taken it and numbered it: waits for that.
    ///
    /// # Errors
    /// When it has given out this number before, so that all other requests of this channel are lost too.
    pub(super) fn numbered(mut self, id: u64) -> Result<Waiting<'a>, LostChannel> {
        let mut ids = lock(&self.channel.ids);
        if ids.is_lost || !ids.seen.insert(id) {
            ids.is_lost = true;
            drop(ids);
            self.answered();
            return Err(LostChannel);
        }
        ids.waiting.insert(id, Word::None);
        drop(ids);
        self.answered();
        Ok(Waiting { channel: self.channel, id })
    }

    fn answered(&mut self) {
        self.is_answered = true;
        let mut ids = lock(&self.channel.ids);
        ids.open.remove(&self.number);
        if !ids.is_lost {
            ids.settle();
        }
        drop(ids);
        self.channel.changed.notify_waiters();
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            lock(&self.channel.ids).open.remove(&self.number);
            self.channel.lose();
        }
    }
}

impl Waiting<'_> {
    pub(super) fn state(&self) -> WaitState {
        let ids = lock(&self.channel.ids);
        match ids.waiting.get(&self.id) {
            Some(Word::Indexed) => WaitState::Indexed,
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

    fn expect(channel: &Channel, id: u64) -> Result<Waiting<'_>, LostChannel> {
        channel.begin().numbered(id)
    }

    #[test]
    fn a_number_given_out_twice_loses_all_that_wait() {
        let channel = Channel::new();
        let second = expect(&channel, 1).unwrap();
        let first = expect(&channel, 0).unwrap();
        channel.acknowledge(&[0, 7]);
        assert_eq!((first.state(), second.state()), (WaitState::Indexed, WaitState::Pending));
        drop(first);
        assert_eq!(channel.pending(), [1]);
        assert!(expect(&channel, 0).is_err(), "the server has begun anew");
        assert_eq!(second.state(), WaitState::Lost);
        assert!(expect(&channel, 2).is_err());
    }

    /// The server restarts, and numbers a request on its way from zero; the question that is on its way meanwhile is answered
    /// about that one.
    #[test]
    fn a_word_counts_when_no_open_request_can_have_the_same_number() {
        let channel = Channel::new();
        let before = expect(&channel, 0).unwrap();
        let open = channel.begin();
        channel.acknowledge(&[0]);
        assert_eq!(before.state(), WaitState::Pending);
        assert_eq!(channel.pending(), [0; 0], "servers forget what they have said");
        assert!(open.numbered(0).is_err());
        assert_eq!(before.state(), WaitState::Lost);

        let channel = Channel::new();
        let before = expect(&channel, 0).unwrap();
        let (open, refused) = (channel.begin(), channel.begin());
        channel.acknowledge(&[0]);
        let _later = channel.begin();
        refused.refused();
        assert_eq!(before.state(), WaitState::Pending);
        let _next = open.numbered(1).unwrap();
        assert_eq!(before.state(), WaitState::Indexed, "the server has gone on");
    }

    /// The answer to a question that was on its way when the channel was lost is the word of another server.
    #[test]
    fn nothing_is_believed_of_a_lost_channel() {
        let channels = Channels::new();
        let channel = channels.current();
        let (known, waiting) = (expect(&channel, 0).unwrap(), expect(&channel, 1).unwrap());
        channel.acknowledge(&[0]);
        channel.lose();
        channel.acknowledge(&[1]);
        assert_eq!((known.state(), waiting.state()), (WaitState::Indexed, WaitState::Lost));
        assert!(!Arc::ptr_eq(&channels.current(), &channel), "later requests have another");

        let channel = channels.current();
        let waiting = expect(&channel, 0).unwrap();
        drop(channel.begin());
        assert_eq!(waiting.state(), WaitState::Lost, "nobody knows what became of the request");
    }

    #[test]
    fn scattered_numbers_end_a_channel() {
        let channels = Channels::new();
        let channel = channels.current();
        for id in 0..=MAX_SCATTERED as u64 {
            drop(expect(&channel, 2 * id + 1).unwrap());
        }
        assert!(!Arc::ptr_eq(&channels.current(), &channel));
        for id in 0..=MAX_SCATTERED as u64 {
            drop(expect(&channel, 2 * id).unwrap());
        }
        assert_eq!(lock(&channel.ids).seen.scattered.len(), 0);
    }
}
