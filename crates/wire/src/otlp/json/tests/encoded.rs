//! The output equals the input: as OTLP/JSON for another reader and for our own, as objects for a model that
//! rearranges them.

use super::super::super::MAX_DEPTH;
use super::super::super::tests::{normal, strategies};
use super::super::encode::{LONGEST_STEP, TURN};
use super::super::schema::Field;
use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Map, Value, json};

/// All of it, in spaces of `first` bytes and longer ones where that is too short.
fn encoded_in(signal: Signal, raw: &[u8], layout: Layout, first: usize) -> String {
    let mut encoder = Encoder::new(signal, raw, layout);
    let mut out = Vec::new();
    let (mut len, mut turns) = (first, 0);
    loop {
        let mut space = vec![0xaa; len];
        let progress = encoder.write(&mut space);
        out.extend_from_slice(&space[..progress.written]);
        match progress.next {
            Next::Done => break,
            Next::More => {
                turns += 1;
                // Each turn writes or reads a good deal, and all is read a few times: once for each message around it.
                assert!(
                    turns * TURN <= 2 * (raw.len() + out.len()) + TURN,
                    "{turns} turns for {} bytes",
                    raw.len()
                );
            }
            Next::Space => len = if progress.written == 0 { len * 2 + 1 } else { first },
        }
    }
    String::from_utf8(out).unwrap()
}

fn encoded(signal: Signal, raw: &[u8], layout: Layout) -> String {
    let all = encoded_in(signal, raw, layout, 1 << 20);
    for first in [0, 7, 64] {
        assert_eq!(encoded_in(signal, raw, layout, first), all);
    }
    all
}

/// Our own reader's result, as read by prost.
fn read_back<T: prost::Message + Default>(signal: Signal, json: &str) -> T {
    let mut out = vec![0; max_len(json.as_bytes())];
    let done = translate(signal, json.as_bytes(), &mut out).unwrap_or_else(|error| panic!("{error}\n{json}"));
    assert_eq!(done.refused, 0, "{json}");
    T::decode(&out[..done.len]).unwrap()
}

/// The objects that an OTLP/JSON request becomes, by the rules and not by the tables.
fn objects(request: &Value) -> Vec<Value> {
    let (signal, groups, scopes, items) = match request.as_object().unwrap().keys().next().unwrap().as_str() {
        "resourceSpans" => ("traces", "resourceSpans", "scopeSpans", "spans"),
        "resourceMetrics" => ("metrics", "resourceMetrics", "scopeMetrics", "metrics"),
        _ => ("logs", "resourceLogs", "scopeLogs", "logRecords"),
    };
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for group in list(request, groups) {
        for scope in list(&group, scopes) {
            for item in list(&scope, items) {
                let envelope = |of: &Value, name: &str| {
                    let mut object = plain(&of[name]).as_object().cloned().unwrap_or_default();
                    of.get("schemaUrl").map(|url| object.insert("schema_url".into(), url.clone()));
                    (!object.is_empty()).then_some(Value::Object(object))
                };
                let mut one = Map::from_iter([("signal".to_owned(), json!(signal))]);
                envelope(&scope, "scope").map(|scope| one.insert("scope".into(), scope));
                envelope(&group, "resource").map(|resource| one.insert("resource".into(), resource));
                let kinds = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"]
                    .map(|kind| (kind, item.get(kind)));
                if signal != "metrics" {
                    one.extend(plain(&item).as_object().unwrap().clone());
                    all.push(Value::Object(one.clone()));
                }
                for (kind, data) in kinds {
                    let Some(data) = data else { continue };
                    for point in list(data, "dataPoints") {
                        let mut one = one.clone();
                        one.insert("type".into(), json!(snake(kind)));
                        for part in [&item, data, &point] {
                            one.extend(plain(part).as_object().unwrap().clone());
                        }
                        for gone in
                            ["gauge", "sum", "histogram", "exponential_histogram", "summary", "data_points"]
                        {
                            // A histogram's sum is a number.
                            if !one.get(gone).is_some_and(|value| value.is_number() || value.is_string()) {
                                one.remove(gone);
                            }
                        }
                        all.push(Value::Object(one));
                    }
                }
            }
        }
    }
    all
}

