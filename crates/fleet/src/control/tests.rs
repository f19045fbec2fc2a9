use super::*;
use crate::registry::{AgentStatus, AgentVersion, PollOutcome};
use crate::store::{Changes, EmbeddedStore, KeyRange, StoreFuture, Stored};
use crate::time;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tidegate_admission::access::{IssuedKey, TenantRule};
use tidegate_arena::Floors;

pub(in crate::control) const KEEP_ACTIONS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A fleet on a folder; opened again it is what it was.
pub(in crate::control) struct Trial {
    folder: tempfile::TempDir,
    pub(in crate::control) store: EmbeddedStore,
    pub(in crate::control) fleet: Arc<Fleet>,
}

pub(in crate::control) fn arena() -> Arena {
    Arena::new(8 << 20, Floors::NONE, 1 << 20, 64, 64).unwrap()
}

pub(in crate::control) async fn loaded(store: Arc<dyn Store>) -> Arc<Fleet> {
    let outputs = OutputSettings { hosts: vec!["http://gw:9200".to_owned()], has_tenants: true };
    let settings = Settings {
        long_poll: Duration::from_secs(300),
        max_body: 1 << 20,
        keep_actions: KEEP_ACTIONS,
        outputs,
    };
    Fleet::load(store, settings, (arena(), arena())).await.unwrap()
}

impl Trial {
    pub(in crate::control) async fn new() -> Trial {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(&folder.path().join("state.redb")).unwrap();
        let fleet = loaded(Arc::new(store.clone())).await;
        Trial { folder, store, fleet }
    }

    /// As after a crash: nothing that was only in memory is there.
    pub(in crate::control) async fn crashed(self) -> Trial {
        assert!(self.store.close(std::time::Instant::now() + Duration::from_secs(60)));
        let store = EmbeddedStore::open(&self.folder.path().join("state.redb")).unwrap();
        let fleet = loaded(Arc::new(store.clone())).await;
        Trial { folder: self.folder, store, fleet }
    }

    pub(in crate::control) async fn token(&self) -> String {
        self.fleet.put_policy("p", b"{\"inputs\":[{\"type\":\"logfile\"}]}", false).await.unwrap();
        self.fleet.create_token("p", "t").await.unwrap().id
    }

    pub(in crate::control) async fn agent(&self) -> Enrolled {
        let token = self.token().await;
        self.fleet.enroll(&enrollment(&token)).await.unwrap()
    }

    /// Some agents with one policy.
    pub(in crate::control) async fn agents(&self, count: usize) -> Vec<AgentId> {
        let token = self.token().await;
        let mut agents = Vec::new();
        for _ in 0..count {
            agents.push(self.fleet.enroll(&enrollment(&token)).await.unwrap().id);
        }
        agents
    }

    /// The fleet in a process that is killed after so many commits.
    pub(in crate::control) async fn dying_after(&self, commits: usize) -> Arc<Fleet> {
        loaded(Arc::new(Dying { store: self.store.clone(), left: AtomicUsize::new(commits) })).await
    }

    pub(in crate::control) async fn wait(&self, id: AgentId) -> crate::registry::ParkedPoll {
        match self.fleet.check_in(id, &current()).await.unwrap() {
            CheckInStart::Wait(parked) => parked,
            CheckInStart::Actions => panic!("there are actions"),
        }
    }
}

/// A store that fails for good after some commits, as for a process that was killed.
struct Dying {
    store: EmbeddedStore,
    left: AtomicUsize,
}

impl Store for Dying {
    fn get(&self, table: Table, key: &[u8]) -> StoreFuture<'_, Option<Stored>> {
        self.store.get(table, key)
    }

    fn list(&self, table: Table, range: KeyRange<'_>) -> StoreFuture<'_, Vec<(Vec<u8>, Stored)>> {
        self.store.list(table, range)
    }

    fn commit(&self, batch: Batch) -> StoreFuture<'_, u64> {
        let left = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.store.commit(batch),
            Err(_) => Box::pin(std::future::ready(Err(StoreError::Unavailable("it was killed".to_owned())))),
        }
    }

    fn watch(&self, tables: &'static [Table], after: Option<u64>) -> StoreFuture<'_, Changes> {
        self.store.watch(tables, after)
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn close(&self, deadline: std::time::Instant) -> bool {
        self.store.close(deadline)
    }

    fn has_ended(&self) -> bool {
        self.store.has_ended()
    }
}

pub(in crate::control) fn enrollment(token: &str) -> Enrollment<'_> {
    Enrollment {
        token,
        version: AgentVersion { major: 8, minor: 15, patch: 0 },
        id: None,
        enrollment_id: None,
        replace_token: None,
        local_metadata: None,
        user_provided_metadata: None,
        tags: Vec::new(),
    }
}

