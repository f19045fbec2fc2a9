//! Slow hashes, computed one at a time by a thread of their own: no worker stands still for one, and no address keeps
//! the others waiting.
//!
//! Addresses take turns: each has a queue of its own, and the next hash is of the address that has waited longest. When
//! all places are taken, an address that has none takes one from the address that has most. So who sends as many
//! passwords as it likes, from as many addresses as it has, delays another by one hash for each of its addresses, and
//! can keep it out only with as many addresses as there are places.
//!
//! The thread rests as long as it has computed: it never has more than half a core. It is started when the first
//! password comes, as most gateways never see one.

use super::secret::{LEN, Match, Password};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_limit::Network;
use tokio::sync::Notify;

/// Passwords that wait at a time, and those of one address.
const QUEUE_SLOTS: usize = 32;
const QUEUE_SLOTS_PER_ADDRESS: usize = 4;
/// Outcomes that are remembered until those who wait have seen them, and for how long.
const RECENT: usize = 64;
const FRESH: Duration = Duration::from_secs(10);
/// The longest rest between two hashes.
const REST: Duration = Duration::from_millis(200);
/// The thread's stack, in bytes.
const STACK: usize = 128 << 10;
/// Requests that wait at a time, and what each keeps on the heap meanwhile, in bytes. Many may wait for one hash.
const WAITERS: usize = 256;
const WAITER: usize = 1 << 10;
/// The most memory in use, in bytes: the stack, the longest passwords in all places, and the requests that wait.
pub(super) const BYTES: usize =
    STACK + QUEUE_SLOTS * (super::MAX_CREDENTIAL_BYTES + 512) + RECENT * 64 + WAITERS * WAITER;

/// A keyed digest of a name and a password.
pub(super) type PasswordDigest = [u8; LEN];

/// A password whose hash has to be computed.
pub(super) struct HashJob {
    pub(super) key: PasswordDigest,
    pub(super) network: Network,
    pub(super) password: Arc<Password>,
    pub(super) presented: Box<[u8]>,
    /// The digest that is remembered when it is right.
    pub(super) keyed: [u8; LEN],
}

/// Told when a hash has been computed, or will not be.
#[derive(Default)]
struct HashVerdict {
    outcome: OnceLock<Match>,
    told: Notify,
}

impl HashVerdict {
    async fn wait(&self) {
        loop {
            let mut told = pin!(self.told.notified());
            told.as_mut().enable();
            if self.outcome.get().is_some() {
                return;
            }
            told.await;
        }
    }

    fn tell(&self, outcome: Match) {
        let _ = self.outcome.set(outcome);
        self.told.notify_waiters();
    }
}

/// A request that waits for a verdict; dropping it counts it out.
pub(super) struct Waiter {
    verdict: Arc<HashVerdict>,
    shared: Arc<Shared>,
}

impl Waiter {
    /// Waits until there is a verdict.
    pub(super) async fn wait(&self) {
        self.verdict.wait().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.shared.state().waiters -= 1;
    }
}

/// A question, and the verdict that it gets.
type QueuedJob = (HashJob, Arc<HashVerdict>);

/// Computes slow hashes. Dropping it ends its thread.
#[derive(Default)]
pub(super) struct SlowHashes {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    /// The questions of each address, the address whose turn it is first.
    queues: VecDeque<(Network, VecDeque<QueuedJob>)>,
    waiting: usize,
    /// Requests that wait for any of these.
    waiters: usize,
    /// The question whose hash is being computed.
    current: Option<(PasswordDigest, Arc<HashVerdict>)>,
    recent: VecDeque<(PasswordDigest, Match, Instant)>,
    has_ended: bool,
}

impl SlowHashes {
    /// The outcome for this name and password, if it is recent.
    pub(super) fn recent(&self, key: &PasswordDigest) -> Option<Match> {
        let state = self.shared.state();
        let found = state.recent.iter().rev().find(|(known, ..)| known == key)?;
        (found.2.elapsed() < FRESH).then_some(found.1)
    }

    /// Forgets all outcomes: passwords have changed.
    pub(super) fn forget(&self) {
        self.shared.state().recent.clear();
    }

    /// Has the hash computed that decides a question. `None` when too many are waiting.
    pub(super) fn ask(&self, question: HashJob) -> Option<Waiter> {
        let waiter = self.shared.wait_for(question)?;
        self.shared.woken.notify_one();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let started = std::thread::Builder::new().name("passwords".to_owned()).stack_size(STACK);
            *thread = started.spawn(move || shared.compute()).ok();
        }
        Some(waiter)
    }
}

impl Drop for SlowHashes {
    fn drop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.woken.notify_one();
        if let Some(thread) = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let _ended = thread.join();
        }
    }
}

