//! P3: every answer is the protocol's own, with a reason in words: statuses and headers as a client sees
//! them on a real socket. Not here: refusals for want of memory or disk, which the storms have.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::json;
use std::fs;
use std::process::Command;
use tidegate_load::SeriesModel;
use tidegate_load::hostile::with_preamble;
use tidegate_load::remote_write::{RequestExtras, SampleBatch, Version, compress};
use tidegate_tests::http::{Answer, Client, request};
use tidegate_tests::messages::{TimeSeries, WriteRequest, body};
use tidegate_tests::{Gateway, finish, skip};

const MAX_BODY: usize = 4 << 20;
const V1: &str = "Content-Type: application/x-protobuf";
const V2: &str = "Content-Type: application/x-protobuf;proto=io.prometheus.write.v2.Request";
const SNAPPY: &str = "Content-Encoding: snappy";
const POST: &str = "POST /api/v1/write HTTP/1.1";
const WRITTEN: [&str; 3] = [
    "x-prometheus-remote-write-samples-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-exemplars-written",
];

fn gateway() -> Gateway {
    Gateway::started(json!({
        "memory": "96MiB",
        "sources": {"prometheus_remote_write": {"max_body": MAX_BODY}},
        "sinks": {"nowhere": {"type": "blackhole"}},
    }))
}

fn written(answer: &Answer) -> [Option<u64>; 3] {
    WRITTEN.map(|name| answer.header(name)?.parse().ok())
}

/// `count` good series of either version, with one histogram series in four and exemplars.
fn good(version: Version, count: usize) -> Vec<u8> {
    let timeline = tidegate_load::Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };
    let model = SeriesModel::with_histograms(1, count, timeline, 4);
    let extras = RequestExtras { exemplars: true, metadata: true, stale: false };
    let batch = SampleBatch { extras, ..SampleBatch::of(&model, model.series(), 0, 2) };
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    batch.encode(version, &mut raw);
    compress(&raw, &mut body);
    body
}

fn series(labels: &[(&str, &str)]) -> Vec<u8> {
    body(&WriteRequest {
        timeseries: vec![TimeSeries::new(labels, &[(1_700_000_000_000, 1.0)])],
        metadata: vec![],
    })
}

/// A final refusal of this protocol: its status, words for a person, and nothing written.
#[track_caller]
fn refused(answer: &Answer, status: u16, words: &str) {
    let text = answer.text();
    assert_eq!(answer.status, status, "{text}");
    assert!(text.contains(words), "it should say {words:?}: {text}");
    assert!(text.ends_with('\n') && text.len() > 20, "not a sentence: {text:?}");
    assert_eq!(answer.header("retry-after"), None, "to try again is no use: {text}");
}

/// Both versions, on both paths, one after the other on one connection.
#[test]
fn an_accepted_request_is_answered_204_with_written_headers() {
    let gateway = gateway();
    let mut client = Client::connect(gateway.http()).unwrap();
    for path in ["/api/v1/write", "/api/v1/receive"] {
        for (version, content_type) in [(Version::V1, V1), (Version::V2, V2)] {
            let body = good(version, 64);
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\n{content_type}\r\n{SNAPPY}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            client.send(head.as_bytes()).unwrap();
            client.send(&body).unwrap();
            let answer = client.answer().unwrap();
            assert_eq!(answer.status, 204, "{}", answer.text());
            // 48 float series, 16 histogram series, two of each; an exemplar for those of every eighth
            // series that are floats: none, as those are histograms.
            assert_eq!(written(&answer), [Some(96), Some(32), Some(0)], "{version:?}");
        }
    }
    // The same with the names of parameters and headers as others write them, and without a hint.
    let spellings: [&[&str]; 3] = [
        &[
            POST,
            "content-type: Application/X-Protobuf ; PROTO=prometheus.WriteRequest",
            "CONTENT-ENCODING: Snappy",
        ],
        &[POST, "X-Prometheus-Remote-Write-Version: 2.0.0", V1, SNAPPY],
        &[POST],
    ];
    for head in spellings {
        assert_eq!(request(gateway.http(), head, &good(Version::V1, 3)).unwrap().status, 204, "{head:?}");
    }
    gateway.books_close();
}