/// A check-in that has nothing new.
pub(in crate::control) fn current() -> CheckIn<'static> {
    CheckIn { version: AgentVersion { major: 8, minor: 15, patch: 0 }, ..CheckIn::default() }
}

pub(in crate::control) fn secret(agent: &Enrolled) -> String {
    let text = decoded(&agent.access_api_key);
    text.strip_prefix(&format!("{}:", agent.id)).unwrap().to_owned()
}

/// The id and the secret of a key as it is presented.
pub(in crate::control) fn decoded(key: &str) -> String {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(key).unwrap();
    String::from_utf8(decoded).unwrap()
}

pub(in crate::control) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

pub(in crate::control) fn order(agents: &[AgentId], kind: &str) -> ActionOrder {
    let agents: Vec<String> = agents.iter().map(AgentId::to_string).collect();
    serde_json::from_value(serde_json::json!({"type": kind, "agents": agents, "data": {"a": 1}})).unwrap()
}

pub(in crate::control) async fn actions(fleet: &Fleet, id: AgentId) -> Value {
    serde_json::from_str(&fleet.actions_for(id).await.unwrap()).unwrap()
}

/// The number of the newest action in an answer, which the agent sends with its next check-in.
pub(in crate::control) fn received(answer: &Value) -> Option<u64> {
    answer["ack_token"].as_str()?.parse().ok()
}

/// Acknowledges an action; the status of the event.
pub(in crate::control) async fn acknowledged(fleet: &Fleet, id: AgentId, action_id: &str) -> u16 {
    let whole = raw("{}");
    let event = AckEvent { action_id, agent_id: "", whole: &whole, has_failed: false, will_retry: false };
    fleet.acknowledge(id, &[event]).await.unwrap()[0].status
}

pub(in crate::control) fn spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::runtime::Handle::current().spawn(task)
}

pub(in crate::control) fn run(trial: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(trial);
}

/// An enrolment that was answered is there after a crash, and the key of another is not its key.
#[test]
fn an_enrolled_agent_outlives_a_crash() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let trial = trial.crashed().await;
        assert!(trial.fleet.is_key_of(agent.id, secret(&agent).as_bytes()));
        assert!(!trial.fleet.is_key_of(agent.id, b"another"));
        assert!(!trial.fleet.is_key_of(AgentId::random(), secret(&agent).as_bytes()));
    });
}

/// An agent that has lost the answer to its enrolment enrols again under the same id; one that has checked in is another.
#[test]
fn an_enrollment_id_replaces_an_agent_that_never_came() {
    run(async {
        let trial = Trial::new().await;
        let token = trial.token().await;
        let request = Enrollment { enrollment_id: Some("e"), ..enrollment(&token) };
        let first = trial.fleet.enroll(&request).await.unwrap();
        let second = trial.fleet.enroll(&request).await.unwrap();
        assert_eq!(first.id, second.id);
        assert!(!trial.fleet.is_key_of(first.id, secret(&first).as_bytes()), "its key was replaced");
        assert!(trial.fleet.is_key_of(second.id, secret(&second).as_bytes()));
        drop(trial.wait(second.id).await);
        let third = trial.fleet.enroll(&request).await.unwrap();
        assert_ne!(third.id, second.id);
        assert_eq!(trial.fleet.view().agents, 2);
    });
}

