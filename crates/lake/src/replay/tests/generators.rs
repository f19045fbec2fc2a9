//! Random OTLP requests, encoded field by field.

use crate::tests::NOW_NS;
use crate::tests::body::{bytes, fixed64, varint, zigzag};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tidegate_wire::otlp::Signal;

/// An encoded `AnyValue`.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let with = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut value = Vec::new();
        write(&mut value);
        value
    };
    let leaf = prop_oneof![
        Just(Vec::new()),
        any::<String>().prop_map(move |text| with(&|out| bytes(out, 1, text.as_bytes()))),
        "[a-z]{0,200}".prop_map(move |text| with(&|out| bytes(out, 1, text.as_bytes()))),
        any::<bool>().prop_map(move |is| with(&|out| varint(out, 2, u64::from(is)))),
        any::<i64>().prop_map(move |number| with(&|out| varint(out, 3, number.cast_unsigned()))),
        any_bits().prop_map(move |bits| with(&|out| fixed64(out, 4, bits))),
        vec(any::<u8>(), 0..9).prop_map(move |all| with(&|out| bytes(out, 7, &all))),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(move |values| with(&|out| {
                let array = with(&|out| values.iter().for_each(|value| bytes(out, 1, value)));
                bytes(out, 5, &array);
            })),
            vec(("[$a-c\"\\\\é]{0,3}|\\$(bytes|double|kvlist)", inner), 0..4).prop_map(move |entries| with(
                &|out| {
                    let map = with(&|out| {
                        entries.iter().for_each(|(key, value)| bytes(out, 1, &key_value(key, value)));
                    });
                    bytes(out, 6, &map);
                }
            )),
        ]
    })
}

fn any_bits() -> impl Strategy<Value = u64> {
    let special = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324];
    prop_oneof![
        any::<u64>(),
        any::<f64>().prop_map(f64::to_bits),
        proptest::sample::select(special.to_vec()).prop_map(f64::to_bits),
    ]
}

fn key_value(key: &str, value: &[u8]) -> Vec<u8> {
    let mut pair = Vec::new();
    bytes(&mut pair, 1, key.as_bytes());
    bytes(&mut pair, 2, value);
    pair
}

/// Encoded attributes: ordinary names, those that have columns, and those that look like the lake's own.
fn any_attributes() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let names = [
        "host.name",
        "k8s.pod.name",
        "exception.type",
        "job",
        "instance",
        "service.name",
        "http.route",
        "http.response.status_code",
        "trace_id",
        "$bytes",
        "quantile",
        "le",
    ];
    let name = prop_oneof![
        proptest::sample::select(names.to_vec()).prop_map(str::to_owned),
        "[a-c\"\\\\é\u{1}]{1,3}",
    ];
    let text = "[a-zé]{0,4}".prop_map(|text| {
        let mut value = Vec::new();
        bytes(&mut value, 1, text.as_bytes());
        value
    });
    let value = prop_oneof![text, any_value()];
    vec((name, value).prop_map(|(name, value)| key_value(&name, &value)), 0..5)
}

fn put_all(out: &mut Vec<u8>, field: u64, all: &[Vec<u8>]) {
    all.iter().for_each(|one| bytes(out, field, one));
}

fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), NOW_NS..NOW_NS + 5000, any::<u64>()]
}

fn any_id(len: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), vec(any::<u8>(), len), Just(vec![0; len])]
}

/// A field where it is not empty: encoders leave out the others.
fn put(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    if !value.is_empty() {
        bytes(out, field, value);
    }
}

