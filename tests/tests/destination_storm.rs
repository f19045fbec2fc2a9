//! 30,000 clients of 16 KiB each, at once, in front of a cluster that stalls, within 64 MiB: each gets an answer, and what
//! the cluster takes goes there in few requests.
//!
//! They are streams of HTTP/2, on few connections: a connection that is in use takes some 64 KiB of the same memory.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[path = "support/cluster.rs"]
mod cluster;

use bytes::Bytes;
use cluster::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidegate_tests::http as plain;
use tidegate_tests::{Gateway, until};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const MIB: u64 = 1 << 20;
const CLIENTS: usize = 30_000;
const BODY: usize = 16 << 10;
/// How long all of it may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often the clients of a connection connect again at most. While memory is short, one that has no request for a while
/// is told to end.
const MOST_CONNECTIONS: usize = 8;
/// How long the cluster stalls.
const STALL: Duration = Duration::from_secs(5);

type Answers = Arc<Mutex<BTreeMap<u16, usize>>>;

#[test]
fn thirty_thousand_clients_on_few_connections_wait_for_a_cluster_that_stalls() {
    storm(500);
}

/// Here the connections themselves take most of the memory, and most clients find none.
#[test]
fn thirty_thousand_clients_on_many_connections_are_answered() {
    storm(125);
}

/// A storm with so many clients on each connection. The gateway has 64 of them at a time; the others wait for their stream.
fn storm(streams_of_each: usize) {
    let connections = CLIENTS.div_ceil(streams_of_each);
    let cluster = Cluster::start();
    let mut gateway = Gateway::new(json!({
        "memory": 64 * MIB,
        "limits": {"connections": 17 * connections + 200},
        "access": {"bulk": ["update", "delete"]},
        "sources": {"elasticsearch": {"acknowledge": "destination"}},
        "sinks": {"out": {"type": "elasticsearch", "endpoints": [cluster.url()], "timeout": "60s"}},
    }));
    gateway.start();
    cluster.stall(true);
    let answers = Answers::default();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let since = Instant::now();
    runtime.block_on(async {
        let all = Arc::new(Barrier::new(connections + 1));
        let mut clients = JoinSet::new();
        for number in 0..connections {
            let streams = streams_of_each.min(CLIENTS - number * streams_of_each);
            clients.spawn(client_group(gateway.http(), streams, Arc::clone(&answers), Arc::clone(&all)));
        }
        all.wait().await;
        println!("{connections} connections after {:?}", since.elapsed());
        tokio::time::sleep(STALL).await;
        let waiting = CLIENTS - answers.lock().unwrap().values().sum::<usize>();
        println!("after {:?}: {waiting} wait, {:?} answered", since.elapsed(), answers.lock().unwrap());
        cluster.stall(false);
        let ended = async { while clients.join_next().await.is_some() {} };
        tokio::time::timeout(PATIENCE, ended).await.expect("all are answered");
    });
    let answers = answers.lock().unwrap().clone();
    let (requests, items) = cluster.arrived();
    println!("{answers:?} after {:?}; {items} items in {requests} requests", since.elapsed());
    assert_eq!(answers.values().sum::<usize>(), CLIENTS, "everybody is answered");
    assert!(answers.keys().all(|status| matches!(status, 200 | 429 | 503)), "{answers:?}");
    let taken = answers.get(&200).copied().unwrap_or_default();
    assert!(taken > 0, "what waited was carried out");
    // In requests, not one by one.
    assert!(items >= taken as u64 && requests * 4 <= items.max(4), "{items} items in {requests} requests");

    until(PATIENCE, "all memory to be given back", || {
        let status = gateway.status();
        let shares = status["memory"]["payload"]["shares"].as_array().cloned().unwrap_or_default();
        shares.iter().all(|share| share["used"] == 0)
    });
    gateway.books_close();
    let books = gateway.status()["books"]["sources"].clone();
    let book = books.as_array().unwrap().iter().find(|source| source["name"] == "elasticsearch").unwrap();
    println!("{book}");
    assert_eq!((&book["open"], &book["forwarded_open"]), (&json!(0), &json!(0)));
    assert_eq!(book["accepted"], taken);
    let hwm = gateway.hwm();
    println!("peak {:.1} of 64 MiB", hwm as f64 / MIB as f64);
    assert!(hwm <= 64 * MIB, "{hwm} bytes were resident");

    // As before.
    let head =
        ["POST /elasticsearch/i/_bulk HTTP/1.1", "Content-Type: application/x-ndjson", "Connection: close"];
    let answer = plain::request(gateway.http(), &head, b"{\"index\":{}}\n{}\n").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(gateway.term(), 0);
}

