//! Promise: the sink `loki` sends every record once, as an entry, in requests of the configured size; what Loki leaves out of
//! a request is counted and not sent again, and what it finds too long is cut down to one record.

use crate::bodies::numbers as otlp_numbers;
use crate::json::request;
use crate::peer::{Peer, Reply};
use crate::rig::{PART, Rig, settings};
use hyper::Method;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Loki, OtlpSettings, Transport};
use tidegate_wire::proto::{Messages, Reader};
use tidegate_wire::snappy;

/// A push request without Snappy, and the numbers of its entries.
pub(crate) fn decoded(body: &[u8]) -> (Vec<u8>, Vec<u64>) {
    let mut raw = vec![0; snappy::plausible(body).unwrap()];
    snappy::decode(body, &mut raw).unwrap();
    let text = |message: &[u8], field| Messages::new(message, field).next().map(<[u8]>::to_vec);
    let mut numbers = Vec::new();
    for stream in Messages::new(&raw, 1) {
        assert_eq!(text(stream, 1).unwrap(), b"{service_name=\"unknown_service\"}");
        for entry in Messages::new(stream, 2) {
            let number = Messages::new(entry, 3).find(|pair| text(pair, 1).unwrap() == b"severity_text");
            let number = text(number.unwrap(), 2).unwrap();
            numbers.push(String::from_utf8(number).unwrap().parse().unwrap());
        }
    }
    let mut reader = Reader::new(&raw);
    while let Some(key) = reader.key().unwrap() {
        reader.skip(key).unwrap();
    }
    (raw, numbers)
}

fn loki(peer: &Peer) -> OtlpSettings {
    settings(peer, Transport::Loki)
}

#[tokio::test]
async fn every_record_arrives_once() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
        for _ in 0..20 {
            rig.put_real(Signal::Logs, encoding, 50, (300, 40)).await;
        }
    }
    rig.drain(loki(&peer)).await;
    rig.assert_exact(&[&peer]);
    assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 18_000));
    let arrived = peer.arrived();
    // 60 records of the journal share them.
    assert!(arrived.len() < 30, "{} requests", arrived.len());
    for request in arrived {
        assert_eq!((request.method, request.path.as_str()), (Method::POST, "/loki/api/v1/push"));
        assert_eq!(request.headers[CONTENT_TYPE], "application/x-protobuf");
        assert!(!request.headers.contains_key(CONTENT_ENCODING));
    }
}

#[tokio::test]
async fn paths_are_completed() {
    for (path, expected) in
        [("", "/loki/api/v1/push"), ("/a/", "/a/loki/api/v1/push"), ("/api/prom/push", "/api/prom/push")]
    {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_real(Signal::Logs, Encoding::Identity, 0, (1, 1)).await;
        let endpoint = format!("{}{}", peer.url(), path.trim_start_matches('/')).parse().unwrap();
        rig.drain(OtlpSettings { endpoints: vec![endpoint], ..loki(&peer) }).await;
        assert_eq!(peer.arrived().first().unwrap().path, expected);
    }
}

/// Other signals are not for Loki.
#[tokio::test]
async fn other_signals_have_no_form() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Traces, Encoding::Identity, 3).await;
    rig.put(Signal::Metrics, Encoding::Gzip, 4).await;
    rig.drain(loki(&peer)).await;
    assert_eq!((peer.arrived().len(), rig.dropped()), (0, vec![(Dropped::Untranslatable, 7)]));
    assert!(Loki::need(Protocol::Otlp, Signal::Logs).is_some());
    assert!(Loki::need(Protocol::Otlp, Signal::Traces).is_none());
    assert!(Loki::need(Protocol::RemoteWrite1, Signal::Metrics).is_none());
}

#[tokio::test]
async fn requests_are_as_long_as_configured() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    for round in 0..30 {
        let (envelope, items, len) = if round % 10 == 9 { (4000, 100, 10) } else { (100, 10, 300) };
        rig.put_real(Signal::Logs, Encoding::Identity, envelope, (items, len)).await;
    }
    rig.put_real(Signal::Logs, Encoding::Gzip, 10, (1, 90 << 10)).await;
    rig.drain(OtlpSettings { max_request_bytes: 64 << 10, ..loki(&peer) }).await;
    rig.assert_exact(&[&peer]);
    for request in peer.arrived() {
        assert!(request.raw_len <= 64 << 10 || request.numbers.len() == 1, "{} bytes", request.raw_len);
    }
}

#[tokio::test]
async fn requests_that_are_too_long_are_halved_down_to_one_record() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    let lens = (0..40).map(|number| (number, if number == 17 { 5000 } else { 100 }));
    let raw = request(Signal::Logs, 30, lens);
    rig.append(Signal::Logs, Protocol::Otlp, Encoding::Identity, &raw, raw.len(), 40).await;
    rig.next = 40;
    rig.put_real(Signal::Logs, Encoding::Identity, 30, (5, 100)).await;
    peer.always(Reply::AtMost(2000));
    rig.drain(loki(&peer)).await;
    rig.assert_but(&[&peer], 17..18);
    assert_eq!(rig.dropped(), [(Dropped::TooLarge, 1)]);
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    assert_eq!(letters.next().unwrap().meta.protocol, Protocol::Otlp);
    // It can be sent again: it is OTLP.
    assert_eq!(otlp_numbers(Signal::Logs, &letters.body().unwrap()), [17]);
}

/// Entries that Loki leaves out are lost, and nothing is sent again for them.
#[tokio::test]
async fn entries_that_loki_leaves_out_are_counted_once() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_real(Signal::Logs, Encoding::Identity, 10, (5, 10)).await;
    let words = "entry with timestamp 1970-01-01 00:00:00 +0000 UTC ignored, reason: 'entry too far behind',\n\
                 user 'fake', total ignored: 2 out of 5 for stream: {service_name=\"unknown_service\"}";
    peer.script([Reply::Http(400, vec![], words.as_bytes().to_vec())]);
    rig.drain(loki(&peer)).await;
    assert_eq!((rig.dropped(), rig.page().delivered), (vec![(Dropped::Rejected, 2)], 3));
    assert_eq!((peer.arrived().len(), rig.health.activity().resent), (1, 0));
}

#[tokio::test]
async fn other_answers_are_retried_or_rejected() {
    let too_long =
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (7 vs. 4)";
    for (status, words, again) in [
        (429, "Ingestion rate limit exceeded for user fake", true),
        (500, "at least 2 live replicas required, could only find 1", true),
        (503, "", true),
        (400, "couldn't parse labels", false),
        (401, "no org id", true),
        (500, too_long, false),
    ] {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_real(Signal::Logs, Encoding::Identity, 10, (1, 10)).await;
        peer.script([Reply::Http(status, vec![], words.as_bytes().to_vec())]);
        rig.drain(loki(&peer)).await;
        if again {
            rig.assert_exact(&[&peer]);
            assert_eq!((rig.dropped(), rig.health.activity().resent), (vec![], 1), "{status}");
        } else {
            let reason = if words == too_long { Dropped::TooLarge } else { Dropped::Rejected };
            assert_eq!(rig.dropped(), [(reason, 1)], "{status}");
            assert!(read(&rig.letters_dir(), false).unwrap().next().unwrap().reason.contains(words));
        }
    }
}