impl Shared {
    fn wait_for(self: &Arc<Self>, question: HashJob) -> Option<Waiter> {
        let mut state = self.state();
        if state.waiters >= WAITERS {
            return None;
        }
        let verdict = state.enter(question)?;
        state.waiters += 1;
        Some(Waiter { verdict, shared: Arc::clone(self) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compute(&self) {
        let mut rest = Duration::ZERO;
        while let Some((question, verdict)) = self.next(rest) {
            let began = Instant::now();
            let right = question.password.is_hash_of(&question.presented);
            if right {
                question.password.remember(question.keyed);
                question.password.has_come_from(question.network);
            }
            rest = began.elapsed().min(REST);
            let outcome = if right { Match::Right } else { Match::Wrong };
            let mut state = self.state();
            state.current = None;
            if state.recent.len() == RECENT {
                state.recent.pop_front();
            }
            state.recent.push_back((question.key, outcome, Instant::now()));
            drop(state);
            verdict.tell(outcome);
        }
    }

    /// Rests, and waits for the next question; nothing when there will be none.
    fn next(&self, rest: Duration) -> Option<QueuedJob> {
        let until = Instant::now() + rest;
        let mut state = self.state();
        loop {
            if state.has_ended {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            state = if !left.is_zero() {
                self.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            } else if let Some((question, verdict)) = state.leave() {
                state.current = Some((question.key, Arc::clone(&verdict)));
                return Some((question, verdict));
            } else {
                self.woken.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

impl State {
    fn enter(&mut self, question: HashJob) -> Option<Arc<HashVerdict>> {
        let same = self.queues.iter().flat_map(|(_, queue)| queue);
        let same = same.map(|(other, verdict)| (&other.key, verdict));
        let mut same = same.chain(self.current.iter().map(|(key, verdict)| (key, verdict)));
        if let Some((_, verdict)) = same.find(|(key, _)| **key == question.key) {
            return Some(Arc::clone(verdict));
        }
        let own = self.queues.iter().position(|(network, _)| *network == question.network);
        let has = own.and_then(|at| self.queues.get(at)).map_or(0, |(_, queue)| queue.len());
        if has >= QUEUE_SLOTS_PER_ADDRESS || (self.waiting >= QUEUE_SLOTS && !(has == 0 && self.displace())) {
            return None;
        }
        let (network, verdict) = (question.network, Arc::<HashVerdict>::default());
        let entry = (question, Arc::clone(&verdict));
        match own.and_then(|at| self.queues.get_mut(at)) {
            Some((_, queue)) => queue.push_back(entry),
            None => self.queues.push_back((network, VecDeque::from([entry]))),
        }
        self.waiting += 1;
        Some(verdict)
    }

    /// Takes a place from the address that has most, where that has several.
    fn displace(&mut self) -> bool {
        let most = self.queues.iter_mut().max_by_key(|(_, queue)| queue.len());
        let Some((_, queue)) = most.filter(|(_, queue)| queue.len() > 1) else { return false };
        if let Some((_, verdict)) = queue.pop_back() {
            self.waiting -= 1;
            verdict.tell(Match::Unsaid);
        }
        true
    }

    /// The question whose turn it is.
    fn leave(&mut self) -> Option<QueuedJob> {
        let (network, mut queue) = self.queues.pop_front()?;
        let next = queue.pop_front();
        if !queue.is_empty() {
            self.queues.push_back((network, queue));
        }
        self.waiting -= usize::from(next.is_some());
        next
    }
}

#[cfg(test)]
mod tests {
    //! Promise: however many passwords come from however many addresses, the next of another address is soon.

    use super::*;
    use std::net::Ipv4Addr;

    fn question(host: u8, number: u8) -> HashJob {
        HashJob {
            key: [host, number].repeat(16).try_into().unwrap(),
            network: Network::of(Ipv4Addr::new(192, 0, 2, host).into()),
            password: Arc::new(Password::of_nobody(std::num::NonZeroU32::MIN)),
            presented: Box::default(),
            keyed: [0; LEN],
        }
    }

    fn order(state: &mut State) -> Vec<(u8, u8)> {
        std::iter::from_fn(|| state.leave()).map(|(question, _)| (question.key[0], question.key[1])).collect()
    }

    #[test]
    fn addresses_take_turns() {
        let mut state = State::default();
        for (host, number) in [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (2, 2)] {
            assert!(state.enter(question(host, number)).is_some());
        }
        assert_eq!(order(&mut state), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 3)]);
        assert_eq!((state.waiting, state.queues.len()), (0, 0));
    }

    #[test]
    fn few_addresses_cannot_take_all_places() {
        let mut state = State::default();
        let mut displaced = None;
        for host in 0..100 {
            for number in 0..100 {
                let entered = state.enter(question(host, number));
                if (host, number) == (0, 3) {
                    displaced = entered;
                } else if host == 0 {
                    assert_eq!(entered.is_some(), number < 3, "an address has four");
                }
            }
            assert!(state.waiting <= QUEUE_SLOTS);
        }
        assert_eq!(state.queues.len(), QUEUE_SLOTS, "each has one in the end");
        assert_eq!(displaced.unwrap().outcome.get(), Some(&Match::Unsaid), "who had more was told so");
        assert!(state.enter(question(200, 0)).is_none());
        order(&mut state);
        for host in 0..4 {
            (0..100).for_each(|number| _ = state.enter(question(host, number)));
        }
        assert!(state.enter(question(200, 0)).is_some());
        assert_eq!(order(&mut state).get(4), Some(&(200, 0)), "after one of each of the four");
    }

    #[test]
    fn only_so_many_wait_for_one_hash() {
        let shared = Arc::<Shared>::default();
        let waiters: Vec<Waiter> = (0..WAITERS).map_while(|_| shared.wait_for(question(1, 1))).collect();
        assert_eq!(waiters.len(), WAITERS);
        assert!(shared.wait_for(question(1, 1)).is_none());
        assert!(shared.wait_for(question(2, 1)).is_none());
        drop(waiters);
        assert!(shared.wait_for(question(2, 1)).is_some());
        assert_eq!(shared.state().waiters, 0);
    }

    #[test]
    fn the_same_question_is_answered_once() {
        let mut state = State::default();
        let first = state.enter(question(1, 1)).unwrap();
        assert!(Arc::ptr_eq(&first, &state.enter(question(1, 1)).unwrap()));
        let (asked, verdict) = state.leave().unwrap();
        state.current = Some((asked.key, verdict));
        assert!(Arc::ptr_eq(&first, &state.enter(question(1, 1)).unwrap()), "while it is being computed too");
        assert_eq!(state.waiting, 0);
    }
}