/// The reason says what is wrong, in words that help whoever made the body; nothing of it is written.
#[test]
fn malformed_bodies_are_400_with_the_reason() {
    let gateway = gateway();
    let long = "x".repeat(3_000);
    let table: Vec<(&str, &str, Vec<u8>, &str)> = vec![
        ("not Snappy", V1, b"\xff\xff\xff\xff\xff\xff\xff".to_vec(), "nappy"),
        ("JSON", V1, b"{\"samples\": []}".to_vec(), ""),
        ("nothing", V1, Vec::new(), ""),
        ("half", V1, good(Version::V1, 20)[..500].to_vec(), ""),
        (
            "a label twice, apart",
            V1,
            series(&[("z", "1"), ("__name__", "up"), ("z", "2")]),
            "`z` is there twice",
        ),
        (
            "a label twice",
            V1,
            series(&[("__name__", "up"), ("job", "1"), ("job", "2")]),
            "`job` is there twice",
        ),
        ("a label without a name", V1, series(&[("", "1"), ("__name__", "up")]), "empty name"),
        ("no metric name", V1, series(&[("job", "1")]), "__name__"),
        ("no labels", V1, series(&[]), "no labels"),
        ("1.0 announced as 2.0", V2, series(&[("__name__", "up")]), "Content-Type announces"),
        ("2.0 announced as 1.0", V1, good(Version::V2, 3), "Content-Type announces"),
        ("a lying preamble", V1, with_preamble(&series(&[("__name__", &long)]), 20), ""),
    ];
    for (what, content_type, body, words) in table {
        let length = format!("Content-Length: {}", body.len());
        let mut head = vec![POST, content_type, SNAPPY];
        head.extend(body.is_empty().then_some(&*length));
        let answer = request(gateway.http(), &head, &body).unwrap();
        println!("{what}: {}", answer.text().trim_end());
        refused(&answer, 400, words);
        assert_eq!(written(&answer), [Some(0); 3], "{what}");
    }
    let status = gateway.at_rest(tidegate_tests::SOON);
    let sources = status["books"]["sources"].as_array().unwrap();
    let source = sources.iter().find(|source| source["name"] == "prometheus_remote_write").unwrap();
    assert_eq!(
        (&source["received"], &source["accepted"], &source["refused"]["malformed"]),
        (&json!(12), &json!(0), &json!(12))
    );
    gateway.books_close();
}

/// A request without any series is no mistake.
#[test]
fn an_empty_request_is_accepted() {
    let gateway = gateway();
    for content_type in [V1, V2] {
        let answer = request(gateway.http(), &[POST, content_type, SNAPPY], &[0]).unwrap();
        assert_eq!((answer.status, written(&answer)), (204, [Some(0); 3]), "{}", answer.text());
    }
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}

#[test]
fn other_methods_paths_and_types_are_told_apart() {
    let gateway = gateway();
    let body = good(Version::V1, 3);
    let send = |head: &[&str]| request(gateway.http(), head, &body).unwrap();
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = send(&[&format!("{method} /api/v1/write HTTP/1.1"), V1, SNAPPY]);
        refused(&answer, 405, "POST");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
    refused(&send(&["POST /api/v1/wrote HTTP/1.1", V1, SNAPPY]), 404, "/api/v1/write");
    refused(&send(&["POST / HTTP/1.1", V1, SNAPPY]), 404, "/api/v1/write");
    refused(&send(&[POST, "Content-Type: application/json", SNAPPY]), 415, "application/x-protobuf");
    refused(
        &send(&[POST, "Content-Type: application/x-protobuf;proto=io.prometheus.write.v3.Request"]),
        415,
        "proto=",
    );
    refused(&send(&[POST, V1, "Content-Encoding: gzip"]), 415, "snappy");
    refused(&send(&[POST, V2, "Content-Encoding: zstd"]), 415, "snappy");
    refused(&send(&[POST, V1, V2, SNAPPY]), 400, "once");
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}

/// A body that is too large is refused before it is received, or when its preamble says so, or at the chunk
/// that exceeds the limit; the answer arrives although the client is still sending.
#[test]
fn too_large_is_413_however_it_shows() {
    let gateway = gateway();
    let mut client = Client::connect(gateway.http()).unwrap();
    let head = format!("{POST}\r\nHost: x\r\n{V1}\r\n{SNAPPY}\r\nContent-Length: {}\r\n\r\n", MAX_BODY * 2);
    client.send(head.as_bytes()).unwrap();
    refused(&client.answer().unwrap(), 413, "");

    let lying = with_preamble(&good(Version::V1, 3), MAX_BODY as u64 + 1);
    let answer = request(gateway.http(), &[POST, V1, SNAPPY], &lying).unwrap();
    refused(&answer, 413, &MAX_BODY.to_string());
    assert_eq!(written(&answer), [Some(0); 3]);

    let mut client = Client::connect(gateway.http()).unwrap();
    let head = format!("{POST}\r\nHost: x\r\n{V1}\r\n{SNAPPY}\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..6 {
        // Once refused, the connection may be closed while this is being sent.
        let sent =
            client.send(b"100000\r\n").and_then(|()| client.send(&chunk)).and_then(|()| client.send(b"\r\n"));
        if sent.is_err() {
            break;
        }
    }
    refused(&client.answer().unwrap(), 413, "");
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}

