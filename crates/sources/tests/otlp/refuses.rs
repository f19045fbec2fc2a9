//! Promise: every refusal over HTTP is an answer with the right status and a `google.rpc.Status` in the request's
//! encoding; it is in the books once, and leaves nothing behind.

use crate::body::{gzip, logs, traces, zstd};
use crate::client::{Answer, JSON, PROTOBUF, raw};
use crate::rig::{MAX_BODY, Rig};
use tidegate_ledger::Refusal;
use tidegate_ledger::Refusal::{Headers, Malformed, Method, TooLarge, Unsupported};

/// `Status.code` and `Status.message` of an answer, read as its content type says.
fn status_of(answer: &Answer) -> (i64, String) {
    match answer.header("content-type") {
        Some("application/json") => {
            let text = answer.text();
            let code = text.strip_prefix("{\"code\":").unwrap().split(',').next().unwrap();
            (code.parse().unwrap(), text.clone())
        }
        Some("application/x-protobuf") => {
            let [8, code, 0x12, ..] = answer.body[..] else { panic!("{:?}", answer.text()) };
            (code.into(), answer.text())
        }
        other => panic!("{other:?}: {}", answer.text()),
    }
}

/// The error, the request line, the headers; status, reason, code, some words of the message.
type Head<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, Refusal, i64, &'a str);

/// Decisions by the head alone, over both versions.
#[tokio::test]
async fn heads() {
    let table: [Head<'_>; 9] = [
        ("GET", &[PROTOBUF], 405, Method, 12, "POST"),
        ("PUT", &[JSON], 405, Method, 12, "POST"),
        ("POST", &[], 415, Unsupported, 12, "Content-Type"),
        ("POST", &[("content-type", "text/plain")], 415, Unsupported, 12, "application/x-protobuf"),
        ("POST", &[PROTOBUF, ("content-encoding", "br")], 415, Unsupported, 12, "gzip, zstd or deflate"),
        ("POST", &[JSON, ("content-encoding", "lz4")], 415, Unsupported, 12, "gzip, zstd or deflate"),
        ("POST", &[JSON, ("content-encoding", "snappy")], 415, Unsupported, 12, "gzip, zstd or deflate"),
        ("POST", &[PROTOBUF, JSON], 400, Headers, 3, "once"),
        (
            "POST",
            &[PROTOBUF, ("content-encoding", "gzip"), ("content-encoding", "gzip")],
            400,
            Headers,
            3,
            "once",
        ),
    ];
    for (method, headers, status, reason, code, words) in table {
        for version in [1, 2] {
            let (rig, body) = (Rig::new(), logs(2));
            let what = format!("{method} {headers:?} over {version}");
            let answer = match version {
                1 => {
                    let request = crate::client::post("/v1/logs", headers, &body);
                    let request = [method.as_bytes(), &request[4..]].concat();
                    rig.serve(async |address| raw(address, &request).await).await
                }
                _ => rig.request2(method, "/v1/logs", headers, &body).await,
            };
            assert_eq!(answer.status, status, "{what}: {}", answer.text());
            let (told, message) = status_of(&answer);
            assert_eq!(told, code, "{what}");
            assert!(message.contains(words), "{what}: {message}");
            assert_eq!(answer.header("allow"), (status == 405).then_some("POST"), "{what}");
            assert_eq!(answer.header("retry-after"), None, "{what}: time does not mend it");
            rig.assert_refused(reason, &what);
        }
    }
}

/// Unknown paths are counted separately, and the answer lists the valid ones.
#[tokio::test]
async fn other_paths() {
    for path in ["/", "/v1/trace", "/v1/traces//", "/v1/profiles"] {
        let rig = Rig::new();
        for answer in [rig.post(path, &[PROTOBUF], b"x").await, rig.post2(path, &[PROTOBUF], b"x").await] {
            assert_eq!(answer.status, 404);
            assert!(answer.text().contains("/v1/traces"), "{}", answer.text());
        }
        assert_eq!(rig.books_of("http").refused, [(Refusal::NotFound, 2)]);
        assert_eq!(rig.books().received, 0);
    }
}

/// The error, the headers, the body; status, reason, code, some words of the message.
type Row = (&'static str, Vec<(&'static str, &'static str)>, Vec<u8>, u16, Refusal, i64, &'static str);

