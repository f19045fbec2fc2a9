use super::*;
use crate::control::follow::tests::{Replica, run as run_with_server};
use crate::control::tests::{
    KEEP_ACTIONS, Trial, acknowledged, actions, current, enrollment, order, raw, received, run,
};
use crate::control::{CheckIn, CheckInStart, OperatorError};
use crate::record::ResultRecord;
use crate::store::Store;
use tidegate_test_postgres::PostgresServer;

const HOUR_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn keep_ms() -> u64 {
    u64::try_from(KEEP_ACTIONS.as_millis()).unwrap()
}

/// The keys of a table.
async fn keys(fleet: &Fleet, table: Table) -> usize {
    let range = KeyRange { prefix: b"", after: None, limit: usize::MAX };
    fleet.store.list(table, range).await.unwrap().len()
}

/// How many actions, entries of queues and answers the state has.
async fn sizes(fleet: &Fleet) -> [usize; 3] {
    [keys(fleet, Table::Actions).await, keys(fleet, Table::Queue).await, keys(fleet, Table::Results).await]
}

/// An action goes with its answers when it was finished for the time that actions are kept, and one that an agent has to do stays.
#[test]
fn finished_actions_are_removed_in_time() {
    run(async {
        let trial = Trial::new().await;
        let both = trial.agents(2).await;
        let done = trial.fleet.order(order(&both, "SETTINGS")).await.unwrap().id;
        let open = trial.fleet.order(order(&both, "UPGRADE")).await.unwrap().id;
        for agent in both.clone() {
            assert_eq!(acknowledged(&trial.fleet, agent, &done).await, 200);
        }
        assert_eq!(acknowledged(&trial.fleet, both[0], &open).await, 200);

        // One that is new may still be on its way into the queues.
        trial.fleet.remove_old_actions(time::now_ms()).await.unwrap();
        assert_eq!(trial.fleet.show_action(&done).await.unwrap().finished_at, None);
        let found = time::now_ms() + HOUR_MS;
        trial.fleet.remove_old_actions(found).await.unwrap();
        assert_eq!(trial.fleet.show_action(&done).await.unwrap().finished_at, Some(time::text(found)));
        trial.fleet.remove_old_actions(found + keep_ms() - 1).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [2, 1, 3]);
        assert_eq!(acknowledged(&trial.fleet, both[0], &done).await, 200, "an answer that comes again");

        let trial = trial.crashed().await;
        trial.fleet.remove_old_actions(found + keep_ms()).await.unwrap();
        assert!(matches!(trial.fleet.show_action(&done).await, Err(OperatorError::Unknown(_))));
        let shown = trial.fleet.show_action(&open).await.unwrap();
        assert_eq!((shown.acknowledged, shown.finished_at), (Some(1), None));
        assert_eq!(sizes(&trial.fleet).await, [1, 1, 1]);

        // The agent that has to do it leaves: then nobody has.
        trial.fleet.force_unenroll(both[1]).await.unwrap();
        trial.fleet.remove_old_actions(found + 2 * keep_ms()).await.unwrap();
        trial.fleet.remove_old_actions(found + 3 * keep_ms()).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [0; 3]);
    });
}

/// Queue entries of removed agents do not keep an action.
#[test]
fn entries_of_agents_that_are_gone_are_removed() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let action = trial.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap().id;
        let left = encode(&QueueRecord { action_id: action, start_ms: None, cancels: None });
        let left = Write::put(Table::Queue, QueueRecord::key(AgentId::random(), 1), left);
        trial.store.commit(vec![left].into()).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [1, 2, 0]);
        trial.fleet.remove_old_actions(time::now_ms()).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [1, 1, 0], "the entry of the agent that is there stays");
    });
}

/// An action that has expired is not delivered; an agent that has got it before may answer for a day, and then it is in no queue.
#[test]
fn an_expired_action_leaves_the_queues() {
    run(async {
        let trial = Trial::new().await;
        let all = trial.agents(3).await;
        let expires = time::now_ms() + HOUR_MS;
        let mut order = order(&all, "SETTINGS");
        order.expiration = Some(time::text(expires));
        let action = trial.fleet.order(order).await.unwrap().id;
        // Two have it before it expires.
        let got = actions(&trial.fleet, all[0]).await;
        assert_eq!(got["actions"][0]["id"], action);

        trial.fleet.remove_old_actions(expires + DAY_MS - 1).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [1, 3, 0]);
        assert_eq!(acknowledged(&trial.fleet, all[0], &action).await, 200, "it is late, and it counts");
        trial.fleet.remove_old_actions(expires + DAY_MS).await.unwrap();
        assert_eq!(sizes(&trial.fleet).await, [1, 0, 1]);
        assert_eq!(acknowledged(&trial.fleet, all[1], &action).await, 404);
        let shown = trial.fleet.show_action(&action).await.unwrap();
        assert_eq!(shown.finished_at, Some(time::text(expires + DAY_MS)));

        // An agent that was told of it finds nothing, once, and then waits.
        assert_eq!(actions(&trial.fleet, all[2]).await["actions"], serde_json::json!([]));
        drop(trial.wait(all[2]).await);
    });
}

