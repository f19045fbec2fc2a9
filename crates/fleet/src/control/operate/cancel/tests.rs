use super::*;
use crate::agent_id::AgentId;
use crate::control::follow::tests::{Replica, run as run_with_server};
use crate::control::tests::{
    Trial, acknowledged, actions, current, enrollment, order, raw, received, run, spawn,
};
use crate::control::{AckEvent, CheckIn, CheckInStart};
use crate::registry::PollOutcome;
use crate::store::{KeyRange, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate_test_postgres::PostgresServer;

async fn check_in(fleet: &Fleet, id: AgentId, token: Option<u64>) -> CheckInStart {
    let said = CheckIn { received: token, policy: Some(("p", 1)), ..current() };
    fleet.check_in(id, &said).await.unwrap()
}

/// The actions that an agent gets when it has received those up to a token, and its token from then on.
async fn given(fleet: &Fleet, id: AgentId, token: Option<u64>) -> (Vec<Value>, Option<u64>) {
    match check_in(fleet, id, token).await {
        CheckInStart::Wait(_) => (Vec::new(), token),
        CheckInStart::Actions => {
            let answer = actions(fleet, id).await;
            (answer["actions"].as_array().unwrap().clone(), received(&answer))
        }
    }
}

async fn waits(fleet: &Fleet, id: AgentId, token: Option<u64>) -> bool {
    matches!(check_in(fleet, id, token).await, CheckInStart::Wait(_))
}

/// The queued actions of each agent.
async fn queues(store: &dyn Store) -> BTreeMap<AgentId, Vec<String>> {
    let range = KeyRange { prefix: b"", after: None, limit: usize::MAX };
    let mut queues = BTreeMap::<_, Vec<String>>::new();
    for (key, stored) in store.list(Table::Queue, range).await.unwrap() {
        let queued: QueueRecord = decode(&stored.value).unwrap();
        queues.entry(QueueRecord::place(&key).unwrap().0).or_default().push(queued.action_id);
    }
    queues
}

/// Who has not got a cancelled action does not get it, who has got it is told, and who has done it hears nothing; after a crash too.
#[test]
fn only_agents_with_the_action_are_told() {
    run(async {
        let trial = Trial::new().await;
        let agents = trial.agents(3).await;
        let [has_it, has_not, has_done] = agents[..] else { panic!("{agents:?}") };
        let action = trial.fleet.order(order(&agents, "SETTINGS")).await.unwrap().id;
        let (_, token) = given(&trial.fleet, has_it, None).await;
        let (_, token_done) = given(&trial.fleet, has_done, None).await;
        assert_eq!(acknowledged(&trial.fleet, has_done, &action).await, 200);
        let cancelled = trial.fleet.cancel(&action).await.unwrap();
        assert_eq!(cancelled.unanswered, 2);

        let trial = trial.crashed().await;
        let listed = trial.fleet.list_actions(10).await.unwrap();
        let kinds: Vec<_> = listed.iter().map(|view| (&*view.kind, view.cancelled_at.is_some())).collect();
        assert_eq!(kinds, [("CANCEL", false), ("SETTINGS", true)]);
        let (got, token) = given(&trial.fleet, has_it, token).await;
        assert_eq!(got.len(), 1);
        assert_eq!((&got[0]["type"], &got[0]["id"]), (&json!("CANCEL"), &json!(cancelled.cancel_action)));
        assert_eq!(got[0]["data"], json!({"target_id": action}));
        for (agent, token) in [(has_not, None), (has_done, token_done)] {
            let (got, token) = given(&trial.fleet, agent, token).await;
            assert_eq!((got, waits(&trial.fleet, agent, token).await), (Vec::new(), true));
        }

        assert_eq!(acknowledged(&trial.fleet, has_it, &cancelled.cancel_action).await, 200);
        assert!(waits(&trial.fleet, has_it, token).await);
        let shown = trial.fleet.show_action(&action).await.unwrap();
        assert_eq!((shown.acknowledged, shown.cancelled), (Some(1), Some(1)));
        assert!(
            shown.results.iter().all(|result| result.cancelled == (result.agent_id == has_it.to_string()))
        );
        assert!(queues(&trial.store).await.is_empty());
    });
}

/// An agent that waits is told at once; one that does not say what it has received is told too, since it may have it.
#[test]
fn agents_that_may_have_it_are_told() {
    run(async {
        let trial = Trial::new().await;
        let agents = trial.agents(2).await;
        let [waiting, silent] = agents[..] else { panic!("{agents:?}") };
        let action = trial.fleet.order(order(&agents, "SETTINGS")).await.unwrap().id;
        let (_, token) = given(&trial.fleet, waiting, None).await;
        given(&trial.fleet, silent, None).await;
        let CheckInStart::Wait(parked) = check_in(&trial.fleet, waiting, token).await else {
            panic!("it has all")
        };
        let parked = spawn(parked);
        trial.fleet.cancel(&action).await.unwrap();
        assert!(matches!(parked.await.unwrap(), PollOutcome::Actions));
        for (agent, token) in [(waiting, token), (silent, None)] {
            let (got, _) = given(&trial.fleet, agent, token).await;
            let kinds: Vec<_> = got.iter().map(|action| action["type"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["CANCEL"]);
        }
    });
}

/// What an agent says of an action counts, whether it was done before it was cancelled or all the same.
#[test]
fn an_answer_counts_also_when_it_is_late() {
    run(async {
        let trial = Trial::new().await;
        let agents = trial.agents(4).await;
        let action = trial.fleet.order(order(&agents, "SETTINGS")).await.unwrap().id;
        for agent in &agents {
            given(&trial.fleet, *agent, None).await;
        }
        let cancel = trial.fleet.cancel(&action).await.unwrap().cancel_action;
        let whole = raw("{\"done\":true}");
        let event = |action_id, has_failed| AckEvent {
            action_id,
            agent_id: "",
            whole: &whole,
            has_failed,
            will_retry: false,
        };
        let (done, cancelled) = (event(&action, false), event(&cancel, false));
        // In two requests or in one, in either order; and one that fails to cancel.
        assert_eq!(trial.fleet.acknowledge(agents[0], &[cancelled]).await.unwrap()[0].status, 200);
        assert_eq!(trial.fleet.show_action(&action).await.unwrap().cancelled, Some(1));
        for events in [vec![done], vec![event(&action, false)]] {
            assert_eq!(trial.fleet.acknowledge(agents[0], &events).await.unwrap()[0].status, 200);
        }
        for (agent, events) in [
            (agents[1], [event(&cancel, false), event(&action, false)]),
            (agents[2], [event(&action, false), event(&cancel, false)]),
            (agents[3], [event(&cancel, true), event(&action, false)]),
        ] {
            let items = trial.fleet.acknowledge(agent, &events).await.unwrap();
            assert!(items.iter().all(|item| item.status == 200), "{items:?}");
        }
        let shown = trial.fleet.show_action(&action).await.unwrap();
        assert_eq!((shown.acknowledged, shown.cancelled), (Some(4), Some(0)));
        assert!(queues(&trial.store).await.is_empty());
    });
}

/// An agent that did it before it heard of the end is not told any more.
#[test]
fn a_cancellation_of_what_is_done_is_not_delivered() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agents(1).await[0];
        let action = trial.fleet.order(order(&[agent], "SETTINGS")).await.unwrap().id;
        let (_, token) = given(&trial.fleet, agent, None).await;
        trial.fleet.cancel(&action).await.unwrap();
        assert_eq!(acknowledged(&trial.fleet, agent, &action).await, 200);
        let (got, token) = given(&trial.fleet, agent, token).await;
        assert_eq!((got, waits(&trial.fleet, agent, token).await), (Vec::new(), true));
        assert!(queues(&trial.store).await.is_empty());
    });
}

