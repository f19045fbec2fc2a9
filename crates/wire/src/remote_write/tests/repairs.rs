//! Invalid parts cost nothing but themselves: the rest is accepted, counted exactly, and written so that strict
//! receivers accept it.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::model::Model;
use super::oracle::{Label, RequestV2, SampleV1, SampleV2, SeriesV1, SeriesV2, WriteRequest};
use super::{check, strategies};
use crate::damage::{apply, damage};
use crate::output::SliceOutput;
use crate::remote_write::{InspectionReport, Limits, Symbols, Version, inspect, repair, view};

fn inspected(version: Version, raw: &[u8]) -> InspectionReport {
    inspect(version, raw, &Limits::default(), &mut Symbols::new()).unwrap()
}

/// The repaired body, which is no longer than it was.
fn repaired(version: Version, raw: &[u8]) -> Vec<u8> {
    let mut space = vec![0; raw.len()];
    let mut out = SliceOutput::new(&mut space);
    repair(version, raw, &Limits::default(), &mut Symbols::new(), &mut out).unwrap();
    let len = out.len();
    space.truncate(len);
    space
}

fn series(labels: &[(&str, &str)]) -> SeriesV1 {
    let label = |&(name, value): &(&str, &str)| Label { name: name.to_owned(), value: value.to_owned() };
    let samples = vec![SampleV1 { value: 1, timestamp: 1 }];
    SeriesV1 { labels: labels.iter().map(label).collect(), samples, ..SeriesV1::default() }
}

/// Fields of the other version are left out: a receiver would take what is left for a body of that version.
#[test]
fn fields_of_the_other_version_are_left_out() {
    for (version, own, other) in [(Version::V1, 1, 5), (Version::V2, 5, 1)] {
        let mut raw = Vec::new();
        for field in [own, other] {
            prost::encoding::bytes::encode(field, &Vec::new(), &mut raw);
        }
        let found = inspected(version, &raw);
        assert_eq!((found.counts.items(), found.rejected.is_empty()), (0, false), "{found:?}");
        assert!(repaired(version, &raw).is_empty());
    }
}

/// Labels behind the samples are put before them, in both versions: who looks for labels must not walk over samples.
#[test]
fn labels_come_before_samples() {
    let message = series(&[("__name__", "up"), ("job", "node")]);
    let [labels, samples] = [
        SeriesV1 { samples: vec![], ..message.clone() }.encode_to_vec(),
        SeriesV1 { labels: vec![], ..message.clone() }.encode_to_vec(),
    ];
    let request = |series: &[u8]| {
        let mut raw = Vec::new();
        prost::encoding::bytes::encode(1, &series.to_vec(), &mut raw);
        raw
    };
    let raw = request(&[samples, labels].concat());
    let found = inspected(Version::V1, &raw);
    assert!(found.needs_repair() && found.rejected.is_empty(), "{found:?}");
    let expected = WriteRequest { timeseries: vec![message], ..WriteRequest::default() };
    assert_eq!(repaired(Version::V1, &raw), expected.encode_to_vec());

    let message =
        SeriesV2 { labels_refs: vec![1, 2, 3, 4], samples: vec![SampleV2::default()], ..SeriesV2::default() };
    let symbols = ["", "__name__", "up", "job", "node"].map(str::to_owned).to_vec();
    let [labels, samples] = [
        SeriesV2 { samples: vec![], ..message.clone() }.encode_to_vec(),
        SeriesV2 { labels_refs: vec![], ..message.clone() }.encode_to_vec(),
    ];
    let mut raw = RequestV2 { symbols: symbols.clone(), ..RequestV2::default() }.encode_to_vec();
    prost::encoding::bytes::encode(5, &[samples, labels].concat(), &mut raw);
    let found = inspected(Version::V2, &raw);
    assert!(found.needs_repair() && found.rejected.is_empty(), "{found:?}");
    let expected = RequestV2 { symbols, timeseries: vec![message] };
    assert_eq!(RequestV2::decode(&repaired(Version::V2, &raw)[..]).unwrap(), expected);
}