/// As many clients, on one connection of HTTP/2 at a time: whoever is left when it is told to end connects again.
async fn client_group(address: SocketAddr, clients: usize, answers: Answers, all: Arc<Barrier>) {
    let (mut left, mut all) = (clients, Some(all));
    for _ in 0..MOST_CONNECTIONS {
        left -= connection(address, left, &answers, all.take()).await;
        if left == 0 {
            return;
        }
    }
    panic!("{left} clients found no connection that would have them");
}

/// One connection; how many clients it served.
async fn connection(
    address: SocketAddr,
    streams: usize,
    answers: &Answers,
    all: Option<Arc<Barrier>>,
) -> usize {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let mut connection = Box::pin(connection);
    let client = client.ready();
    tokio::pin!(client);
    let client = tokio::select! {
        client = &mut client => client.unwrap(),
        ended = &mut connection => panic!("{ended:?}"),
    };
    if let Some(all) = all {
        all.wait().await;
    }
    let (turn, mut tasks) = (Arc::new(tokio::sync::Mutex::new(())), JoinSet::new());
    for _ in 0..streams {
        let (client, answers, turn) = (client.clone(), Arc::clone(answers), Arc::clone(&turn));
        tasks.spawn(async move {
            let status = one(client, &turn).await;
            status.inspect(|status| *answers.lock().unwrap().entry(*status).or_default() += 1).is_some()
        });
    }
    drop(client);
    let clients = async {
        let mut served = 0;
        while let Some(is_served) = tasks.join_next().await {
            served += usize::from(is_served.unwrap());
        }
        served
    };
    // It goes on until every client knows how its request ended.
    tokio::join!(clients, connection).0
}

/// One client: its status, 0 without an answer, or nothing when the connection was told to end before its request was
/// looked at. Clients of one connection send one after another, and wait together.
async fn one(client: h2::client::SendRequest<Bytes>, turn: &tokio::sync::Mutex<()>) -> Option<u16> {
    let turn = turn.lock().await;
    let mut client = client.ready().await.ok()?;
    let request = http::Request::post("http://gateway/elasticsearch/i/_bulk")
        .header("content-type", "application/x-ndjson");
    let body = format!("{{\"index\":{{}}}}\n{{\"message\":\"{}\"}}\n", "x".repeat(BODY - 32));
    let (answer, mut sending) = client.send_request(request.body(()).unwrap(), false).ok()?;
    let mut body = Bytes::from(body);
    while !body.is_empty() {
        sending.reserve_capacity(body.len());
        // A refusal may come before all is sent.
        let Some(Ok(room)) = poll_fn(|context| sending.poll_capacity(context)).await else { break };
        let piece = body.split_to(room.min(body.len()));
        if sending.send_data(piece, body.is_empty()).is_err() {
            break;
        }
    }
    drop((turn, client));
    let answer = match answer.await {
        Ok(answer) => answer,
        Err(error) if error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) => return None,
        Err(error) => {
            println!("no answer: {error:?}");
            return Some(0);
        }
    };
    let (head, mut body) = answer.into_parts();
    let mut text = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        let _ = body.flow_control().release_capacity(data.len());
        text.extend_from_slice(&data);
    }
    let answer: Value = serde_json::from_slice(&text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
    match head.status.as_u16() {
        200 => assert_eq!(answer["items"][0]["index"]["status"], 201, "{answer}"),
        status => {
            assert_eq!(answer["status"], status, "{answer}");
            let delay =
                head.headers.get("retry-after").and_then(|delay| delay.to_str().ok()?.parse::<u32>().ok());
            assert!(delay.is_some_and(|delay| delay >= 1), "{head:?}");
        }
    }
    Some(head.status.as_u16())
}