fn fixed32(out: &mut Vec<u8>, field: u16, value: u32) {
    match (field << 3 | 5).to_le_bytes() {
        [key @ 0..0x80, 0] => out.push(key),
        [low, _] => out.extend([low | 0x80, 1]),
    }
    out.extend_from_slice(&value.to_le_bytes());
}

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let texts = ("[a-zA-Z]{0,6}", "[a-z.]{0,4}");
    let numbers = (any_time(), any_time(), any::<i32>(), 0..3_u32, any::<u32>());
    let ids = (any_id(16), any_id(8));
    (texts, numbers, ids, option::of(any_value()), any_attributes()).prop_map(
        |((severity_text, event), (time, observed, severity, dropped, flags), ids, body, attributes)| {
            let mut out = Vec::new();
            fixed64(&mut out, 1, time);
            varint(&mut out, 2, i64::from(severity).cast_unsigned());
            put(&mut out, 3, severity_text.as_bytes());
            if let Some(body) = body {
                bytes(&mut out, 5, &body);
            }
            put_all(&mut out, 6, &attributes);
            varint(&mut out, 7, u64::from(dropped));
            fixed32(&mut out, 8, flags);
            put(&mut out, 9, &ids.0);
            put(&mut out, 10, &ids.1);
            fixed64(&mut out, 11, observed);
            put(&mut out, 12, event.as_bytes());
            out
        },
    )
}

fn any_event() -> impl Strategy<Value = Vec<u8>> {
    (any_time(), "[a-z]{0,4}", any_attributes(), 0..3_u64).prop_map(|(time, name, attributes, dropped)| {
        let mut out = Vec::new();
        fixed64(&mut out, 1, time);
        put(&mut out, 2, name.as_bytes());
        put_all(&mut out, 3, &attributes);
        varint(&mut out, 4, dropped);
        out
    })
}

fn any_link() -> impl Strategy<Value = Vec<u8>> {
    (any_id(16), any_id(8), "[a-z=]{0,4}", any_attributes(), 0..3_u64, any::<u32>()).prop_map(
        |(trace_id, span_id, state, attributes, dropped, flags)| {
            let mut out = Vec::new();
            put(&mut out, 1, &trace_id);
            put(&mut out, 2, &span_id);
            put(&mut out, 3, state.as_bytes());
            put_all(&mut out, 4, &attributes);
            varint(&mut out, 5, dropped);
            fixed32(&mut out, 6, flags);
            out
        },
    )
}

fn any_span() -> impl Strategy<Value = Vec<u8>> {
    let ids = (any_id(16), any_id(8), any_id(8));
    let texts = ("[a-z=]{0,4}", "[A-Zé ]{0,6}", "[a-z]{0,4}");
    let numbers = (any_time(), any_time(), any::<i32>(), any::<i32>(), any::<u32>());
    let parts = (vec(any_event(), 0..3), vec(any_link(), 0..3), [0..3_u64, 0..3, 0..3]);
    (ids, texts, numbers, any_attributes(), parts).prop_map(
        |(ids, (state, name, message), (start, end, kind, code, flags), attributes, parts)| {
            let (events, links, dropped) = parts;
            let mut out = Vec::new();
            put(&mut out, 1, &ids.0);
            put(&mut out, 2, &ids.1);
            put(&mut out, 3, state.as_bytes());
            put(&mut out, 4, &ids.2);
            put(&mut out, 5, name.as_bytes());
            varint(&mut out, 6, i64::from(kind).cast_unsigned());
            fixed64(&mut out, 7, start);
            fixed64(&mut out, 8, end);
            put_all(&mut out, 9, &attributes);
            varint(&mut out, 10, dropped[0]);
            put_all(&mut out, 11, &events);
            varint(&mut out, 12, dropped[1]);
            put_all(&mut out, 13, &links);
            varint(&mut out, 14, dropped[2]);
            let mut status = Vec::new();
            put(&mut status, 2, message.as_bytes());
            varint(&mut status, 3, i64::from(code).cast_unsigned());
            bytes(&mut out, 15, &status);
            fixed32(&mut out, 16, flags);
            out
        },
    )
}

fn any_number(double: u64, int: u64) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any_bits().prop_map(move |bits| {
            let mut out = Vec::new();
            fixed64(&mut out, double, bits);
            out
        }),
        any::<i64>().prop_map(move |value| {
            let mut out = Vec::new();
            fixed64(&mut out, int, value.cast_unsigned());
            out
        }),
        Just(Vec::new()),
    ]
}

