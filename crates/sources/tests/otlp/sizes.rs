//! Promise: where nobody else holds memory, a body is taken or refused for good, whatever its form and its size. "Come
//! again later" would be said for ever there.

use crate::body::{gzip, logs, traces, zstd};
use crate::client::{JSON, PROTOBUF};
use crate::rig::Rig;
use tidegate_ledger::Refusal;

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
/// The largest `max_body` of the sources: each at most a MiB less.
const MEMORY: u64 = 4 << 20;

/// The name, the path, the type, and the body.
type Form = (&'static str, &'static str, (&'static str, &'static str), Vec<u8>);

/// Bodies of about so many bytes once they are decompressed.
fn bodies(len: usize) -> Vec<Form> {
    let repeated = |line: &str| line.repeat(len / line.len());
    let json = |before: &str, element: &str, behind: &str| {
        let elements = vec![element; len / (element.len() + 1)].join(",");
        format!("{before}{elements}{behind}").into_bytes()
    };
    let record = r#"{"timeUnixNano":"1700000000000000000","body":{"stringValue":"a record of some length"}}"#;
    let records = json(r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":["#, record, "]}]}]}");
    // Two bytes of JSON become eight of protobuf.
    let histogram = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","histogram":{"dataPoints":[{"bucketCounts":["#;
    let counts = json(histogram, "0", "]}]}}]}]}]}");
    let blanks = [vec![b' '; len], b"{}".to_vec()].concat();
    let metadata =
        "{\"metadata\":{\"service\":{\"name\":\"shop\",\"agent\":{\"name\":\"go\",\"version\":\"2.0\"}}}}\n";
    let events = metadata.to_owned()
        + "{\"log\":1}\n"
        + &repeated("{\"log\":{\"message\":\"some words about it\"}}\n");
    let document = "{\"message\":\"some words about it, and then some more\"}\n";
    let documents = repeated(&format!("{{\"index\":{{}}}}\n{document}"));
    let whole = repeated(&format!("{{\"index\":{{\"_index\":\"logs\"}}}}\n{document}"));
    vec![
        ("records in JSON", "/v1/logs", JSON, records),
        ("numbers in JSON", "/v1/metrics", JSON, counts),
        ("blanks in JSON", "/v1/traces", JSON, blanks),
        ("spans", "/v1/traces", PROTOBUF, traces(len / 200, 180)),
        ("records", "/v1/logs", PROTOBUF, logs(len / 20)),
        ("events, one of them bad", "/intake/v2/events", NDJSON, events.into_bytes()),
        ("documents", "/elasticsearch/_bulk?pipeline=p", NDJSON, whole.into_bytes()),
        ("documents of one index", "/elasticsearch/logs/_bulk", NDJSON, documents.into_bytes()),
        ("objects", "/ingest/logs", NDJSON, repeated(document).into_bytes()),
        // Three bytes of JSON become twenty of protobuf.
        ("tiny objects", "/ingest/logs", JSON, repeated("{}\n").into_bytes()),
        ("short lines", "/ingest/logs", ("content-type", "text/plain"), repeated("a\n").into_bytes()),
        (
            "tiny documents",
            "/elasticsearch/logs/_bulk",
            NDJSON,
            repeated("{\"index\":{}}\n{}\n").into_bytes(),
        ),
    ]
}

#[tokio::test]
async fn an_idle_gateway_never_refuses_retryably() {
    let rig = Rig::sized(MEMORY);
    let mut taken = std::collections::BTreeMap::new();
    for parts in [1, 4, 14, 20, 28, 44] {
        let len = parts * (64 << 10);
        for (what, path, content_type, raw) in bodies(len) {
            for (encoding, body) in [("identity", raw.clone()), ("gzip", gzip(&raw)), ("zstd", zstd(&raw))] {
                let headers = [content_type, ("content-encoding", encoding)];
                if (path, encoding) == ("/intake/v2/events", "zstd") {
                    continue;
                }
                let answers = match path {
                    "/v1/logs" => {
                        vec![rig.post(path, &headers, &body).await, rig.post2(path, &headers, &body).await]
                    }
                    _ => vec![rig.post(path, &headers, &body).await],
                };
                for answer in answers {
                    let status = answer.status;
                    let text = answer.text();
                    assert!(
                        // A line of the events is bad.
                        matches!(status, 200 | 202 | 413) || (status, path) == (400, "/intake/v2/events"),
                        "{what}, {encoding}, {len} bytes: {status} {}",
                        text.get(..200).unwrap_or(&text)
                    );
                    if status != 413 {
                        taken.insert((what, encoding), len);
                    }
                }
            }
        }
    }
    // Nothing was refused that need not be: each form was taken up to some size that its memory allows.
    assert_eq!(taken.len(), 35, "{taken:?}");
    assert!(taken[&("records in JSON", "identity")] >= 1 << 20, "{taken:?}");
    for name in ["otlp", "elastic_apm", "elasticsearch", "http"] {
        let books = rig.books_of(name);
        let others: Vec<_> = books
            .refused
            .iter()
            .filter(|(why, _)| *why != Refusal::TooLarge && *why != Refusal::Malformed)
            .collect();
        assert!(others.is_empty(), "{books:?}");
    }
}
