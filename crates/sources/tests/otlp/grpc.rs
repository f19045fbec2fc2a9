//! Promise: every refusal of a call is an answer with the code that clients act on, in trailers, with details
//! where there are some; it is in the books once, and leaves nothing behind.

use crate::body::{gzip, message, traces, zstd};
use crate::client::{TRACES, call, call_to, called, connect, exchange};
use crate::rig::{MAX_BODY, Rig};
use http::Request;
use tidegate_ledger::Refusal;
use tidegate_ledger::Refusal::{Malformed, Method, TooLarge, Unsupported};

/// The error, the headers, the body; code, reason, some words of the message.
type Row = (&'static str, Vec<(&'static str, &'static str)>, Vec<u8>, u8, Refusal, &'static str);

#[tokio::test]
async fn calls() {
    let good = message(false, &traces(2, 9));
    let but = |take: usize| good[..good.len() - take].to_vec();
    let gz = ("grpc-encoding", "gzip");
    let zs = ("grpc-encoding", "zstd");
    let bomb = vec![0; MAX_BODY + 1];
    let claims = |len: u32| [&[0][..], &len.to_be_bytes(), b"x"].concat();
    let table: Vec<Row> = vec![
        ("no message", vec![], vec![], 12, Malformed, "one message"),
        ("half a head", vec![], vec![0, 0, 0], 12, Malformed, "one message"),
        ("a message cut off", vec![], but(3), 13, Malformed, "ended before its message"),
        ("a message of which nothing came", vec![], good[..5].to_vec(), 13, Malformed, "ended before"),
        ("two messages", vec![], [good.clone(), good.clone()].concat(), 12, Malformed, "one message"),
        ("a byte too much", vec![], [&good[..], b"x"].concat(), 12, Malformed, "one message"),
        ("a flag that does not exist", vec![], [&[2][..], &good[1..]].concat(), 13, Malformed, "0 or 1"),
        ("compressed, nobody knows how", vec![], message(true, &gzip(b"")), 13, Malformed, "grpc-encoding"),
        (
            "an encoding that is not taken",
            vec![("grpc-encoding", "deflate")],
            good.clone(),
            12,
            Unsupported,
            "gzip",
        ),
        ("no gzip", vec![gz], message(true, &traces(1, 1)), 3, Malformed, "gzip"),
        ("no zstd", vec![zs], message(true, &traces(1, 1)), 3, Malformed, "zstd"),
        ("no protobuf", vec![], message(false, b"\xff\xff"), 3, Malformed, ""),
        ("a span cut off", vec![], message(false, &traces(2, 9)[..40]), 3, Malformed, "byte"),
        ("a gzip bomb", vec![gz], message(true, &gzip(&bomb)), 8, TooLarge, "at most 6291456 bytes"),
        ("a zstd bomb", vec![zs], message(true, &zstd(&bomb)), 8, TooLarge, "at most 6291456 bytes"),
        ("a claim of 4 GiB", vec![], claims(u32::MAX), 8, TooLarge, "at most 6291456 bytes"),
        ("one byte more than allowed", vec![], claims(MAX_BODY as u32 + 1), 8, TooLarge, "at most"),
    ];
    for (what, headers, body, code, reason, words) in table {
        let rig = Rig::new();
        let answer = rig.call(TRACES, &headers, &body).await;
        assert_eq!(answer.code, code, "{what}: {answer:?}");
        assert!(answer.message.contains(words), "{what}: {}", answer.message);
        assert!(answer.trailers_only && answer.body.is_empty(), "{what}");
        assert_eq!(answer.headers.get("grpc-accept-encoding").unwrap(), "identity,gzip,zstd", "{what}");
        // `BadRequest` where the data is wrong; nothing that would have it sent again.
        assert_eq!(answer.details.is_some(), code == 3, "{what}: {:?}", answer.details);
        rig.assert_refused(reason, what);
    }
}