fn any_exemplar() -> impl Strategy<Value = Vec<u8>> {
    (any_time(), any_number(3, 6), any_id(16), any_id(8), any_attributes()).prop_map(
        |(time, value, trace_id, span_id, attributes)| {
            let mut out = value;
            fixed64(&mut out, 2, time);
            put(&mut out, 4, &span_id);
            put(&mut out, 5, &trace_id);
            put_all(&mut out, 7, &attributes);
            out
        },
    )
}

/// Start, time and flags, the latter in this field.
fn any_head(flags: u64) -> impl Strategy<Value = Vec<u8>> {
    (any_time(), any_time(), 0..2_u64).prop_map(move |(start, time, stale)| {
        let mut out = Vec::new();
        fixed64(&mut out, 2, start);
        fixed64(&mut out, 3, time);
        varint(&mut out, flags, stale);
        out
    })
}

fn any_number_point() -> impl Strategy<Value = Vec<u8>> {
    (any_head(8), any_number(4, 6), vec(any_exemplar(), 0..3), any_attributes()).prop_map(
        |(head, value, exemplars, attributes)| {
            let mut out = [head, value].concat();
            put_all(&mut out, 5, &exemplars);
            put_all(&mut out, 7, &attributes);
            out
        },
    )
}

fn optional_bits(out: &mut Vec<u8>, field: u64, bits: Option<u64>) {
    if let Some(bits) = bits {
        fixed64(out, field, bits);
    }
}

fn any_histogram_point() -> impl Strategy<Value = Vec<u8>> {
    let totals = (any::<u64>(), option::of(any_bits()), option::of(any_bits()), option::of(any_bits()));
    let buckets = (vec(any::<u64>(), 0..5), vec(any_bits(), 0..4));
    (any_head(10), totals, buckets, vec(any_exemplar(), 0..2), any_attributes()).prop_map(
        |(head, (count, sum, min, max), (counts, bounds), exemplars, attributes)| {
            let mut out = head;
            fixed64(&mut out, 4, count);
            optional_bits(&mut out, 5, sum);
            counts.iter().for_each(|&count| fixed64(&mut out, 6, count));
            bounds.iter().for_each(|&bound| fixed64(&mut out, 7, bound));
            put_all(&mut out, 8, &exemplars);
            put_all(&mut out, 9, &attributes);
            optional_bits(&mut out, 11, min);
            optional_bits(&mut out, 12, max);
            out
        },
    )
}

fn any_exponential_point() -> impl Strategy<Value = Vec<u8>> {
    let totals = (any::<u64>(), option::of(any_bits()), option::of(any_bits()), option::of(any_bits()));
    let zero = (any::<i32>(), any::<u64>(), any_bits());
    let side = || (any::<i32>(), vec(any::<u64>(), 0..5));
    (any_head(10), totals, zero, [side(), side()], vec(any_exemplar(), 0..2), any_attributes()).prop_map(
        |(head, (count, sum, min, max), (scale, zeros, threshold), sides, exemplars, attributes)| {
            let mut out = head;
            put_all(&mut out, 1, &attributes);
            fixed64(&mut out, 4, count);
            optional_bits(&mut out, 5, sum);
            varint(&mut out, 6, zigzag(i64::from(scale)) & 0xffff_ffff);
            fixed64(&mut out, 7, zeros);
            for (field, (offset, counts)) in [8, 9].into_iter().zip(sides) {
                let mut buckets = Vec::new();
                varint(&mut buckets, 1, zigzag(i64::from(offset)) & 0xffff_ffff);
                counts.iter().for_each(|&count| varint(&mut buckets, 2, count));
                bytes(&mut out, field, &buckets);
            }
            put_all(&mut out, 11, &exemplars);
            optional_bits(&mut out, 12, min);
            optional_bits(&mut out, 13, max);
            fixed64(&mut out, 14, threshold);
            out
        },
    )
}

