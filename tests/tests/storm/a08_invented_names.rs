//! Names that clients invent: tenants, paths, agents, and addresses to come from. What the gateway says of itself
//! stays as long as it was. (Labels without bound, Vector #6461, #19125.)

use crate::crowd::{PATIENCE, address_of, block_on, bodies};
use crate::support::{MIB, Storm, alone, long};
use serde_json::json;
use std::collections::BTreeMap;
use tidegate_load::{AcknowledgedSamples, Connection, Target};
use tokio::task::JoinSet;

const CLIENTS: usize = 200;
/// Series of a body; small, since names are what this is about.
const SERIES: usize = 2;

/// Names that each client invents.
fn names() -> usize {
    if long() { 1_000_000 / CLIENTS } else { 250 }
}

/// Sends requests, each with names that nobody has used, half of them to paths that nobody serves.
async fn invent(target: Target, client: usize, body: Vec<u8>) -> BTreeMap<u16, u64> {
    let mut answers = BTreeMap::new();
    let mut connection = Connection::open_from(address_of(client), &target, PATIENCE).await.unwrap();
    for number in 0..names() {
        let name = format!("invented-{client}-{number}");
        let path = if number.is_multiple_of(2) { target.path.clone() } else { format!("/{name}") };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {name}.example\r\nUser-Agent: {name}/1.0\r\nX-Scope-OrgID: {name}\r\n\
             Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
             X-Prometheus-Remote-Write-Version: 0.1.0\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = connection.send(head.as_bytes(), &body, PATIENCE).await.unwrap();
        *answers.entry(answer.status).or_default() += 1;
    }
    answers
}

/// The names of all series in `/metrics`.
fn series(storm: &Storm) -> Vec<String> {
    storm.gateway.metrics().into_keys().collect()
}

#[test]
fn metrics_stay_as_long_as_they_were() {
    let _alone = alone();
    let by_tenant = json!({ "tenants": { "header": "X-Scope-OrgID", "default": "nobody" } });
    let mut storm = Storm::start(64 * MIB, SERIES, &by_tenant);
    let body = bodies(&storm.model, 1)[0].clone();
    let crowd = |range: std::ops::Range<usize>| {
        let target = storm.gateway.target();
        let body = body.clone();
        block_on(async move {
            let mut clients = JoinSet::new();
            range.for_each(|client| drop(clients.spawn(invent(target.clone(), client, body.clone()))));
            let mut all = BTreeMap::<u16, u64>::new();
            while let Some(answers) = clients.join_next().await {
                answers.unwrap().into_iter().for_each(|(status, n)| *all.entry(status).or_default() += n);
            }
            all
        })
    };
    // The first fill whatever has room for names; all others find it full.
    crowd(0..CLIENTS / 4);
    let (before, length) = (series(&storm), storm.gateway.page("/metrics").body.len());
    let answers = crowd(CLIENTS / 4..CLIENTS);
    println!("{answers:?}, {} series", before.len());
    let expected = (CLIENTS - CLIENTS / 4) as u64 * names() as u64;
    assert_eq!(answers, BTreeMap::from([(204, expected / 2), (404, expected / 2)]));
    assert_eq!(series(&storm), before, "series were added");
    let longer = storm.gateway.page("/metrics").body.len();
    assert!(longer <= length + length / 20, "{length} bytes, then {longer}");
    let pages = storm.gateway.page("/status").body.len() + storm.gateway.page("/status.json").body.len();
    assert!(pages < 1 << 20, "the pages have {pages} bytes");
    let mut acked = AcknowledgedSamples::none(SERIES);
    acked.add(0..SERIES, 0, 1);
    storm.gateway.at_rest(crate::support::drained());
    storm.is_sound();
    storm.is_normal(&mut acked, 1);
}
