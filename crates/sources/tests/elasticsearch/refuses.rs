//! Requests that are not taken: each has an answer in Elasticsearch's shape, and the books know why.

use crate::accepts::{NDJSON, gzipped};
use crate::client::{Answer, post, raw};
use crate::rig::{MAX_BODY, Rig, settings};
use serde_json::Value;
use tidegate_ledger::Refusal;

const GOOD: &[u8] = b"{\"create\":{\"_index\":\"a\"}}\n{}\n";

async fn refused(rig: &Rig, request: &[u8]) -> (Answer, Value) {
    let answer = rig.serve(async |address| raw(address, request).await).await;
    assert_eq!(answer.header("x-elastic-product"), Some("Elasticsearch"), "{}", answer.text());
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{}", answer.text()));
    assert_eq!(body["status"], answer.status);
    let books = rig.books_of("elasticsearch");
    assert_eq!((books.accepted, rig.journal.stats().head), (0, 0));
    (answer, body)
}

/// Client errors are 4xx with a reason, and not retryable.
#[tokio::test]
async fn client_errors_are_answered_4xx_with_a_reason() {
    let bomb = gzipped(&vec![b' '; MAX_BODY + 1000]);
    let gzip = ("content-encoding", "gzip");
    let path = "/elasticsearch/_bulk";
    let table: Vec<(Vec<u8>, u16, &str, Refusal)> = vec![
        (post(path, &[NDJSON], b""), 400, "request body is required", Refusal::Malformed),
        (post(path, &[NDJSON], b"{\"create\":{}}\n{}\n"), 400, "index is missing", Refusal::Malformed),
        (
            post(path, &[NDJSON], b"{\"delete\":{\"_index\":\"a\"}}\n"),
            400,
            "id is missing",
            Refusal::Malformed,
        ),
        (
            post(path, &[NDJSON], b"{\"update\":{\"_index\":\"a\",\"_id\":null}}\n{\"doc\":{}}\n"),
            400,
            "id is missing",
            Refusal::Malformed,
        ),
        (
            post(path, &[NDJSON], b"{\"create\":{\"_index\":\"a\"}}\n{}"),
            400,
            "terminated by a newline",
            Refusal::Malformed,
        ),
        (post(path, &[NDJSON], b"nonsense\n"), 400, "malformed action", Refusal::Malformed),
        (
            post(path, &[("content-type", "application/cbor")], GOOD),
            415,
            "Content-Type",
            Refusal::Unsupported,
        ),
        (
            post(path, &[NDJSON, ("content-encoding", "br")], GOOD),
            415,
            "Content-Encoding",
            Refusal::Unsupported,
        ),
        (post(path, &[NDJSON, gzip], GOOD), 400, "gzip", Refusal::Malformed),
        (post(path, &[NDJSON, gzip], &bomb), 413, "too large", Refusal::TooLarge),
        (post("/elasticsearch/_search", &[NDJSON], GOOD), 404, "no handler found", Refusal::NotFound),
        (post("/elasticsearch/a/_doc", &[NDJSON], GOOD), 404, "no handler found", Refusal::NotFound),
        (
            b"GET /elasticsearch/_bulk HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            405,
            "POST or PUT",
            Refusal::Method,
        ),
    ];
    for (request, status, words, reason) in table {
        let rig = Rig::new();
        let (answer, body) = refused(&rig, &request).await;
        assert_eq!(answer.status, status, "{body}");
        assert!(body["error"]["reason"].as_str().unwrap().contains(words), "{body}");
        assert_eq!(answer.header("retry-after"), None);
        assert_eq!(rig.books_of("elasticsearch").refused, [(reason, 1)], "{words}");
    }
}

/// Pressure is 429 with the type that every client sends again after, and a delay.
#[tokio::test]
async fn pressure_is_answered_429_like_elasticsearch() {
    let rig = Rig::with(1 << 30, settings());
    // Somebody has all the memory.
    let total = rig.arena.usage().total;
    let hold = rig.arena.try_charge(tidegate_arena::Share::Ingest, total - (3 << 19)).unwrap();
    let body = GOOD.repeat(100_000);
    let request = post("/elasticsearch/_bulk", &[NDJSON], &body);
    let answer = rig.serve(async |address| raw(address, &request).await).await;
    drop(hold);
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert!(answer.text().contains("es_rejected_execution_exception"), "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    assert_eq!(rig.books_of("elasticsearch").refused, [(Refusal::Memory, 1)]);
}

/// While nothing can be taken, those who ask whether somebody is there are told so: they would take the node for dead.
#[tokio::test]
async fn a_first_request_is_answered_under_pressure() {
    let rig = Rig::with(2 << 20, settings());
    let body = GOOD.repeat(4000);
    let request = post("/elasticsearch/_bulk", &[NDJSON], &body);
    let mut accepted = 0;
    let answer = loop {
        let answer = rig.serve(async |address| raw(address, &request).await).await;
        if answer.status != 200 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 200, "the quota holds");
    };
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert!(answer.text().contains("quota"), "{}", answer.text());
    for path in ["/", "/_license", "/_xpack", "/_cluster/health"] {
        let request = format!("GET /elasticsearch{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = rig.serve(async |address| raw(address, request.as_bytes()).await).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(rig.books_of("elasticsearch").refused, [(Refusal::Disk, 1)]);
}
