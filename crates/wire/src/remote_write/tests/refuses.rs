//! Invalid requests are refused, with position and reason.

use prost::Message;

use super::check;
use super::oracle::{
    Count, ExemplarV2, HistogramV1, Label, MetadataV1, MetadataV2, RequestV2, SampleV1, SampleV2, SeriesV1,
    SeriesV2, Span, WriteRequest,
};
use crate::remote_write::{self as ours, Limits, Symbols, Version};

fn labels(labels: &[(&str, &str)]) -> Vec<Label> {
    let label = |&(name, value): &(&str, &str)| Label { name: name.to_owned(), value: value.to_owned() };
    labels.iter().map(label).collect()
}

fn series(of: &[(&str, &str)]) -> SeriesV1 {
    SeriesV1 { labels: labels(of), samples: vec![SampleV1 { value: 1, timestamp: 1 }], ..SeriesV1::default() }
}

fn v1(timeseries: Vec<SeriesV1>) -> Vec<u8> {
    WriteRequest { timeseries, metadata: vec![] }.encode_to_vec()
}

fn refusal(version: Version, raw: &[u8]) -> String {
    check(version, raw)
        .map(|counts| format!("accepted: {counts:?}"))
        .unwrap_or_else(|error| error.to_string())
}

#[test]
fn v1_label_rules() {
    let name = ("__name__", "up");
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[name, ("c", "1"), ("b", "2")], "label `b` comes after `c`: labels must be sorted by name"),
        (
            &[name, ("kubernetes_b", ""), ("kubernetes_a", "")],
            "label `kubernetes_a` comes after `kubernetes_b`",
        ),
        (&[name, ("b", "1"), ("b", "2")], "label `b` is there twice"),
        (&[("", "x"), name], "a label has an empty name (its value is `x`)"),
        (&[name, ("", "x")], "a label has an empty name"),
        (&[("a", "b")], "there is no label `__name__`, or it is empty"),
        (&[("__name__", "")], "there is no label `__name__`, or it is empty"),
        (&[], "the series has no labels"),
    ];
    for (labels, expected) in cases {
        let refusal = refusal(Version::V1, &v1(vec![series(&[name]), series(labels)]));
        assert!(refusal.starts_with(&format!("series 1: {expected}")), "{labels:?}: {refusal}");
    }
}

/// A name that is a prefix of the next sorts before it, also where a NUL byte is what follows.
#[test]
fn prefixes_sort_first() {
    let sorted = series(&[
        ("__name__", "up"),
        ("a", ""),
        ("a\0", ""),
        ("ab", ""),
        ("b2345678", ""),
        ("b23456789", ""),
    ]);
    assert!(check(Version::V1, &v1(vec![sorted.clone()])).is_ok());
    let mut turned = sorted;
    turned.labels.swap(1, 2);
    assert!(check(Version::V1, &v1(vec![turned])).is_err());
}

/// Empty values are read as "no such label" by Prometheus, and pass.
#[test]
fn empty_values_pass() {
    assert!(check(Version::V1, &v1(vec![series(&[("__name__", "up"), ("a", "")])])).is_ok());
}

#[test]
fn texts_must_be_utf8() {
    let bad = |raw: Vec<u8>, mark: &[u8]| {
        let at = raw.windows(mark.len()).position(|window| window == mark).unwrap();
        let mut raw = raw;
        raw[at] = 0xff;
        raw
    };
    let name = ("__name__", "up");
    let long = "x".repeat(200);
    let cases = [
        (bad(v1(vec![series(&[name, ("a", "QQ")])]), b"QQ"), "series 0: a label's value is not valid UTF-8"),
        (bad(v1(vec![series(&[name, ("QQ", "a")])]), b"QQ"), "series 0: a label's name is not valid UTF-8"),
        (
            bad(v1(vec![series(&[name, ("a", &long), ("b", "QQ")])]), b"QQ"),
            "series 0: a label's value is not",
        ),
        (
            bad(
                WriteRequest {
                    timeseries: vec![],
                    metadata: vec![MetadataV1 { help: "QQ".to_owned(), ..MetadataV1::default() }],
                }
                .encode_to_vec(),
                b"QQ",
            ),
            "a metadata text is not valid UTF-8",
        ),
    ];
    for (raw, expected) in cases {
        let refusal = refusal(Version::V1, &raw);
        assert!(refusal.starts_with(expected), "{refusal}");
    }
    let raw = RequestV2 { symbols: vec![String::new(), "QQ".to_owned()], timeseries: vec![] }.encode_to_vec();
    let refusal = refusal(Version::V2, &bad(raw, b"QQ"));
    assert_eq!(refusal, "a symbol is not valid UTF-8: `\u{fffd}Q` (byte 4)");
}

