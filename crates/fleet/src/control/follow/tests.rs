use super::*;
use crate::OutputSettings;
use crate::control::tests::{KEEP_ACTIONS, actions, arena, current, enrollment, order, raw, secret, spawn};
use crate::control::{AckEvent, CheckIn, CheckInStart, Enrolled, FleetError, Proof, Settings};
use crate::registry::{ParkedPoll, PollOutcome};
use crate::store::{PostgresSettings, PostgresStore, Store, Write};
use std::time::Instant;
use tidegate_arena::{Arena, Share};
use tidegate_test_postgres::PostgresServer;

const SOON: Duration = Duration::from_secs(60);

/// A gateway's part of a fleet.
pub(in crate::control) struct Replica {
    pub(in crate::control) store: PostgresStore,
    pub(in crate::control) fleet: Arc<Fleet>,
    follower: tokio::task::JoinHandle<()>,
}

impl Replica {
    pub(in crate::control) async fn start(url: &str) -> Replica {
        Replica::start_in(url, arena()).await
    }

    /// One that has this memory for agents and policies.
    async fn start_in(url: &str, memory: Arena) -> Replica {
        let store = PostgresStore::open(&PostgresSettings { url: url.to_owned(), ca_file: None }).unwrap();
        let long_poll = Duration::from_secs(3600);
        let settings = Settings {
            long_poll,
            max_body: 1 << 20,
            keep_actions: KEEP_ACTIONS,
            outputs: OutputSettings::default(),
        };
        let fleet = Fleet::load(Arc::new(store.clone()), settings, (arena(), memory)).await.unwrap();
        let follower = spawn(Arc::clone(&fleet).follow());
        spawn(Arc::clone(&fleet).roll_out());
        Replica { store, fleet, follower }
    }

    async fn wait(&self, id: AgentId, said: &CheckIn<'_>) -> ParkedPoll {
        match self.fleet.check_in(id, said).await.unwrap() {
            CheckInStart::Wait(parked) => parked,
            CheckInStart::Actions => panic!("there are actions"),
        }
    }

    async fn acknowledges(&self, id: AgentId, action: &str) -> u16 {
        let whole = raw("{}");
        let event =
            AckEvent { action_id: action, agent_id: "", whole: &whole, has_failed: false, will_retry: false };
        self.fleet.acknowledge(id, &[event]).await.unwrap()[0].status
    }
}

pub(in crate::control) fn run(trial: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(2 * SOON, trial).await.unwrap() });
}

/// Waits for what is followed.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < SOON, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn proves(fleet: &Fleet, proof: Proof) -> bool {
    match proof {
        Proof::Valid => true,
        Proof::Invalid | Proof::Busy => false,
        Proof::Unknown(lookup) => fleet.look_up(*lookup).await.is_ok(),
    }
}

async fn enrolled(at: &Replica, token: &str) -> Enrolled {
    at.fleet.enroll(&enrollment(token)).await.unwrap()
}

const POLICY: &[u8] = b"{\"inputs\":[{\"type\":\"logfile\"}]}";