proptest! {
    /// Labels in any order are accepted, and sorted.
    #[test]
    fn v1_labels_are_sorted(request in strategies::v1(), seed in any::<u64>()) {
        let mut mixed = request.clone();
        for (number, series) in mixed.timeseries.iter_mut().enumerate() {
            rotate(&mut series.labels, seed, number);
        }
        let raw = mixed.encode_to_vec();
        let found = inspected(Version::V1, &raw);
        prop_assert!(found.rejected.is_empty());
        let repaired = repaired(Version::V1, &raw);
        prop_assert_eq!(check(Version::V1, &repaired).unwrap(), found.counts);
        let decoded = WriteRequest::decode(&repaired[..]).unwrap();
        prop_assert_eq!(decoded, request);
    }

    /// The same of 2.0.
    #[test]
    fn v2_labels_are_sorted(request in strategies::v2(), seed in any::<u64>()) {
        let mut mixed = request.clone();
        for (number, series) in mixed.timeseries.iter_mut().enumerate() {
            let mut pairs: Vec<[u32; 2]> =
                series.labels_refs.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
            rotate(&mut pairs, seed, number);
            series.labels_refs = pairs.concat();
        }
        let raw = mixed.encode_to_vec();
        let found = inspected(Version::V2, &raw);
        prop_assert!(found.rejected.is_empty());
        let repaired = repaired(Version::V2, &raw);
        prop_assert_eq!(check(Version::V2, &repaired).unwrap(), found.counts);
        prop_assert_eq!(RequestV2::decode(&repaired[..]).unwrap(), request);
    }

    /// Whatever is accepted of a damaged body is, once it is repaired, what the strictest receiver accepts, item for item;
    /// and what is accepted and what is refused is all that there was.
    #[test]
    fn a_repaired_body_passes_the_strict_check(
        (version, raw) in strategies::encoded(),
        damages in vec(damage(), 1..4),
    ) {
        let mut raw = raw;
        apply(&mut raw, &damages);
        let Ok(found) = inspect(version, &raw, &Limits::default(), &mut Symbols::new()) else { return Ok(()) };
        let repaired = repaired(version, &raw);
        let counts = check(version, &repaired);
        prop_assert_eq!(counts.as_ref().map(|counts| counts.items()), Ok(found.counts.items()));
        prop_assert_eq!(counts.map(|counts| counts.series), Ok(found.counts.series));
        if !found.needs_repair() {
            // It is given to others as it is.
            prop_assert_eq!(check(version, &raw).map(|counts| counts.items()), Ok(found.counts.items()));
        }
    }

    /// The largest item is no less than what any series takes in a 1.0 body.
    #[test]
    fn the_largest_item_is_an_upper_bound((version, raw) in strategies::encoded()) {
        let largest = inspected(version, &raw).largest_item;
        let mut symbols = Symbols::new();
        let model = Model::from(view(version, &raw, &mut symbols).unwrap());
        for series in &model.series {
            let text: usize = series.labels.iter().map(|label| label.name.len() + label.value.len() + 4).sum();
            prop_assert!(largest >= text, "{largest} of {text}");
        }
    }
}

/// Turns a list, and swaps some of it: every order of few.
fn rotate<T>(list: &mut [T], seed: u64, number: usize) {
    let len = list.len().max(1);
    let turn = usize::try_from(seed % 97).unwrap() + number;
    list.rotate_left(turn % len);
    if list.len() > 2 && seed.is_multiple_of(2) {
        list.swap(0, turn % len);
    }
}

/// Each rule costs the series that breaks it, and only that.
#[test]
fn good_neighbours_are_kept() {
    let name = ("__name__", "up");
    let long = "x".repeat(70 << 10);
    let bad: [(&[(&str, &str)], &str); 6] = [
        (&[name, ("a", "1"), ("a", "2")], "label `a` is there twice"),
        (&[("b", "1"), name, ("a", "1"), ("b", "2")], "label `b` is there twice"),
        (&[name, ("", "x")], "a label has an empty name"),
        (&[("a", "b")], "there is no label `__name__`"),
        (&[], "the series has no labels"),
        (&[name, ("a", &long)], "a label's value is over the limit"),
    ];
    for (labels, expected) in bad {
        let good = [series(&[name, ("n", "1")]), series(&[name, ("n", "2")])];
        let [first, second] = good.clone();
        let raw = WriteRequest { timeseries: vec![first, series(labels), second], metadata: vec![] };
        let raw = raw.encode_to_vec();
        let found = inspected(Version::V1, &raw);
        assert_eq!((found.counts.series, found.counts.samples), (2, 2), "{expected}");
        let refused = &found.rejected;
        assert_eq!(
            (refused.counts.series, refused.counts.samples, refused.error_count),
            (1, 1, 1),
            "{expected}"
        );
        let reason = refused.errors[0].to_string();
        assert!(reason.starts_with("series 1: ") && reason.contains(expected), "{reason}");
        let decoded = WriteRequest::decode(&repaired(Version::V1, &raw)[..]).unwrap();
        assert_eq!(decoded.timeseries, good, "{expected}");
    }
}

