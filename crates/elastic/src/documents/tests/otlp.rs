//! OTLP to documents in OpenTelemetry's own words, against a model, whole and in pieces.

use super::super::*;
use super::model::{Expected, Origin, log, span, with_times};
use super::{invalid_names, strategies};
use proptest::prelude::*;
use prost::Message;
use serde_json::Value;

const RECEIVED: u64 = 1_700_000_000_123_456_789;

/// The documents of a body: their streams, ids and contents, and what came of it.
pub(super) fn documents(
    signal: Signal,
    raw: &[u8],
    settings: &DocumentSettings<'_>,
) -> (Vec<(Value, Value)>, WriteResult) {
    let mut space = vec![0; 1 << 20];
    let mut page = DocumentBuffer::new(&mut space);
    let written = from_otlp(signal, raw, DocumentPosition::START, "j-1", settings, &mut page).unwrap();
    assert_eq!(written.next, None);
    (pairs(page.written()), written)
}

pub(super) fn pairs(text: &[u8]) -> Vec<(Value, Value)> {
    assert!(has_no_key_twice(text), "{}", String::from_utf8_lossy(text));
    let lines: Vec<Value> = text
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    lines.chunks(2).map(|pair| (pair[0]["create"].clone(), pair[1].clone())).collect()
}

fn settings() -> DocumentSettings<'static> {
    DocumentSettings { received: RECEIVED, ..DocumentSettings::default() }
}

/// No key comes twice in any object: Elasticsearch refuses the document.
pub(super) fn has_no_key_twice(text: &[u8]) -> bool {
    struct Once;
    impl<'de> serde::de::DeserializeSeed<'de> for Once {
        type Value = ();
        fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
            from.deserialize_any(self)
        }
    }
    impl<'de> serde::de::Visitor<'de> for Once {
        type Value = ();
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("JSON without a key twice")
        }
        fn visit_bool<E>(self, _: bool) -> Result<(), E> {
            Ok(())
        }
        fn visit_i64<E>(self, _: i64) -> Result<(), E> {
            Ok(())
        }
        fn visit_u64<E>(self, _: u64) -> Result<(), E> {
            Ok(())
        }
        fn visit_f64<E>(self, _: f64) -> Result<(), E> {
            Ok(())
        }
        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
            while all.next_element_seed(Once)?.is_some() {}
            Ok(())
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
            let mut known = std::collections::HashSet::new();
            while let Some(key) = all.next_key::<String>()? {
                if !known.insert(key.clone()) {
                    return Err(serde::de::Error::custom(format!("{key:?} comes twice")));
                }
                all.next_value_seed(Once)?;
            }
            Ok(())
        }
    }
    text.split_inclusive(|byte| *byte == b'\n').all(|line| {
        let mut from = serde_json::Deserializer::from_slice(line);
        serde::de::DeserializeSeed::deserialize(Once, &mut from).is_ok()
    })
}

/// In pieces of any size the documents are those of the whole, each once.
fn same_in_pieces(signal: Signal, raw: &[u8], settings: &DocumentSettings<'_>, size: usize) {
    let mut space = vec![0; 1 << 20];
    let mut whole = DocumentBuffer::new(&mut space);
    let expected = from_otlp(signal, raw, DocumentPosition::START, "p", settings, &mut whole).unwrap();
    let (mut pieces, mut items, mut unsayable, mut from) = (Vec::new(), 0, 0, DocumentPosition::START);
    let mut size = size;
    loop {
        let mut space = vec![0; size];
        let mut page = DocumentBuffer::new(&mut space);
        match from_otlp(signal, raw, from, "p", settings, &mut page) {
            Ok(written) => {
                pieces.extend_from_slice(page.written());
                items += written.items;
                unsayable += written.untranslatable.items;
                match written.next {
                    Some(next) => from = next,
                    None => break,
                }
            }
            Err(Full) => size *= 2,
        }
    }
    assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(whole.written()));
    assert_eq!((items, unsayable), (expected.items, expected.untranslatable.items));
}