/// An enrolment with the id and the replace token of an agent takes its place: the former keys are invalid from then on, also after a crash,
/// and the new agent gets what was queued for the id. An enrolment without the token does not.
#[test]
fn a_replace_token_takes_the_place_of_an_agent() {
    run(async {
        let trial = Trial::new().await;
        let token = trial.token().await;
        let id = AgentId::random();
        let (local, components) = (raw("{\"host\":\"old\"}"), raw("[1]"));
        let request = Enrollment { id: Some(id), replace_token: Some("r"), ..enrollment(&token) };
        let before = Enrollment { local_metadata: Some(&local), enrollment_id: Some("e"), ..request };
        let first = trial.fleet.enroll(&before).await.unwrap();
        let said = CheckIn { components: Some(&components), ..current() };
        drop(trial.fleet.check_in(id, &said).await.unwrap());
        let action = trial.fleet.order(order(&[id], "SETTINGS")).await.unwrap().id;
        let CheckInStart::Actions = trial.fleet.check_in(id, &current()).await.unwrap() else { panic!() };
        let policy = b"{\"outputs\":{\"o\":{\"type\":\"tidegate\"}}}";
        trial.fleet.put_policy("p", policy, false).await.unwrap();
        let output_key =
            |trial: &Trial| trial.fleet.output_key(id, &trial.fleet.policy("p").unwrap()).unwrap();
        let old_output_key = output_key(&trial);

        for wrong in [None, Some("R"), Some("")] {
            let request = Enrollment { id: Some(id), replace_token: wrong, ..enrollment(&token) };
            assert!(matches!(trial.fleet.enroll(&request).await, Err(FleetError::NotReplaceable(_))));
        }
        assert!(trial.fleet.is_key_of(id, secret(&first).as_bytes()), "nothing has changed");

        let request = Enrollment { id: Some(id), replace_token: Some("r"), ..enrollment(&token) };
        let second = trial.fleet.enroll(&request).await.unwrap();
        let trial = {
            assert!(!trial.fleet.is_key_of(id, secret(&first).as_bytes()));
            trial.crashed().await
        };
        assert!(!trial.fleet.is_key_of(id, secret(&first).as_bytes()));
        assert!(trial.fleet.is_key_of(id, secret(&second).as_bytes()));
        assert_ne!(output_key(&trial), old_output_key);
        let shown = trial.fleet.show_agent(id).await.unwrap();
        assert_eq!((shown.local_metadata.is_some(), shown.components.is_some()), (false, false));
        assert_eq!((shown.last_seen, trial.fleet.view().agents), (None, 1));
        assert_eq!(actions(&trial.fleet, id).await["actions"][0]["id"], action);
        assert!(trial.store.get(Table::Enrollments, b"e").await.unwrap().is_none());
        // The token is still its token, and it needs one.
        let third = trial.fleet.enroll(&request).await.unwrap();
        assert!(trial.fleet.is_key_of(id, secret(&third).as_bytes()));
    });
}

/// An agent that waits learns at once that another has taken its place.
#[test]
fn a_replaced_agent_waits_no_more() {
    run(async {
        let trial = Trial::new().await;
        let token = trial.token().await;
        let id = AgentId::random();
        let request = Enrollment { id: Some(id), replace_token: Some("r"), ..enrollment(&token) };
        let first = trial.fleet.enroll(&request).await.unwrap();
        let waits = spawn(trial.wait(id).await);
        trial.fleet.enroll(&request).await.unwrap();
        assert!(matches!(waits.await.unwrap(), PollOutcome::Gone));
        // A request of it was let in before, and goes on behind that: it changes nothing of what the other gets.
        let action = trial.fleet.order(order(&[id], "SETTINGS")).await.unwrap().id;
        let key = Some(KeyHash::of(secret(&first).as_bytes()));
        let late = CheckIn { key, received: Some(u64::MAX), ..current() };
        assert!(matches!(trial.fleet.check_in(id, &late).await, Err(FleetError::Unauthorized)));
        assert_eq!(actions(&trial.fleet, id).await["actions"][0]["id"], action);
    });
}

