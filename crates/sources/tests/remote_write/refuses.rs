//! Promise: every refusal is an answer with the right status, words, and the counts that the protocol asks for;
//! it is in the books once, and leaves nothing behind.

use crate::rig::{MAX_BODY, Rig};
use tidegate_ledger::Refusal;
use tidegate_load::hostile;
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline};

fn body(version: Version) -> Vec<u8> {
    let model = SeriesModel::new(1, 5, Timeline { base_ms: 1, interval_ms: 1 });
    let (mut raw, mut body) = (Vec::new(), Vec::new());
    SampleBatch::of(&model, model.series(), 0, 1).encode(version, &mut raw);
    compress(&raw, &mut body);
    body
}

fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    compress(raw, &mut body);
    body
}

/// Decisions by the head alone.
#[tokio::test]
async fn heads() {
    use Refusal::{Headers, Method, Unsupported};
    let table: [(&str, u16, Refusal, &str); 9] = [
        ("GET /api/v1/write HTTP/1.1\r\n", 405, Method, "POST"),
        ("PUT /api/v1/write HTTP/1.1\r\n", 405, Method, "POST"),
        ("POST /api/v1/write HTTP/1.1\r\nContent-Type: application/json\r\n", 415, Unsupported, "x-protobuf"),
        (
            "POST /api/v1/write HTTP/1.1\r\nContent-Type: application/x-protobuf;proto=some.Other\r\n",
            415,
            Unsupported,
            "io.prometheus.write.v2.Request",
        ),
        ("POST /api/v1/write HTTP/1.1\r\nContent-Encoding: gzip\r\n", 415, Unsupported, "snappy"),
        ("POST /api/v1/write HTTP/1.1\r\nContent-Encoding: zstd\r\n", 415, Unsupported, "snappy"),
        (
            "POST /api/v1/write HTTP/1.1\r\nContent-Type: application/x-protobuf\r\nContent-Type: text/plain\r\n",
            400,
            Headers,
            "once",
        ),
        (
            "POST /api/v1/write HTTP/1.1\r\nContent-Encoding: snappy\r\nContent-Encoding: gzip\r\n",
            400,
            Headers,
            "once",
        ),
        ("DELETE /api/v1/receive HTTP/1.1\r\n", 405, Method, "POST"),
    ];
    for (head, status, reason, words) in table {
        let rig = Rig::new();
        let answer = rig.send(head, &body(Version::V1)).await;
        assert_eq!(answer.status, status, "{head}: {}", answer.text);
        assert!(answer.body().contains(words), "{head}: {}", answer.body());
        assert!(answer.body().ends_with('\n'));
        assert_eq!(answer.header("X-Prometheus-Remote-Write-Samples-Written"), Some("0"), "{head}");
        assert_eq!(answer.header("Allow"), (status == 405).then_some("POST"));
        assert_eq!(answer.header("Retry-After"), None, "{head}: time does not mend it");
        rig.assert_refused(reason, head);
    }
}

/// Unknown paths are not remote write, and are counted separately.
#[tokio::test]
async fn other_paths() {
    for path in ["/", "/api/v1/write//", "/api/v1/query", "/api/v2/write"] {
        let rig = Rig::new();
        let answer = rig.send(&format!("POST {path} HTTP/1.1\r\n"), b"x").await;
        assert_eq!(answer.status, 404);
        assert!(answer.body().contains("/api/v1/write"), "{}", answer.body());
        assert_eq!(rig.books_of("http").refused, [(Refusal::NotFound, 1)]);
        assert_eq!(rig.books().received, 0);
    }
}

/// The error, its name, the body; the answer's status, the reason in the books, and some words of the message.
type Row = (&'static str, Version, Vec<u8>, u16, Refusal, &'static str);

