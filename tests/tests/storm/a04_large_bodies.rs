//! P1, P3: 16 connections that send a large request each, at once: 90,000 series (29 MB), and as much as just
//! fits. Whatever the memory, they are accepted or answered 413 or 503, and the process lives.

use crate::support::{MIB, Storm, TIMELINE, alone, drained};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{AcknowledgedSamples, Connection, LoadProfile, OnRefused, SeriesModel, Target, compare};
use tidegate_tests::tidegate;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const CLIENTS: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a client that is told to return does.
const ROUNDS: usize = 100;

type Bodies = Vec<Arc<Vec<u8>>>;

/// One body for each client: the same series, a sample later each.
fn bodies(model: &SeriesModel, version: Version, clients: u64) -> Bodies {
    let body = |number| {
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        SampleBatch::of(model, model.series(), number, 1).encode(version, &mut raw);
        compress(&raw, &mut body);
        if number == 1 {
            let (raw, compressed) = (raw.len() as f64 / 1e6, body.len() as f64 / 1e6);
            println!("{} series, {version:?}: {raw:.1} MB, {compressed:.1} MB compressed", model.len());
        }
        Arc::new(body)
    };
    (0..clients).map(body).collect()
}

/// The requests' results: answers by status, and the numbers of the acknowledged ones.
#[derive(Default)]
struct Outcome {
    answers: BTreeMap<u16, u64>,
    acked: Vec<u64>,
}

/// Sends a body until it is taken or finally refused.
async fn insist(target: &Target, version: Version, body: &[u8]) -> (BTreeMap<u16, u64>, bool) {
    let mut answers = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut connection = Connection::open(target, PATIENCE).await.unwrap();
        let answer = connection.write(target, version, body, PATIENCE).await;
        let answer = answer.unwrap_or_else(|failure| panic!("an answer is always possible: {failure}"));
        *answers.entry(answer.status).or_default() += 1;
        if answer.status != 503 {
            return (answers, answer.status == 204);
        }
        let seconds = answer.retry_after.expect("503 says when to return");
        tokio::time::sleep(Duration::from_secs(seconds.min(1))).await;
    }
    (answers, false)
}

async fn send_all(target: &Target, version: Version, bodies: &Bodies) -> Outcome {
    let mut clients = JoinSet::new();
    for (number, body) in (0..).zip(bodies) {
        let (target, body) = (target.clone(), Arc::clone(body));
        clients.spawn(async move { (number, insist(&target, version, &body).await) });
    }
    let mut outcome = Outcome::default();
    while let Some(client) = clients.join_next().await {
        let (number, (answers, taken)) = client.unwrap();
        answers.into_iter().for_each(|(status, n)| *outcome.answers.entry(status).or_default() += n);
        outcome.acked.extend(taken.then_some(number));
    }
    outcome
}

fn large(memory: u64, model: &Arc<SeriesModel>, version: Version, clients: u64) -> Outcome {
    let mut storm = Storm::start(memory, 1000, &json!({}));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let bodies = bodies(model, version, clients);
    let outcome = runtime.block_on(send_all(&storm.gateway.target(), version, &bodies));
    println!("{} MiB: {:?}, {} accepted", memory / MIB, outcome.answers, outcome.acked.len());
    assert!(outcome.answers.keys().all(|status| [204, 413, 503].contains(status)), "{:?}", outcome.answers);
    let mut acked = AcknowledgedSamples::none(model.len());
    outcome.acked.iter().for_each(|number| acked.add(0..model.len(), *number, number + 1));
    storm.gateway.at_rest(drained());
    storm.is_sound();
    // Sixteen connections promise no order among each other; everything else is promised.
    let verdict = compare(model, &acked, &storm.sink.report());
    assert_eq!((verdict.missing, verdict.duplicates, verdict.wrong_time), (0, 0, 0), "{verdict:?}");
    let ordinary = LoadProfile { on_refused: OnRefused::Count, ..LoadProfile::default() };
    let report = storm.drive(&ordinary).join().unwrap();
    assert_eq!((report.refused(), report.failed), (0, 0), "back to normal: {report}");
    outcome
}

/// The most bytes of a body with so much memory, as `tidegate plan` says.
fn largest_body(memory: u64) -> f64 {
    let storm = Storm::plan(memory, 1, &json!({}));
    let plan = tidegate(&["plan", "--config", storm.gateway.config().to_str().unwrap()]).succeeded();
    let setting = "sources.prometheus_remote_write.max_body";
    let line = plan.lines().find_map(|line| line.trim_start().strip_prefix(setting)).expect(&plan);
    let mib = line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).expect(line);
    assert_eq!(line.split_whitespace().nth(1), Some("MiB"), "{line}");
    mib * MIB as f64
}

/// The requests of the largest scrape imaginable: with little memory they are too large, with more they are
/// taken, one after the other.
#[test]
fn ninety_thousand_series_are_answered() {
    let _alone = alone();
    let model = Arc::new(SeriesModel::new(7, 90_000, TIMELINE));
    large(64 * MIB, &model, Version::V1, CLIENTS);
    let outcome = large(256 * MIB, &model, Version::V1, CLIENTS);
    assert_eq!(outcome.acked.len() as u64, CLIENTS, "{:?}", outcome.answers);
}

/// The largest accepted body is accepted, however many arrive at once.
#[test]
fn the_largest_accepted_bodies_pass() {
    let _alone = alone();
    // Bodies of 2.0 hold five times as many series, so fewer of them show the same. What is announced is for a body and
    // its compressed form together, which is a fifth of it here.
    for (version, bytes_per_series, clients) in [(Version::V1, 310.0, CLIENTS), (Version::V2, 59.0, 5)] {
        let series = largest_body(64 * MIB) * 0.75 / bytes_per_series;
        let model = Arc::new(SeriesModel::new(7, series as usize, TIMELINE));
        let outcome = large(64 * MIB, &model, version, clients);
        assert_eq!(outcome.acked.len() as u64, clients, "{:?}", outcome.answers);
    }
}
