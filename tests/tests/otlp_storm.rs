//! P1 to P4 for OTLP at 64 MiB: large requests of many senders, a receiver that stalls, bombs, and single items
//! as large as a request may be. Whatever comes, it is accepted or answered, and what was accepted arrives.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

#[path = "support/otlp.rs"]
mod otlp;

use bytes::Bytes;
use otlp::{DRAINED, MIB, Storm, alone, message};
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use tidegate_load::otlp::{
    ContentCoding, ExportRequest, OtlpClient, OtlpProfile, Signal, Transport, drive_blocking,
};
use tidegate_load::{Behaviour, OnRefused, Target};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(120);
/// Items of a request of about 4 MiB.
const LARGE: u64 = 9_000;

/// 64 senders with requests of 4 MiB: four times the memory at once, over either transport.
#[test]
fn many_large_requests() {
    let _alone = alone();
    for transport in [Transport::Grpc, Transport::Http] {
        let mut storm = Storm::start(64 * MIB, 1_000, json!({"compression": "none"}));
        let profile = OtlpProfile {
            transport,
            connections: 64,
            items: LARGE,
            requests: 2,
            on_refused: OnRefused::Retry { at_most: Duration::from_secs(1) },
            answer_within: PATIENCE,
            deadline: DRAINED,
            ..OtlpProfile::default()
        };
        let report = drive_blocking(&storm.target(), &profile).unwrap();
        assert_eq!((report.accepted, report.failed), (128, 0), "{transport:?}: {:?}", report.reasons);
        assert_eq!(report.with_delay, report.refused, "every refusal says when to return");
        storm.is_over(Signal::Traces, &report);
    }
}

/// A receiver that stalls while everybody sends: the journal takes it, and it arrives afterwards.
#[test]
fn a_stalled_receiver() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 1_000, json!({"compression": "zstd", "timeout": "2s"}));
    storm.receiver.set(Behaviour::Stall);
    let profile = OtlpProfile {
        transport: Transport::Grpc,
        signal: Signal::Logs,
        connections: 100,
        items: 200,
        requests: 60,
        deadline: DRAINED,
        ..OtlpProfile::default()
    };
    let report = storm.drive(&profile).join().unwrap();
    assert_eq!(report.accepted, 6_000, "{:?}", report.reasons);
    assert!(storm.receiver.wait_for(PATIENCE, |arrived| arrived.stalled > 0));
    storm.receiver.set(Behaviour::Healthy);
    storm.is_over(Signal::Logs, &report);
}

/// Refusals and resets of the receiver, in turns, while spans flow.
#[test]
fn a_moody_receiver() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 1_000, json!({"protocol": "http", "compression": "gzip"}));
    let profile =
        OtlpProfile { transport: Transport::Http, connections: 20, requests: 150, ..OtlpProfile::default() };
    let driving = storm.drive(&profile);
    for behaviour in [
        Behaviour::Status { code: 503, retry_after: Some(1) },
        Behaviour::Refuse,
        Behaviour::Status { code: 429, retry_after: None },
        Behaviour::Healthy,
    ] {
        storm.receiver.set(behaviour);
        let so_far = storm.receiver.report().requests.values().sum::<u64>();
        // Until it was felt; when nobody listens nothing is.
        storm
            .receiver
            .wait_for(Duration::from_secs(2), |arrived| arrived.requests.values().sum::<u64>() > so_far);
    }
    let report = driving.join().unwrap();
    assert_eq!((report.accepted, report.failed), (3_000, 0), "{:?}", report.reasons);
    storm.is_over(Signal::Traces, &report);
}

/// 1,000 gRPC connections that do nothing cost what the plan says, and keep nobody else waiting.
#[test]
fn a_thousand_idle_connections() {
    let _alone = alone();
    let mut storm = Storm::start_with(80 * MIB, 2_000, json!({}), json!({"connections": 17_500}));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let target = storm.target();
    let idle = runtime.block_on(async {
        let mut idle = Vec::new();
        for number in 0..1_000 {
            let mut client = OtlpClient::open(Transport::Grpc, &target, PATIENCE).await.unwrap();
            let request = ExportRequest { signal: Signal::Traces, items: 1, first: number, time_ns: 1 };
            let answer =
                client.send(Signal::Traces, ContentCoding::Identity, &request.encode(), PATIENCE).await;
            let answer = answer.unwrap();
            assert!(answer.taken, "connection {number}: {answer:?}");
            idle.push(client);
        }
        idle
    });
    let profile = OtlpProfile { transport: Transport::Grpc, first: 1_000, ..OtlpProfile::default() };
    let report = drive_blocking(&target, &profile).unwrap();
    assert_eq!((report.accepted, report.refused), (40, 0), "{:?}", report.reasons);
    println!("with 1,000 idle connections: {:.1} MiB", storm.gateway.hwm() as f64 / MIB as f64);
    drop(idle);
    drop(runtime);
    storm.is_over(Signal::Traces, &report);
}