/// A request that is not a call of this service does not count as received, but is answered and counted.
#[tokio::test]
async fn unknown_methods() {
    for method in ["/opentelemetry.proto.collector.trace.v1.TraceService/Exports", "/x.Y/Z", "/v1/traces"] {
        let rig = Rig::new();
        let answer = rig.call(method, &[], &message(false, b"")).await;
        assert_eq!(answer.code, 12, "{answer:?}");
        assert_eq!(rig.books_of("http").refused, [(Refusal::NotFound, 1)]);
        assert_eq!(rig.books().received, 0);
    }
}

#[tokio::test]
async fn other_forms_of_calls() {
    let get = Request::get(format!("http://test{TRACES}")).header("content-type", "application/grpc");
    let json = Request::post(format!("http://test{TRACES}")).header("content-type", "application/grpc+json");
    for (request, reason) in [(get, Method), (json, Unsupported)] {
        let rig = Rig::new();
        let request = request.body(()).unwrap();
        let answer = rig
            .serve(async |address| called(exchange(&mut connect(address).await, request, b"").await))
            .await;
        assert_eq!(answer.code, 12, "{answer:?}");
        rig.assert_refused(reason, "form");
    }
}

/// Calls good and bad share a connection, one after the other and at the same time.
#[tokio::test]
async fn a_refusal_does_not_end_the_connection() {
    let rig = Rig::new();
    let (good, bad) = (message(false, &traces(2, 5)), message(false, b"\xff"));
    rig.serve(async |address| {
        let client = connect(address).await;
        let calls = (0..60).map(|number| {
            let (mut client, good, bad) = (client.clone(), &good, &bad);
            async move {
                let body = if number % 3 == 0 { bad } else { good };
                (number, call(&mut client, TRACES, &[], body).await.code)
            }
        });
        for (number, code) in futures_util::future::join_all(calls).await {
            assert_eq!(code, if number % 3 == 0 { 3 } else { 0 });
        }
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (40, vec![(Malformed, 20)]));
}

/// A deadline that the call brings ends it with the code for that.
#[tokio::test]
async fn a_deadline_is_kept() {
    let rig = Rig::new();
    let answer = rig
        .serve(async |address| {
            let client = connect(address).await;
            let mut ready = client.ready().await.unwrap();
            let request = call_to(TRACES, &[("grpc-timeout", "20m")]);
            // A body that never comes.
            let (response, _stream) = ready.send_request(request, false).unwrap();
            response.await.unwrap().headers().clone()
        })
        .await;
    assert_eq!(answer.get("grpc-status").unwrap(), "4");
    rig.assert_refused(Refusal::Abandoned, "the client had given up");
}

/// The longest deadline that can be said is none that ends a call, and what is no deadline is none.
#[tokio::test]
async fn odd_deadlines_end_nothing() {
    let rig = Rig::new();
    for timeout in ["99999999H", "1", "soon", "-1S"] {
        let answer = rig.call(TRACES, &[("grpc-timeout", timeout)], &message(false, &traces(1, 1))).await;
        assert_eq!(answer.code, 0, "{timeout}: {answer:?}");
    }
    assert_eq!(rig.books().accepted, 4);
}

/// A call that is reset is in the books too.
#[tokio::test]
async fn an_abandoned_call_is_counted() {
    let rig = Rig::new();
    rig.serve(async |address| {
        let client = connect(address).await;
        let mut ready = client.ready().await.unwrap();
        let (response, mut stream) = ready.send_request(call_to(TRACES, &[]), false).unwrap();
        stream.send_data(message(false, &traces(1, 1))[..7].to_vec().into(), false).unwrap();
        // Until the server has seen the call.
        while rig.arena.usage().shares.iter().all(|share| share.used == 0) {
            tokio::task::yield_now().await;
        }
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
    })
    .await;
    rig.assert_refused(Refusal::Abandoned, "abandoned");
}