/// A client that sends `Expect: 100-continue` is told to go on only if the body will be accepted.
#[test]
fn expect_continue_is_answered_after_admission() {
    let gateway = gateway();
    let body = good(Version::V1, 64);
    let head = |content_type: &str, length: usize| {
        format!(
            "{POST}\r\nHost: x\r\n{content_type}\r\n{SNAPPY}\r\nContent-Length: {length}\r\n\
             Expect: 100-continue\r\n\r\n"
        )
    };
    let mut client = Client::connect(gateway.http()).unwrap();
    client.send(head(V1, body.len()).as_bytes()).unwrap();
    assert_eq!(client.any_answer().unwrap().status, 100);
    client.send(&body).unwrap();
    assert_eq!(client.any_answer().unwrap().status, 204);

    client.send(head("Content-Type: text/plain", body.len()).as_bytes()).unwrap();
    refused(&client.any_answer().unwrap(), 415, "protobuf");

    let mut client = Client::connect(gateway.http()).unwrap();
    client.send(head(V1, MAX_BODY * 2).as_bytes()).unwrap();
    refused(&client.any_answer().unwrap(), 413, "");
    gateway.books_close();
}

#[test]
fn chunked_bodies_are_taken() {
    let gateway = gateway();
    let body = good(Version::V2, 64);
    let mut client = Client::connect(gateway.http()).unwrap();
    for size in [1, 7, 1000, 100_000] {
        let mut text = format!("{POST}\r\nHost: x\r\n{V2}\r\n{SNAPPY}\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
        for chunk in body.chunks(size) {
            text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"0\r\n\r\n");
        client.send(&text).unwrap();
        let answer = client.answer().unwrap();
        assert_eq!(
            (answer.status, written(&answer)[0]),
            (204, Some(96)),
            "chunks of {size}: {}",
            answer.text()
        );
    }
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}

/// Requests that two readers could read in two ways are refused, and the connection ends.
#[test]
fn ambiguous_requests_are_refused_and_the_connection_ends() {
    let gateway = gateway();
    let table = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Content-Length: +3\r\n",
        "Content-Type: a\r\n b\r\nContent-Length: 3\r\n",
        "Content-Length : 3\r\n",
    ];
    for headers in table {
        let mut client = Client::connect(gateway.http()).unwrap();
        client.send(format!("{POST}\r\nHost: x\r\n{headers}\r\nabc").as_bytes()).unwrap();
        let answer = client.answer().unwrap();
        refused(&answer, 400, "");
        assert_eq!(answer.header("connection"), Some("close"), "{headers:?}");
        assert!(client.is_closed().unwrap(), "{headers:?}");
    }
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}

/// curl, with which people try things out: plain, chunked, and large enough that it asks first.
#[test]
fn curl_gets_the_same_answers() {
    if Command::new("curl").arg("--version").output().is_err() {
        skip("curl", "curl is not installed");
        return;
    }
    let gateway = gateway();
    let file = gateway.folder().join("body");
    let curl = |body: &[u8], extra: &[&str]| {
        fs::write(&file, body).unwrap();
        let mut command = Command::new("curl");
        command.args(["-sS", "-i", "--max-time", "30", "-H", V1, "-H", SNAPPY]).args(extra);
        command.arg("--data-binary").arg(format!("@{}", file.display()));
        finish(command.arg(format!("http://{}/api/v1/write", gateway.http()))).succeeded().to_lowercase()
    };
    let plain = curl(&good(Version::V1, 64), &[]);
    assert!(plain.starts_with("http/1.1 204") && plain.contains(&format!("{}: 96", WRITTEN[0])), "{plain}");
    let chunked = curl(&good(Version::V1, 64), &["-H", "Transfer-Encoding: chunked"]);
    assert!(chunked.contains("http/1.1 204"), "{chunked}");

    // Values that hardly compress, so that curl sees more than its 1 MiB.
    let value = |n: u64| f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2);
    let samples: Vec<(i64, f64)> =
        (0..110_000_u64).map(|n| (1_700_000_000_000 + n as i64, value(n))).collect();
    let series = TimeSeries::new(&[("__name__", "noise")], &samples);
    let large = body(&WriteRequest { timeseries: vec![series], metadata: vec![] });
    assert!(large.len() > 1 << 20, "{} bytes", large.len());
    let asked = curl(&large, &["-H", "Expect: 100-continue"]);
    assert!(asked.starts_with("http/1.1 100") && asked.contains("http/1.1 204"), "{asked}");
    assert!(asked.contains(&format!("{}: 110000", WRITTEN[0])), "{asked}");
    let malformed = curl(b"hello", &[]);
    assert!(malformed.starts_with("http/1.1 400"), "{malformed}");
    gateway.at_rest(tidegate_tests::SOON);
    gateway.books_close();
}