fn snake(name: &str) -> String {
    let name = name.strip_suffix("UnixNano").unwrap_or(name);
    let name = if name == "asInt" || name == "asDouble" { "value" } else { name };
    name.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase())).collect()
}

fn plain(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mut object = Map::new();
    for (name, value) in members {
        let number = || value.as_str().map(|text| text.parse::<i128>().unwrap());
        let value = match (name.as_str(), value) {
            ("attributes" | "filteredAttributes" | "metadata", Value::Array(pairs)) => map(pairs),
            ("body", value) => any(value),
            (name, _) if name.ends_with("UnixNano") => {
                let text = number().unwrap();
                let read = value.as_str().unwrap().parse().unwrap();
                let mut space = [0; 40];
                let mut out = crate::output::SliceOutput::new(&mut space);
                crate::json::write::rfc3339(read, &mut out).unwrap();
                let len = out.len();
                let time = String::from_utf8(space[1..len - 1].to_vec()).unwrap();
                assert_eq!(crate::time::parse_rfc3339(time.as_bytes()), u64::try_from(text).ok(), "{time}");
                json!(time)
            }
            ("count" | "zeroCount" | "asInt", Value::String(_)) => integer(number().unwrap()),
            ("bucketCounts", Value::Array(counts)) => {
                counts.iter().map(|count| integer(count.as_str().unwrap().parse().unwrap())).collect()
            }
            ("kind", _) => {
                word(value, &["unspecified", "internal", "server", "client", "producer", "consumer"])
            }
            ("code", _) => word(value, &["unset", "ok", "error"]),
            ("aggregationTemporality", _) => word(value, &["unspecified", "delta", "cumulative"]),
            (_, Value::Array(values)) => values.iter().map(plain).collect(),
            (_, value) => plain(value),
        };
        object.insert(snake(name), value);
    }
    Value::Object(object)
}

fn integer(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| json!(u64::try_from(value).unwrap()), |value| json!(value))
}

fn word(value: &Value, words: &[&str]) -> Value {
    let index = value.as_i64().and_then(|value| usize::try_from(value).ok());
    index.and_then(|index| words.get(index)).map_or_else(|| value.clone(), |word| json!(word))
}

fn map(pairs: &[Value]) -> Value {
    let pair = |pair: &Value| (pair["key"].as_str().unwrap_or_default().to_owned(), any(&pair["value"]));
    Value::Object(pairs.iter().map(pair).collect())
}

fn any(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|object| object.iter().next()) else {
        return Value::Null;
    };
    match (kind.as_str(), &value["values"]) {
        ("intValue", _) => json!(value.as_str().unwrap().parse::<i64>().unwrap()),
        ("arrayValue", Value::Array(values)) => values.iter().map(any).collect(),
        ("kvlistValue", Value::Array(pairs)) => map(pairs),
        _ => value.clone(),
    }
}

/// Both layouts with objects say the same, and what OTLP/JSON says.
fn items_agree(signal: Signal, raw: &[u8]) {
    let request: Value = serde_json::from_str(&encoded(signal, raw, Layout::Request)).unwrap();
    let array = encoded(signal, raw, Layout::Array);
    let array: Vec<Value> = serde_json::from_str(&array).unwrap_or_else(|error| panic!("{error}: {array}"));
    let lines = encoded(signal, raw, Layout::Lines);
    assert!(lines.is_empty() || lines.ends_with('\n'));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, array);
    assert_eq!(lines.len() as u64, crate::otlp::split::items(signal, raw));
    let expected = objects(&request);
    assert_eq!(lines, expected, "{}", serde_json::to_string(&request).unwrap());
}

/// Whether the other reader takes it: texts for doubles that are none it does not know (and JSON has one NaN of many), and
/// it wants fields that need not be there.
fn is_for_others(json: &str) -> bool {
    !["\"NaN\"", "\"Infinity\"", "\"-Infinity\"", "\"entityRefs\""].iter().any(|odd| json.contains(odd))
}