/// However much is refused, few reasons are kept, and all of it is counted.
#[test]
fn few_reasons_are_kept() {
    let bad = series(&[("__name__", "up"), ("a", "1"), ("a", "2")]);
    let raw = WriteRequest { timeseries: vec![bad; 1000], metadata: vec![] }.encode_to_vec();
    let found = inspected(Version::V1, &raw);
    assert_eq!(
        (found.counts.series, found.rejected.counts.samples, found.rejected.error_count),
        (0, 1000, 1000)
    );
    let text = found.rejected.to_string();
    assert_eq!(text.lines().count(), 9, "{text}");
    assert!(text.ends_with("and 992 more\n") && text.len() < 2000, "{text}");
    assert!(repaired(Version::V1, &raw).is_empty());
}

/// A symbol that is not UTF-8 costs the series that refer to it; the others' references stay right.
#[test]
fn a_broken_symbol_costs_those_that_use_it() {
    let series = |value: u32| super::oracle::SeriesV2 {
        labels_refs: vec![1, 2, 3, value],
        samples: vec![Default::default()],
        ..Default::default()
    };
    let symbols = ["", "__name__", "up", "a", "QQ", "good"].map(str::to_owned).to_vec();
    let request = RequestV2 { symbols, timeseries: vec![series(4), series(5)] };
    let mut raw = request.encode_to_vec();
    let at = raw.windows(2).position(|window| window == b"QQ").unwrap();
    raw[at] = 0xff;
    let found = inspected(Version::V2, &raw);
    assert_eq!((found.counts.samples, found.rejected.counts.samples), (1, 1));
    assert!(
        found.rejected.errors[0].to_string().contains("a label's value is not valid UTF-8")
            || found.rejected.errors[0].to_string().contains("a label's name is not valid UTF-8")
    );
    let decoded = RequestV2::decode(&repaired(Version::V2, &raw)[..]).unwrap();
    assert_eq!(decoded.timeseries, [series(5)]);
    assert_eq!((decoded.symbols[4].as_str(), decoded.symbols[5].as_str()), ("", "good"));
}

/// As lenient as Prometheus: the first symbol is a text like any other.
#[test]
fn the_first_symbol_may_be_any_text() {
    let symbols = ["__name__", "up"].map(str::to_owned).to_vec();
    let series = super::oracle::SeriesV2 {
        labels_refs: vec![0, 1],
        samples: vec![Default::default()],
        ..Default::default()
    };
    let raw = RequestV2 { symbols, timeseries: vec![series] }.encode_to_vec();
    assert!(!inspected(Version::V2, &raw).needs_repair());
    let mut symbols = Symbols::new();
    let model = Model::from(view(Version::V2, &raw, &mut symbols).unwrap());
    assert_eq!(model.series[0].labels[0].name, "__name__");
}

/// Exemplars as series of their own are accepted, as Prometheus sends them.
#[test]
fn exemplars_may_come_alone() {
    let series = super::oracle::SeriesV2 {
        labels_refs: vec![1, 2],
        exemplars: vec![Default::default()],
        ..Default::default()
    };
    let symbols = ["", "__name__", "up"].map(str::to_owned).to_vec();
    let raw = RequestV2 { symbols, timeseries: vec![series] }.encode_to_vec();
    let counts = check(Version::V2, &raw).unwrap();
    assert_eq!((counts.series, counts.samples, counts.exemplars), (1, 0, 1));
}
