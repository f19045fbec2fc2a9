//! Promises: no page of another site writes to any source; and a password that is right is let in the first time it is
//! sent, over both versions of HTTP.

use crate::body;
use crate::client::{JSON, PROTOBUF, TRACES};
use crate::rig::{Rig, settings};
use tidegate_admission::GateRules;
use tidegate_admission::access::{Access, make};
use tidegate_ledger::Refusal;

/// Requests of each source's own clients.
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const BULK: &[u8] = b"{\"create\":{\"_index\":\"a\"}}\n{}\n";
const EVENTS: &[u8] =
    b"{\"metadata\":{\"service\":{\"name\":\"a\",\"agent\":{\"name\":\"b\",\"version\":\"1\"}}}}\n{\"log\":{\"message\":\"x\"}}\n";

/// By path: what is sent there, and the page of the books that it is entered on.
fn sources() -> [(&'static str, Vec<u8>, &'static str); 6] {
    // A write request of remote write without series.
    let empty = vec![0];
    [
        ("/elasticsearch/_bulk", BULK.to_vec(), "elasticsearch"),
        ("/elasticsearch/a/_bulk", BULK.to_vec(), "elasticsearch"),
        ("/api/v1/write", empty, "prometheus_remote_write"),
        ("/intake/v2/events", EVENTS.to_vec(), "elastic_apm"),
        ("/v1/traces", body::traces(1, 4), "otlp"),
        ("/ingest/logs", b"a line".to_vec(), "http"),
    ]
}

#[tokio::test]
async fn pages_of_other_sites_write_to_no_source() {
    for (path, body, books) in sources() {
        for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
            for page in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
                let headers: Vec<_> =
                    kind.map(|kind| ("content-type", kind)).into_iter().chain([page]).collect();
                let rig = Rig::new();
                let answer = rig.post(path, &headers, &body).await;
                let told = if books == "elastic_apm" { 400 } else { 415 };
                assert_eq!(answer.status, told, "{path} {headers:?}: {}", answer.text());
                assert_eq!(rig.books_of(books).refused, [(Refusal::Unsupported, 1)], "{path} {headers:?}");
                assert_eq!(rig.journal.stats().head, 0, "{path} {headers:?}");
            }
        }
    }
    let rig = Rig::new();
    let page = ("origin", "https://evil.example");
    let answer = rig.post2("/v1/traces", &[("content-type", "text/plain"), page], &body::traces(1, 4)).await;
    assert_eq!(answer.status, 415);
}

/// Whatever type senders name, or none: who is no browser is taken as before.
#[tokio::test]
async fn any_content_type_of_a_sender_is_accepted() {
    for (path, body) in
        [("/elasticsearch/_bulk", BULK), ("/elasticsearch/a/_bulk", BULK), ("/intake/v2/events", EVENTS)]
    {
        let rig = Rig::new();
        let answer = rig.post(path, &[], body).await;
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
    }
    let rig = Rig::new();
    // Browser endpoints, and their preflight requests.
    let page = ("origin", "https://shop.example");
    assert_eq!(rig.post("/intake/v2/rum/events", &[page], EVENTS).await.status, 202);
    assert_eq!(rig.post("/elasticsearch/_bulk", &[NDJSON, page], BULK).await.status, 200);
    assert_eq!(rig.post("/v1/traces", &[JSON, page], b"{}").await.status, 200);
}

/// `alice` with `a password`, and with another.
const RIGHT: (&str, &str) = ("authorization", "Basic YWxpY2U6YSBwYXNzd29yZA==");
const WRONG: (&str, &str) = ("authorization", "Basic YWxpY2U6d3Jvbmc=");

#[tokio::test]
async fn a_password_is_taken_the_first_time() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials");
    let password = make(Some("a password".to_owned())).unwrap();
    std::fs::write(&file, format!("basic alice {}\n", password.kept)).unwrap();
    let rig = || {
        let access = Access::from_file(&file, None).unwrap();
        Rig::ruled(1 << 30, settings(), |_| GateRules { access, ..GateRules::default() })
    };
    let body = body::traces(1, 4);
    for (credentials, status, code) in [(RIGHT, 200, 0), (WRONG, 401, 16)] {
        let headers = [PROTOBUF, credentials];
        assert_eq!(rig().post("/v1/traces", &headers, &body).await.status, status);
        assert_eq!(rig().post2("/v1/traces", &headers, &body).await.status, status);
        let message = [&[0, 0, 0, 0][..], &[body.len() as u8], &body].concat();
        assert_eq!(rig().call(TRACES, &[credentials], &message).await.code, code);
    }
    // Requests that are sent together are answered in their order, each as it is.
    let rig = rig();
    let requests: Vec<u8> = [RIGHT, WRONG, RIGHT]
        .iter()
        .flat_map(|credentials| crate::client::post("/v1/traces", &[PROTOBUF, *credentials], &body))
        .collect();
    let statuses = rig.serve(async |address| {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&requests).await.unwrap();
        let mut answers = Vec::new();
        while answers.windows(9).filter(|part| part == b"HTTP/1.1 ").count() < 3 {
            assert!(stream.read_buf(&mut answers).await.unwrap() > 0);
        }
        let text = String::from_utf8_lossy(&answers).into_owned();
        text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().unwrap()).collect::<Vec<u16>>()
    });
    assert_eq!(statuses.await, [200, 401, 200]);
}