macro_rules! signals {
    ($($name:ident: $signal:ident, $request:ident, $strategy:ident;)*) => {proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        $(#[test]
        fn $name(request in strategies::$strategy()) {
            let raw = request.encode_to_vec();
            let json = encoded(Signal::$signal, &raw, Layout::Request);
            let ours: $request = read_back(Signal::$signal, &json);
            prop_assert_eq!(&encoded(Signal::$signal, &ours.encode_to_vec(), Layout::Request), &json);
            if is_for_others(&json) {
                let same = |request: $request| normal::$strategy(request).encode_to_vec();
                let expected = same(request);
                prop_assert!(same(ours) == expected, "{}", json);
                let theirs: $request = serde_json::from_str(&json).map_err(|error| {
                    TestCaseError::fail(format!("{error}: {json}"))
                })?;
                prop_assert!(same(theirs) == expected, "{}", json);
            }
            items_agree(Signal::$signal, &raw);
        })*
    }};
}

signals! {
    traces_are_written_as_they_are: Traces, Traces, traces;
    logs_are_written_as_they_are: Logs, Logs, logs;
    metrics_are_written_as_they_are: Metrics, Metrics, metrics;
}

/// The tables are within the bounds that the walk has.
#[test]
fn tables_are_bounded() {
    fn check_bounds(message: &'static schema::Message, depth: usize) {
        assert!(message.fields.len() <= 16);
        for Field { number, kind, .. } in message.fields {
            assert!(*number < 32);
            if let (schema::Kind::Message(inner), 0..8) = (kind, depth) {
                check_bounds(inner, depth + 1);
            }
        }
    }
    for message in [&schema::TRACES, &schema::LOGS, &schema::METRICS] {
        check_bounds(message, 0);
    }
    const { assert!(ENCODER_BYTES <= 160 << 10) };
}

fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = body.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    [out, body.to_vec()].concat()
}

/// A request of one item of this table.
fn request_of(signal: Signal, item: &[u8]) -> Vec<u8> {
    let item = match signal {
        Signal::Metrics => field(2, &field(10, &field(1, item))),
        _ => field(2, item),
    };
    field(1, &field(2, &item))
}

/// The envelope of items is scanned once, however many they are: the time is in proportion to what is read and
/// written.
#[test]
fn an_envelope_is_looked_through_once() {
    // A gauge of many points, with numbers of its own; and spans of a resource with fields that nobody knows.
    let point = field(1, &[[0x19].as_slice(), &[1; 8], &[0x31], &[2; 8]].concat());
    let gauge = field(5, &point.repeat(40_000));
    let metric = [field(1, b"up"), gauge, field(3, b"s")].concat();
    let metrics = field(1, &field(2, &field(2, &metric)));
    let resource = field(
        1,
        &[field(1, &[field(1, b"k"), field(2, &field(1, b"v"))].concat()), vec![0x78; 200_000]].concat(),
    );
    let span = field(2, &[field(1, &[1; 16]), field(2, &[2; 8]), field(5, b"s")].concat());
    let traces = field(1, &[resource, field(2, &span.repeat(5000))].concat());
    for (signal, raw, items) in [(Signal::Metrics, metrics, 40_000), (Signal::Traces, traces, 5000)] {
        assert!(crate::otlp::check(signal, &raw).is_ok());
        let lines = encoded_in(signal, &raw, Layout::Lines, 1 << 20);
        assert_eq!(lines.lines().count(), items);
        let first = lines.lines().next().unwrap();
        assert!(lines.lines().all(|line| line == first), "{first}");
        let _: Value = serde_json::from_str(first).unwrap();
        assert!(encoded_in(signal, &raw, Layout::Lines, 20 << 10) == lines);
    }
}

