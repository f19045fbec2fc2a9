//! Bodies without end, announced or not: who announces one is refused before it is sent, who does not is stopped on
//! the way; each is told 413, and nobody else notices. (Unlimited bodies, APM Server #732, Mimir #8574.)

use crate::crowd::{Answers, PATIENCE, address_of, block_on, enter};
use crate::support::{MIB, Storm, alone, phase};
use serde_json::json;
use tidegate_load::{Connection, LoadProfile, OnRefused, RunLimit, Target};
use tokio::task::JoinSet;

const CLIENTS: usize = 800;
/// The size that a client would send without a limit.
const BODY: usize = 96 << 20;

/// A body of [`BODY`] bytes with its length in the head, of which nothing is sent; or in chunks, all of which are.
async fn send(target: Target, client: usize) -> Answers {
    let mut answers = Answers::new();
    let Target { authority, path } = &target;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/x-protobuf\r\n\
         Content-Encoding: snappy\r\n"
    );
    let mut connection = Connection::open_from(address_of(client), &target, PATIENCE).await.unwrap();
    let answer = if client.is_multiple_of(8) {
        let mut body = Vec::new();
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..BODY / chunk.len() / 16 {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(&chunk);
            body.extend_from_slice(b"\r\n");
        }
        connection.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes(), &body, PATIENCE).await
    } else {
        connection.send(format!("{head}Content-Length: {BODY}\r\n\r\n").as_bytes(), b"", PATIENCE).await
    };
    enter(&mut answers, &answer);
    answers
}

#[test]
fn endless_bodies_are_stopped() {
    let _alone = alone();
    // Bodies of more than 2 MiB are too large here, so that a client need not send all that it would.
    let small = json!({ "sources": { "prometheus_remote_write": { "max_body": "2MiB" } } });
    let mut storm = Storm::start(64 * MIB, 2000, &small);
    let steady = LoadProfile {
        rate: Some(100.0),
        series_per_request: 100,
        limit: RunLimit::Time(phase()),
        on_refused: OnRefused::Count,
        ..LoadProfile::default()
    };
    let driving = storm.drive(&steady);
    let target = storm.gateway.target();
    let answers = block_on(async {
        let (mut clients, mut all) = (JoinSet::new(), Answers::new());
        for client in 0..CLIENTS {
            // A few hundred at a time: more are one connection too many.
            if clients.len() >= 400 {
                merge(&mut all, clients.join_next().await.unwrap().unwrap());
            }
            clients.spawn(send(target.clone(), client));
        }
        while let Some(answers) = clients.join_next().await {
            merge(&mut all, answers.unwrap());
        }
        all
    });
    println!("{answers:?}");
    assert!(answers.keys().all(|answer| matches!(answer, Ok(413 | 503))), "{answers:?}");
    assert!(answers[&Ok(413)] >= CLIENTS as u64 * 9 / 10, "{answers:?}");
    let mut report = driving.join().unwrap();
    println!("meanwhile: {report}");
    assert_eq!((report.refused(), report.failed), (0, 0), "the honest client is served: {report}");
    storm.is_over(&report.acked);
    storm.is_normal(&mut report.acked, 1 << 40);
}

fn merge(all: &mut Answers, more: Answers) {
    more.into_iter().for_each(|(answer, count)| *all.entry(answer).or_default() += count);
}
