use super::*;
use crate::agent_memory::STEP;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake as WakeTask, Waker};
use tidegate_arena::Floors;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl WakeTask for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn registry() -> (Arc<Registry>, AgentId) {
    let arena = Arena::new(1 << 20, Floors::NONE, 1 << 16, 4, 4).unwrap();
    let registry = Arc::new(Registry::new(arena));
    let id = AgentId::random();
    registry.reserve().unwrap();
    registry.insert(id, Agent::new(KeyHash::of(b"k"), "p".into()));
    (registry, id)
}

fn parked(registry: &Arc<Registry>, id: AgentId) -> ParkedPoll {
    match registry.park(id, 100) {
        PollStart::Parked(poll) => poll,
        _ => panic!("it does not wait"),
    }
}

fn polled(poll: &mut ParkedPoll, wakes: &Arc<Wakes>) -> Option<PollOutcome> {
    let waker = Waker::from(Arc::clone(wakes));
    match std::pin::Pin::new(poll).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(wake) => Some(wake),
        Poll::Pending => None,
    }
}

/// An agent that waits is woken once by whatever comes first.
#[test]
fn what_comes_first_ends_the_wait() {
    let (registry, id) = registry();
    let wakes = Arc::new(Wakes::default());
    let mut poll = parked(&registry, id);
    assert!(polled(&mut poll, &wakes).is_none());
    registry.end_polls(id.shard(SHARDS), 99);
    assert_eq!(wakes.0.load(Relaxed), 0, "its time is not over");
    registry.with(id, |agent| agent.queue(5));
    registry.end_polls(id.shard(SHARDS), 100);
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(polled(&mut poll, &wakes), Some(PollOutcome::Actions)));
    assert!(matches!(registry.park(id, 100), PollStart::Actions), "it has not received the action");
    registry.with(id, |agent| agent.received = 5);
    let mut poll = parked(&registry, id);
    assert!(polled(&mut poll, &wakes).is_none());
    registry.end_polls(id.shard(SHARDS), 100);
    assert!(matches!(polled(&mut poll, &wakes), Some(PollOutcome::TimedOut)));
}

/// An agent waits once: a second check-in ends the first, and the end of the first leaves the second alone.
#[test]
fn a_second_check_in_ends_the_first() {
    let (registry, id) = registry();
    let wakes = Arc::new(Wakes::default());
    let mut first = parked(&registry, id);
    assert!(polled(&mut first, &wakes).is_none());
    let mut second = parked(&registry, id);
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(polled(&mut first, &wakes), Some(PollOutcome::Superseded)));
    drop(first);
    assert!(polled(&mut second, &wakes).is_none());
    assert!(registry.with(id, |agent| agent.is_waiting()).unwrap());
    drop(second);
    assert!(!registry.with(id, |agent| agent.is_waiting()).unwrap(), "nobody waits any more");
}

/// An outcome for an agent that does not wait is returned to the caller.
#[test]
fn nothing_is_left_for_an_agent_that_does_not_wait() {
    let (registry, id) = registry();
    assert!(registry.with(id, |agent| agent.wake(PollOutcome::TimedOut)).unwrap().is_some());
    let poll = parked(&registry, id);
    assert!(registry.with(id, |agent| agent.wake(PollOutcome::TimedOut)).unwrap().is_none());
    assert!(
        registry.with(id, |agent| agent.wake(PollOutcome::TimedOut)).unwrap().is_some(),
        "one has come already"
    );
    drop(poll);
}

/// An agent that is removed does not wait for ever, and its memory comes back.
#[test]
fn a_removed_agent_does_not_wait() {
    let (registry, id) = registry();
    let wakes = Arc::new(Wakes::default());
    let mut poll = parked(&registry, id);
    assert!(polled(&mut poll, &wakes).is_none());
    assert!(registry.remove(id));
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(polled(&mut poll, &wakes), Some(PollOutcome::Gone)));
    assert!(registry.with(id, |_| ()).is_none());
}

/// A wait of an agent whose place another has taken ends, and gets nothing that is for the other.
#[test]
fn a_replaced_agent_gets_nothing_of_the_other() {
    let (registry, id) = registry();
    let wakes = Arc::new(Wakes::default());
    let (mut before, mut late) = (parked(&registry, id), None);
    assert!(polled(&mut before, &wakes).is_none());
    for has_polled in [true, false] {
        registry.reserve().unwrap();
        registry.insert(id, Agent::new(KeyHash::of(b"other"), "p".into()));
        assert_eq!(wakes.0.load(Relaxed), 1);
        if has_polled {
            assert!(matches!(polled(&mut before, &wakes), Some(PollOutcome::Gone)));
            late = Some(parked(&registry, id));
        }
    }
    let mut other = parked(&registry, id);
    registry.with(id, |agent| agent.queue(1));
    assert!(matches!(polled(&mut late.unwrap(), &wakes), Some(PollOutcome::Superseded)));
    assert!(matches!(polled(&mut other, &wakes), Some(PollOutcome::Actions)));
}

/// Memory for agents is charged before they are there, and there are no more of them than memory.
#[test]
fn there_are_as_many_agents_as_memory() {
    // A third of it is for agents.
    let arena = Arena::new(AGENT_BYTES * STEP * 6, Floors::NONE, 1 << 12, 4, 4).unwrap();
    let registry = Registry::new(arena);
    let paid = (0..).take_while(|_| registry.reserve().is_ok()).count() as u64;
    // The arena counts in pages.
    assert!((STEP..=2 * STEP).contains(&paid), "{paid}");
    (0..paid).for_each(|_| registry.release());
    assert!(registry.reserve().is_ok());
}

/// The entry of an agent is as small as its charge says.
#[test]
fn an_agent_is_small() {
    let entry = size_of::<Agent>() + size_of::<Parked>() + 2 * size_of::<(AgentId, Box<Agent>)>();
    assert!(entry as u64 <= AGENT_BYTES, "{entry}: {} and {}", size_of::<Agent>(), size_of::<Parked>());
}

#[test]
fn versions_are_those_of_agents() {
    let version = |text: &str| text.parse::<AgentVersion>().ok().map(|version| version.to_string());
    assert_eq!(version("7.17.28").as_deref(), Some("7.17.28"));
    assert_eq!(version("9.1.0-SNAPSHOT").as_deref(), Some("9.1.0"));
    assert_eq!(version("9.1.0+build2026").as_deref(), Some("9.1.0"));
    for wrong in ["", "8", "8.1", "8.1.2.3", "v8.1.0", "300.1.0"] {
        assert_eq!(version(wrong), None, "{wrong}");
    }
}
