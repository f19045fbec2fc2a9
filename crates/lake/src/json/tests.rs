use super::*;
use crate::tests::otlp::{Attr, attributes};
use proptest::prelude::*;
use serde_json::Value;

/// A value as a plain model has it.
#[derive(Debug, Clone, PartialEq)]
enum Model {
    Empty,
    Text(String),
    Bool(bool),
    Int(i64),
    /// The bits.
    Double(u64),
    Bytes(Vec<u8>),
    Array(Vec<Model>),
    Map(Vec<(String, Model)>),
}

impl Model {
    fn attr(&self) -> Attr<'_> {
        match self {
            Model::Empty => Attr::Empty,
            Model::Text(text) => Attr::Text(text),
            Model::Bool(value) => Attr::Bool(*value),
            Model::Int(value) => Attr::Int(*value),
            Model::Double(bits) => Attr::Double(f64::from_bits(*bits)),
            Model::Bytes(bytes) => Attr::Bytes(bytes),
            Model::Array(values) => Attr::Array(values.iter().map(Model::attr).collect()),
            Model::Map(entries) => {
                Attr::Map(entries.iter().map(|(key, value)| (key.as_str(), value.attr())).collect())
            }
        }
    }

    /// Reads canonical JSON back.
    fn read(value: &Value) -> Model {
        let tagged = |tag: &str| value.as_object().filter(|all| all.len() == 1).and_then(|all| all.get(tag));
        if let Some(text) = tagged("$double") {
            return Model::Double(match text.as_str().unwrap() {
                "NaN" => f64::NAN.to_bits(),
                "Infinity" => f64::INFINITY.to_bits(),
                "-Infinity" => f64::NEG_INFINITY.to_bits(),
                bits => u64::from_str_radix(&bits[2..], 16).unwrap(),
            });
        }
        if let Some(text) = tagged("$bytes") {
            return Model::Bytes(base64(text.as_str().unwrap()));
        }
        if let Some(entries) = tagged("$kvlist") {
            let entry = |entry: &Value| (entry[0].as_str().unwrap().to_owned(), Model::read(&entry[1]));
            return Model::Map(entries.as_array().unwrap().iter().map(entry).collect());
        }
        match value {
            Value::Null => Model::Empty,
            Value::Bool(value) => Model::Bool(*value),
            Value::String(text) => Model::Text(text.clone()),
            Value::Number(number) => {
                number.as_i64().map_or_else(|| Model::Double(number.as_f64().unwrap().to_bits()), Model::Int)
            }
            Value::Array(values) => Model::Array(values.iter().map(Model::read).collect()),
            Value::Object(all) => {
                Model::Map(all.iter().map(|(key, value)| (key.clone(), Model::read(value))).collect())
            }
        }
    }

    /// With keys sorted where they are an object.
    fn canonical(self) -> Model {
        match self {
            Model::Array(values) => Model::Array(values.into_iter().map(Model::canonical).collect()),
            Model::Map(entries) => {
                let mut entries: Vec<_> =
                    entries.into_iter().map(|(key, value)| (key, value.canonical())).collect();
                if !entries.iter().any(|(key, _)| key.starts_with('$')) {
                    entries.sort_by(|left, right| left.0.cmp(&right.0));
                }
                Model::Map(entries)
            }
            other => other,
        }
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let (mut count, mut bytes) = (0, Vec::new());
    for digit in text.bytes().filter(|&digit| digit != b'=') {
        bits = bits << 6 | digits.iter().position(|&known| known == digit).unwrap() as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

fn model() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![
        Just(Model::Empty),
        any::<String>().prop_map(Model::Text),
        any::<bool>().prop_map(Model::Bool),
        any::<i64>().prop_map(Model::Int),
        any::<u64>().prop_map(Model::Double),
        any::<f64>().prop_map(|value| Model::Double(value.to_bits())),
        Just(Model::Double(f64::NAN.to_bits())),
        Just(Model::Double(1.0_f64.to_bits())),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(Model::Bytes),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Model::Array),
            proptest::collection::btree_map("[$a-c\"]{0,3}", inner, 0..5)
                .prop_map(|entries| Model::Map(entries.into_iter().rev().collect())),
        ]
    })
}

