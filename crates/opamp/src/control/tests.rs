//! The state machine of an agent, and assignments, on a state on disk.

use super::configs::ConfigOrder;
use super::*;
use crate::message::{agent_capability as capability, bytes, varint};
use crate::record::RolloutState;
use tempfile::TempDir;
use tidegate_arena::Floors;
use tidegate_fleet::{AgentId, EmbeddedStore, Store as _, Table};
use tidegate_wire::proto::Reader;

struct Setup {
    opamp: Arc<Opamp>,
    store: EmbeddedStore,
    folder: TempDir,
}

/// The parts of an answer that the tests compare.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    wants_full_state: bool,
    has_capabilities: bool,
    renamed: Option<Vec<u8>>,
    restarts: bool,
    has_config: bool,
}

async fn setup() -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(&folder.path().join("state.redb")).unwrap();
    let opamp = load(&store).await;
    Setup { opamp, store, folder }
}

async fn load(store: &EmbeddedStore) -> Arc<Opamp> {
    let arena = || Arena::new(16 << 20, Floors::NONE, 4 << 20, 16, 16).unwrap();
    let settings = Settings {
        max_message: 1 << 20,
        needs_token: true,
        own_telemetry: None,
        forget_after: Duration::from_secs(3600),
        check: |text| if text.contains('\t') { Err("a tab".to_owned()) } else { Ok(()) },
    };
    Opamp::load(Arc::new(store.clone()), settings, (arena(), arena())).await.unwrap()
}

impl Setup {
    /// As after `kill -9` and a restart: nothing but what is on disk.
    async fn restart(&mut self) {
        assert!(self.store.close(std::time::Instant::now() + Duration::from_secs(10)));
        self.store = EmbeddedStore::open(&self.folder.path().join("state.redb")).unwrap();
        self.opamp = load(&self.store).await;
    }

    async fn send(&self, message: &[u8], session: Option<&mut Session>) -> Seen {
        let answer = self.opamp.receive(message, session).await.unwrap();
        seen(&answer)
    }

    async fn put(&self, name: &str, body: &str, labels: &[(&str, &str)], step: u32) {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let order = ConfigOrder { body: body.to_owned(), labels, step, max_failed: 5 };
        self.opamp.put_config(name, order).await.unwrap();
    }
}

fn seen(answer: &Answer) -> Seen {
    let mut seen = Seen { has_config: answer.config.is_some(), ..Seen::default() };
    let mut reader = Reader::new(&answer.bytes);
    while let Some(key) = reader.key().unwrap() {
        match key.field {
            6 => seen.wants_full_state = reader.varint(key).unwrap() == 1,
            7 => seen.has_capabilities = reader.varint(key).unwrap() & 7 == 7,
            8 => seen.renamed = Some(reader.bytes(key).unwrap().to_vec()),
            9 => {
                seen.restarts = true;
                reader.skip(key).unwrap();
            }
            _ => reader.skip(key).unwrap(),
        }
    }
    seen
}

/// A message; with its description where it is given, and the status of the configuration with a hash.
fn message(uid: u8, sequence: u64, label: Option<&str>, status: Option<([u8; 16], u64)>) -> Vec<u8> {
    let mut out = Vec::new();

    bytes(&mut out, 1, &[uid; 16]);
    varint(&mut out, 2, sequence);
    if let Some(label) = label {
        let (mut text, mut pair, mut description) = (Vec::new(), Vec::new(), Vec::new());
        bytes(&mut text, 1, label.as_bytes());
        bytes(&mut pair, 1, b"env");
        bytes(&mut pair, 2, &text);
        bytes(&mut description, 1, &pair);
        bytes(&mut out, 3, &description);
    }
    let capabilities = 1
        | capability::ACCEPTS_REMOTE_CONFIG
        | capability::REPORTS_REMOTE_CONFIG
        | capability::ACCEPTS_RESTART_COMMAND;
    varint(&mut out, 4, capabilities);
    if let Some((hash, status)) = status {
        let mut sub = Vec::new();
        bytes(&mut sub, 1, &hash);
        varint(&mut sub, 2, status);
        bytes(&mut out, 7, &sub);
    }
    out
}