/// An id that is taken is not given to another, and a revoked token to nobody.
#[test]
fn taken_ids_and_revoked_tokens_are_refused() {
    run(async {
        let trial = Trial::new().await;
        let token = trial.token().await;
        let first = trial.fleet.enroll(&enrollment(&token)).await.unwrap();
        let request = Enrollment { id: Some(first.id), ..enrollment(&token) };
        assert!(matches!(trial.fleet.enroll(&request).await, Err(FleetError::NotReplaceable(_))));
        trial.fleet.revoke_token(&token).await.unwrap();
        assert!(!trial.fleet.is_enrollment_token(&token, b"x"));
        assert!(matches!(trial.fleet.enroll(&enrollment(&token)).await, Err(FleetError::Unauthorized)));
        assert_eq!(trial.fleet.view().agents, 1);
    });
}

/// A policy reaches an agent that waits, and one that comes later; whoever has it waits.
#[test]
fn a_policy_reaches_its_agents() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let rollout = spawn(Arc::clone(&trial.fleet).roll_out());
        let PollOutcome::Policy(_, policy) = trial.wait(agent.id).await.await else { panic!("no policy") };
        assert_eq!(policy.revision, 1);
        let has = |revision| CheckIn { policy: Some(("p", revision)), ..current() };
        let start = trial.fleet.check_in(agent.id, &has(1)).await.unwrap();
        let CheckInStart::Wait(parked) = start else { panic!("there are actions") };
        let waits = spawn(parked);
        let change = trial.fleet.put_policy("p", b"{\"inputs\":[{\"type\":\"log\"}]}", false).await.unwrap();
        assert_eq!((change.revision, change.agents, change.changed), (2, 1, true));
        let PollOutcome::Policy(_, policy) = waits.await.unwrap() else { panic!("no policy") };
        assert_eq!(policy.revision, 2);
        let same = trial.fleet.put_policy("p", b"{ \"inputs\": [{\"type\":\"log\"}] }", false).await.unwrap();
        assert_eq!((same.revision, same.changed), (2, false));
        rollout.abort();
    });
}

/// A trial shows what a policy would change, and changes nothing; one that is none leaves the old one in place.
#[test]
fn a_trial_changes_nothing() {
    run(async {
        let trial = Trial::new().await;
        trial.agent().await;
        let change = trial.fleet.put_policy("p", b"{\"inputs\":[]}", true).await.unwrap();
        assert_eq!((change.revision, change.agents), (2, 1));
        assert_eq!(trial.fleet.policy("p").unwrap().revision, 1);
        assert!(trial.fleet.put_policy("p", b"{\"inputs\":7}", false).await.is_err());
        assert_eq!(trial.fleet.policy("p").unwrap().revision, 1);
    });
}

/// An acknowledged policy is known after a crash; an acknowledgement of another policy counts for nothing.
#[test]
fn an_acknowledged_policy_outlives_a_crash() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let whole = raw("{}");
        let event = |action_id| AckEvent {
            action_id,
            agent_id: "",
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        let items =
            trial.fleet.acknowledge(agent.id, &[event("policy:p:1"), event("policy:other:9")]).await.unwrap();
        assert!(items.iter().all(|item| item.status == 200));
        let trial = trial.crashed().await;
        assert_eq!(trial.fleet.show_agent(agent.id).await.unwrap().policy_revision, 1);
        drop(trial.wait(agent.id).await);
        assert_eq!(trial.fleet.view().in_rollout, 0, "it has the newest");
    });
}