/// 692 connections of HTTP/2 that each made a hundred calls at a time and then do nothing: what the codec keeps of
/// that is charged, so the ordinary load that follows fits beside it.
#[test]
fn connections_that_made_a_hundred_calls_at_a_time() {
    const CONNECTIONS: u64 = 692;
    const CALLS: u64 = 100;
    let _alone = alone();
    let limits = json!({"connections": (CONNECTIONS + 20) * 17});
    let mut storm = Storm::start_with(64 * MIB, CONNECTIONS, json!({}), limits);
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut connections = JoinSet::new();
    let (idle, taken) = runtime.block_on(async {
        let (mut idle, mut taken) = (Vec::new(), 0);
        for number in 0..CONNECTIONS {
            let stream = TcpStream::connect(storm.gateway.grpc()).await.unwrap();
            let (client, connection) = h2::client::handshake(stream).await.unwrap();
            connections.spawn(connection);
            // One first, so that it is known how many there may be at a time.
            let mut first = number * CALLS;
            for calls in [1, CALLS - 1] {
                let calls = (first..first + calls).map(|first| logs(client.clone(), first));
                for call in calls.collect::<JoinSet<_>>().join_all().await {
                    taken += u64::from(call.unwrap());
                    first += 1;
                }
            }
            idle.push(client);
        }
        (idle, taken)
    });
    println!(
        "{taken} of {} calls taken; {:.1} MiB",
        CONNECTIONS * CALLS,
        storm.gateway.hwm() as f64 / MIB as f64
    );
    assert!(taken > CONNECTIONS * CALLS / 2, "who makes small calls is refused now and then at most");
    let profile = OtlpProfile {
        transport: Transport::Http,
        connections: 16,
        items: LARGE,
        requests: 4,
        on_refused: OnRefused::Retry { at_most: Duration::from_secs(1) },
        answer_within: PATIENCE,
        deadline: DRAINED,
        ..OtlpProfile::default()
    };
    let report = storm.drive(&profile).join().unwrap();
    assert_eq!((report.accepted, report.failed), (64, 0), "{:?}", report.reasons);
    println!("with all of them idle: {:.1} MiB", storm.gateway.hwm() as f64 / MIB as f64);
    drop((idle, connections));
    drop(runtime);
    storm.is_over(Signal::Traces, &report);
}

/// Sends one log record in a call of its own; whether it was taken.
async fn logs(client: h2::client::SendRequest<Bytes>, first: u64) -> Result<bool, h2::Error> {
    const PATH: &str = "http://test/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let message = ExportRequest { signal: Signal::Logs, items: 1, first, time_ns: 1 }.encode();
    let head = http::Request::post(PATH).header("content-type", "application/grpc").header("te", "trailers");
    let prefix = [&[0][..], &u32::try_from(message.len()).unwrap().to_be_bytes()].concat();
    let mut client = client.ready().await?;
    let (answer, mut body) = client.send_request(head.body(()).unwrap(), false)?;
    body.send_data([prefix, message].concat().into(), true)?;
    let mut answer = answer.await?;
    let is_ok = |headers: &http::HeaderMap| headers.get("grpc-status").map(|status| status == "0");
    if let Some(is_ok) = is_ok(answer.headers()) {
        return Ok(is_ok);
    }
    while answer.body_mut().data().await.transpose()?.is_some() {}
    Ok(answer.body_mut().trailers().await?.as_ref().and_then(is_ok).unwrap())
}

/// Bodies of 30 KB that want to become 31 MB, and frames that want a window of 2 GiB: a thousand at once.
#[test]
fn bombs() {
    let _alone = alone();
    // As many as 500 connections of HTTP/2 count, and those of HTTP/1.1.
    let mut storm = Storm::start_with(64 * MIB, 2_000, json!({}), json!({"connections": 9_500}));
    // One field that no request has, of zeros: whole protobuf, so only its size is wrong.
    let len = 256_u32 << 20;
    let mut gzip = flate(len);
    let zstd = ContentCoding::Zstd.encode(&vec![0; 8 << 20]).unwrap();
    let repeated: Vec<u8> = std::iter::repeat_n(zstd, 16).flatten().collect();
    // Magic, a descriptor without content size, a window of 2 GiB, one empty last block.
    let window = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
    let truncated = gzip.split_off(gzip.len() / 2);
    let bodies = [
        (ContentCoding::Gzip, flate(len)),
        (ContentCoding::Zstd, repeated),
        (ContentCoding::Zstd, window),
        (ContentCoding::Gzip, truncated),
    ];
    let transports = [Transport::Http, Transport::Grpc];
    let target = storm.target();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let answers = runtime.block_on(async {
        let mut senders = JoinSet::new();
        for number in 0..1_000_usize {
            let (coding, body) = bodies[number % bodies.len()].clone();
            let target: Target = target.clone();
            let transport = transports[number / bodies.len() % 2];
            senders.spawn(async move {
                let mut client = OtlpClient::open(transport, &target, PATIENCE).await?;
                client.send(Signal::Traces, coding, &body, PATIENCE).await
            });
        }
        senders.join_all().await
    });
    let mut codes = std::collections::BTreeMap::<u16, u64>::new();
    for answer in answers {
        let answer = answer.expect("every refusal is an answer");
        assert!(!answer.taken, "{answer:?}");
        *codes.entry(answer.code).or_default() += 1;
    }
    println!("{codes:?}");
    // The connections end with their runtime; until then they hold what their codecs have grown by.
    drop(runtime);
    storm.gateway.at_rest(DRAINED);
    storm.is_sound();
    // Alone, each is refused for good: nobody is told to return with it.
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for (transport, (coding, body)) in transports.into_iter().flat_map(|t| bodies.iter().map(move |b| (t, b)))
    {
        let answer = runtime.block_on(async {
            let mut client = OtlpClient::open(transport, &target, PATIENCE).await?;
            client.send(Signal::Traces, *coding, body, PATIENCE).await
        });
        let answer = answer.expect("every refusal is an answer");
        assert!(!answer.taken && !answer.retryable, "{transport:?}, {coding:?}: {answer:?}");
    }
    drop(runtime);
    storm.is_sound();
    let report = drive_blocking(&target, &OtlpProfile::default()).unwrap();
    assert_eq!(report.accepted, 40, "as before: {:?}", report.reasons);
    storm.is_over(Signal::Traces, &report);
}