/// What cannot be cancelled is said, and cancelling again changes nothing.
#[test]
fn what_cannot_be_cancelled_is_said() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agents(1).await[0];
        let refused = trial.fleet.cancel("nothing").await.unwrap_err();
        assert_eq!(refused.to_string(), "there is no action `nothing`");
        let action = trial.fleet.order(order(&[agent], "SETTINGS")).await.unwrap().id;
        let cancel = trial.fleet.cancel(&action).await.unwrap().cancel_action;
        let refused = trial.fleet.cancel(&cancel).await.unwrap_err();
        assert!(matches!(refused, OperatorError::Invalid(_)), "{refused}");
        let queued = queues(&trial.store).await;
        let again = trial.fleet.cancel(&action).await.unwrap();
        assert_eq!((again.cancel_action, again.unanswered), (cancel, 1));
        assert_eq!(queues(&trial.store).await, queued);

        let done = trial.fleet.order(order(&[agent], "SETTINGS")).await.unwrap().id;
        given(&trial.fleet, agent, None).await;
        assert_eq!(acknowledged(&trial.fleet, agent, &done).await, 200);
        let refused = trial.fleet.cancel(&done).await.unwrap_err();
        assert!(matches!(&refused, OperatorError::InUse(words) if words.contains("is done")), "{refused}");
    });
}