/// An action reaches an agent that waits, comes again until it is acknowledged, also after a crash, and then no more.
#[test]
fn an_action_comes_until_it_is_acknowledged() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let waits = spawn(trial.wait(agent.id).await);
        let ordered = trial.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap();
        assert!(matches!(waits.await.unwrap(), PollOutcome::Actions));
        let answer = actions(&trial.fleet, agent.id).await;
        assert_eq!(answer["actions"][0]["id"], ordered.id);
        assert_eq!(answer["actions"][0]["data"]["a"], 1);

        let trial = trial.crashed().await;
        let again = actions(&trial.fleet, agent.id).await;
        assert_eq!(again, answer);
        // It says that it has received it: it does not come again, though it is not acknowledged.
        let said = CheckIn { received: received(&answer), ..current() };
        let start = trial.fleet.check_in(agent.id, &said).await.unwrap();
        assert!(matches!(start, CheckInStart::Wait(_)));

        let whole = raw("{\"said\":true}");
        let event = AckEvent {
            action_id: &ordered.id,
            agent_id: "",
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        let twice = trial.fleet.acknowledge(agent.id, &[event]).await.unwrap();
        assert_eq!(twice[0].status, 200);
        // Also an agent that does not say what it has received waits then.
        drop(trial.wait(agent.id).await);
        let shown = trial.fleet.show_action(&ordered.id).await.unwrap();
        assert_eq!((shown.acknowledged, shown.results[0].event.get()), (Some(1), "{\"said\":true}"));
        let trial = trial.crashed().await;
        assert_eq!(actions(&trial.fleet, agent.id).await["actions"], serde_json::json!([]));
        let event = AckEvent {
            action_id: &ordered.id,
            agent_id: "",
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        assert_eq!(trial.fleet.acknowledge(agent.id, &[event]).await.unwrap()[0].status, 200, "said again");
    });
}

/// Of events about nothing that is queued, so many are looked up.
#[test]
fn invented_actions_are_looked_up_so_far() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let ordered = trial.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap();
        let whole = raw("{}");
        let statuses = async |ids: &[&str]| -> Vec<u16> {
            let mut events = Vec::new();
            for action_id in ids.iter().copied() {
                let (agent_id, whole) = ("", &*whole);
                events.push(AckEvent { action_id, agent_id, whole, has_failed: false, will_retry: false });
            }
            let items = trial.fleet.acknowledge(agent.id, &events).await.unwrap();
            items.iter().map(|item| item.status).collect()
        };
        assert_eq!(statuses(&[&ordered.id]).await, [200]);
        let names: Vec<String> = (0..100).map(|name| name.to_string()).collect();
        let mut ids: Vec<&str> = names.iter().map(String::as_str).collect();
        ids.push(&ordered.id);
        assert_eq!(statuses(&ids).await[100], 404, "it was acknowledged, and is not looked up");
        assert_eq!(statuses(&ids[50..]).await[50], 200);
    });
}

/// An agent that fails and tries again has not answered yet: what it says last counts.
#[test]
fn a_failure_that_is_tried_again_is_not_the_end() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let ordered = trial.fleet.order(order(&[agent.id], "UPGRADE")).await.unwrap();
        let (failed, done) = (raw("{\"error\":\"no network\"}"), raw("{\"error\":\"\"}"));
        let event = |whole, will_retry| AckEvent {
            action_id: &ordered.id,
            agent_id: "",
            whole,
            has_failed: will_retry,
            will_retry,
        };
        for (whole, will_retry, acknowledged) in [(&failed, true, 0), (&failed, true, 0), (&done, false, 1)] {
            trial.fleet.acknowledge(agent.id, &[event(whole, will_retry)]).await.unwrap();
            let shown = trial.fleet.show_action(&ordered.id).await.unwrap();
            assert_eq!((shown.acknowledged, shown.results.len()), (Some(acknowledged), 1));
            assert_eq!(shown.results[0].event.get(), whole.get());
        }
        // One that comes late says nothing new.
        trial.fleet.acknowledge(agent.id, &[event(&failed, true)]).await.unwrap();
        assert_eq!(trial.fleet.show_action(&ordered.id).await.unwrap().acknowledged, Some(1));
    });
}

