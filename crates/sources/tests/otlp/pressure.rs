//! Promise: what time can mend is answered with the code on which clients come again, and when; and ends by
//! itself.

use crate::body::{gzip, message, traces};
use crate::client::{JSON, PROTOBUF, TRACES, call, call_to, connect, exchange};
use crate::connections::follow;
use crate::rig::Rig;
use crate::wire;
use tidegate_arena::{Charge, Share};
use tidegate_journal::Event;
use tidegate_ledger::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// All of `share` that can be had, but for `left` bytes.
fn take(rig: &Rig, share: Share, left: u64) -> Charge {
    rig.arena.try_charge(share, rig.arena.ceiling(share) - left).unwrap()
}

/// That `answer` of gRPC sends the client away for a while.
fn assert_unavailable(answer: &crate::client::Called, words: &str) {
    assert_eq!(answer.code, 14, "{answer:?}");
    assert!(answer.message.contains(words), "{}", answer.message);
    assert!(answer.trailers_only && answer.details.is_some(), "with RetryInfo");
}

fn assert_busy(answer: &crate::client::Answer, words: &str) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains(words), "{}", answer.text());
    let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=90).contains(&seconds));
    assert!(matches!(answer.header("content-type"), Some("application/json" | "application/x-protobuf")));
}

#[tokio::test]
async fn a_body_without_memory_for_decompression_is_refused_retryably() {
    let (rig, body) = (Rig::new(), gzip(&traces(100, 1000)));
    let held = take(&rig, Share::Decode, 0);
    let headers = [PROTOBUF, ("content-encoding", "gzip")];
    assert_busy(&rig.post("/v1/traces", &headers, &body).await, "memory");
    assert_busy(&rig.post2("/v1/traces", &headers, &body).await, "memory");
    let gz = [("grpc-encoding", "gzip")];
    assert_unavailable(&rig.call(TRACES, &gz, &message(true, &body)).await, "memory");
    drop(held);
    assert_eq!(rig.books().refused, [(Refusal::Memory, 3)]);
    assert_eq!(rig.call(TRACES, &gz, &message(true, &body)).await.code, 0);
}

/// JSON needs a window for its protobuf while it holds its own; it does not wait for that. It asks for no more than that
/// takes, where there is no more.
#[tokio::test]
async fn json_without_memory_for_its_protobuf_is_refused_retryably() {
    let long = "a".repeat(1 << 20);
    let json = format!(r#"{{"resourceSpans":[{{"schemaUrl":"{long}"}}]}}"#).into_bytes();
    let (rig, blanks) = (Rig::new(), [vec![b' '; 1 << 20], b"{}".to_vec()].concat());
    let held = take(&rig, Share::Ingest, 3 << 19);
    assert_busy(&rig.post("/v1/traces", &[JSON], &json).await, "memory");
    assert_eq!(rig.post("/v1/traces", &[JSON], &blanks).await.status, 200);
    drop(held);
    assert_eq!(rig.books().refused, [(Refusal::Memory, 1)]);
    assert_eq!(rig.post("/v1/traces", &[JSON], &json).await.status, 200);
}

/// Where there is no memory at all, not even to read with, a call is answered all the same.
#[tokio::test]
async fn without_any_memory_calls_are_refused_and_not_ignored() {
    let (rig, body) = (Rig::new(), message(false, &traces(1, 1)));
    let held = take(&rig, Share::Ingest, 0);
    assert_unavailable(&rig.call(TRACES, &[], &body).await, "memory");
    assert_busy(&rig.post2("/v1/traces", &[JSON], b"{}").await, "memory");
    drop(held);
    assert_eq!(rig.books().refused, [(Refusal::Memory, 2)]);
    assert_eq!(rig.call(TRACES, &[], &body).await.code, 0);
}

/// A connection on which many requests are refused, and their streams reset with bytes of them on the way, answers the next
/// one all the same: what is remembered of the reset ones takes no room from it.
#[tokio::test]
async fn without_any_memory_a_connection_answers_however_many_it_resets() {
    const REQUESTS: usize = 100;
    let (rig, body) = (Rig::new(), vec![b' '; 3 << 10]);
    let held = take(&rig, Share::Ingest, 0);
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let mut requests = tokio::task::JoinSet::new();
        for at in 0..REQUESTS {
            let (mut client, body) = (client.clone(), body.clone());
            requests.spawn(async move {
                if at % 2 == 0 {
                    return assert_unavailable(&call(&mut client, TRACES, &[], &body).await, "memory");
                }
                let request = http::Request::post("http://test/v1/traces").header(JSON.0, JSON.1);
                assert_busy(&exchange(&mut client, request.body(()).unwrap(), &body).await.0, "memory");
            });
        }
        requests.join_all().await;
        drop(held);
        assert_eq!(call(&mut client, TRACES, &[], &message(false, &traces(1, 1))).await.code, 0);
    })
    .await;
    assert_eq!(rig.books().refused, [(Refusal::Memory, REQUESTS as u64)]);
}