/// A summary whose time is `NOW_NS` and some microseconds: no two of a request have the same.
fn any_summary_point() -> impl Strategy<Value = Vec<u8>> {
    let quantiles = proptest::collection::btree_map(any_bits(), any_bits(), 0..4);
    (any_time(), any::<u64>(), any_bits(), quantiles, any_attributes(), 0..2_u64).prop_map(
        |(start, count, sum, quantiles, attributes, stale)| {
            let mut out = Vec::new();
            fixed64(&mut out, 2, start);
            fixed64(&mut out, 4, count);
            fixed64(&mut out, 5, sum);
            for (quantile, value) in quantiles {
                let mut of = Vec::new();
                fixed64(&mut of, 1, quantile);
                fixed64(&mut of, 2, value);
                bytes(&mut out, 6, &of);
            }
            put_all(&mut out, 7, &attributes);
            varint(&mut out, 8, stale);
            out
        },
    )
}

fn any_metric() -> impl Strategy<Value = Vec<u8>> {
    let points = prop_oneof![
        (Just(5_u64), vec(any_number_point(), 0..4)),
        (Just(7), vec(any_number_point(), 0..4)),
        (Just(9), vec(any_histogram_point(), 0..3)),
        (Just(10), vec(any_exponential_point(), 0..3)),
        (Just(11), vec(any_summary_point(), 0..4)),
    ];
    let kind = (0..4_u64, 0..2_u64);
    ("[a-c]{1}", "[a-b]{0,1}", "[a-b]{0,1}", points, kind, any::<u32>()).prop_map(
        |(name, description, unit, (field, points), (temporality, monotonic), serial)| {
            let mut data = Vec::new();
            for (place, mut point) in points.into_iter().enumerate() {
                if field == 11 {
                    fixed64(&mut point, 3, NOW_NS + u64::from(serial) * 100 + place as u64);
                }
                bytes(&mut data, 1, &point);
            }
            if field != 5 && field != 11 {
                varint(&mut data, 2, temporality);
            }
            if field == 7 {
                varint(&mut data, 3, monotonic);
            }
            let mut metric = Vec::new();
            bytes(&mut metric, 1, name.as_bytes());
            put(&mut metric, 2, description.as_bytes());
            put(&mut metric, 3, unit.as_bytes());
            bytes(&mut metric, field, &data);
            metric
        },
    )
}

/// A request of some resources and scopes with these items.
fn any_request_of(item: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let url = || "[a-b]{0,1}";
    let scope = ("[a-b]{0,1}", "[0-9]{0,1}", any_attributes(), url(), vec(item, 0..5));
    let resource = (option::of(any_attributes()), url(), vec(scope, 0..3));
    vec(resource, 0..3).prop_map(|resources| {
        let mut raw = Vec::new();
        for (attributes, url, scopes) in resources {
            let mut group = Vec::new();
            if let Some(attributes) = attributes {
                let mut resource = Vec::new();
                put_all(&mut resource, 1, &attributes);
                bytes(&mut group, 1, &resource);
            }
            for (name, version, attributes, url, items) in scopes {
                let (mut scope, mut scope_group) = (Vec::new(), Vec::new());
                put(&mut scope, 1, name.as_bytes());
                put(&mut scope, 2, version.as_bytes());
                put_all(&mut scope, 3, &attributes);
                bytes(&mut scope_group, 1, &scope);
                put_all(&mut scope_group, 2, &items);
                put(&mut scope_group, 3, url.as_bytes());
                bytes(&mut group, 2, &scope_group);
            }
            put(&mut group, 3, url.as_bytes());
            bytes(&mut raw, 1, &group);
        }
        raw
    })
}

/// A request of a signal.
pub(super) fn any_request(signal: Signal) -> impl Strategy<Value = Vec<u8>> {
    any_request_of(match signal {
        Signal::Logs => any_record().boxed(),
        Signal::Traces => any_span().boxed(),
        _ => any_metric().boxed(),
    })
}