/// An upgrade expires behind the last agent's beginning: agents drop one that has a time to begin and no expiration. Other actions have
/// no such times.
#[test]
fn upgrades_expire_and_alone_begin_later() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let order = |kind: &str, more: Value| -> ActionOrder {
            let mut order = serde_json::json!({"type": kind, "agents": [agent.id.to_string()], "data": {}});
            order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(order).unwrap()
        };
        let ordered =
            trial.fleet.order(order("UPGRADE", serde_json::json!({"rollout_duration_seconds": 3600})));
        ordered.await.unwrap();
        let action = &actions(&trial.fleet, agent.id).await["actions"][0];
        let (start, end) = (action["start_time"].as_str().unwrap(), action["expiration"].as_str().unwrap());
        assert!(time::parse_text(start).unwrap() < time::parse_text(end).unwrap(), "{start}, {end}");
        for (kind, more) in [
            (
                "UPGRADE",
                serde_json::json!({"rollout_duration_seconds": 3600, "expiration": "2026-01-01T00:00:00Z"}),
            ),
            ("UPGRADE", serde_json::json!({"rollout_duration_seconds": u64::MAX})),
            ("REQUEST_DIAGNOSTICS", serde_json::json!({"rollout_duration_seconds": 60})),
            ("SETTINGS", serde_json::json!({"start_time": "2036-01-01T00:00:00Z"})),
        ] {
            let refused = trial.fleet.order(order(kind, more.clone())).await;
            assert!(matches!(refused, Err(OperatorError::Invalid(_))), "{kind} {more}");
        }
    });
}

/// Agents whose policy is newer than a restored state get the next one that is put.
#[test]
fn a_policy_is_put_above_what_agents_have() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        for (revision, expected) in [(9, 10), (u64::MAX, 11)] {
            let said = CheckIn { policy: Some(("p", revision)), ..current() };
            drop(trial.fleet.check_in(agent.id, &said).await.unwrap());
            let text = format!("{{\"inputs\":[],\"n\":{expected}}}");
            let change = trial.fleet.put_policy("p", text.as_bytes(), false).await.unwrap();
            assert_eq!(change.revision, expected);
        }
    });
}

/// Components in another order are no change; what an agent says of an upgrade is shown while it says so.
#[test]
fn what_agents_say_of_themselves_is_written_when_it_changes() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let says = async |components: &str, upgrade: Option<&str>| {
            let (components, upgrade) = (raw(components), upgrade.map(raw));
            let said =
                CheckIn { components: Some(&components), upgrade_details: upgrade.as_deref(), ..current() };
            drop(trial.fleet.check_in(agent.id, &said).await.unwrap());
            let shown = trial.fleet.show_agent(agent.id).await.unwrap();
            let version = trial.fleet.agent_record(agent.id).await.unwrap().unwrap().1;
            (version, shown.upgrade_details.map(|details| details.get().to_owned()))
        };
        let (first, _) = says("[{\"id\":1},{\"id\":2}]", None).await;
        assert_eq!(says("[{\"id\":2},{\"id\":1}]", None).await.0, first);
        let details = "{\"state\":\"UPG_DOWNLOADING\"}";
        let (second, shown) = says("[{\"id\":2},{\"id\":1}]", Some(details)).await;
        assert!(second > first);
        assert_eq!(shown.as_deref(), Some(details));
        assert_eq!(says("[{\"id\":2},{\"id\":1}]", None).await.1, None);
    });
}

/// An event for another agent, or of an action that the agent has not got, changes nothing.
#[test]
fn events_that_do_not_fit_are_refused_one_by_one() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let other = AgentId::random().to_string();
        let whole = raw("{}");
        let event = |action_id, agent_id| AckEvent {
            action_id,
            agent_id,
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        let items = trial
            .fleet
            .acknowledge(
                agent.id,
                &[event("unknown", ""), event("policy:p:1", &other), event("policy:p:1", "")],
            )
            .await
            .unwrap();
        assert_eq!(items.iter().map(|item| item.status).collect::<Vec<_>>(), [404, 400, 200]);
        assert_eq!(trial.fleet.show_agent(agent.id).await.unwrap().policy_revision, 1);
    });
}

/// An agent that acknowledges its end is nobody from then on; one that says that it failed is still there.
#[test]
fn an_unenrolled_agent_is_gone() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let whole = raw("{}");
        for has_failed in [true, false] {
            let ordered = trial.fleet.order(order(&[agent.id], "UNENROLL")).await.unwrap();
            let event = AckEvent {
                action_id: &ordered.id,
                agent_id: "",
                whole: &whole,
                has_failed,
                will_retry: false,
            };
            assert_eq!(trial.fleet.acknowledge(agent.id, &[event]).await.unwrap()[0].status, 200);
            assert_eq!(trial.fleet.is_key_of(agent.id, secret(&agent).as_bytes()), has_failed);
        }
        let trial = trial.crashed().await;
        assert!(!trial.fleet.is_key_of(agent.id, secret(&agent).as_bytes()));
        assert_eq!(trial.fleet.view().agents, 0);
    });
}

