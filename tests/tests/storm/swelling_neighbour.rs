//! One tenant sends little that becomes some hundred times as much, on many connections and without any limit being
//! configured: its part of the memory and of the threads is all that it gets, and another does not wait for it. (The
//! neighbour of [`noisy_neighbour`](super::noisy_neighbour), whose bodies are what they look like.)

use crate::crowd::{PATIENCE, block_on};
use crate::noisy_neighbour::{MOST_TIMES, NOISE, SMALL, head, p99, trickle};
use crate::support::{MIB, Storm, alone, drained, phase};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};
use tidegate_load::{AcknowledgedSamples, Connection, Target, compare};

/// Connections of the flood, each of which sends again at once after its answer.
const FLOOD: usize = 48;
/// Its decompressed bodies: some are checked by the connection's thread, some by the pool.
const SIZES: [usize; 2] = [3 << 20, 6 << 20];
/// How often smaller they are on the way, at least.
const RATIO: usize = 300;
/// Bodies of the flood that the quiet one may come to wait for: far fewer than come at once on a thread.
const WAITED: u32 = 8;

/// A request of spans that are all the same, of about so many bytes.
fn spans(bytes: usize) -> Vec<u8> {
    fn field(tag: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![tag << 3 | 2];
        let mut len = payload.len();
        while len >= 0x80 {
            out.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        [out, payload.to_vec()].concat()
    }
    let span = [field(1, &[7; 16]), field(2, &[9; 8]), field(5, &[b'a'; 1000])].concat();
    let spans = field(2, &span);
    field(1, &field(2, &spans.repeat(bytes / spans.len())))
}

/// The bodies of the flood, compressed.
fn bodies() -> [Vec<u8>; 2] {
    SIZES.map(|size| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&spans(size)).unwrap();
        let body = encoder.finish().unwrap();
        assert!(body.len() * RATIO < size, "{} of {size} bytes", body.len());
        body
    })
}

const GZIP: &str = "Content-Encoding: gzip\r\n";

/// The answers: their statuses, and how many refusals named the tenant's share.
#[derive(Default)]
struct Answers {
    by_status: BTreeMap<u16, u64>,
    parts: u64,
}

/// Sends one body after the other on as many connections at once, for `time`. Each request is answered.
async fn flood(target: Target, bodies: [Vec<u8>; 2], time: Duration) -> Answers {
    let mut clients = tokio::task::JoinSet::new();
    let until = Instant::now() + time;
    for number in 0..FLOOD {
        let (target, body) = (target.clone(), bodies[number % 2].clone());
        clients.spawn(async move {
            let (mut answers, mut connection) = (Answers::default(), None::<Connection>);
            while Instant::now() < until {
                let mut open = match connection.take().filter(Connection::is_reusable) {
                    Some(open) => open,
                    None => Connection::open(&target, PATIENCE).await.unwrap(),
                };
                let answer = open.send(&head(&target, "loud", GZIP, &body), &body, PATIENCE).await.unwrap();
                *answers.by_status.entry(answer.status).or_default() += 1;
                if answer.status == 503 {
                    assert!(answer.retry_after.is_some(), "{answer:?}");
                    answers.parts += u64::from(answer.body.contains("its part of it"));
                    // Much sooner than it was told.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                connection = Some(open);
            }
            answers
        });
    }
    let mut all = Answers::default();
    while let Some(answers) = clients.join_next().await {
        let Answers { by_status, parts } = answers.unwrap();
        by_status.into_iter().for_each(|(status, n)| *all.by_status.entry(status).or_default() += n);
        all.parts += parts;
    }
    all
}

/// How long the larger body takes where nothing else happens.
async fn one(target: &Target, body: &[u8]) -> Duration {
    let mut connection = Connection::open(target, PATIENCE).await.unwrap();
    let mut shortest = PATIENCE;
    for _ in 0..5 {
        let sent = Instant::now();
        let answer = connection.send(&head(target, "loud", GZIP, body), body, PATIENCE).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        shortest = shortest.min(sent.elapsed());
    }
    shortest
}

#[test]
fn quiet_tenants_do_not_wait_for_decompressed_floods() {
    let _alone = alone();
    let tenants = json!({ "tenants": { "header": "X-Scope-OrgID", "default": "nobody" } });
    let mut storm = Storm::start(64 * MIB, SMALL, &tenants);
    let target = storm.gateway.target();
    let traces = Target { path: "/v1/traces".to_owned(), ..target.clone() };
    let (model, bodies) = (storm.model.clone(), bodies());
    let single = block_on(one(&traces, &bodies[0]));
    let quiet = block_on(trickle(target.clone(), &model, 0, phase()));
    let (answers, beside) = {
        let time = phase() * 2;
        // On a thread of its own, so that the quiet client is not kept waiting by the loud one here.
        let flooding = std::thread::spawn(move || block_on(flood(traces, bodies, time)));
        let beside = block_on(trickle(target, &model, quiet.len() as u64, time));
        (flooding.join().unwrap(), beside)
    };
    println!(
        "alone {:?}, beside the flood {:?} of {}; a body of the flood {single:?}; its answers {:?}, {} for its part",
        p99(&quiet),
        p99(&beside),
        beside.len(),
        answers.by_status,
        answers.parts
    );
    assert!(answers.by_status.keys().all(|status| [200, 503].contains(status)), "{:?}", answers.by_status);
    assert!(answers.by_status.contains_key(&200), "a flood has its part");
    assert!(answers.parts > 0, "it was no flood: {:?}", answers.by_status);
    let most = (p99(&quiet) * MOST_TIMES).max(NOISE).max(single * WAITED);
    assert!(p99(&beside) <= most, "{:?}, then {:?}, and at most {most:?}", p99(&quiet), p99(&beside));
    let mut acked = AcknowledgedSamples::none(SMALL);
    acked.add(0..SMALL, 0, (quiet.len() + beside.len()) as u64);
    storm.gateway.at_rest(drained());
    storm.is_sound();
    let verdict = compare(&storm.model, &acked, &storm.sink.report());
    assert!(verdict.nothing_lost(), "{verdict:?}");
    assert_eq!(storm.gateway.page("/ready").status, 200);
}