/// A connection that found no memory finds it later, without having been quiet: here it is always within a frame.
#[tokio::test]
async fn a_busy_connection_that_found_no_memory_finds_it_later() {
    let rig = Rig::new();
    let held = take(&rig, Share::Ingest, 0);
    let first = wire::call(TRACES, &traces(1, 9_000));
    let mut second = wire::call(TRACES, &traces(1, 1));
    wire::renumber(&mut second, 3);
    let (begun, rest) = first.split_at(5_000);
    rig.serve(async |address| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&[wire::PREFACE, &wire::SETTINGS, begun].concat()).await.unwrap();
        let mut answers = wire::Answers::default();
        // A refusal, and the end of its stream.
        follow(&mut stream, &mut answers, 2).await;
        drop(held);
        stream.write_all(&[rest, &second].concat()).await.unwrap();
        follow(&mut stream, &mut answers, 3).await;
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Memory, 1)]));
}

/// A message that does not fit now waits without being read, is refused in time, and the connection goes on.
#[tokio::test]
async fn a_message_without_memory_is_refused_and_its_connection_goes_on() {
    let (rig, body) = (Rig::new(), message(false, &traces(100, 10_000)));
    let held = take(&rig, Share::Ingest, 512 << 10);
    let mut held = Some(held);
    rig.serve(async |address| {
        let mut client = connect(address).await;
        assert_unavailable(&call(&mut client, TRACES, &[], &body).await, "memory");
        drop(held.take());
        assert_eq!(call(&mut client, TRACES, &[], &body).await.code, 0);
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Memory, 1)]));
}

#[tokio::test]
async fn a_call_that_waits_for_a_window_gets_freed_memory() {
    let settings =
        tidegate_http1::Settings { memory_wait: 10 * crate::rig::SECOND, ..crate::rig::settings() };
    let (rig, body) = (Rig::with(1 << 30, settings), message(false, &traces(100, 10_000)));
    let mut held = Some(take(&rig, Share::Ingest, 512 << 10));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let frees = async {
            let waiting = || rig.arena.usage().shares.iter().any(|share| share.waiting > 0);
            while !waiting() {
                tokio::task::yield_now().await;
            }
            drop(held.take());
        };
        let (answer, ()) = tokio::join!(call(&mut client, TRACES, &[], &body), frees);
        assert_eq!(answer.code, 0, "{answer:?}");
    })
    .await;
    assert_eq!(rig.books().accepted, 1);
}

#[tokio::test]
async fn a_stopping_gateway_refuses_retryably() {
    let rig = Rig::new();
    rig.gate.stop();
    assert_busy(&rig.post("/v1/traces", &[PROTOBUF], &traces(1, 1)).await, "stopping");
    assert_busy(&rig.post2("/v1/traces", &[PROTOBUF], &traces(1, 1)).await, "stopping");
    assert_unavailable(&rig.call(TRACES, &[], &message(false, &traces(1, 1))).await, "stopping");
    assert_eq!(rig.books().refused, [(Refusal::Shutdown, 3)]);
}

/// A journal that is full is known before a body is sent, and is open again when a sink has moved on.
#[tokio::test]
async fn a_barred_journal_refuses_before_the_body() {
    let rig = Rig::with(256 << 10, crate::rig::settings());
    let mut follower = rig.follow();
    let (body, mut accepted) = (traces(10, 1000), 0);
    let answer = loop {
        let answer = rig.call(TRACES, &[], &message(false, &body)).await;
        if answer.code != 0 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 200, "the quota holds");
    };
    assert_unavailable(&answer, "quota");
    assert_unavailable(&rig.call(TRACES, &[], &message(false, &body)).await, "quota");
    assert_busy(&rig.post("/v1/traces", &[JSON], b"{}").await, "quota");
    assert_eq!(rig.books().refused, [(Refusal::Disk, 3)]);
    for _ in 0..accepted {
        let Ok(Some(Event::Record(record))) = follower.next().await else { panic!("a record is missing") };
        follower.commit(record.sequence);
    }
    while rig.gate.check_open().is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.call(TRACES, &[], &message(false, &body)).await.code, 0);
    assert_eq!(rig.books().accepted, accepted + 1);
}