/// A field that comes in several places is one list, and of a number that comes again the last counts.
#[test]
fn fields_in_any_order_are_written_once() {
    let attribute = |key: &[u8]| field(6, &[field(1, key), field(2, &[0x10, 1])].concat());
    // Severity 9, an attribute, severity 0 and 17, another attribute, an unknown field.
    let record = [vec![0x10, 9], attribute(b"a"), vec![0x10, 0, 0x10, 17], attribute(b"b"), field(15, b"?")];
    let raw = request_of(Signal::Logs, &record.concat());
    assert_eq!(
        encoded(Signal::Logs, &raw, Layout::Lines),
        "{\"signal\":\"logs\",\"severity_number\":17,\"attributes\":{\"a\":true,\"b\":true}}\n"
    );
    // An integer, and then a double: a point has one value.
    let point = [vec![0x31, 1, 0, 0, 0, 0, 0, 0, 0], vec![0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]].concat();
    let metric = [field(1, b"m"), field(7, &[]), field(5, &field(1, &point))].concat();
    let raw = field(1, &field(2, &field(2, &metric)));
    assert_eq!(
        encoded(Signal::Metrics, &raw, Layout::Array),
        r#"[{"signal":"metrics","type":"gauge","name":"m","value":1.0}]"#
    );
    let whole = encoded(Signal::Metrics, &raw, Layout::Request);
    assert!(whole.contains(r#"{"name":"m","gauge":{"dataPoints":[{"asDouble":1.0}]}}"#), "{whole}");
}

#[test]
fn nothing_is_an_empty_request() {
    let all =
        [Layout::Request, Layout::Lines, Layout::Array].map(|layout| encoded(Signal::Traces, &[], layout));
    assert_eq!(all, ["{\"resourceSpans\":[]}", "", "[]"]);
}

/// The deepest value that is accepted is written whole.
#[test]
fn values_nest_as_deep_as_the_check_allows() {
    let nest = |levels: usize| (0..levels).fold(field(1, b"x"), |inner, _| field(5, &field(1, &inner)));
    let raw = request_of(Signal::Logs, &field(5, &nest(MAX_DEPTH)));
    assert!(crate::otlp::check(Signal::Logs, &raw).is_ok());
    let line = encoded(Signal::Logs, &raw, Layout::Lines);
    assert_eq!(line.matches('[').count(), MAX_DEPTH);
    assert!(line.contains("[\"x\"]"));
    assert_eq!(encoded(Signal::Logs, &raw, Layout::Request).matches("arrayValue").count(), MAX_DEPTH);
}

/// However long a single text or list is, one turn writes a bounded part of it, and the parts are the whole.
#[test]
fn a_turn_is_bounded_whatever_is_long() {
    const LONG: usize = 1 << 18;
    let text = |byte: u8| field(1, &vec![byte; LONG]);
    let ids = [field(1, &[1; 16]), field(2, &[1; 8])].concat();
    let span = [ids, field(3, &vec![b's'; LONG]), field(5, &vec![b'n'; LONG])];
    for (what, signal, item, least) in [
        ("a body of control characters", Signal::Logs, field(5, &text(1)), 6 * LONG),
        ("a body of bytes", Signal::Logs, field(5, &field(7, &vec![0xff; LONG])), LONG * 4 / 3 + 2),
        ("a severity", Signal::Logs, [field(3, &vec![b'x'; LONG]), field(12, b"behind it")].concat(), LONG),
        ("a key", Signal::Logs, field(6, &[text(b'k'), field(2, &field(1, b"value"))].concat()), LONG),
        ("a key without a value", Signal::Logs, field(6, &text(b'k')), LONG),
        ("a name and a state", Signal::Traces, span.concat(), 2 * LONG),
        ("bucket counts", Signal::Metrics, field(6, &vec![0; LONG]), LONG / 4),
    ] {
        let raw = match signal {
            Signal::Metrics => field(1, &field(2, &field(2, &field(9, &field(1, &item))))),
            _ => request_of(signal, &item),
        };
        assert!(crate::otlp::check(signal, &raw).is_ok(), "{what}");
        for layout in [Layout::Request, Layout::Lines] {
            let (mut encoder, mut space, mut out) =
                (Encoder::new(signal, &raw, layout), vec![0; 16 * LONG], Vec::new());
            loop {
                let progress = encoder.write(&mut space);
                assert!(progress.written <= TURN + 6 * LONGEST_STEP + 64, "{what}: {progress:?}");
                out.extend_from_slice(&space[..progress.written]);
                if progress.next == Next::Done {
                    break;
                }
            }
            let _: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert!(out.len() >= least, "{what}: {}", out.len());
            assert!(out == encoded_in(signal, &raw, layout, 64).into_bytes(), "{what}");
        }
        match signal {
            Signal::Traces => reads_back::<Traces>(signal, &raw),
            Signal::Metrics => reads_back::<Metrics>(signal, &raw),
            _ => reads_back::<Logs>(signal, &raw),
        }
    }
}

fn reads_back<T: prost::Message + Default + PartialEq>(signal: Signal, raw: &[u8]) {
    let json = encoded_in(signal, raw, Layout::Request, 1 << 20);
    assert!(read_back::<T>(signal, &json) == T::decode(raw).unwrap());
}

/// No item grows by more than [`GROWTH`] and what its own fields are called.
#[test]
fn an_item_grows_within_the_documented_factor() {
    let times = |part: &[u8]| part.repeat(4000);
    let nested = (0..30).fold(vec![], |inner: Vec<u8>, _| field(5, &field(1, &inner)));
    let maps = (0..15).fold(vec![], |inner: Vec<u8>, _| field(6, &field(1, &field(2, &inner))));
    let array = |value: &[u8]| field(5, &field(5, &times(&field(1, value))));
    let buckets = |bucket: u8| field(8, &field(2, &times(&[bucket])));
    for (what, signal, item) in [
        ("control characters", Signal::Logs, field(5, &field(1, &times(&[1])))),
        ("attributes without anything", Signal::Logs, times(&field(6, &[]))),
        ("short keys", Signal::Logs, times(&field(6, &field(1, &[1])))),
        ("empty texts", Signal::Logs, times(&field(6, &field(2, &field(1, &[]))))),
        ("falsehoods", Signal::Logs, array(&[0x10, 0])),
        ("numbers", Signal::Logs, array(&[0x18, 0x7f])),
        ("lists of nothing", Signal::Logs, array(&[0x2a, 0])),
        ("maps of nothing", Signal::Logs, array(&[0x32, 0])),
        ("lists in lists", Signal::Logs, array(&nested)),
        ("maps in maps", Signal::Logs, array(&maps)),
        ("bytes", Signal::Logs, array(&[0x3a, 1, 9])),
        ("events", Signal::Traces, times(&field(11, &[0x20, 0x7f]))),
        ("links", Signal::Traces, times(&field(13, &[0x28, 0x7f]))),
        ("events of nothing", Signal::Traces, times(&field(11, &[]))),
        ("buckets", Signal::Metrics, buckets(0x7f)),
        ("empty buckets", Signal::Metrics, buckets(0)),
        ("exemplars", Signal::Metrics, times(&field(11, &[0x31, 0, 0, 0, 0, 0, 0, 0, 0]))),
    ] {
        let raw = request_of(signal, &item);
        assert!(crate::otlp::check(signal, &raw).is_ok(), "{what}");
        for layout in [Layout::Request, Layout::Lines] {
            let len = encoded(signal, &raw, layout).len();
            assert!(len <= GROWTH * raw.len() + 1024, "{what}: {len} of {} in {layout:?}", raw.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is in a body, writing it ends.
    #[test]
    fn damage_is_harmless(
        request in strategies::metrics(),
        hits in proptest::collection::vec((proptest::arbitrary::any::<proptest::sample::Index>(), 0u8..), 0..4),
        cut in proptest::arbitrary::any::<proptest::sample::Index>(),
    ) {
        let mut raw = request.encode_to_vec();
        raw.push(0);
        for (at, byte) in hits {
            let at = at.index(raw.len());
            raw[at] = byte;
        }
        raw.truncate(cut.index(raw.len()));
        for signal in [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles] {
            for layout in [Layout::Request, Layout::Lines, Layout::Array] {
                let mut encoder = Encoder::new(signal, &raw, layout);
                let mut space = vec![0; 1 << 20];
                let steps = (0..1000).take_while(|_| encoder.write(&mut space).next == Next::More).count();
                prop_assert!(steps < 1000);
            }
        }
    }
}