/// A translation goes on without reading the items that are done again: here one of them is no longer readable.
#[test]
fn items_that_are_done_are_not_read_again() {
    use tidegate_wire::otlp::{Data, LogsRequest, MetricsRequest, TracesRequest};
    let field = |number: u8, payload: &[u8]| [&[number << 3 | 2, payload.len() as u8], payload].concat();
    let point = |time: u8| {
        let (time, value) = ([0x19, time, 0, 0, 0, 0, 0, 0, 0], [0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        field(1, &[time, value].concat())
    };
    let request = |items: [Vec<u8>; 3]| {
        let items = items.map(|item| field(2, &item)).concat();
        field(1, &field(2, &items))
    };
    let gauge = |points: &[u8]| [field(1, b"m"), field(5, points)].concat();
    let log = |text: &[u8]| field(5, &field(1, text));
    let one = |name: &[u8]| [field(1, &[7; 16]), field(2, &[9; 8]), field(5, name)].concat();
    for (signal, raw) in [
        (Signal::Logs, request([log(b"first"), log(b"second"), log(b"third")])),
        (Signal::Traces, request([one(b"first"), one(b"second"), one(b"third")])),
        (Signal::Metrics, request([1, 2, 3].map(|time| gauge(&point(time))))),
        (Signal::Metrics, request([gauge(&[1, 2, 3].map(point).concat()), vec![], vec![]])),
    ] {
        let (all, _) = documents(signal, &raw, &settings());
        assert_eq!(all.len(), 3);
        let first = match signal {
            Signal::Logs => {
                let group = LogsRequest::new(&raw).resources().next().unwrap();
                group.scopes().next().unwrap().items().next().unwrap().message()
            }
            Signal::Traces => {
                let group = TracesRequest::new(&raw).resources().next().unwrap();
                group.scopes().next().unwrap().items().next().unwrap().message()
            }
            _ => {
                let group = MetricsRequest::new(&raw).resources().next().unwrap();
                let metric = group.scopes().next().unwrap().items().next().unwrap();
                let Data::Gauge(gauge) = metric.data else { panic!("{metric:?}") };
                gauge.points().next().unwrap().message()
            }
        };
        let begin = first.as_ptr().addr() - raw.as_ptr().addr();
        let mut invalid_names = raw.clone();
        invalid_names[begin..begin + first.len()].fill(0xff);
        let from = DocumentPosition { item: 2, part: 0 };
        let mut space = vec![0; 1 << 16];
        let mut page = DocumentBuffer::new(&mut space);
        let written = from_otlp(signal, &invalid_names, from, "j-1", &settings(), &mut page).unwrap();
        assert_eq!((written.items, written.next), (1, None), "{signal:?}");
        // The id and the place of a point depend on those that are grouped with it.
        let found = &pairs(page.written())[0].1;
        assert_eq!(all.iter().filter(|(_, document)| document == found).count(), 1, "{signal:?}");
    }
}

fn check(signal: Signal, raw: &[u8], expected: &[Expected]) {
    let (found, written) = documents(signal, raw, &settings());
    assert_eq!(written.documents, expected.len() as u64);
    for ((line, document), (index, expected)) in found.into_iter().zip(expected) {
        assert_eq!(line["_index"].as_str().unwrap(), index);
        assert_eq!(&with_times(document), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// A log record's document says all that the record says.
    #[test]
    fn log_documents_equal_the_model(request in strategies::logs(), names in invalid_names::names(), size in 300usize..3000) {
        let request = names.logs(request);
        let raw = request.encode_to_vec();
        let mut expected = Vec::new();
        for resource in &request.resource_logs {
            for scope in &resource.scope_logs {
                let from = Origin {
                    resource: &resource.resource,
                    resource_schema: &resource.schema_url,
                    scope: &scope.scope,
                    scope_schema: &scope.schema_url,
                };
                expected.extend(scope.log_records.iter().map(|record| log(&from, record, RECEIVED)));
            }
        }
        check(Signal::Logs, &raw, &expected);
        same_in_pieces(Signal::Logs, &raw, &settings(), size);
    }

    /// A span's document says all that the span says but its events, which have their own.
    #[test]
    fn span_documents_equal_the_model(request in strategies::traces(), names in invalid_names::names(), size in 300usize..3000) {
        let request = names.traces(request);
        let raw = request.encode_to_vec();
        let mut expected = Vec::new();
        for resource in &request.resource_spans {
            for scope in &resource.scope_spans {
                let from = Origin {
                    resource: &resource.resource,
                    resource_schema: &resource.schema_url,
                    scope: &scope.scope,
                    scope_schema: &scope.schema_url,
                };
                expected.extend(scope.spans.iter().flat_map(|one| span(&from, one, RECEIVED)));
            }
        }
        check(Signal::Traces, &raw, &expected);
        same_in_pieces(Signal::Traces, &raw, &settings(), size);
    }

    /// Whatever is in the requests, each line is JSON without a key twice, and every point is in one document or
    /// counted.
    #[test]
    fn metrics_are_valid_and_counted(
        request in strategies::metrics(),
        names in invalid_names::names(),
        size in 300usize..3000,
        es in any::<bool>(),
    ) {
        let request = names.metrics(request);
        let raw = request.encode_to_vec();
        let flavour = if es { Product::Elasticsearch } else { Product::OpenSearch };
        let settings = DocumentSettings { flavour, ..settings() };
        let (found, written) = documents(Signal::Metrics, &raw, &settings);
        let points = tidegate_wire::otlp::items(Signal::Metrics, &raw);
        prop_assert_eq!(written.items + written.untranslatable.items, points);
        let said: usize = found.iter().map(|(_, document)| document["metrics"].as_object().unwrap().len()).sum();
        prop_assert_eq!(said as u64, written.items);
        same_in_pieces(Signal::Metrics, &raw, &settings, size);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// In ECS too each line is JSON without a key twice, every item has its documents or is counted, and pieces give
    /// what the whole gives.
    #[test]
    fn ecs_is_valid_and_counted(
        logs in strategies::logs(),
        traces in strategies::traces(),
        metrics in strategies::metrics(),
        names in invalid_names::names(),
        size in 300usize..3000,
    ) {
        let (logs, traces) = (names.clone().logs(logs), names.clone().traces(traces));
        let metrics = names.metrics(metrics);
        let settings = DocumentSettings { mapping: Mapping::Ecs, ..settings() };
        for (signal, raw) in [
            (Signal::Logs, logs.encode_to_vec()),
            (Signal::Traces, traces.encode_to_vec()),
            (Signal::Metrics, metrics.encode_to_vec()),
        ] {
            let mut space = vec![0; 1 << 20];
            let mut page = DocumentBuffer::new(&mut space);
            let written = from_otlp(signal, &raw, DocumentPosition::START, "p", &settings, &mut page).unwrap();
            prop_assert!(has_no_key_twice(page.written()), "{}", String::from_utf8_lossy(page.written()));
            let items = tidegate_wire::otlp::items(signal, &raw);
            prop_assert_eq!(written.items + written.untranslatable.items, items);
            same_in_pieces(signal, &raw, &settings, size);
        }
    }
}
