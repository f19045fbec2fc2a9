//! One tenant sends a hundred times what it may, another as little as always: the flood is refused, and the quiet one
//! waits no longer than when it is alone. (Noisy neighbours, OpenTelemetry Collector #10602.)

use crate::crowd::{PATIENCE, block_on};
use crate::support::{MIB, Storm, alone, phase};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tidegate_load::otlp::{ExportRequest, Signal};
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{AcknowledgedSamples, Connection, SeriesModel, Target, compare};
use tokio::time::{MissedTickBehavior, interval};

/// Connections of the flood, each with a request in flight, and another 100 ms after its answer: about 100 MB a second.
const FLOOD: usize = 48;
/// Spans of a request of the flood: about 200 KiB.
const LARGE: u64 = 500;
/// The limits of each tenant.
const SHARE: &str = "1MiB";
pub(crate) const SMALL: usize = 100;
/// How many times longer the quiet one may wait.
pub(crate) const MOST_TIMES: u32 = 2;
/// Below this a delay is the machine's, on which everything here runs.
pub(crate) const NOISE: Duration = Duration::from_millis(250);

pub(crate) fn head(target: &Target, tenant: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let Target { authority, path } = target;
    format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nX-Scope-OrgID: {tenant}\r\n\
         Content-Type: application/x-protobuf\r\n{kind}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes()
}

const METRICS: &str = "Content-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: 0.1.0\r\n";

fn body(model: &SeriesModel, number: u64) -> Vec<u8> {
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(model, model.series(), number, 1).encode(Version::V1, &mut raw);
    compress(&raw, &mut body);
    body
}

/// A small request every 10 ms for `time`; how long each took. All are taken.
pub(crate) async fn trickle(
    target: Target,
    model: &SeriesModel,
    first: u64,
    time: Duration,
) -> Vec<Duration> {
    let mut connection = Connection::open(&target, PATIENCE).await.unwrap();
    let mut beat = interval(Duration::from_millis(10));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (begun, mut took) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        beat.tick().await;
        let body = body(model, first + took.len() as u64);
        let sent = Instant::now();
        let answer = connection.send(&head(&target, "quiet", METRICS, &body), &body, PATIENCE).await.unwrap();
        assert_eq!(answer.status, 204, "the quiet tenant is taken: {answer:?}");
        took.push(sent.elapsed());
    }
    took
}

pub(crate) fn p99(took: &[Duration]) -> Duration {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() * 99 / 100]
}

#[test]
fn the_quiet_do_not_notice() {
    let _alone = alone();
    let tenants = json!({
        "tenants": { "header": "X-Scope-OrgID", "default": "nobody", "limits": { "bytes_per_second": SHARE } },
    });
    let mut storm = Storm::start(64 * MIB, SMALL, &tenants);
    let target = storm.gateway.target();
    let model = storm.model.clone();
    let quiet = block_on(trickle(target.clone(), &model, 0, phase()));
    // Uncompressed, so that what it holds is what it sends.
    let large = ExportRequest { signal: Signal::Traces, items: LARGE, first: 0, time_ns: 1 }.encode();
    println!("a request of the flood has {} bytes", large.len());
    let (answers, beside) = {
        let target = Target { path: "/v1/traces".to_owned(), ..target.clone() };
        let time = phase() * 2;
        // On a thread of its own, so that the quiet client is not kept waiting by the loud one here.
        let flooding = std::thread::spawn(move || block_on(flood(target, large, time)));
        let beside = block_on(trickle(storm.gateway.target(), &model, quiet.len() as u64, phase() * 2));
        (flooding.join().unwrap(), beside)
    };
    println!("alone {:?}, beside the flood {:?}; the flood: {answers:?}", p99(&quiet), p99(&beside));
    assert!(answers.keys().all(|status| [200, 429].contains(status)), "{answers:?}");
    assert!(
        // A hundred to one where the machine keeps up with both ends of it.
        answers.get(&429).is_some_and(|refused| *refused > 10 * answers[&200]),
        "it was no flood: {answers:?}"
    );
    assert!(
        p99(&beside) <= (p99(&quiet) * MOST_TIMES).max(NOISE),
        "{:?}, then {:?}",
        p99(&quiet),
        p99(&beside)
    );
    let mut acked = AcknowledgedSamples::none(SMALL);
    acked.add(0..SMALL, 0, (quiet.len() + beside.len()) as u64);
    storm.gateway.at_rest(crate::support::drained());
    storm.is_sound();
    let verdict = compare(&storm.model, &acked, &storm.sink.report());
    assert!(verdict.nothing_lost(), "{verdict:?}");
    assert_eq!(storm.gateway.page("/ready").status, 200);
}

/// The same large request on many connections, at once again after each answer.
async fn flood(target: Target, body: Vec<u8>, time: Duration) -> BTreeMap<u16, u64> {
    let mut clients = tokio::task::JoinSet::new();
    let until = Instant::now() + time;
    for _ in 0..FLOOD {
        let (target, body) = (target.clone(), body.clone());
        clients.spawn(async move {
            let (mut answers, mut connection) = (BTreeMap::<u16, u64>::new(), None::<Connection>);
            while Instant::now() < until {
                let mut open = match connection.take().filter(Connection::is_reusable) {
                    Some(open) => open,
                    None => Connection::open(&target, PATIENCE).await.unwrap(),
                };
                let answer = open.send(&head(&target, "loud", "", &body), &body, PATIENCE).await.unwrap();
                *answers.entry(answer.status).or_default() += 1;
                if answer.status == 429 {
                    assert!(answer.retry_after.is_some(), "{answer:?}");
                    // Much sooner than it was told.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                connection = Some(open);
            }
            answers
        });
    }
    let mut all = BTreeMap::new();
    while let Some(answers) = clients.join_next().await {
        answers.unwrap().into_iter().for_each(|(status, n)| *all.entry(status).or_default() += n);
    }
    all
}