/// The full state is asked for after a gap and of unknown agents, and never otherwise.
#[tokio::test]
async fn full_state_is_asked_for_after_gaps_alone() {
    let setup = setup().await;
    let mut session = Session::default();
    let first = setup.send(&message(1, 0, Some("a"), None), Some(&mut session)).await;
    assert_eq!(first, Seen { has_capabilities: true, ..Seen::default() });
    for sequence in 1..4 {
        let answer = setup.send(&message(1, sequence, None, None), Some(&mut session)).await;
        assert_eq!(answer, Seen::default());
    }
    for (sequence, wants_full_state) in [(5, true), (6, false), (6, true), (2, true), (3, false)] {
        let answer = setup.send(&message(1, sequence, None, None), Some(&mut session)).await;
        assert_eq!(answer.wants_full_state, wants_full_state, "{sequence}");
    }
    let unknown = setup.send(&message(2, 7, None, None), None).await;
    assert!(unknown.wants_full_state && unknown.has_capabilities);
}

/// A configuration goes to an agent once, is not sent again for the hash that it reports, and is still assigned after a restart.
#[tokio::test]
async fn a_configuration_is_sent_once_and_stays_assigned() {
    let mut setup = setup().await;
    setup.put("all", "a: 1", &[], 100).await;
    setup.put("prod", "a: 2", &[("env", "prod")], 100).await;
    let mut session = Session::default();
    assert!(setup.send(&message(1, 0, Some("prod"), None), Some(&mut session)).await.has_config);
    assert!(!setup.send(&message(1, 1, None, None), Some(&mut session)).await.has_config);
    let hash = setup.opamp.find_config("prod").unwrap().hash();
    assert!(!setup.send(&message(1, 2, None, Some((hash, 1))), Some(&mut session)).await.has_config);
    setup.opamp.leave(&mut session);

    setup.restart().await;
    let mut session = Session::default();
    let answer = setup.send(&message(1, 3, None, None), Some(&mut session)).await;
    assert!(answer.wants_full_state && !answer.has_config, "its hash is on disk: {answer:?}");
    // The most specific one is gone, so the other is for it.
    setup.opamp.remove_config("prod").await.unwrap();
    let pushed = setup.opamp.pushed(AgentId::from_bytes([1; 16])).unwrap();
    assert!(seen(&pushed).has_config);
    assert!(setup.opamp.pushed(AgentId::from_bytes([1; 16])).is_none(), "and once alone");
}

/// An agent that comes back while it is removed is asked for all that it has said, and that is written again.
#[tokio::test]
async fn an_agent_that_comes_back_while_it_is_removed_says_all_again() {
    let setup = setup().await;
    let (id, mut session) = (AgentId::from_bytes([1; 16]), Session::default());
    setup.send(&message(1, 0, Some("a"), None), Some(&mut session)).await;
    let is_gone = std::cell::Cell::new(true);
    assert!(setup.opamp.remove(id, |_| is_gone.replace(false)).await.unwrap());
    let is_stored = async || setup.store.get(Table::OpampAgents, &id.to_bytes()).await.unwrap().is_some();
    assert!(!is_stored().await);
    let answer = setup.send(&message(1, 1, None, None), Some(&mut session)).await;
    assert!(answer.wants_full_state);
    setup.send(&message(1, 2, Some("a"), None), Some(&mut session)).await;
    assert!(is_stored().await);
    assert!(setup.opamp.remove(id, |_| true).await.unwrap());
    assert!(!setup.opamp.remove(id, |_| true).await.unwrap(), "it is gone, from memory and from the state");
    assert!(!is_stored().await);
}

/// Two agents with one uid: the second gets another; one that comes back keeps its own.
#[tokio::test]
async fn a_second_agent_with_a_uid_gets_another() {
    let setup = setup().await;
    let (mut one, mut other, mut again) = (Session::default(), Session::default(), Session::default());
    setup.send(&message(1, 40, Some("a"), None), Some(&mut one)).await;
    let answer = setup.send(&message(1, 0, Some("a"), None), Some(&mut other)).await;
    assert!(answer.renamed.is_some_and(|uid| uid.len() == 18 && uid[2..] != [1; 16]));
    let answer = setup.send(&message(1, 42, Some("a"), None), Some(&mut again)).await;
    assert_eq!(answer.renamed, None);
    let waker = std::task::Waker::noop();
    let (id, number) = one.agent.unwrap();
    let push = setup.opamp.registry.poll_push(id, number, &std::task::Context::from_waker(waker));
    assert_eq!(push, std::task::Poll::Ready(crate::registry::Push::Replaced));
}