/// An agent with another policy gets it at once, and its revision begins anew.
#[test]
fn a_reassigned_agent_gets_its_policy() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let whole = raw("{}");
        let event = AckEvent {
            action_id: "policy:p:1",
            agent_id: "",
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        trial.fleet.acknowledge(agent.id, &[event]).await.unwrap();
        trial.fleet.put_policy("q", b"{}", false).await.unwrap();
        let rollout = spawn(Arc::clone(&trial.fleet).roll_out());
        let waits = spawn(trial.wait(agent.id).await);
        trial.fleet.reassign(agent.id, "q").await.unwrap();
        let PollOutcome::Policy(_, policy) = waits.await.unwrap() else { panic!("no policy") };
        assert_eq!((&*policy.id, policy.revision), ("q", 1));
        assert!(trial.fleet.remove_policy("q").await.is_err(), "an agent has it");
        assert!(trial.fleet.reassign(agent.id, "none").await.is_err());
        rollout.abort();
    });
}

/// A late acknowledgement of the policy that an agent had before says nothing of the one that it has now.
#[test]
fn an_acknowledgement_of_the_policy_before_does_not_count() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        trial.fleet.put_policy("q", b"{}", false).await.unwrap();
        trial.fleet.reassign(agent.id, "q").await.unwrap();
        let whole = raw("{}");
        let event = AckEvent {
            action_id: "policy:p:7",
            agent_id: "",
            whole: &whole,
            has_failed: false,
            will_retry: false,
        };
        trial.fleet.acknowledge(agent.id, &[event]).await.unwrap();
        assert_eq!(trial.fleet.show_agent(agent.id).await.unwrap().policy_revision, 0);
    });
}

/// A check-in clears the mark that an agent was uninstalled.
#[test]
fn an_agent_that_comes_back_is_not_gone() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        assert!(trial.fleet.audit_unenroll(agent.id, "orphaned").await.unwrap());
        assert!(!trial.fleet.audit_unenroll(agent.id, "orphaned").await.unwrap());
        let trial = trial.crashed().await;
        assert!(trial.fleet.show_agent(agent.id).await.unwrap().audit_unenrolled.is_some());
        drop(trial.wait(agent.id).await);
        assert!(trial.fleet.show_agent(agent.id).await.unwrap().audit_unenrolled.is_none());
    });
}

/// Data that agents cannot read is refused: they would get it again and again.
#[test]
fn an_action_has_data_that_agents_can_read() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
        for data in ["7", "\"x\"", "{\"a\":1e999}", &deep] {
            let mut order = order(&[agent.id], "SETTINGS");
            order.data = Some(raw(data));
            assert!(matches!(trial.fleet.order(order).await, Err(OperatorError::Invalid(_))), "{data:.40}");
        }
        assert!(actions(&trial.fleet, agent.id).await["actions"].as_array().unwrap().is_empty());
    });
}

/// Changed metadata is stored at once, the time of the last check-in later.
#[test]
fn what_an_agent_says_is_kept() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let (local, components) = (raw("{\"host\":\"h\"}"), raw("[1]"));
        let said = CheckIn {
            status: Some(AgentStatus::Degraded),
            local_metadata: Some(&local),
            components: Some(&components),
            ..current()
        };
        drop(trial.fleet.check_in(agent.id, &said).await.unwrap());
        trial.fleet.save_seen().await.unwrap();
        let trial = trial.crashed().await;
        let shown = trial.fleet.show_agent(agent.id).await.unwrap();
        assert_eq!(shown.status, "degraded");
        assert!(shown.last_seen.is_some());
        assert_eq!(shown.local_metadata.unwrap().get(), local.get());
        assert_eq!(shown.components.unwrap().get(), components.get());
    });
}