fn flate(len: u32) -> Vec<u8> {
    let chunk = ContentCoding::Gzip.encode(&vec![0; 1 << 20]).unwrap();
    // Members follow one another; so 256 of them are one body.
    let mut body = Vec::new();
    for _ in 0..len >> 20 {
        body.write_all(&chunk).unwrap();
    }
    body
}

/// One log record of 30 MB, and one span with a million attributes: taken or refused as too large, and others do
/// not notice.
#[test]
fn single_giants() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 1_000, json!({"max_request_bytes": "64MiB"}));
    let target = storm.target();
    let giants = [(Signal::Logs, giant_log()), (Signal::Traces, giant_span())];
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for transport in [Transport::Http, Transport::Grpc] {
        for (signal, body) in &giants {
            let answer = runtime.block_on(async {
                let mut client = OtlpClient::open(transport, &target, PATIENCE).await?;
                client.send(*signal, ContentCoding::Identity, body, PATIENCE).await
            });
            let answer = answer.expect("every refusal is an answer");
            println!("{transport:?}, {signal:?} of {} bytes: {answer:?}", body.len());
            assert!(answer.taken || [413, 503, 8, 14].contains(&answer.code), "{answer:?}");
        }
    }
    drop(runtime);
    storm.gateway.at_rest(DRAINED);
    storm.is_sound();
    let report = drive_blocking(&target, &OtlpProfile::default()).unwrap();
    assert_eq!(report.accepted, 40, "as before: {:?}", report.reasons);
    storm.gateway.at_rest(DRAINED);
    assert_eq!(report.acked.missing_from(storm.receiver.report().of(Signal::Traces)), None);
    storm.is_sound();
}

fn giant_log() -> Vec<u8> {
    let text = message(1, &vec![b'x'; 30_000_000]);
    message(1, &message(2, &message(2, &message(5, &text))))
}

fn giant_span() -> Vec<u8> {
    let mut span = [message(1, &[1; 16]), message(2, &[2; 8]), message(5, b"giant")].concat();
    for number in 0..1_000_000_u32 {
        let name = message(1, format!("a{number}").as_bytes());
        let value = message(2, &[0x18, 0x01]);
        span.extend(message(9, &[name, value].concat()));
    }
    message(1, &message(2, &message(2, &span)))
}

/// kill -9 in mid-flow, again and again: everything acknowledged arrives.
#[test]
fn killed_and_started_again() {
    let _alone = alone();
    let mut storm = Storm::start(64 * MIB, 1_000, json!({"linger": "10ms"}));
    let mut acked = tidegate_load::NumberSet::default();
    let mut first = 0;
    for _ in 0..5 {
        let profile = OtlpProfile {
            transport: Transport::Grpc,
            connections: 8,
            requests: 200,
            first,
            on_refused: OnRefused::Count,
            answer_within: Duration::from_secs(5),
            ..OtlpProfile::default()
        };
        first = profile.end();
        let so_far = storm.receiver.report().of(Signal::Traces).len();
        let driving = storm.drive(&profile);
        assert!(storm.receiver.wait_for(PATIENCE, |arrived| arrived.of(Signal::Traces).len() > so_far));
        storm.gateway.kill9();
        let report = driving.join().unwrap();
        acked.merge(&report.acked);
        storm.gateway.start();
    }
    let report = drive_blocking(&storm.target(), &OtlpProfile { first, ..OtlpProfile::default() }).unwrap();
    acked.merge(&report.acked);
    storm.is_over(Signal::Traces, &tidegate_load::otlp::OtlpReport { acked, ..report });
}