/// A roll-out goes on as agents apply it, and stops when too many fail; the others keep the revision before, also after a restart.
#[tokio::test]
async fn a_roll_out_stops_when_too_many_fail() {
    let mut setup = setup().await;
    for uid in 1..=50 {
        setup.send(&message(uid, 0, Some("a"), None), None).await;
    }
    setup.put("all", "a: 1", &[], 100).await;
    let first = setup.opamp.find_config("all").unwrap().hash();
    for uid in 1..=50 {
        assert!(setup.send(&message(uid, 1, None, None), None).await.has_config);
        setup.send(&message(uid, 2, None, Some((first, 1))), None).await;
    }
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Done);

    setup.put("all", "a: broken", &[], 20).await;
    let config = setup.opamp.find_config("all").unwrap();
    let reached: Vec<u8> =
        (1..=50).filter(|uid| config.is_released_to(AgentId::from_bytes([*uid; 16]))).collect();
    assert!((2..25).contains(&reached.len()), "about a fifth: {}", reached.len());
    for uid in 1..=50 {
        assert_eq!(setup.send(&message(uid, 3, None, None), None).await.has_config, reached.contains(&uid));
    }
    setup.opamp.step_all().await.unwrap();
    assert_eq!(
        setup.opamp.find_config("all").unwrap().record.rollout.released,
        2_000,
        "it waits for answers"
    );
    for uid in &reached {
        setup.send(&message(*uid, 4, None, Some((config.hash(), 3))), None).await;
    }
    setup.opamp.step_all().await.unwrap();
    setup.restart().await;
    setup.opamp.step_all().await.unwrap();
    let stopped = setup.opamp.find_config("all").unwrap();
    assert_eq!(
        (stopped.record.rollout.state, stopped.record.rollout.released),
        (RolloutState::Stopped, 2_000)
    );
    let progress = setup.opamp.progress()["all"];
    assert_eq!((progress.agents, progress.failed), (50, reached.len() as u64));
    // The new one goes back to what was whole for those that it has not reached yet.
    setup.put("all", "a: 3", &[], 1).await;
    assert_eq!(setup.opamp.find_config("all").unwrap().record.previous.as_deref(), Some("a: 1"));
}

/// Where a roll-out has stopped, nobody else gets the revision; put again with more failures allowed, it goes on.
#[tokio::test]
async fn a_stopped_revision_goes_to_nobody_else() {
    let setup = setup().await;
    setup.send(&message(1, 0, Some("a"), None), None).await;
    setup.put("all", "a: broken", &[], 100).await;
    let config = setup.opamp.find_config("all").unwrap();
    assert!(setup.send(&message(1, 1, None, None), None).await.has_config);
    setup.send(&message(1, 2, None, Some((config.hash(), 3))), None).await;
    setup.opamp.step_all().await.unwrap();
    assert!(!setup.send(&message(2, 0, Some("a"), None), None).await.has_config, "it has stopped");
    setup.put("all", "a: broken", &[], 100).await;
    assert!(!setup.send(&message(3, 0, Some("a"), None), None).await.has_config, "nothing is different");

    let order =
        ConfigOrder { body: "a: broken".to_owned(), labels: BTreeMap::new(), step: 100, max_failed: 100 };
    setup.opamp.put_config("all", order).await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.revision, 1);
    assert!(setup.send(&message(2, 1, None, None), None).await.has_config);
}

/// A roll-out that goes on after it stood still for long waits for its agents anew.
#[tokio::test]
async fn a_roll_out_that_goes_on_waits_anew() {
    let setup = setup().await;
    for uid in 1..=4 {
        setup.send(&message(uid, 0, Some("a"), None), None).await;
    }
    let put = async |max_failed| {
        let order = ConfigOrder { body: "a: 1".to_owned(), labels: BTreeMap::new(), step: 100, max_failed };
        setup.opamp.put_config("all", order).await.unwrap().record.rollout.state
    };
    put(10).await;
    let hash = setup.opamp.find_config("all").unwrap().hash();
    assert!(setup.send(&message(1, 1, None, None), None).await.has_config);
    setup.send(&message(1, 2, None, Some((hash, 3))), None).await;
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Stopped);
    setup.opamp.registry.each(|_, agent| {
        if let Some((_, at)) = &mut agent.awaited {
            *at = at.checked_sub(super::rollout::ANSWERS_WITHIN).unwrap();
        }
    });
    assert_eq!(put(5).await, RolloutState::Stopped, "fewer failures are allowed");
    assert_eq!(put(50).await, RolloutState::Running);
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Running);
    assert_eq!(setup.opamp.progress()["all"].pending, 3);
}

