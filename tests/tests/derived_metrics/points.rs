//! Points that a Collector wrote down, summed up by series: what counts is the same however they are cut into flushes.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The series that were seen, each with all of its points.
#[derive(Debug, Default)]
pub(crate) struct Points(BTreeMap<String, Point>);

/// The sum of the points of a series; of cumulative ones the last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) value: f64,
    pub(crate) count: u64,
    /// By the upper bound, or by the number of an exponential bucket; `zero` is that of zeros.
    buckets: BTreeMap<i64, u64>,
    scale: Option<i32>,
    zero: u64,
    min: Option<f64>,
    max: Option<f64>,
    time: u64,
}

impl Points {
    /// Those of items as [`Collector::items`](tidegate_tests::Collector::items) has them.
    pub(crate) fn of(items: &[String]) -> Points {
        let mut points = Points::default();
        for item in items {
            let item: Value = serde_json::from_str(item).unwrap();
            let (around, item) = (&item[0], &item[1]);
            let (Some(about), Some(kind)) = (item[0].as_array(), item[1].as_str()) else { continue };
            let is_delta = about[1]["aggregationTemporality"] == 1;
            let about = [&about[0], &about[1]].map(Value::to_string).join(" ");
            let point = &item[2];
            let resource = attributes(&around[0]["resource"]["attributes"]);
            let key = format!("{about} {kind} {resource:?} {:?}", attributes(&point["attributes"]));
            let seen = points.0.entry(key).or_default();
            seen.add(&Point::of(point), is_delta);
        }
        points
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The names of the metrics.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let name = |key: &String| {
            let about: Value = serde_json::Deserializer::from_str(key).into_iter().next().unwrap().unwrap();
            about["name"].as_str().unwrap().to_owned()
        };
        self.0.keys().map(name).collect()
    }

    /// Series that are not the same in `other`, with both of their points.
    pub(crate) fn difference<'a>(
        &'a self,
        other: &'a Points,
    ) -> Vec<(&'a String, Option<&'a Point>, Option<&'a Point>)> {
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let both = keys.into_iter().map(|key| (key, self.0.get(key), other.0.get(key)));
        both.filter(|(_, one, other)| match (one, other) {
            (Some(one), Some(other)) => !one.is_like(other),
            _ => true,
        })
        .collect()
    }
}

impl Point {
    fn of(point: &Value) -> Point {
        let whole = |value: &Value| -> u64 {
            value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap_or(0)
        };
        let real = |value: &Value| value.as_f64();
        let mut found = Point {
            value: match (&point["asInt"], real(&point["asDouble"])) {
                (_, Some(value)) => value,
                (Value::String(text), _) => text.parse::<i64>().unwrap() as f64,
                _ => real(&point["sum"]).unwrap_or(0.0),
            },
            count: whole(&point["count"]),
            zero: whole(&point["zeroCount"]),
            min: real(&point["min"]),
            max: real(&point["max"]),
            time: whole(&point["timeUnixNano"]),
            ..Point::default()
        };
        for (at, count) in point["bucketCounts"].as_array().into_iter().flatten().enumerate() {
            let bound = point["explicitBounds"][at].as_f64().unwrap_or(f64::INFINITY);
            found.put(bound.to_bits().cast_signed(), whole(count));
        }
        if point.get("positive").is_some() {
            found.scale = Some(point["scale"].as_i64().unwrap_or(0).try_into().unwrap());
            let offset = point["positive"]["offset"].as_i64().unwrap_or(0);
            let counts = point["positive"]["bucketCounts"].as_array();
            for (at, count) in counts.into_iter().flatten().enumerate() {
                found.put(offset + at as i64, whole(count));
            }
        }
        found
    }

    fn put(&mut self, bucket: i64, count: u64) {
        if count > 0 {
            *self.buckets.entry(bucket).or_default() += count;
        }
    }

    /// The same with buckets of this scale, which is not larger.
    fn at(&self, scale: i32) -> Point {
        let mut scaled = Point { buckets: BTreeMap::new(), ..self.clone() };
        let coarser = self.scale.map_or(0, |own| own - scale);
        self.buckets.iter().for_each(|(bucket, count)| scaled.put(bucket >> coarser, *count));
        scaled.scale = self.scale.map(|_| scale);
        scaled
    }

    fn add(&mut self, point: &Point, is_delta: bool) {
        if !is_delta {
            if point.time >= self.time {
                *self = point.clone();
            }
            return;
        }
        if let (Some(own), Some(other)) = (self.scale, point.scale) {
            let scale = own.min(other);
            let other = point.at(scale);
            *self = self.at(scale);
            other.buckets.iter().for_each(|(bucket, count)| self.put(*bucket, *count));
        } else {
            self.scale = point.scale;
            point.buckets.iter().for_each(|(bucket, count)| self.put(*bucket, *count));
        }
        let both = |one: Option<f64>, other: Option<f64>, choose: fn(f64, f64) -> f64| match (one, other) {
            (Some(one), Some(other)) => Some(choose(one, other)),
            (one, other) => one.or(other),
        };
        self.value += point.value;
        self.count += point.count;
        self.zero += point.zero;
        self.min = both(self.min, point.min, f64::min);
        self.max = both(self.max, point.max, f64::max);
    }

    fn is_like(&self, other: &Point) -> bool {
        let scale = self.scale.min(other.scale).unwrap_or(0);
        let (one, two) = (self.at(scale), other.at(scale));
        let is_near = (one.value - two.value).abs() <= 1e-9 * one.value.abs().max(1.0);
        let of = |point: &Point| (point.count, point.zero, point.buckets.clone(), point.min, point.max);
        is_near && of(&one) == of(&two)
    }
}

/// Attributes by their keys.
fn attributes(list: &Value) -> BTreeMap<String, String> {
    let pair = |pair: &Value| (pair["key"].as_str().unwrap().to_owned(), pair["value"].to_string());
    list.as_array().into_iter().flatten().map(pair).collect()
}