/// Decisions by the body.
#[tokio::test]
async fn bodies() {
    use Refusal::{Malformed, TooLarge};
    let repeated = b"\x0a\x2c\x0a\x06\x0a\x01b\x12\x011\x0a\x0d\x0a\x08__name__\x12\x01m\x0a\x06\x0a\x01b\x12\x012\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01";
    let v1 = body(Version::V1);
    let table: [Row; 14] = [
        ("nothing", Version::V1, vec![], 400, Malformed, "preamble"),
        ("no Snappy", Version::V1, b"{\"not\":\"snappy\"}".to_vec(), 400, Malformed, "Snappy"),
        ("cut off", Version::V1, v1[..v1.len() - 3].to_vec(), 400, Malformed, "Snappy"),
        ("a preamble too small", Version::V1, hostile::with_preamble(&v1, 7), 400, Malformed, "claims"),
        ("a preamble too large", Version::V1, hostile::with_preamble(&v1, 9000), 400, Malformed, "claims"),
        (
            "a preamble of 4 GiB",
            Version::V1,
            hostile::with_preamble(&v1, u32::MAX.into()),
            413,
            TooLarge,
            "at most",
        ),
        (
            "a preamble beyond that",
            Version::V1,
            hostile::with_preamble(&v1, 1 << 32),
            400,
            Malformed,
            "32-bit",
        ),
        ("a bomb", Version::V1, hostile::bomb(), 413, TooLarge, "smaller batches"),
        ("a copy out of range", Version::V1, hostile::copy_out_of_range(), 400, Malformed, "Snappy"),
        ("more than is allowed", Version::V1, compressed(&vec![0; MAX_BODY + 1]), 413, TooLarge, "6291456"),
        ("no protobuf", Version::V1, compressed(b"\xff\xff\xff"), 400, Malformed, ""),
        (
            "a label twice",
            Version::V1,
            compressed(repeated),
            400,
            Malformed,
            "series 0: label `b` is there twice",
        ),
        ("1.0 called 2.0", Version::V2, v1.clone(), 400, Malformed, "prometheus.WriteRequest"),
        ("2.0 called 1.0", Version::V1, body(Version::V2), 400, Malformed, "io.prometheus.write.v2.Request"),
    ];
    for (what, version, body, status, reason, words) in table {
        let rig = Rig::new();
        let answer = rig.write(version, &body).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        assert!(answer.body.contains(words), "{what}: {}", answer.body);
        assert_eq!(answer.written, [Some(0); 3], "{what}");
        assert_eq!(answer.retry_after, None, "{what}");
        rig.assert_refused(reason, what);
        assert_eq!(rig.journal.stats().head, 0, "{what}");
    }
}

/// A body that says it is too long is refused before it is sent.
#[tokio::test]
async fn a_length_over_the_limit_is_refused_unread() {
    let rig = Rig::new();
    let head =
        b"POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n";
    let answer = rig.send_raw(head.to_vec()).await;
    assert_eq!(answer.status, 413, "{}", answer.text);
    assert_eq!(answer.header("X-Prometheus-Remote-Write-Samples-Written"), Some("0"));
    rig.assert_refused(Refusal::TooLarge, "too long");
}

/// Bad requests and good ones share a connection.
#[tokio::test]
async fn a_refusal_does_not_end_the_connection() {
    use crate::rig::SECOND;
    use tidegate_load::Connection;
    let rig = Rig::new();
    let (good, bad) = (body(Version::V1), b"no snappy".to_vec());
    rig.serve(async |target| {
        let mut connection = Connection::open(&target, SECOND).await.unwrap();
        for _ in 0..3 {
            let refused = connection.write(&target, Version::V1, &bad, SECOND).await.unwrap();
            assert_eq!(refused.status, 400);
            let accepted = connection.write(&target, Version::V1, &good, SECOND).await.unwrap();
            assert_eq!(accepted.status, 204);
            assert!(connection.is_reusable());
        }
    })
    .await;
    let books = rig.books();
    assert_eq!((books.accepted, books.refused), (3, vec![(Refusal::Malformed, 3)]));
}

/// A client that goes away in the middle of its body is in the books too.
#[tokio::test]
async fn an_abandoned_request_is_counted() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let rig = Rig::new();
    rig.serve(async |target| {
        let mut stream = tokio::net::TcpStream::connect(&target.authority).await.unwrap();
        let head = b"POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome";
        stream.write_all(head).await.unwrap();
        stream.shutdown().await.unwrap();
        // Until the server has seen it and closed its side, answered or not.
        while stream.read(&mut [0; 512]).await.is_ok_and(|read| read > 0) {}
    })
    .await;
    rig.assert_refused(Refusal::Abandoned, "abandoned");
}
