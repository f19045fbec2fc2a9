//! Everybody at once: 30,000 clients within five seconds while the receiver stalls, and 10,000 connections that come
//! back in the same second after an outage, each with a queue. (Fleets that return together, fleet-server #95,
//! OpenTelemetry Collector #8760.)

use crate::crowd::{Answers, PATIENCE, address_of, block_on, bodies, enter, write_once};
use crate::support::{MIB, Storm, alone, drained};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::remote_write::Version;
use tidegate_load::{AcknowledgedSamples, Behaviour, Connection, Target, compare};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

const CLIENTS: usize = 30_000;
const WITHIN: Duration = Duration::from_secs(5);
/// Series of a client's body, which make 16 KiB.
const SERIES: usize = 640;
/// Connections that come back at once.
const RETURNING: usize = 10_000;
/// Requests in the queue of each.
const QUEUED: usize = 3;
/// Different bodies; clients share them.
const BODIES: u64 = 100;

/// Room for as many files as a crowd of clients needs.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 16_384.min(limit.maximum.unwrap_or(u64::MAX));
    assert!(wanted > RETURNING as u64 + 500, "`ulimit -Hn` is {wanted}: this test needs more");
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }).unwrap();
}

/// The final checks: every acknowledged item has arrived, and the gateway is as before.
fn aftermath(storm: &mut Storm, taken: impl Iterator<Item = u64>) {
    let mut acked = AcknowledgedSamples::none(storm.model.len());
    taken.for_each(|number| acked.add(0..storm.model.len(), number, number + 1));
    storm.sink.set(Behaviour::Healthy);
    storm.gateway.at_rest(drained());
    storm.is_sound();
    // Clients promise no order among each other; everything else is promised.
    let verdict = compare(&storm.model, &acked, &storm.sink.report());
    assert_eq!((verdict.missing, verdict.unknown_series), (0, 0), "{verdict:?}");
    assert_eq!(storm.gateway.page("/ready").status, 200);
}

#[test]
fn thirty_thousand_come_within_five_seconds() {
    let _alone = alone();
    allow_files();
    let mut storm = Storm::start_for(64 * MIB, SERIES, RETURNING, &json!({}));
    storm.sink.set(Behaviour::Stall);
    let (target, bodies) = (storm.gateway.target(), bodies(&storm.model, BODIES));
    println!("{CLIENTS} clients with {} bytes each", bodies[0].len());
    let (answers, taken) = block_on(async {
        // As many as this process can have open.
        let places = Arc::new(Semaphore::new(14_000));
        let (begun, mut clients) = (Instant::now(), JoinSet::new());
        for client in 0..CLIENTS {
            let (target, bodies) = (target.clone(), Arc::clone(&bodies));
            let place = Arc::clone(&places).acquire_owned().await.unwrap();
            sleep_until(begun + WITHIN.mul_f64(client as f64 / CLIENTS as f64)).await;
            clients.spawn(async move {
                let number = client as u64 % BODIES;
                let answer = write_once(&target, client, &bodies[number as usize]).await;
                drop(place);
                (number, answer)
            });
        }
        let (mut answers, mut taken) = (Answers::new(), std::collections::BTreeSet::new());
        while let Some(client) = clients.join_next().await {
            let (number, answer) = client.unwrap();
            enter(&mut answers, &answer);
            if let Ok(answer) = answer {
                assert!(answer.status != 503 || answer.retry_after.is_some(), "{answer:?}");
                taken.extend((answer.status == 204).then_some(number));
            }
        }
        (answers, taken)
    });
    println!("{answers:?}");
    assert!(answers.keys().all(|answer| matches!(answer, Ok(204 | 503))), "{answers:?}");
    aftermath(&mut storm, taken.into_iter());
}

/// Sends the queue in order, each request until it is taken.
async fn return_with_queue(target: Target, client: usize, bodies: Arc<Vec<Vec<u8>>>) -> (Answers, usize) {
    let (mut answers, mut connection, mut taken) = (Answers::new(), None::<Connection>, 0);
    for number in 0..QUEUED {
        loop {
            let opened = match connection.take().filter(Connection::is_reusable) {
                Some(open) => Ok(open),
                None => Connection::open_from(address_of(client), &target, PATIENCE).await,
            };
            let answer = match opened {
                Ok(mut open) => {
                    let answer = open.write(&target, Version::V1, &bodies[number], PATIENCE).await;
                    connection = Some(open);
                    answer
                }
                Err(failure) => Err(failure),
            };
            enter(&mut answers, &answer);
            match answer {
                Ok(answer) if answer.status == 204 => break,
                // As long as it was told, for once: that is what keeps them from coming together again.
                Ok(answer) => sleep(Duration::from_secs(answer.retry_after.unwrap().min(10))).await,
                Err(_) => return (answers, taken),
            }
        }
        taken += 1;
    }
    (answers, taken)
}

#[test]
fn ten_thousand_return_at_once() {
    let _alone = alone();
    allow_files();
    let mut storm = Storm::start_for(64 * MIB, SERIES / 4, RETURNING, &json!({}));
    let (target, bodies) = (storm.gateway.target(), bodies(&storm.model, QUEUED as u64));
    let begun = std::time::Instant::now();
    let (answers, queues) = block_on(async {
        let mut clients = JoinSet::new();
        for client in 0..RETURNING {
            clients.spawn(return_with_queue(target.clone(), client, Arc::clone(&bodies)));
        }
        let (mut all, mut queues) = (Answers::new(), 0);
        while let Some(client) = clients.join_next().await {
            let (answers, taken) = client.unwrap();
            answers.into_iter().for_each(|(answer, count)| *all.entry(answer).or_default() += count);
            queues += usize::from(taken == QUEUED);
        }
        (all, queues)
    });
    println!("{queues} queues were emptied in {:?}: {answers:?}", begun.elapsed());
    assert!(answers.keys().all(|answer| matches!(answer, Ok(204 | 503))), "{answers:?}");
    assert_eq!(queues, RETURNING, "nobody starves");
    aftermath(&mut storm, 0..QUEUED as u64);
}