/// Decisions by the body, over both versions.
#[tokio::test]
async fn bodies() {
    let cut = |mut body: Vec<u8>| {
        body.truncate(body.len() - 3);
        body
    };
    let bomb = vec![0; MAX_BODY + 1];
    let gz = ("content-encoding", "gzip");
    let zs = ("content-encoding", "zstd");
    let mut lying = gzip(&traces(1, 5));
    let end = lying.len();
    lying[end - 4..].copy_from_slice(&7_u32.to_le_bytes());
    // A frame that says that it has 2^40 bytes.
    let huge = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1_u64 << 40).to_le_bytes(), &[1, 0, 0]].concat();
    let table: Vec<Row> = vec![
        ("cut off", vec![PROTOBUF], cut(traces(2, 9)), 400, Malformed, 3, "byte"),
        ("no protobuf", vec![PROTOBUF], b"\xff\xff\xff".to_vec(), 400, Malformed, 3, ""),
        ("protobuf called gzip", vec![PROTOBUF, gz], traces(1, 1), 400, Malformed, 3, "gzip"),
        ("protobuf called zstd", vec![PROTOBUF, zs], traces(1, 1), 400, Malformed, 3, "zstd"),
        ("half a gzip", vec![PROTOBUF, gz], cut(gzip(&traces(1, 1))), 400, Malformed, 3, "gzip"),
        ("half a zstd", vec![PROTOBUF, zs], cut(zstd(&traces(1, 1))), 400, Malformed, 3, "zstd"),
        ("gzip that lies about its length", vec![PROTOBUF, gz], lying, 400, Malformed, 3, "gzip"),
        ("zstd that lies about its length", vec![PROTOBUF, zs], huge, 400, Malformed, 3, "zstd"),
        ("a gzip bomb", vec![PROTOBUF, gz], gzip(&bomb), 413, TooLarge, 8, "at most 6291456 bytes"),
        ("a zstd bomb", vec![PROTOBUF, zs], zstd(&bomb), 413, TooLarge, 8, "at most 6291456 bytes"),
        ("a bomb of JSON", vec![JSON, gz], gzip(&bomb), 413, TooLarge, 8, "at most 6291456 bytes"),
        ("no JSON", vec![JSON], b"{\"resourceSpans\":[".to_vec(), 400, Malformed, 3, "byte"),
        ("no JSON at all", vec![JSON], b"".to_vec(), 400, Malformed, 3, ""),
        (
            "an enum by its name",
            vec![JSON],
            br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"SPAN_KIND_SERVER"}]}]}]}"#.to_vec(),
            400,
            Malformed,
            3,
            "kind",
        ),
        (
            "a short id",
            vec![JSON],
            br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0707"}]}]}]}"#.to_vec(),
            400,
            Malformed,
            3,
            "traceId",
        ),
    ];
    for (what, headers, body, status, reason, code, words) in table {
        for version in [1, 2] {
            let rig = Rig::new();
            let what = format!("{what} over {version}");
            let answer = match version {
                1 => rig.post("/v1/traces", &headers, &body).await,
                _ => rig.post2("/v1/traces", &headers, &body).await,
            };
            assert_eq!(answer.status, status, "{what}: {}", answer.text());
            assert_eq!(answer.header("content-type"), Some(headers[0].1), "{what}: as the request");
            let (told, message) = status_of(&answer);
            assert_eq!(told, code, "{what}");
            assert!(message.contains(words), "{what}: {message}");
            assert_eq!(answer.header("retry-after"), None, "{what}");
            rig.assert_refused(reason, &what);
        }
    }
}

/// A body that says it is too long is refused before it is sent.
#[tokio::test]
async fn a_length_over_the_limit_is_refused_unread() {
    let rig = Rig::new();
    let head = b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
        Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n";
    let answer = rig.serve(async |address| raw(address, head).await).await;
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert_eq!(status_of(&answer).0, 8);
    rig.assert_refused(TooLarge, "HTTP/1.1");

    let rig = Rig::new();
    let request = http::Request::post("http://test/v1/logs").header(JSON.0, JSON.1);
    let request = request.header("content-length", "99999999").body(()).unwrap();
    let status = rig
        .serve(async |address| {
            let mut client = crate::client::connect(address).await.ready().await.unwrap();
            let (response, _stream) = client.send_request(request, false).unwrap();
            response.await.unwrap().status()
        })
        .await;
    assert_eq!(status, 413);
    rig.assert_refused(TooLarge, "HTTP/2");
}

/// The codec's refusals have OTLP's format too, and are retryable if a retry helps.
#[tokio::test]
async fn a_stalled_body_is_refused_retryably() {
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    let settings = tidegate_http1::Settings {
        body_stall: Duration::from_millis(20),
        body_grace: Duration::from_millis(20),
        ..crate::rig::settings()
    };
    let rig = Rig::with(1 << 30, settings);
    let head =
        b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    let answer = rig
        .serve(async |address| {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            stream.write_all(head).await.unwrap();
            crate::client::answer(&mut stream).await
        })
        .await;
    assert_eq!((answer.status, status_of(&answer).0), (503, 4), "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    rig.assert_refused(Refusal::Timeout, "too slow");
}