/// Another gateway knows at once, when it is asked, what the first has answered; and soon where an agent waits for it.
#[test]
fn an_agent_may_come_anywhere() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run(async {
        let (a, b) = (Replica::start(&url).await, Replica::start(&url).await);
        a.fleet.put_policy("p", POLICY, false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap();
        let id_and_secret = crate::control::tests::decoded(token.token.as_ref().unwrap());
        let (token, of_token) = id_and_secret.split_once(':').unwrap();
        let proof = b.fleet.prove_token(token, of_token.as_bytes());
        assert!(proves(&b.fleet, proof).await, "the token is looked up");
        let agent = enrolled(&b, token).await;
        let key = secret(&agent);
        let proof = a.fleet.prove_agent(agent.id, key.as_bytes());
        assert!(proves(&a.fleet, proof).await, "the agent is looked up");

        // The policy, at A; acknowledged at B.
        let outcome = a.wait(agent.id, &current()).await.await;
        assert!(matches!(outcome, PollOutcome::Policy(_, policy) if policy.revision == 1));
        assert_eq!(b.acknowledges(agent.id, "policy:p:1").await, 200);

        // Put at A, delivered at B, acknowledged at A.
        let has = |policy: &'static str, revision| CheckIn { policy: Some((policy, revision)), ..current() };
        let waits = b.wait(agent.id, &has("p", 1)).await;
        a.fleet.put_policy("p", b"{}", false).await.unwrap();
        assert!(matches!(waits.await, PollOutcome::Policy(_, policy) if policy.revision == 2));
        let waits = b.wait(agent.id, &has("p", 2)).await;
        let ordered = a.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap();
        assert!(matches!(waits.await, PollOutcome::Actions));
        assert_eq!(actions(&b.fleet, agent.id).await["actions"][0]["id"], ordered.id);
        assert_eq!(a.acknowledges(agent.id, &ordered.id).await, 200);
        assert_eq!(b.acknowledges(agent.id, &ordered.id).await, 200, "again, after a lost answer");
        assert_eq!(b.fleet.show_action(&ordered.id).await.unwrap().acknowledged, Some(1));

        // Orders at both at once: their numbers are in the order in which they are visible, so none is passed over.
        let both = tokio::join!(
            a.fleet.order(order(&[agent.id], "SETTINGS")),
            b.fleet.order(order(&[agent.id], "UPGRADE"))
        );
        assert_eq!(actions(&a.fleet, agent.id).await["actions"].as_array().unwrap().len(), 2);
        for ordered in [both.0, both.1] {
            assert_eq!(b.acknowledges(agent.id, &ordered.unwrap().id).await, 200);
        }
        // What is acknowledged there is not queued here.
        let received = CheckIn { received: Some(u64::MAX), ..has("p", 2) };
        until("nothing is left to do", async || match b.fleet.check_in(agent.id, &received).await.unwrap() {
            CheckInStart::Wait(_) => true,
            CheckInStart::Actions => {
                actions(&b.fleet, agent.id).await;
                false
            }
        })
        .await;

        // Another policy, which B does not know yet.
        let waits = b.wait(agent.id, &received).await;
        a.fleet.put_policy("other", POLICY, false).await.unwrap();
        a.fleet.reassign(agent.id, "other").await.unwrap();
        assert!(matches!(waits.await, PollOutcome::Policy(_, policy) if &*policy.id == "other"));

        // Removed at A.
        let waits = b.wait(agent.id, &has("other", 1)).await;
        a.fleet.force_unenroll(agent.id).await.unwrap();
        assert!(matches!(waits.await, PollOutcome::Gone));
        let proof = b.fleet.prove_agent(agent.id, key.as_bytes());
        assert!(!proves(&b.fleet, proof).await);
        assert!(matches!(b.fleet.prove_agent(agent.id, key.as_bytes()), Proof::Invalid), "it is remembered");
        assert!(matches!(b.fleet.check_in(agent.id, &current()).await, Err(FleetError::Unauthorized)));

        // A policy that was removed and put again begins anew, at B as at A.
        a.fleet.remove_policy("other").await.unwrap();
        a.fleet.put_policy("other", b"{\"inputs\":[]}", false).await.unwrap();
        until("the policy is the new one", async || {
            b.fleet.policy("other").is_some_and(|policy| policy.contains("[]"))
        })
        .await;
        b.fleet.revoke_token(token).await.unwrap();
        until("the token is revoked", async || !a.fleet.is_enrollment_token(token, of_token.as_bytes()))
            .await;
    });
}

/// Wrong keys cost the database a bounded number of lookups, and right ones are not taken for wrong.
#[test]
fn wrong_keys_are_looked_up_within_bounds() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run(async {
        let a = Replica::start(&url).await;
        let (mut looked_up, mut busy) = (0, 0);
        let begun = Instant::now();
        for number in 0..100_000_u32 {
            match a.fleet.prove_agent(AgentId::random(), &number.to_be_bytes()) {
                Proof::Unknown(lookup) if number < 100 => {
                    looked_up += 1;
                    assert!(matches!(a.fleet.look_up(*lookup).await, Err(FleetError::Unauthorized)));
                }
                Proof::Unknown(_) => looked_up += 1,
                Proof::Busy => busy += 1,
                Proof::Valid | Proof::Invalid => panic!("an unknown key is neither"),
            }
        }
        let seconds = begun.elapsed().as_secs() + 2;
        assert!(looked_up <= 200 * seconds, "{looked_up} lookups in {seconds} s");
        assert!(looked_up + busy == 100_000 && busy > 0);
    });
}

