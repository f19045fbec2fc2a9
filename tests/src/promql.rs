//! Raw samples by the query API of Prometheus, which its relatives serve too.

use crate::http::{self, encode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tidegate_load::SeriesModel;

/// A label set.
pub type LabelSet = BTreeMap<String, String>;

/// Samples by label set: the time in milliseconds since 1970, and the value; of a native histogram its sum.
pub type SamplesByLabels = BTreeMap<LabelSet, Vec<(i64, f64)>>;

/// The samples of all series that `selector` selects in the hour before `time_ms`, without the labels in `without`.
///
/// # Panics
/// When the query fails.
pub fn raw_samples(address: SocketAddr, selector: &str, time_ms: i64, without: &[&str]) -> SamplesByLabels {
    // The end of the range is included.
    let time = time_ms / 1000 + 1;
    let path = format!("/api/v1/query?query={}&time={time}&dedup=false", encode(&format!("{selector}[1h]")));
    let answer = http::get(address, &path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let answer = answer.json();
    let mut found = SamplesByLabels::new();
    for series in answer["data"]["result"].as_array().expect("a matrix") {
        let mut labels: LabelSet = serde_json::from_value(series["metric"].clone()).unwrap();
        labels.retain(|name, _| !without.contains(&name.as_str()));
        let floats = list(&series["values"]).map(|pair| (time_of(pair), number(&pair[1])));
        let histograms = list(&series["histograms"]).map(|pair| (time_of(pair), number(&pair[1]["sum"])));
        let samples = found.entry(labels).or_default();
        samples.extend(floats.chain(histograms));
        samples.sort_by_key(|(time, _)| *time);
        // Several may have them.
        samples.dedup();
    }
    found
}

/// The first `count` samples of each series of `model`, as [`raw_samples`] finds them.
pub fn samples_of(model: &SeriesModel, count: u64) -> SamplesByLabels {
    let each = model.series().iter().map(|series| {
        let label = |(name, value): &(&str, Box<str>)| ((*name).to_owned(), value.to_string());
        let samples = (0..count).map(|number| (model.timeline().at(number), number as f64));
        (series.labels.iter().map(label).collect(), samples.collect())
    });
    each.collect()
}

/// Differences of `found` from the expectation, in a few lines; empty when there are none.
pub fn differences(expected: &SamplesByLabels, found: &SamplesByLabels) -> Vec<String> {
    let mut lines = Vec::new();
    for (labels, samples) in expected {
        let arrived = found.get(labels).map_or(&[][..], Vec::as_slice);
        if arrived != samples {
            let missing: Vec<_> = samples.iter().filter(|sample| !arrived.contains(sample)).collect();
            let few = &missing[..missing.len().min(4)];
            let counts = (samples.len(), arrived.len(), missing.len());
            lines.push(format!("{labels:?}: (expected, arrived, missing) = {counts:?}, as {few:?}"));
        }
    }
    lines.extend(
        found
            .keys()
            .filter(|labels| !expected.contains_key(*labels))
            .map(|labels| format!("new: {labels:?}")),
    );
    let count = lines.len();
    lines.truncate(8);
    lines.extend((count > 8).then(|| format!("and {} more series", count - 8)));
    lines
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn time_of(pair: &Value) -> i64 {
    (pair[0].as_f64().expect("a time") * 1000.0).round() as i64
}

fn number(value: &Value) -> f64 {
    value.as_str().expect("a number as text").parse().unwrap()
}