fn written(all: &[(String, Model)]) -> (String, usize, usize) {
    let encoded: Vec<(&str, Attr<'_>)> =
        all.iter().map(|(key, value)| (key.as_str(), value.attr())).collect();
    let mut message = Vec::new();
    attributes(&mut message, 9, &encoded);
    let raw = crate::tests::otlp::traces(&[], &[message]);
    let request = tidegate_wire::otlp::TracesRequest::new(&raw);
    let group = request.resources().next().unwrap();
    let span: tidegate_wire::otlp::Span<'_> = group.scopes().next().unwrap().items().next().unwrap();
    let mut stack = Stack::new();
    assert!(collect(span.attributes(), |_| true, &mut stack));
    let most = bound(0, &mut stack);
    let mut counter = ByteCounter::default();
    write_collected(0, &mut counter, &mut stack);
    let mut out = Vec::new();
    write_collected(0, &mut out, &mut stack);
    (String::from_utf8(out).unwrap(), most, counter.0)
}

proptest! {
    /// Whatever the attributes are, they can be read back from the JSON, type by type and bit by bit; and the
    /// JSON is not longer than was said before.
    #[test]
    fn json_reads_back_as_it_was(all in proptest::collection::btree_map("[a-z.]{1,8}", model(), 0..6)) {
        let all: Vec<(String, Model)> = all.into_iter().rev().collect();
        let (json, most, counted) = written(&all);
        prop_assert!(json.len() <= most, "{} of {most}: {json}", json.len());
        prop_assert_eq!(json.len(), counted);
        let read: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(Model::read(&read), Model::Map(all).canonical());
    }
}

#[test]
fn keys_are_sorted_and_types_told_apart() {
    let text = |text: &str| Model::Text(text.to_owned());
    let double = |value: f64| Model::Double(value.to_bits());
    let map = |entries: &[(&str, Model)]| {
        Model::Map(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    };
    let all = [
        ("z", Model::Int(i64::MIN)),
        ("b", double(1.0)),
        ("a", text("é\"\u{1}\n")),
        ("c", double(-0.0)),
        ("d", Model::Bytes(vec![1, 2])),
        ("e", map(&[("$x", Model::Int(1)), ("y", double(f64::INFINITY))])),
        ("f", map(&[("q", Model::Empty), ("p", Model::Array(vec![]))])),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let expected = r#"{"a":"é\"\u0001\n","b":1.0,"c":-0.0,"d":{"$bytes":"AQI="},"e":{"$kvlist":[["$x",1],["y",{"$double":"Infinity"}]]},"f":{"p":[],"q":null},"z":-9223372036854775808}"#;
    assert_eq!(written(&all).0, expected);
}

/// Sorting takes memory, so there is a bound to it; nothing is left out beyond.
#[test]
fn too_many_keys_stay_in_their_order() {
    let many: Vec<String> = (0..SORTED as u64 + 1).rev().map(|serial| format!("k{serial:05}")).collect();
    let all: Vec<(&str, Attr<'_>)> = many.iter().map(|key| (key.as_str(), Attr::Int(1))).collect();
    let raw = crate::tests::otlp::traces(&all, &[]);
    let resource = tidegate_wire::otlp::TracesRequest::new(&raw).resources().next().unwrap().resource;
    let (mut out, mut stack) = (Vec::new(), Stack::new());
    write_object_at(resource.attributes(), &mut out, &mut stack, 0);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with(r#"{"k01024":1,"k01023":1,"#), "{}", &text[..60]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap().as_object().unwrap().len(), SORTED + 1);
    assert!(stack.is_empty() && stack.capacity() <= SORTED * 2);
}

/// A span with an attribute `k` that is `inner` in so many arrays, maps, and maps with a key of ours.
fn deep(depth: usize, inner: &[u8]) -> Vec<u8> {
    let field = |tag: u8, payload: &[u8]| {
        let mut field = vec![tag];
        let mut len = payload.len();
        while len >= 0x80 {
            field.push(len as u8 & 0x7f | 0x80);
            len >>= 7;
        }
        field.push(len as u8);
        field.extend_from_slice(payload);
        field
    };
    let entry = |key: &[u8], value: &[u8]| field(0x0a, &[field(0x0a, key), field(0x12, value)].concat());
    let mut value = inner.to_vec();
    for level in 0..depth {
        value = match level % 3 {
            0 => field(0x2a, &[field(0x0a, &[0x18, 1]), field(0x0a, &value)].concat()),
            1 => field(0x32, &[entry(b"b", &value), entry(b"a", &[0x18, 2])].concat()),
            _ => field(0x32, &[entry(b"$", &value), entry(b"z", &[0x18, 3])].concat()),
        };
    }
    field(0x4a, &[field(0x0a, b"k"), field(0x12, &value)].concat())
}

/// Such a span's attributes as JSON.
fn said(depth: usize, inner: &str) -> String {
    let (mut before, mut behind) = (String::new(), String::new());
    for level in (0..depth).rev() {
        let (open, close) = match level % 3 {
            0 => ("[1,", "]"),
            1 => ("{\"a\":2,\"b\":", "}"),
            _ => ("{\"$kvlist\":[[\"$\",", "],[\"z\",3]]}"),
        };
        before.push_str(open);
        behind.insert_str(0, close);
    }
    format!("{{\"k\":{before}{inner}{behind}}}")
}

/// Nothing calls itself for each level, so the stack of a lake's thread is enough for whatever is taken in.
#[test]
fn values_may_nest_deep() {
    let write = || {
        for depth in [1, 7, 8, 9, 10, 11, 12, 100, MAX_DEPTH] {
            let raw = crate::tests::otlp::traces(&[], &[deep(depth, &[0x0a, 1, b'x'])]);
            assert_eq!(
                tidegate_wire::otlp::check(tidegate_wire::otlp::Signal::Traces, &raw).unwrap().items,
                1
            );
            let request = tidegate_wire::otlp::TracesRequest::new(&raw);
            let group = request.resources().next().unwrap();
            let span: tidegate_wire::otlp::Span<'_> = group.scopes().next().unwrap().items().next().unwrap();
            let (mut out, mut counter, mut stack) = (Vec::new(), ByteCounter::default(), Stack::new());
            write_object_at(span.attributes(), &mut out, &mut stack, 0);
            write_object_at(span.attributes(), &mut counter, &mut stack, 0);
            assert_eq!(String::from_utf8(out).unwrap(), said(depth, "\"x\""), "{depth}");
            assert_eq!((counter.0, stack.len()), (said(depth, "\"x\"").len(), 0));
        }
    };
    std::thread::Builder::new().stack_size(192 << 10).spawn(write).unwrap().join().unwrap();
}