/// Of a long error the beginning is shown, without the secrets in it.
#[tokio::test]
async fn a_long_error_keeps_its_beginning() {
    let setup = setup().await;
    let (mut health, mut said) = (Vec::new(), message(1, 0, Some("a"), None));
    let error = format!("cannot reach https://user:S3@host/path: {}", "x".repeat(2000));
    bytes(&mut health, 3, error.as_bytes());
    bytes(&mut said, 5, &health);
    setup.send(&said, None).await;
    setup.opamp.registry.with(AgentId::from_bytes([1; 16]), |agent| {
        assert!(agent.health_text.starts_with("cannot reach https://"), "{}", agent.health_text);
        assert!(!agent.health_text.contains("S3"), "{}", agent.health_text);
        assert!(agent.health_text.len() <= crate::registry::LONGEST_TEXT);
    });
}

/// A roll-out waits where all of its agents are away, and for one that was there when it was to get the revision.
#[tokio::test]
async fn a_roll_out_does_not_pass_agents_that_are_away() {
    let mut setup = setup().await;
    setup.send(&message(1, 0, Some("a"), None), None).await;
    setup.restart().await;
    setup.put("all", "a: 1", &[], 50).await;
    let released = |setup: &Setup| setup.opamp.find_config("all").unwrap().record.rollout.released;
    let config = setup.opamp.find_config("all").unwrap();
    if !config.is_released_to(AgentId::from_bytes([1; 16])) {
        setup.opamp.step_all().await.unwrap();
    }
    let before = released(&setup);
    for _ in 0..3 {
        setup.opamp.step_all().await.unwrap();
    }
    assert_eq!(released(&setup), before, "nobody has said anything");

    let mut session = Session::default();
    setup.send(&message(1, 1, None, None), Some(&mut session)).await;
    setup.opamp.step_all().await.unwrap();
    setup.opamp.leave(&mut session);
    assert_eq!(setup.opamp.progress()["all"].pending, 1, "it may have been cut off by what it got");
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Running);
}

/// An agent that says all and does not mention a configuration has none, and gets it again.
#[tokio::test]
async fn an_agent_that_has_lost_its_configuration_gets_it_again() {
    let setup = setup().await;
    setup.put("all", "a: 1", &[], 100).await;
    let hash = setup.opamp.find_config("all").unwrap().hash();
    let mut session = Session::default();
    assert!(setup.send(&message(1, 0, Some("a"), None), Some(&mut session)).await.has_config);
    setup.send(&message(1, 1, None, Some((hash, 1))), Some(&mut session)).await;
    setup.opamp.leave(&mut session);
    // Its disk was wiped.
    let mut session = Session::default();
    let answer = setup.send(&message(1, 0, None, None), Some(&mut session)).await;
    assert!(answer.wants_full_state && !answer.has_config);
    assert!(setup.send(&message(1, 1, Some("a"), None), Some(&mut session)).await.has_config);
}

/// An unchanged report is not written again after a restart.
#[tokio::test]
async fn what_is_known_is_not_written_again() {
    let mut setup = setup().await;
    let mut all = message(1, 0, Some("a"), None);
    let (mut file, mut entry, mut map, mut effective) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    bytes(&mut file, 1, b"a: 1");
    bytes(&mut entry, 2, &file);
    bytes(&mut map, 1, &entry);
    bytes(&mut effective, 1, &map);
    bytes(&mut all, 6, &effective);
    setup.send(&all, None).await;
    let id = AgentId::from_bytes([1; 16]);
    let version = async |setup: &Setup| {
        setup.store.get(Table::OpampAgents, &id.to_bytes()).await.unwrap().unwrap().version
    };
    let before = version(&setup).await;
    setup.restart().await;
    setup.send(&all, None).await;
    assert_eq!(version(&setup).await, before);
}