/// However many agents were told when the process dies, the same command tells the others, each once.
#[test]
fn a_cancellation_that_was_cut_short_is_completed() {
    run(async {
        const AGENTS: usize = 2 * TOGETHER + 500;
        for survived in 0..=4 {
            let trial = Trial::new().await;
            let agent = trial.agents(1).await[0];
            let action = trial.fleet.order(order(&[agent], "SETTINGS")).await.unwrap().id;
            let queued = encode(&QueueRecord { action_id: action.clone(), start_ms: None, cancels: None });
            let others = (1..AGENTS)
                .map(|_| Write::put(Table::Queue, QueueRecord::key(AgentId::random(), 2), queued.clone()));
            trial.store.commit(others.collect::<Vec<_>>().into()).await.unwrap();
            let ended = trial.dying_after(survived).await.cancel(&action).await;
            assert_eq!(ended.is_ok(), survived == 4, "the mark, and three batches: {ended:?}");

            let trial = trial.crashed().await;
            let cancelled = trial.fleet.cancel(&action).await.unwrap();
            assert_eq!(cancelled.unanswered, AGENTS);
            let queues = queues(&trial.store).await;
            let both = [action, cancelled.cancel_action];
            assert!(queues.values().all(|queue| *queue == both), "killed after {survived}");
            assert_eq!(queues.len(), AGENTS);
        }
    });
}

/// With two gateways: cancelled at one, the other does not deliver it, and tells an agent that has come from the first with it.
#[test]
fn another_gateway_tells_agents() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run_with_server(async {
        let (a, b) = (Replica::start(&url).await, Replica::start(&url).await);
        a.fleet.put_policy("p", b"{}", false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap().id;
        let mut agents = Vec::new();
        for _ in 0..2 {
            let agent = a.fleet.enroll(&enrollment(&token)).await.unwrap().id;
            assert!(b.fleet.find_agent(agent).await.unwrap());
            agents.push(agent);
        }
        let [has_it, has_not] = agents[..] else { panic!("{agents:?}") };
        let action = a.fleet.order(order(&agents, "SETTINGS")).await.unwrap().id;
        let (got, token) = given(&a.fleet, has_it, None).await;
        assert_eq!(got.len(), 1);
        // It comes to B, which may not know yet of the action that it has received.
        let parked = check_in(&b.fleet, has_it, token).await;
        let both = tokio::join!(a.fleet.cancel(&action), b.fleet.cancel(&action));
        assert!(both.0.is_ok() || both.1.is_ok(), "{both:?}");
        a.fleet.cancel(&action).await.unwrap();
        if let CheckInStart::Wait(parked) = parked {
            assert!(matches!(parked.await, PollOutcome::Actions));
        }
        let mut got = Vec::new();
        while got.is_empty() {
            // B has to hear of the cancellation for the agent that waits.
            got = actions(&b.fleet, has_it).await["actions"].as_array().unwrap().clone();
            tokio::task::yield_now().await;
        }
        assert!(got.iter().all(|action| action["type"] == "CANCEL"), "{got:?}");
        assert_eq!(got[0]["data"]["target_id"], action);
        let (got, _) = given(&b.fleet, has_not, None).await;
        assert_eq!(got, Vec::<Value>::new());
    });
}
