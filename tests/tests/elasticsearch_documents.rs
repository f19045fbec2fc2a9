//! Promise: a real OpenSearch, with our templates, takes each document that becomes of OTLP or of intake events, whatever
//! is in them, or says of one that the same field is an object elsewhere.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[allow(dead_code, unreachable_pub, reason = "others use more of it")]
#[path = "../../crates/wire/src/otlp/tests/strategies.rs"]
mod strategies;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use prost::Message as _;
use serde_json::{Value, json};
use tidegate_elastic::documents::{
    DocumentBuffer, DocumentPosition, DocumentSettings, Mapping, Product, from_intake, from_otlp,
};
use tidegate_elastic::templates::templates;
use tidegate_tests::OpenSearch;
use tidegate_wire::otlp::Signal;

/// A node with our templates; nothing, said loudly, where there is none.
fn opensearch() -> Option<OpenSearch> {
    let opensearch = OpenSearch::started(&[])?;
    for template in templates(Product::OpenSearch) {
        let answer = opensearch.ask("PUT", &format!("/_index_template/{}", template.name), template.body);
        assert_eq!(answer.json(), json!({ "acknowledged": true }), "{}", template.name);
    }
    Some(opensearch)
}

/// Sends documents and gives back what was refused, with the document.
fn refused(opensearch: &OpenSearch, documents: &[u8]) -> Vec<(Value, String)> {
    if documents.is_empty() {
        return vec![];
    }
    let documents = str::from_utf8(documents).unwrap();
    let answer = opensearch.ask("POST", "/_bulk", documents).json();
    let lines: Vec<&str> = documents.lines().collect();
    let items = answer["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(items.len() * 2, lines.len());
    let is_refused = |item: &Value| item["create"]["status"] != 201;
    let bad = items.iter().zip(lines.chunks(2)).filter(|(item, _)| is_refused(item));
    bad.map(|(item, pair)| (item["create"]["error"].clone(), pair[1].to_owned())).collect()
}

fn documents(signal: Signal, raw: &[u8], prefix: &str, mapping: Mapping) -> Vec<u8> {
    let settings = DocumentSettings {
        mapping,
        flavour: Product::OpenSearch,
        received: 1_700_000_000_000_000_000,
        ..DocumentSettings::default()
    };
    let mut space = vec![0; 4 << 20];
    let mut page = DocumentBuffer::new(&mut space);
    from_otlp(signal, raw, DocumentPosition::START, prefix, &settings, &mut page).unwrap();
    page.written().to_vec()
}

/// Whether an error says that a field is an object in one document and a value in another: nothing but another name
/// helps against that.
fn is_conflict(error: &Value) -> bool {
    let text = error.to_string();
    [
        "object mapping",
        "must be of type object but found",
        "can't merge a non object mapping",
        "tried to parse field",
        "cannot be changed from type",
        "Can't get text on a START_OBJECT",
        "but found a concrete value",
        "Current token (START_OBJECT) not",
    ]
    .iter()
    .any(|words| text.contains(words))
}

fn captured(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../crates/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Bodies of SDKs and agents are taken whole.
#[test]
fn opensearch_takes_what_sdks_and_agents_send() {
    let Some(opensearch) = opensearch() else { return };
    for (signal, name) in [(Signal::Logs, "logs"), (Signal::Traces, "traces"), (Signal::Metrics, "metrics")] {
        let raw = captured(&format!("wire/tests/data/otlp/python-{name}.pb"));
        for mapping in [Mapping::Otel, Mapping::Ecs] {
            let documents = documents(signal, &raw, "c", mapping);
            assert!(!documents.is_empty());
            assert_eq!(refused(&opensearch, &documents), []);
        }
    }
    for agent in ["go", "java", "nodejs", "python"] {
        for number in 0..2 {
            let raw = captured(&format!("load/data/apm/{agent}-{number}.ndjson"));
            let mut space = vec![0; 8 << 20];
            let mut page = DocumentBuffer::new(&mut space);
            let prefix = format!("{agent}{number}");
            let settings = DocumentSettings { flavour: Product::OpenSearch, ..DocumentSettings::default() };
            from_intake(&raw, DocumentPosition::START, &prefix, &settings, &mut page).unwrap();
            assert!(!page.written().is_empty());
            assert_eq!(refused(&opensearch, page.written()), []);
        }
    }
}

/// Whatever is in OTLP, no document is refused but for fields that are objects elsewhere.
#[test]
fn opensearch_takes_anything() {
    let Some(opensearch) = opensearch() else { return };
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
                for (error, document) in refused(&opensearch, &documents) {
                    assert!(is_conflict(&error), "{error}\n{document}");
                    conflicts += 1;
                }
            }
        }
    }
    println!("{sent} documents, {conflicts} of them with a field that is an object elsewhere");
    assert!(sent > 500 && conflicts < sent / 2, "{conflicts} of {sent}");
}
