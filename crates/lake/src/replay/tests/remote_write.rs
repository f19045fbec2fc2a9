//! Metrics that came by remote write come out as remote write.

use super::normal::{otlp_items, remote_write_items};
use super::*;
use crate::tests::body::{self, Body, Labels, custom_histogram, int_histogram, labels};
use crate::tests::traces::push_otlp;
use crate::tests::{NOW_MS, push};
use proptest::prelude::*;
use tidegate_wire::remote_write::{Metadata, STALE_NAN, Symbols, Version, view};

fn any_labels() -> impl Strategy<Value = Labels> {
    let name = prop_oneof![
        Just("job".to_owned()),
        Just("instance".to_owned()),
        Just("host.name".to_owned()),
        Just("le".to_owned()),
        "[A-Za-zé\"\\\\\u{1}_]{1,3}",
    ];
    ("[a-c]{1,2}(_sum|_count|_bucket)?", proptest::collection::btree_map(name, ".{0,12}", 0..5)).prop_map(
        |(metric, mut labels)| {
            labels.insert("__name__".to_owned(), metric);
            labels.into_iter().collect()
        },
    )
}

fn any_bits() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(STALE_NAN), any::<f64>().prop_map(f64::to_bits)]
}

fn any_body() -> impl Strategy<Value = Body> {
    let time = || NOW_MS - 500..NOW_MS + 500;
    let series = (
        any_labels(),
        proptest::collection::vec((time(), any_bits()), 0..4),
        proptest::option::of((any_exemplar_labels(), (time(), any_bits()))),
        proptest::option::of((time(), -9..9_i64, proptest::collection::vec(0..9_i64, 1..5))),
        proptest::option::of((time(), proptest::collection::vec(0..9_u32, 3))),
    );
    let metadata = proptest::collection::vec(("[a-c]{1,2}", 0..8_u64, "[a-z]{0,2}", "[a-z]{0,2}"), 0..3);
    (proptest::collection::vec(series, 0..5), metadata).prop_map(|(all, metadata)| {
        let mut body = Body::default();
        for (family, kind, unit, help) in metadata {
            body = body.metadata(&family, kind, &unit, &help);
        }
        for (labels, samples, exemplar, native, custom) in all {
            body = match exemplar {
                Some((of, value)) => body.exemplar(&labels, &samples, &of, value),
                None => body.series(&labels, &samples),
            };
            if let Some((time, offset, counts)) = native {
                let mut before = 0;
                let deltas: Vec<i64> =
                    counts.iter().map(|count| count - std::mem::replace(&mut before, *count)).collect();
                body = body.histogram(&labels, &int_histogram(time, offset, &deltas));
            }
            if let Some((time, counts)) = custom {
                let counts: Vec<f64> = counts.into_iter().map(f64::from).collect();
                body = body.histogram(&labels, &custom_histogram(time, &[0.5, 1.0], &counts));
            }
        }
        body
    })
}

fn any_exemplar_labels() -> impl Strategy<Value = Labels> {
    let id = prop_oneof![
        Just("0af7651916cd43dd8448eb211c80319c".to_owned()),
        Just("00f067aa0ba902b7".to_owned()),
        "[a-z]{0,3}",
    ];
    let name = prop_oneof![Just("trace_id".to_owned()), Just("span_id".to_owned()), "[a-z]{1,3}"];
    proptest::collection::btree_map(name, id, 0..4).prop_map(|labels| labels.into_iter().collect())
}