/// While the database is away, who has nothing new waits; what changed meanwhile is known when it is back, also what notifications
/// did not tell.
#[test]
fn all_is_read_again_behind_an_outage() {
    let Some(mut server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run(async {
        let (a, b) = (Replica::start(&url).await, Replica::start(&url).await);
        a.fleet.put_policy("p", POLICY, false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap().id;
        let (kept, gone) = (enrolled(&a, &token).await, enrolled(&a, &token).await);
        until("B knows both", async || b.fleet.view().agents == 2).await;
        assert_eq!(b.acknowledges(kept.id, "policy:p:1").await, 200);

        server.stop();
        let waits = b.wait(kept.id, &CheckIn { policy: Some(("p", 1)), ..current() }).await;
        let refused = a.fleet.enroll(&enrollment(&token)).await;
        assert!(matches!(refused, Err(FleetError::Store(StoreError::Unavailable(_)))), "{refused:?}");
        server.go_on();

        // As a server does that lacks what another had, and gives its versions to others.
        server.sql(
            "fleet",
            "UPDATE tidegate_fleet_meta SET position = 1; UPDATE tidegate_fleet_state SET version = 1",
        );
        server.sql("fleet", "DELETE FROM tidegate_fleet_state WHERE tbl = 'tokens'");
        let key = gone.id.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        server.sql(
            "fleet",
            &format!("DELETE FROM tidegate_fleet_state WHERE tbl = 'agents' AND key = '\\x{key}'"),
        );
        until("A works again", async || a.fleet.put_policy("p", b"{}", false).await.is_ok()).await;
        assert!(matches!(waits.await, PollOutcome::Policy(_, policy) if policy.revision == 2));
        until("what is gone is forgotten", async || {
            [&a, &b]
                .iter()
                .all(|replica| replica.fleet.view().agents == 1 && replica.fleet.list_tokens().is_empty())
        })
        .await;
        assert!([&a, &b].iter().all(|replica| !replica.follower.is_finished() && !replica.store.has_ended()));
    });
}

/// A gateway without the memory for what another has put skips that, follows all else, and takes it when there is memory again.
#[test]
fn what_there_is_no_memory_for_stops_nothing() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run(async {
        let memory = arena();
        let (a, b) = (Replica::start(&url).await, Replica::start_in(&url, memory.clone()).await);
        a.fleet.put_policy("p", POLICY, false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap().id;
        until("B knows both", async || b.fleet.policy("p").is_some() && b.fleet.list_tokens().len() == 1)
            .await;
        let held = memory.try_charge(Share::Ingest, memory.free(Share::Ingest)).unwrap();
        a.fleet.put_policy("later", POLICY, false).await.unwrap();
        let agent = enrolled(&a, &token).await;
        let ordered = a.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap();
        a.fleet.revoke_token(&token).await.unwrap();
        until("B knows that the token is revoked", async || b.fleet.list_tokens().is_empty()).await;
        assert!(b.fleet.policy("later").is_none() && b.fleet.view().agents == 0);

        drop(held);
        let has = CheckIn { policy: Some(("p", 1)), ..current() };
        until("B knows the rest", async || {
            let has_action = matches!(b.fleet.check_in(agent.id, &has).await, Ok(CheckInStart::Actions));
            has_action && b.fleet.policy("later").is_some()
        })
        .await;
        assert_eq!(actions(&b.fleet, agent.id).await["actions"][0]["id"], ordered.id);
        assert!(!b.follower.is_finished());
    });
}

/// Of two gateways that saw an agent, the state has the later time, whoever writes last; an unknown record stops nobody.
#[test]
fn the_latest_sight_wins() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run(async {
        let (a, b) = (Replica::start(&url).await, Replica::start(&url).await);
        a.fleet.put_policy("p", POLICY, false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap().id;
        let agent = enrolled(&a, &token).await;
        until("B knows it", async || b.fleet.view().agents == 1).await;
        let sees = |replica: &Replica, at_s| {
            replica.fleet.registry.with(agent.id, |agent| (agent.seen_s, agent.is_unsaved) = (at_s, true));
        };
        sees(&a, 100);
        sees(&b, 200);
        b.fleet.save_seen().await.unwrap();
        // It may have learned of the later one already; then it has nothing to write.
        a.fleet.save_seen().await.unwrap();
        a.store.commit(vec![Write::put(Table::Tokens, "future", vec![9, b'{'])].into()).await.unwrap();
        until("the later time is in the state", async || {
            b.fleet.save_seen().await.unwrap();
            let stored = a.store.get(Table::Seen, &agent.id.to_bytes()).await.unwrap();
            let record: Option<SeenRecord> = stored.map(|stored| decode(&stored.value).unwrap());
            let at_a = a.fleet.registry.with(agent.id, |agent| agent.seen_s);
            record.is_some_and(|record| record.at_s == 200) && at_a == Some(200)
        })
        .await;
    });
}