/// What cannot be a configuration is refused, and the one before stays.
#[tokio::test]
async fn bad_orders_are_refused() {
    let setup = setup().await;
    setup.put("all", "a: 1", &[], 100).await;
    let order = |body: &str, step| ConfigOrder {
        body: body.to_owned(),
        labels: BTreeMap::new(),
        step,
        max_failed: 0,
    };
    for (name, bad) in [("all", order("\t", 10)), ("all", order("a: 2", 0)), ("a/b", order("a: 2", 10))] {
        assert!(matches!(setup.opamp.put_config(name, bad).await, Err(OrderError::Invalid(_))));
    }
    let long = order(&"x".repeat(LONGEST_CONFIG + 1), 10);
    assert!(matches!(setup.opamp.put_config("all", long).await, Err(OrderError::Invalid(_))));
    assert_eq!(setup.opamp.find_config("all").unwrap().record.body, "a: 1");
    assert!(matches!(setup.opamp.remove_config("none").await, Err(OrderError::Unknown(_))));
}

/// What could not be written was not taken: the agent is asked for it again.
#[tokio::test]
async fn what_was_not_written_is_asked_for_again() {
    let mut setup = setup().await;
    setup.send(&message(1, 0, Some("a"), None), None).await;
    assert!(setup.store.close(std::time::Instant::now() + Duration::from_secs(10)));
    let refused = setup.opamp.receive(&message(1, 1, Some("b"), None), None).await;
    assert!(matches!(refused, Err(ReceiveError::Store(_))), "{refused:?}");
    assert!(setup.send(&message(1, 2, None, None), None).await.wants_full_state);
    setup.restart().await;
    assert!(!setup.send(&message(1, 3, Some("b"), None), None).await.wants_full_state);
}

/// A token is one until it is revoked, also after a restart.
#[tokio::test]
async fn tokens_are_known_until_revoked() {
    use base64::Engine as _;
    let mut setup = setup().await;
    let (id, text) = setup.opamp.create_token("t").await.unwrap();
    let text = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let secret = text.strip_prefix(format!("{id}:").as_bytes()).unwrap().to_vec();
    setup.restart().await;
    assert!(setup.opamp.is_token(&id, &secret) && !setup.opamp.is_token(&id, b"other"));
    setup.opamp.revoke_token(&id).await.unwrap();
    setup.restart().await;
    assert!(!setup.opamp.is_token(&id, &secret));
}

/// What an agent that waits has on the heap and in its task.
#[test]
fn an_agent_is_as_large_as_it_is_said_to_be() {
    let entry = size_of::<crate::registry::Agent>() + size_of::<AgentId>() + 8 + 48;
    assert!(entry as u64 <= crate::registry::AGENT_BYTES, "{entry}");
}

/// A configuration that is for more agents than before goes to those in steps.
#[tokio::test]
async fn more_agents_get_a_configuration_in_steps() {
    let setup = setup().await;
    for uid in 1..=50 {
        setup.send(&message(uid, 0, Some("b"), None), None).await;
    }
    setup.put("all", "a: 1", &[("env", "a")], 100).await;
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Done);
    setup.put("all", "a: 1", &[], 20).await;
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Running);
    let mut reached = 0;
    for uid in 1..=50 {
        reached += usize::from(setup.send(&message(uid, 1, None, None), None).await.has_config);
    }
    assert!((2..25).contains(&reached), "about a fifth: {reached}");
}

/// An agent that never says what came of its configuration does not hold the roll-out: it counts as one where it failed.
#[tokio::test]
async fn silence_counts_as_failure() {
    let setup = setup().await;
    setup.send(&message(1, 0, Some("a"), None), None).await;
    setup.put("all", "a: 1", &[], 100).await;
    assert!(setup.send(&message(1, 1, None, None), None).await.has_config);
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Running);
    setup.opamp.registry.with(AgentId::from_bytes([1; 16]), |agent| {
        let (hash, at) = agent.awaited.unwrap();
        agent.awaited = Some((hash, at.checked_sub(super::rollout::ANSWERS_WITHIN).unwrap()));
    });
    // Neither another poll nor another connection begins the wait anew.
    setup.send(&message(1, 2, None, None), None).await;
    let mut session = Session::default();
    setup.send(&message(1, 3, None, None), Some(&mut session)).await;
    setup.opamp.step_all().await.unwrap();
    assert_eq!(setup.opamp.find_config("all").unwrap().record.rollout.state, RolloutState::Stopped);
}