fn found_items(dir: &Path, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    for table in [Table::MetricPoints, Table::MetricHistograms] {
        for request in replayed(dir, table, most) {
            assert_eq!((request.protocol, request.signal), (ReplayProtocol::RemoteWrite, Signal::Metrics));
            assert!(request.body.len() <= most || request.items == 1);
            found.extend(remote_write_items(&request.body));
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn series_come_out_as_they_came_in(
        bodies in proptest::collection::vec((any_body(), any::<bool>()), 1..4),
        most in prop_oneof![Just(0_usize), 1..2000_usize, Just(1 << 20)],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = writer(dir.path());
        let mut expected = Vec::new();
        for (sequence, (body, close)) in bodies.iter().enumerate() {
            prop_assert_eq!(push(&mut writer, sequence as u64, NOW_NS, body).dropped.items(), 0);
            expected.extend(remote_write_items(&body.0));
            if *close {
                writer.close_files().unwrap();
            }
        }
        writer.close_files().unwrap();
        expected.sort();
        prop_assert_eq!(found_items(dir.path(), most), expected);
    }
}

/// Type, unit and help make it through a second lake.
#[test]
fn metadata_comes_out_with_the_series() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = writer(dir.path());
    let named = |name: &str| labels(&[("__name__", name)]);
    let quantile = labels(&[("__name__", "rpc"), ("quantile", "0.5")]);
    let body = Body::default()
        .metadata("rpc", 5, "seconds", "how long")
        .metadata("up", 2, "", "whether")
        .metadata("h", 3, "", "classic")
        .metadata("r_total", 1, "", "how many")
        .series(&quantile, &[(NOW_MS, 1)])
        .series(&named("rpc_sum"), &[(NOW_MS, 1)])
        .series(&named("rpc_count"), &[(NOW_MS, 1)])
        .series(&named("up"), &[(NOW_MS, 1)])
        .series(&labels(&[("__name__", "h_bucket"), ("le", "1")]), &[(NOW_MS, 1)])
        .series(&named("h_sum"), &[(NOW_MS, 1)])
        .series(&named("r_total"), &[(NOW_MS, 1)])
        .series(&named("unknown"), &[(NOW_MS, 1)]);
    push(&mut first, 1, NOW_NS, &body);
    first.close_files().unwrap();
    let requests = replayed(dir.path(), Table::MetricPoints, 1 << 20);
    assert_eq!(requests.len(), 1);
    let mut symbols = Symbols::new();
    let request = view(Version::V1, &requests[0].body, &mut symbols).unwrap();
    let is_of = |name: &'static str| move |metadata: &Metadata<'_>| metadata.family == name.as_bytes();
    assert_eq!(request.metadata().find(is_of("rpc")).unwrap().help, b"how long");
    assert_eq!(request.metadata().filter(is_of("rpc")).count(), 1);
    assert_eq!(request.metadata().find(is_of("h")).unwrap().kind, 3);
    assert!(request.metadata().all(|metadata| metadata.family != b"unknown"));

    let again = tempfile::tempdir().unwrap();
    let mut second = writer(again.path());
    push(&mut second, 1, NOW_NS, &Body(requests[0].body.clone()));
    second.close_files().unwrap();
    let rows = |dir: &Path| crate::tests::traces::rows(dir, Table::MetricPoints);
    assert_eq!(rows(again.path()), rows(dir.path()));
}

/// OTLP without a resource and a scope is not taken for remote write, nor the other way round: both may be in one file.
#[test]
fn protocols_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let series = labels(&[("__name__", "gauge"), ("a", "b"), ("job", "j")]);
    let body = Body::default().metadata("gauge", 2, "", "").series(&series, &[(NOW_MS, 1), (NOW_MS + 1, 2)]);
    push(&mut writer, 1, NOW_NS, &body);
    let (mut point, mut data, mut metric) = (Vec::new(), Vec::new(), Vec::new());
    fixed64(&mut point, 3, NOW_NS);
    fixed64(&mut point, 4, 1);
    attributes(&mut point, 7, &[("a", Attr::Text("b")), ("job", Attr::Text("j"))]);
    bytes(&mut data, 1, &point);
    bytes(&mut metric, 1, b"gauge");
    bytes(&mut metric, 5, &data);
    let raw = crate::tests::otlp::request(&[], &[], &[metric.clone()]);
    push_otlp(&mut writer, 2, Signal::Metrics, &raw);
    writer.close_files().unwrap();
    let requests = replayed(dir.path(), Table::MetricPoints, 1 << 20);
    let of = |protocol| requests.iter().filter(move |request| request.protocol == protocol);
    let otlp: Vec<String> =
        of(ReplayProtocol::Otlp).flat_map(|request| otlp_items(Signal::Metrics, &request.body, 0)).collect();
    assert_eq!(otlp, otlp_items(Signal::Metrics, &raw, 0));
    let remote_write: Vec<String> =
        of(ReplayProtocol::RemoteWrite).flat_map(|request| remote_write_items(&request.body)).collect();
    assert_eq!(remote_write, remote_write_items(&body.0));
    assert_resumes_everywhere(
        dir.path(),
        Table::MetricPoints,
        0,
        &replayed(dir.path(), Table::MetricPoints, 0),
    );
}

/// Wide gaps, float counts, negative buckets, and custom buckets that do not begin with the first bound.
#[test]
fn native_histograms_keep_their_buckets() {
    let span = |offset: i64, length: u64| body::span(offset, length);
    let (mut wide, mut custom) = (Vec::new(), Vec::new());
    fixed64(&mut wide, 2, 7.5_f64.to_bits());
    fixed64(&mut wide, 3, 1.5_f64.to_bits());
    fixed64(&mut wide, 5, 0.001_f64.to_bits());
    fixed64(&mut wide, 7, 0.5_f64.to_bits());
    bytes(&mut wide, 8, &span(-3, 2));
    bytes(&mut wide, 8, &span(2, 1));
    [1.0, 2.0, 0.5_f64].iter().for_each(|count| fixed64(&mut wide, 10, count.to_bits()));
    bytes(&mut wide, 11, &span(-5000, 1));
    bytes(&mut wide, 11, &span(9000, 1));
    [1.0, 2.5_f64].iter().for_each(|count| fixed64(&mut wide, 13, count.to_bits()));
    varint(&mut wide, 14, 3);
    varint(&mut wide, 15, NOW_MS.cast_unsigned());

    varint(&mut custom, 1, 5);
    varint(&mut custom, 4, body::zigzag(-53));
    bytes(&mut custom, 11, &span(1, 1));
    bytes(&mut custom, 11, &span(1, 1));
    [2, 1].iter().for_each(|&delta| varint(&mut custom, 12, body::zigzag(delta)));
    varint(&mut custom, 15, NOW_MS.cast_unsigned());
    [1.0, 2.0, 3.0, 4.0_f64].iter().for_each(|bound| fixed64(&mut custom, 16, bound.to_bits()));

    let mut stale = Vec::new();
    fixed64(&mut stale, 3, STALE_NAN);
    varint(&mut stale, 15, NOW_MS.cast_unsigned());
    let series = |name: &str| labels(&[("__name__", name), ("host.name", "")]);
    let body = Body::default()
        .histogram(&series("custom"), &custom)
        .histogram(&series("stale"), &stale)
        .histogram(&series("wide"), &wide);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    assert_eq!(push(&mut writer, 1, NOW_NS, &body).dropped.items(), 0);
    writer.close_files().unwrap();
    assert_eq!(found_items(dir.path(), 1 << 20), remote_write_items(&body.0));
    let rows = crate::tests::traces::rows(dir.path(), Table::MetricHistograms);
    assert_eq!(rows[0]["bucket_counts"], serde_json::json!([0, 2, 0, 3]));
}