/// When the fleet stops, every agent that waits has an answer, and none waits any more.
#[test]
fn nobody_waits_for_a_fleet_that_stops() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let waits = spawn(trial.wait(agent.id).await);
        tokio::task::yield_now().await;
        trial.fleet.stop();
        assert!(matches!(waits.await.unwrap(), PollOutcome::Stopped));
        let late = trial.fleet.check_in(agent.id, &current()).await.unwrap();
        assert!(matches!(late, CheckInStart::Actions));
    });
}

/// An agent sends with the key that its policy brings, for the tenant of the policy, until it leaves or has another policy; after a
/// crash too.
#[test]
fn an_output_key_is_valid_while_the_agent_has_the_policy() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let put = |trial: &Trial, tenant: &str| {
            let policy =
                format!("{{\"outputs\":{{\"o\":{{\"type\":\"tidegate\",\"tenant\":\"{tenant}\"}}}}}}");
            let fleet = Arc::clone(&trial.fleet);
            async move { fleet.put_policy("p", policy.as_bytes(), false).await.unwrap() }
        };
        put(&trial, "shop").await;
        let shown = trial.fleet.show_policy("p").await.unwrap();
        let again = trial.fleet.put_policy("p", shown.as_bytes(), false).await.unwrap();
        assert!(!again.changed, "what is shown can be put: {shown}");
        let text = trial.fleet.output_key(agent.id, &trial.fleet.policy("p").unwrap()).unwrap();
        let (id, key) = text.split_once(':').unwrap();
        let tenant = |fleet: &Arc<Fleet>, key: &str| match fleet
            .api_key_issuer()
            .verify(id.as_bytes(), key.as_bytes())
        {
            IssuedKey::Valid(caller) => match caller.owner() {
                Some(TenantRule::Named(name)) => Some(name.to_string()),
                other => panic!("{other:?}"),
            },
            IssuedKey::Invalid => None,
            IssuedKey::Foreign => panic!("it is no key of an agent"),
        };
        assert_eq!(tenant(&trial.fleet, key), Some("shop".to_owned()));
        assert_eq!(tenant(&trial.fleet, "x"), None);
        assert!(matches!(trial.fleet.api_key_issuer().verify(b"beats", b"x"), IssuedKey::Foreign));

        let trial = trial.crashed().await;
        assert_eq!(tenant(&trial.fleet, key), Some("shop".to_owned()));
        put(&trial, "lab").await;
        assert_eq!(tenant(&trial.fleet, key), Some("lab".to_owned()));

        trial.fleet.put_policy("other", b"{}", false).await.unwrap();
        trial.fleet.reassign(agent.id, "other").await.unwrap();
        assert_eq!(tenant(&trial.fleet, key), None);
        trial.fleet.reassign(agent.id, "p").await.unwrap();
        assert_eq!(tenant(&trial.fleet, key), Some("lab".to_owned()));
        trial.fleet.force_unenroll(agent.id).await.unwrap();
        assert_eq!(tenant(&trial.fleet, key), None);
    });
}

/// A roll-out counts the agents that had an older revision: those that have the new one, and not those that left.
#[test]
fn a_roll_out_shows_its_progress() {
    run(async {
        let trial = Trial::new().await;
        let (first, second) = (trial.agent().await, trial.agent().await);
        let rollout = || {
            let policies = trial.fleet.list_policies();
            policies[0]
                .rollout
                .map(|rollout| (rollout.agents, rollout.arrived, rollout.last_seconds.is_some()))
        };
        assert_eq!(rollout(), None, "nobody was there when it was put");
        let changed = trial.fleet.put_policy("p", b"{}", false).await.unwrap();
        assert_eq!((changed.revision, rollout()), (2, Some((2, 0, false))));
        let has = |revision| CheckIn { policy: Some(("p", revision)), ..current() };
        trial.fleet.check_in(first.id, &has(1)).await.unwrap();
        assert_eq!(rollout(), Some((2, 0, false)));
        trial.fleet.check_in(first.id, &has(2)).await.unwrap();
        trial.fleet.check_in(first.id, &has(2)).await.unwrap();
        assert_eq!(rollout(), Some((2, 1, false)));
        trial.fleet.force_unenroll(second.id).await.unwrap();
        assert_eq!(rollout(), Some((1, 1, true)));
    });
}