/// A character that is split between a name and its value is two broken texts, though the bytes around
/// their boundary look like one.
#[test]
fn characters_do_not_cross_texts() {
    // name: 'a' 0xc3, value: 0xa9; both lengths and tags are ASCII, so the run is not UTF-8.
    let label = [0x0a, 2, b'a', 0xc3, 0x12, 1, 0xa9];
    let name = [&[0x0a, 8][..], b"__name__", &[0x12, 1, b'u']].concat();
    let mut series = vec![0x0a, u8::try_from(name.len()).unwrap()];
    series.extend(name);
    series.extend([0x0a, 7]);
    series.extend(label);
    let mut raw = vec![0x0a, u8::try_from(series.len()).unwrap()];
    raw.extend(series);
    assert!(refusal(Version::V1, &raw).contains("a label's name is not valid UTF-8"));
}

/// A text that a later one supersedes must be UTF-8 as well: strict decoders downstream look at it.
#[test]
fn superseded_texts_must_be_utf8() {
    let label = [&[0x0a, 1, 0xff, 0x0a, 8][..], b"__name__", &[0x12, 1, b'u']].concat();
    let series = [&[0x0a, u8::try_from(label.len()).unwrap()], &label[..]].concat();
    let raw = [&[0x0a, u8::try_from(series.len()).unwrap()], &series[..]].concat();
    assert!(WriteRequest::decode(&raw[..]).is_err());
    assert_eq!(
        refusal(Version::V1, &raw),
        "series 0: a label's name is not valid UTF-8: `\u{fffd}` (byte 6)"
    );
}

#[test]
fn buckets_match_spans() {
    let histogram = HistogramV1 {
        count: Some(Count::Int(3)),
        positive_spans: vec![Span { offset: 0, length: 3 }],
        positive_deltas: vec![1, 1],
        ..HistogramV1::default()
    };
    let broken = SeriesV1 { histograms: vec![histogram], ..series(&[("__name__", "up")]) };
    let refusal = refusal(Version::V1, &v1(vec![broken]));
    assert!(
        refusal.starts_with("series 0: a histogram's positive spans cover 3 buckets, and 2 are given"),
        "{refusal}"
    );
}

/// A 2.0 request with one change to a valid one.
fn v2(change: impl FnOnce(&mut RequestV2)) -> Vec<u8> {
    let symbols = ["", "__name__", "up", "b", "a"].map(str::to_owned).to_vec();
    let sample = SampleV2 { value: 1, timestamp: 1, start_timestamp: 0 };
    let series = SeriesV2 { labels_refs: vec![1, 2], samples: vec![sample], ..SeriesV2::default() };
    let mut request = RequestV2 { symbols, timeseries: vec![series] };
    change(&mut request);
    request.encode_to_vec()
}

