//! Every refusal is an answer in the shape of APM Server.

use crate::body::{LOG, METADATA, NDJSON, PATH, gzip};
use crate::client::raw;
use crate::rig::{MAX_BODY, Rig};
use serde_json::{Value, json};
use tidegate_ledger::Refusal;

/// Invalid requests are answered 400, with the error among `errors`.
#[tokio::test]
async fn wrong_requests_are_answered_as_apm_server_does() {
    let body = [METADATA, LOG].concat();
    let body = body.as_bytes();
    type Headers = [(&'static str, &'static str)];
    let table: [(&Headers, &[u8], Refusal); 5] = [
        (&[("content-type", "application/json")], body, Refusal::Unsupported),
        (&[NDJSON, ("content-encoding", "zstd")], body, Refusal::Unsupported),
        (&[NDJSON, ("content-encoding", "gzip")], body, Refusal::Malformed),
        (&[NDJSON, ("content-encoding", "deflate")], body, Refusal::Malformed),
        (&[NDJSON, NDJSON], body, Refusal::Headers),
    ];
    for (headers, body, reason) in table {
        let rig = Rig::new();
        let answer = rig.post(PATH, headers, body).await;
        assert_eq!(answer.status, 400, "{headers:?}");
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["accepted"], 0, "{headers:?}");
        assert!(said["errors"][0]["message"].as_str().is_some_and(|words| words.len() > 10), "{said}");
        assert_eq!(rig.books_of("elastic_apm").refused, [(reason, 1)], "{headers:?}");
    }
    let rig = Rig::new();
    let answer =
        rig.serve(async |address| raw(address, b"PUT /intake/v2/events HTTP/1.1\r\nHost: a\r\n\r\n").await);
    let answer = answer.await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("only POST requests are supported"), "{}", answer.text());
}

/// Oversize requests are answered 413, as received or decompressed; a bomb is decompressed no further than a
/// plausible expansion.
#[tokio::test]
async fn oversize_requests_are_answered_413() {
    let rig = Rig::new();
    let line = format!("{{\"log\":{{\"message\":\"{}\"}}}}\n", "x".repeat(200 << 10));
    let large = METADATA.to_owned() + &line.repeat(MAX_BODY / line.len() + 1);
    for (headers, body) in [
        (&[NDJSON][..], large.clone().into_bytes()),
        (&[NDJSON, ("content-encoding", "gzip")], gzip(large.as_bytes())),
    ] {
        let answer = rig.post(PATH, headers, &body).await;
        assert_eq!(answer.status, 413, "{headers:?}: {}", answer.text());
        let said: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["accepted"], 0);
    }
    assert_eq!(rig.books_of("elastic_apm").refused, [(Refusal::TooLarge, 2)]);
}

/// Time mends this, and the client is told when.
#[tokio::test]
async fn a_stopping_gateway_sends_a_retry_delay() {
    let rig = Rig::new();
    rig.gate.stop();
    let answer = rig.post(PATH, &[NDJSON], METADATA.as_bytes()).await;
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(said, json!({"error": "the gateway is stopping; send it again"}));
}

/// Browsers are heard within their rate, and told what they may send; the short form of their events is not taken.
#[tokio::test]
async fn browsers_are_accepted_within_their_rate() {
    let rig = Rig::new();
    let path = "/intake/v2/rum/events";
    let body = METADATA.to_owned() + &LOG.repeat(100);
    let answer = rig.post(path, &[NDJSON], body.as_bytes()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (202, Some("*")));
    let answer = rig.post(path, &[NDJSON], body.as_bytes()).await;
    assert_eq!(answer.status, 429);
    let seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((5..=11).contains(&seconds), "{seconds}");
    let preflight = format!("OPTIONS {path} HTTP/1.1\r\nHost: a\r\nOrigin: http://shop\r\n\r\n");
    let answer = rig.serve(async |address| raw(address, preflight.as_bytes()).await).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("Content-Type"));
    let answer = rig.post("/intake/v3/rum/events", &[NDJSON], b"{\"m\":{}}").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("apiVersion"), "{}", answer.text());
}