/// The numbers of an agent stay right when entries of its queue are removed: it gets what comes later, once.
#[test]
fn removed_entries_hide_no_later_action() {
    run(async {
        let trial = Trial::new().await;
        let agent = trial.agent().await;
        let mut expiring = order(&[agent.id], "SETTINGS");
        expiring.expiration = Some(time::text(time::now_ms() + HOUR_MS));
        trial.fleet.order(expiring).await.unwrap();
        let token = received(&actions(&trial.fleet, agent.id).await);
        trial.fleet.remove_old_actions(time::now_ms() + 2 * DAY_MS).await.unwrap();
        let starts_waiting = async |trial: &Trial, token| {
            let said = CheckIn { received: token, ..current() };
            matches!(trial.fleet.check_in(agent.id, &said).await.unwrap(), CheckInStart::Wait(_))
        };
        assert!(starts_waiting(&trial, token).await, "it has received all there is");
        let trial = trial.crashed().await;
        assert!(starts_waiting(&trial, token).await, "nothing is queued");
        let later = trial.fleet.order(order(&[agent.id], "UPGRADE")).await.unwrap().id;
        assert!(!starts_waiting(&trial, token).await);
        let got = actions(&trial.fleet, agent.id).await;
        assert_eq!(got["actions"].as_array().unwrap().len(), 1);
        assert_eq!(got["actions"][0]["id"], later);
        assert!(starts_waiting(&trial, received(&got)).await, "it comes once");
    });
}

/// However many of its writes a round has done when the process dies, the next one does the rest, and no answer is left without
/// its action.
#[test]
fn a_crash_in_the_middle_leaves_nothing_behind() {
    run(async {
        const ANSWERS: usize = 2 * RESULTS_PAGE + 1;
        for survived in 0..5 {
            let trial = Trial::new().await;
            let agent = trial.agent().await;
            let action = trial.fleet.order(order(&[agent.id], "SETTINGS")).await.unwrap().id;
            assert_eq!(acknowledged(&trial.fleet, agent.id, &action).await, 200);
            let answer = ResultRecord { at_ms: 0, event: raw("{}"), is_cancelled: false, will_retry: false };
            let answers = (1..ANSWERS).map(|_| {
                let key = crate::control::acknowledge::result_key(&action, AgentId::random());
                Write::put(Table::Results, key, encode(&answer))
            });
            trial.store.commit(answers.collect::<Vec<_>>().into()).await.unwrap();
            trial.fleet.remove_old_actions(time::now_ms() + HOUR_MS).await.unwrap();
            assert_eq!(sizes(&trial.fleet).await, [1, 0, ANSWERS]);

            let now = time::now_ms() + HOUR_MS + keep_ms();
            let ended = trial.dying_after(survived).await.remove_old_actions(now).await;
            assert_eq!(ended.is_ok(), survived == 4, "three batches of answers and the action: {ended:?}");
            let trial = trial.crashed().await;
            if ended.is_err() {
                assert!(trial.fleet.show_action(&action).await.is_ok(), "killed after {survived}");
            }
            trial.fleet.remove_old_actions(now).await.unwrap();
            assert_eq!(sizes(&trial.fleet).await, [0; 3], "killed after {survived}");
        }
    });
}

/// Two gateways that clean up at the same time do what one does.
#[test]
fn gateways_clean_up_at_once() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database("fleet");
    run_with_server(async {
        let (a, b) = (Replica::start(&url).await, Replica::start(&url).await);
        a.fleet.put_policy("p", b"{}", false).await.unwrap();
        let token = a.fleet.create_token("p", "t").await.unwrap().id;
        let agent = a.fleet.enroll(&enrollment(&token)).await.unwrap().id;
        let mut done = Vec::new();
        for _ in 0..20 {
            done.push(a.fleet.order(order(&[agent], "SETTINGS")).await.unwrap().id);
        }
        let open = a.fleet.order(order(&[agent], "INPUT_ACTION")).await.unwrap().id;
        for action in &done {
            assert_eq!(acknowledged(&a.fleet, agent, action).await, 200);
        }
        for now in [time::now_ms() + HOUR_MS, time::now_ms() + HOUR_MS + keep_ms()] {
            let both = tokio::join!(a.fleet.remove_old_actions(now), b.fleet.remove_old_actions(now));
            assert_eq!(both, (Ok(()), Ok(())));
        }
        // Where one was in the way of the other, the next round does it.
        a.fleet.remove_old_actions(time::now_ms() + HOUR_MS + keep_ms()).await.unwrap();
        b.fleet.remove_old_actions(time::now_ms() + 2 * HOUR_MS + 2 * keep_ms()).await.unwrap();
        assert_eq!(sizes(&b.fleet).await, [1, 1, 0]);
        assert_eq!(actions(&b.fleet, agent).await["actions"][0]["id"], open);
    });
}