/// Several calls on each of several connections, for more memory than there is: whoever is refused comes again
/// until it is taken, and nobody holds up another for good.
#[tokio::test]
async fn every_call_of_a_storm_is_accepted_in_the_end() {
    const CALLS: usize = 4;
    let (rig, body) = (Rig::new(), message(false, &traces(200, 10_000)));
    let refusals = std::cell::Cell::new(0);
    rig.serve(async |address| {
        let mut calls = Vec::new();
        for _ in 0..crate::rig::CONNECTIONS {
            let client = connect(address).await;
            for _ in 0..CALLS {
                let (mut client, body, refusals) = (client.clone(), &body, &refusals);
                calls.push(async move {
                    loop {
                        let answer = call(&mut client, TRACES, &[], body).await;
                        if answer.code == 0 {
                            return;
                        }
                        assert_unavailable(&answer, "memory");
                        refusals.set(refusals.get() + 1);
                        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                    }
                });
            }
        }
        futures_util::future::join_all(calls).await;
    })
    .await;
    let books = rig.books();
    assert_eq!(books.accepted, (crate::rig::CONNECTIONS * CALLS) as u64);
    let refused = if refusals.get() == 0 { vec![] } else { vec![(Refusal::Memory, refusals.get())] };
    assert_eq!(books.refused, refused);
}

/// A call does not wait for memory while another on its connection is owed the rest of its body: nothing is read
/// meanwhile, so both would wait.
#[tokio::test]
async fn a_call_does_not_wait_for_memory_held_by_its_connection() {
    let settings =
        tidegate_http1::Settings { memory_wait: 30 * crate::rig::SECOND, ..crate::rig::settings() };
    let (rig, body) = (Rig::with(1 << 30, settings), message(false, &traces(100, 10_000)));
    let mut held = Some(take(&rig, Share::Ingest, 3 << 19));
    rig.serve(async |address| {
        let mut client = connect(address).await;
        let mut ready = client.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(call_to(TRACES, &[]), false).unwrap();
        stream.send_data(body[..10_000].to_vec().into(), false).unwrap();
        let used = || rig.arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
        while used() < rig.arena.ceiling(Share::Ingest) - (3 << 19) + (1 << 20) {
            tokio::task::yield_now().await;
        }
        assert_unavailable(&call(&mut client, TRACES, &[], &body).await, "memory");
        let mut left = &body[10_000..];
        while !left.is_empty() {
            stream.reserve_capacity(left.len());
            let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
            let (now, later) = left.split_at(room.min(left.len()));
            stream.send_data(now.to_vec().into(), later.is_empty()).unwrap();
            left = later;
        }
        let mut answer = response.await.unwrap().into_body();
        while answer.data().await.is_some_and(|data| data.is_ok()) {}
        assert_eq!(answer.trailers().await.unwrap().unwrap().get("grpc-status").unwrap(), "0");
        drop(held.take());
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (1, vec![(Refusal::Memory, 1)]));
}

/// A head that is longer than any that is allowed would make the codec's buffer grow: without memory to grow in, its
/// connection ends.
#[tokio::test]
async fn without_any_memory_no_frame_is_read_that_is_longer_than_a_head_may_be() {
    let rig = Rig::new();
    let held = take(&rig, Share::Ingest, 0);
    let frame = [&[0, 0x3f, 0xff, 1, 4, 0, 0, 0, 1][..], &[0; 2000]].concat();
    rig.serve(async |address| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&[wire::PREFACE, &wire::SETTINGS, &frame].concat()).await.unwrap();
        let mut answer = Vec::new();
        // Whether it is closed or reset is not ours to say: bytes of the client may be unread.
        let _ = stream.read_to_end(&mut answer).await;
    })
    .await;
    drop(held);
    assert_eq!(rig.call(TRACES, &[], &message(false, &traces(1, 1))).await.code, 0);
}