#[test]
fn v2_rules() {
    type Change = fn(&mut RequestV2);
    let cases: [(Change, &str); 11] = [
        (
            |r| r.timeseries[0].labels_refs.push(3),
            "series 0: 3 label references are given: they must come in pairs",
        ),
        (
            |r| r.timeseries[0].labels_refs = vec![1, 9],
            "series 0: a label's name refers to symbol 9, and the table has 5",
        ),
        (|r| r.timeseries[0].labels_refs = vec![1, 2, 3, 2, 4, 2], "series 0: label `a` comes after `b`"),
        (|r| r.timeseries[0].labels_refs = vec![1, 2, 1, 3], "series 0: label `__name__` is there twice"),
        (|r| r.timeseries[0].labels_refs = vec![3, 2], "series 0: there is no label `__name__`"),
        (|r| r.timeseries[0].labels_refs.clear(), "series 0: the series has no labels"),
        (
            |r| r.timeseries[0].samples.clear(),
            "series 0: the series has neither samples nor histograms nor exemplars",
        ),
        (
            |r| r.timeseries[0].histograms.push(Default::default()),
            "series 0: the series has both samples and histograms",
        ),
        (
            |r| r.timeseries[0].exemplars.push(ExemplarV2 { labels_refs: vec![3], ..Default::default() }),
            "series 0: 1 label references are given",
        ),
        (
            |r| r.timeseries[0].metadata = Some(MetadataV2 { help_ref: 7, ..Default::default() }),
            "series 0: a metadata text refers to symbol 7, and the table has 5",
        ),
        (
            |r| {
                r.symbols.clear();
            },
            "series 0: a label's name refers to symbol 1, and the table has 0",
        ),
    ];
    assert!(check(Version::V2, &v2(|_| ())).is_ok());
    for (change, expected) in cases {
        let refusal = refusal(Version::V2, &v2(change));
        assert!(refusal.starts_with(expected), "{refusal}\ninstead of\n{expected}");
    }
}

/// A body of one version under the name of the other would look empty; it is refused instead.
#[test]
fn a_body_of_the_other_version_is_refused() {
    assert_eq!(
        refusal(Version::V2, &v1(vec![series(&[("__name__", "up")])])),
        "this looks like prometheus.WriteRequest, but the Content-Type announces \
         io.prometheus.write.v2.Request (byte 0)"
    );
    assert!(refusal(Version::V1, &v2(|_| ())).contains("looks like io.prometheus.write.v2.Request"));
}

#[test]
fn limits_are_kept() {
    let raw = v1(vec![series(&[("__name__", "up"), ("abc", "12345")])]);
    let v2 = v2(|_| ());
    let limits = Limits::default;
    let cases = [
        (
            Version::V1,
            &raw,
            Limits { labels: 1, ..limits() },
            "the number of labels is over the limit: 2 of at most 1",
        ),
        (
            Version::V1,
            &raw,
            Limits { name_bytes: 2, ..limits() },
            "a label's name is over the limit: 8 of at most 2",
        ),
        (
            Version::V1,
            &raw,
            Limits { value_bytes: 4, ..limits() },
            "a label's value is over the limit: 5 of at most 4",
        ),
        (
            Version::V2,
            &v2,
            Limits { symbols: 4, ..limits() },
            "the number of symbols is over the limit: 5 of at most 4",
        ),
    ];
    for (version, raw, limits, expected) in cases {
        let error = ours::check(version, raw, &limits, &mut Symbols::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let nameless = v1(vec![series(&[("a", "b")])]);
    let limits = Limits { require_metric_name: false, ..limits() };
    assert!(ours::check(Version::V1, &nameless, &limits, &mut Symbols::new()).is_ok());
}

/// Quotes of a client's text are short and printable.
#[test]
fn excerpts_are_short_and_printable() {
    let long = format!("z\n{}", "y".repeat(100_000));
    let limits = Limits { name_bytes: usize::MAX, value_bytes: usize::MAX, ..Limits::default() };
    let raw = v1(vec![series(&[("__name__", "up"), (&long, ""), ("a", "")])]);
    let error = ours::check(Version::V1, &raw, &limits, &mut Symbols::new()).unwrap_err().to_string();
    assert!(error.contains("label `a` comes after `z\u{fffd}yyy"), "{error}");
    assert!(error.len() < 250, "{error}");
}

/// An error says which series and which byte also when the structure is broken.
#[test]
fn broken_structure_is_located() {
    let mut raw = v1(vec![series(&[("__name__", "up")]), series(&[("__name__", "down")])]);
    let at = raw.windows(4).position(|window| window == b"down").unwrap();
    raw[at - 1] = 0x7f;
    let error = check(Version::V1, &raw).unwrap_err();
    assert_eq!(error.series(), Some(1));
    assert_eq!(error.offset(), at - 1);
    assert_eq!(
        error.to_string(),
        format!("series 1: byte {}, field 2: a length reaches past the end of the message", at - 1)
    );
}
