//! What a real OpenSearch says to documents of anything, with our templates: it takes each, or says of one that the
//! same field is an object elsewhere. Runs where `TIDEGATE_TEST_OPENSEARCH_ADDRESS` names one, as `127.0.0.1:9200`.

use super::super::*;
use super::strategies;
use crate::templates::templates;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use prost::Message;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

struct OpenSearch {
    address: String,
}

impl OpenSearch {
    fn call(&self, method: &str, path: &str, body: &[u8]) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("an OpenSearch there");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: opensearch\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut reader = BufReader::new(stream);
        let mut len = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; len];
        reader.read_exact(&mut answer).unwrap();
        serde_json::from_slice(&answer).unwrap_or(Value::Null)
    }

    /// Sends documents and gives back what was refused, with the document.
    fn refused(&self, documents: &[u8]) -> Vec<(Value, String)> {
        if documents.is_empty() {
            return vec![];
        }
        let answer = self.call("POST", "/_bulk", documents);
        let lines: Vec<&[u8]> = documents.split_inclusive(|byte| *byte == b'\n').collect();
        let items = answer["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(items.len() * 2, lines.len());
        let of = |item: &Value| item["create"]["status"].as_u64().unwrap_or(0);
        let bad = items.iter().zip(lines.chunks(2)).filter(|(item, _)| of(item) != 201);
        bad.map(|(item, pair)| {
            (item["create"]["error"].clone(), String::from_utf8_lossy(pair[1]).into_owned())
        })
        .collect()
    }
}

fn opensearch() -> Option<OpenSearch> {
    let address = std::env::var("TIDEGATE_TEST_OPENSEARCH_ADDRESS").ok()?;
    let opensearch = OpenSearch { address };
    for kind in ["logs", "traces", "metrics"] {
        opensearch.call("DELETE", &format!("/_data_stream/{kind}-*"), b"");
    }
    for template in templates(Flavour::OpenSearch) {
        let answer =
            opensearch.call("PUT", &format!("/_index_template/{}", template.name), template.body.as_bytes());
        assert_eq!(answer, json!({ "acknowledged": true }), "{}", template.name);
    }
    Some(opensearch)
}

fn documents(signal: Signal, raw: &[u8], prefix: &str, mapping: Mapping) -> Vec<u8> {
    let settings = Settings {
        mapping,
        flavour: Flavour::OpenSearch,
        received: 1_700_000_000_000_000_000,
        ..Settings::default()
    };
    let mut space = vec![0; 4 << 20];
    let mut page = Page::new(&mut space);
    from_otlp(signal, raw, Place::START, prefix, &settings, &mut page).unwrap();
    page.written().to_vec()
}

/// Whether an error says that a field is an object in one document and a value in another: nothing but another name
/// helps against that.
fn is_conflict(error: &Value) -> bool {
    let text = error.to_string();
    text.contains("object mapping")
        || text.contains("must be of type object but found")
        || text.contains("can't merge a non object mapping")
        || text.contains("tried to parse field")
        || text.contains("cannot be changed from type")
        || text.contains("Can't get text on a START_OBJECT")
        || text.contains("but found a concrete value")
}

/// Bodies of SDKs and agents are taken whole.
#[test]
fn opensearch_takes_what_sdks_and_agents_send() {
    let Some(opensearch) = opensearch() else {
        return eprintln!("skipped: TIDEGATE_TEST_OPENSEARCH_ADDRESS names no OpenSearch");
    };
    for (signal, name) in [(Signal::Logs, "logs"), (Signal::Traces, "traces"), (Signal::Metrics, "metrics")] {
        let path = format!("{}/../wire/tests/data/otlp/python-{name}.pb", env!("CARGO_MANIFEST_DIR"));
        let raw = std::fs::read(path).unwrap();
        for mapping in [Mapping::Otel, Mapping::Ecs] {
            assert_eq!(opensearch.refused(&documents(signal, &raw, "c", mapping)), []);
        }
    }
    for agent in ["go", "java", "nodejs", "python"] {
        for number in 0..2 {
            let path = format!("{}/../load/data/apm/{agent}-{number}.ndjson", env!("CARGO_MANIFEST_DIR"));
            let raw = std::fs::read(path).unwrap();
            let mut space = vec![0; 8 << 20];
            let mut page = Page::new(&mut space);
            let prefix = format!("{agent}{number}");
            from_intake(&raw, Place::START, &prefix, &Settings::default(), &mut page).unwrap();
            assert_eq!(opensearch.refused(page.written()), []);
        }
    }
}

/// Whatever is in OTLP, no document is refused but for fields that are objects elsewhere.
#[test]
fn opensearch_takes_anything() {
    let Some(opensearch) = opensearch() else {
        return eprintln!("skipped: TIDEGATE_TEST_OPENSEARCH_ADDRESS names no OpenSearch");
    };
    let mut runner = TestRunner::deterministic();
    let (mut sent, mut conflicts) = (0, 0);
    for round in 0..60 {
        let bodies = [
            (Signal::Logs, strategies::logs().new_tree(&mut runner).unwrap().current().encode_to_vec()),
            (Signal::Traces, strategies::traces().new_tree(&mut runner).unwrap().current().encode_to_vec()),
            (Signal::Metrics, strategies::metrics().new_tree(&mut runner).unwrap().current().encode_to_vec()),
        ];
        for (signal, raw) in bodies {
            for mapping in [Mapping::Otel, Mapping::Ecs] {
                let documents = documents(signal, &raw, &format!("{round}-{signal:?}-{mapping:?}"), mapping);
                sent += documents.split(|byte| *byte == b'\n').count() / 2;
                for (error, document) in opensearch.refused(&documents) {
                    assert!(is_conflict(&error), "{error}\n{document}");
                    conflicts += 1;
                }
            }
        }
    }
    println!("{sent} documents, {conflicts} of them with a field that is an object elsewhere");
}
