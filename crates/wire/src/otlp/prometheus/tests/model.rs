//! The translation once more, as plainly as it can be said.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogramDataPoint, HistogramDataPoint, Metric, NumberDataPoint, SummaryDataPoint,
    exemplar, number_data_point,
};
use proptest::prelude::*;
use prost::Message;

use super::found::{self, Histogram, Labels, Series, Value};
use super::translate;
use crate::otlp::prometheus::{Dropped, Naming, Settings};
use crate::otlp::tests::strategies;
use crate::remote_write::{STALE_NAN, Version};

fn text(value: &AnyValue) -> String {
    match &value.value {
        None => String::new(),
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::DoubleValue(value)) if !value.is_finite() => not_finite(*value).into(),
        Some(Any::BytesValue(bytes)) => base64(bytes),
        Some(_) => json(value),
    }
}

fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    value.to_string()
}

fn not_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

fn json(value: &AnyValue) -> String {
    match &value.value {
        None => "null".into(),
        Some(Any::StringValue(text)) => quoted(text),
        Some(Any::BoolValue(value)) => value.to_string(),
        Some(Any::IntValue(value)) => value.to_string(),
        Some(Any::DoubleValue(value)) if !value.is_finite() => format!("\"{}\"", not_finite(*value)),
        Some(Any::DoubleValue(value)) if *value != 0.0 && (value.abs() < 1e-6 || value.abs() >= 1e21) => {
            let text = format!("{value:e}");
            if text.contains("e-") { text } else { text.replace('e', "e+") }
        }
        Some(Any::DoubleValue(value)) => value.to_string(),
        Some(Any::BytesValue(bytes)) => format!("\"{}\"", base64(bytes)),
        Some(Any::ArrayValue(array)) => {
            format!("[{}]", array.values.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Some(Any::KvlistValue(map)) => {
            // Sorted, and of one key the last.
            let entries: BTreeMap<&str, &KeyValue> =
                map.values.iter().map(|entry| (&entry.key[..], entry)).collect();
            let entry = |entry: &KeyValue| {
                format!("{}:{}", quoted(&entry.key), json(&entry.value.clone().unwrap_or_default()))
            };
            format!("{{{}}}", entries.into_values().map(entry).collect::<Vec<_>>().join(","))
        }
        Some(Any::StringValueStrindex(_)) => "null".into(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if u32::from(char) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out + "\""
}

fn base64(bytes: &[u8]) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let mut out: String = (0..bits.len())
        .step_by(6)
        .map(|at| {
            let group = format!("{:0<6}", &bits[at..bits.len().min(at + 6)]);
            digits[usize::from_str_radix(&group, 2).unwrap()]
        })
        .collect();
    while !out.len().is_multiple_of(4) {
        out.push('=');
    }
    out
}

fn label_name(naming: Naming, key: &str) -> Option<String> {
    if key.is_empty() {
        return None;
    }
    if !naming.escapes() {
        return Some(key.into());
    }
    let escaped: String =
        key.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect();
    let mut name = collapsed(&escaped);
    if name.starts_with(|char: char| char.is_ascii_digit()) {
        name = format!("key_{name}");
    } else if name.starts_with('_') {
        name = format!("key{name}");
    }
    Some(name)
}

fn collapsed(name: &str) -> String {
    let mut out = name.to_owned();
    while out.contains("__") {
        out = out.replace("__", "_");
    }
    out
}

/// Attributes as labels: joined where they become one name.
fn labels(naming: Naming, attributes: &[KeyValue], dropped: &mut u64) -> Labels {
    let mut by_name: BTreeMap<String, Vec<(String, usize, String)>> = BTreeMap::new();
    for (index, attribute) in attributes.iter().enumerate() {
        let Some(name) = label_name(naming, &attribute.key) else {
            *dropped += 1;
            continue;
        };
        let value = text(&attribute.value.clone().unwrap_or_default());
        if !value.is_empty() {
            by_name.entry(name).or_default().push((attribute.key.clone(), index, value));
        }
    }
    let join = |mut values: Vec<(String, usize, String)>| {
        values.sort();
        values.into_iter().map(|(_, _, value)| value).collect::<Vec<_>>().join(";")
    };
    by_name.into_iter().map(|(name, values)| (name, join(values))).collect()
}

fn find<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a KeyValue> {
    attributes.iter().rev().find(|attribute| attribute.key == key)
}

fn identity(attributes: &[KeyValue]) -> Labels {
    let value = |key| find(attributes, key).map(|found| text(&found.value.clone().unwrap_or_default()));
    let mut own = Labels::new();
    if let Some(name) = value("service.name") {
        let namespace = value("service.namespace").unwrap_or_default();
        let job = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
        own.insert("job".into(), job);
    }
    if let Some(instance) = value("service.instance.id") {
        own.insert("instance".into(), instance);
    }
    own.retain(|_, value| !value.is_empty());
    own
}

fn scope_labels(naming: Naming, scope: &InstrumentationScope, schema_url: &str, dropped: &mut u64) -> Labels {
    let mut candidates: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for attribute in &scope.attributes {
        if ["name", "version", "schema_url"].contains(&&attribute.key[..]) {
            continue;
        }
        if attribute.key.is_empty() {
            *dropped += 1;
            continue;
        }
        let name = format!("otel_scope_{}", attribute.key);
        let name = if naming.escapes() { label_name(naming, &name).unwrap() } else { name };
        let value = text(&attribute.value.clone().unwrap_or_default());
        if !value.is_empty() {
            candidates.entry(name).or_default().push((attribute.key.clone(), value));
        }
    }
    let mut labels = Labels::new();
    for (name, mut values) in candidates {
        // By key; those of one key as they come.
        values.sort_by(|one, two| one.0.cmp(&two.0));
        labels.insert(name, values.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(";"));
    }
    for (name, value) in [
        ("otel_scope_name", &scope.name[..]),
        ("otel_scope_version", &scope.version),
        ("otel_scope_schema_url", schema_url),
    ] {
        if !value.is_empty() {
            labels.insert(name.into(), value.into());
        }
    }
    labels
}

fn unit_word(unit: &str) -> &str {
    let words = [
        ("d", "days"),
        ("h", "hours"),
        ("min", "minutes"),
        ("s", "seconds"),
        ("ms", "milliseconds"),
        ("us", "microseconds"),
        ("ns", "nanoseconds"),
        ("By", "bytes"),
        ("KiBy", "kibibytes"),
        ("MiBy", "mebibytes"),
        ("GiBy", "gibibytes"),
        ("TiBy", "tibibytes"),
        ("KBy", "kilobytes"),
        ("MBy", "megabytes"),
        ("GBy", "gigabytes"),
        ("TBy", "terabytes"),
        ("m", "meters"),
        ("V", "volts"),
        ("A", "amperes"),
        ("J", "joules"),
        ("W", "watts"),
        ("g", "grams"),
        ("Cel", "celsius"),
        ("Hz", "hertz"),
        ("1", ""),
        ("%", "percent"),
    ];
    words.iter().find(|(short, _)| *short == unit).map_or(unit, |(_, word)| word)
}

fn per_word(unit: &str) -> &str {
    let words = [
        ("s", "second"),
        ("m", "minute"),
        ("h", "hour"),
        ("d", "day"),
        ("w", "week"),
        ("mo", "month"),
        ("y", "year"),
    ];
    words.iter().find(|(short, _)| *short == unit).map_or(unit, |(_, word)| word)
}

/// A text of words that names may have.
fn clean(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || char == ':' { char } else { '_' })
        .collect();
    collapsed(&escaped).trim_matches('_').to_owned()
}

/// The unit in words, and what comes behind "per".
fn units(unit: &str) -> (String, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let remark = |unit: &str| unit.contains(['{', '}']);
    let trim = |unit: &str| unit.trim_matches(|char: char| char.is_ascii_whitespace()).to_owned();
    let (main, per) = (trim(main), trim(per));
    let main = if remark(&main) { "" } else { unit_word(&main) };
    let per = if remark(&per) { "" } else { per_word(&per) };
    (clean(main), clean(per))
}

fn unit_name(unit: &str) -> String {
    let (main, per) = units(unit);
    match (main.is_empty(), per.is_empty()) {
        (_, true) => digit_safe(main),
        (true, false) => format!("per_{per}"),
        (false, false) => digit_safe(format!("{main}_per_{per}")),
    }
}

fn digit_safe(name: String) -> String {
    if name.starts_with(|char: char| char.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Only the default naming; the others are tested by examples.
fn metric_name(metric: &Metric) -> String {
    let (main, per) = units(&metric.unit);
    let cleaned = clean(&metric.name);
    let mut words: Vec<String> =
        cleaned.split('_').filter(|word| !word.is_empty()).map(String::from).collect();
    if !main.is_empty() && !words.contains(&main) {
        words.push(main);
    }
    if !per.is_empty() {
        words.push(format!("per_{per}"));
    }
    let mut last = |word: &str| {
        words.retain(|other| other != word);
        words.push(word.into());
    };
    match &metric.data {
        Some(Data::Sum(sum)) if sum.is_monotonic => last("total"),
        Some(Data::Gauge(_)) if metric.unit == "1" => last("ratio"),
        _ => {}
    }
    digit_safe(words.join("_"))
}

fn milliseconds(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds / 1_000_000).unwrap()
}

struct Model<'s> {
    settings: &'s Settings<'s>,
    series: Vec<Series>,
    dropped: Dropped,
}

struct Point<'a> {
    attributes: &'a [KeyValue],
    start: u64,
    time: u64,
    flags: u32,
}

impl Model<'_> {
    fn request(&mut self, request: &ExportMetricsServiceRequest) {
        for group in &request.resource_metrics {
            let attributes = group.resource.clone().unwrap_or_default().attributes;
            let own = identity(&attributes);
            let before = self.series.len();
            let promoted: Vec<KeyValue> = attributes
                .iter()
                .filter(|attribute| self.settings.promote.contains(&attribute.key))
                .cloned()
                .collect();
            let mut nameless = 0;
            let base = labels(self.settings.naming, &promoted, &mut nameless);
            self.dropped.labels += nameless;
            let mut newest = None;
            for group in &group.scope_metrics {
                let scope = group.scope.clone().unwrap_or_default();
                let mut unnamed = 0;
                let scope = scope_labels(self.settings.naming, &scope, &group.schema_url, &mut unnamed);
                self.dropped.labels += unnamed;
                for metric in &group.metrics {
                    self.metric(metric, &base, &[&own, &scope], &mut newest);
                }
            }
            let Some(timestamp) = newest else {
                assert_eq!(self.series.len(), before);
                continue;
            };
            let others: Vec<KeyValue> = attributes
                .iter()
                .filter(|attribute| {
                    !["service.name", "service.namespace", "service.instance.id"]
                        .contains(&&attribute.key[..])
                })
                .cloned()
                .collect();
            let mut unnamed = 0;
            let mut info = labels(self.settings.naming, &others, &mut unnamed);
            self.dropped.labels += unnamed;
            if info.is_empty() || own.is_empty() {
                continue;
            }
            info.extend(own);
            info.insert("__name__".into(), "target_info".into());
            self.series.push(Series {
                labels: info,
                value: Value::Sample(1f64.to_bits()),
                timestamp,
                start_timestamp: 0,
                exemplars: vec![],
                family: (2, "Target metadata".into(), String::new()),
            });
        }
    }

    fn metric(&mut self, metric: &Metric, base: &Labels, own: &[&Labels], newest: &mut Option<i64>) {
        let points = match &metric.data {
            None => return,
            Some(Data::Gauge(data)) => data.data_points.len(),
            Some(Data::Sum(data)) => data.data_points.len(),
            Some(Data::Histogram(data)) => data.data_points.len(),
            Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
            Some(Data::Summary(data)) => data.data_points.len(),
        } as u64;
        let temporality = match &metric.data {
            Some(Data::Sum(data)) => data.aggregation_temporality,
            Some(Data::Histogram(data)) => data.aggregation_temporality,
            Some(Data::ExponentialHistogram(data)) => data.aggregation_temporality,
            _ => 2,
        };
        if temporality != 2 {
            self.dropped.delta += points;
            return;
        }
        let name = metric_name(metric);
        if name.is_empty() {
            self.dropped.invalid += points;
            return;
        }
        let kind = match &metric.data {
            Some(Data::Gauge(_)) => 2,
            Some(Data::Sum(data)) => {
                if data.is_monotonic {
                    1
                } else {
                    2
                }
            }
            Some(Data::Summary(_)) => 5,
            _ => 3,
        };
        let family = (kind, metric.description.clone(), unit_name(&metric.unit));
        let to = To { name, family, base, own };
        match metric.data.as_ref().unwrap() {
            Data::Gauge(data) => data.data_points.iter().for_each(|point| self.number(&to, point, newest)),
            Data::Sum(data) => data.data_points.iter().for_each(|point| self.number(&to, point, newest)),
            Data::Histogram(data) => {
                data.data_points.iter().for_each(|point| self.histogram(&to, point, newest));
            }
            Data::ExponentialHistogram(data) => {
                data.data_points.iter().for_each(|point| self.exponential(&to, point, newest));
            }
            Data::Summary(data) => data.data_points.iter().for_each(|point| self.summary(&to, point, newest)),
        }
    }

    fn put(
        &mut self,
        to: &To<'_>,
        point: &Point<'_>,
        suffix: &str,
        more: Option<(&str, f64)>,
        value: Value,
        exemplars: Vec<(Labels, u64, i64)>,
    ) {
        let mut labels = to.base.clone();
        labels.extend(self::labels(self.settings.naming, point.attributes, &mut 0));
        for own in to.own.iter().rev() {
            labels.extend((*own).clone());
        }
        if let Some((name, value)) = more {
            labels.insert(name.into(), float(value));
        }
        labels.insert("__name__".into(), format!("{}{suffix}", to.name));
        let value = match value {
            Value::Sample(_) if point.flags & 1 != 0 => Value::Sample(STALE_NAN),
            value => value,
        };
        self.series.push(Series {
            labels,
            value,
            timestamp: milliseconds(point.time),
            start_timestamp: milliseconds(point.start),
            exemplars,
            family: to.family.clone(),
        });
    }

    fn seen(&mut self, point: &Point<'_>, newest: &mut Option<i64>) {
        *newest = (*newest).max(Some(milliseconds(point.time)));
        self.dropped.start_timestamps += u64::from(milliseconds(point.start) != 0);
        labels(self.settings.naming, point.attributes, &mut self.dropped.labels);
    }

    fn exemplars(&mut self, exemplars: &[Exemplar]) -> Vec<(Labels, u64, i64)> {
        let mut found = Vec::new();
        for exemplar in exemplars {
            let value = match exemplar.value {
                Some(exemplar::Value::AsInt(value)) => value as f64,
                Some(exemplar::Value::AsDouble(value)) => value,
                None => f64::NAN,
            };
            if value.is_nan() {
                self.dropped.exemplars += 1;
                continue;
            }
            let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let mut ids = Labels::from([
                ("trace_id".into(), hex(&exemplar.trace_id)),
                ("span_id".into(), hex(&exemplar.span_id)),
            ]);
            ids.retain(|_, id| !id.is_empty());
            let mut all = labels(self.settings.naming, &exemplar.filtered_attributes, &mut 0);
            all.extend(ids.clone());
            let characters: usize =
                all.iter().map(|(name, value)| name.chars().count() + value.chars().count()).sum();
            let labels = if characters > 128 { ids } else { all };
            found.push((labels, value.to_bits(), milliseconds(exemplar.time_unix_nano)));
        }
        found
    }

    fn number(&mut self, to: &To<'_>, point: &NumberDataPoint, newest: &mut Option<i64>) {
        use number_data_point::Value as Of;
        let at = Point {
            attributes: &point.attributes,
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            flags: point.flags,
        };
        let value = match point.value {
            Some(Of::AsInt(value)) => (value as f64).to_bits(),
            Some(Of::AsDouble(value)) => value.to_bits(),
            None if point.flags & 1 != 0 => STALE_NAN,
            None => {
                self.dropped.invalid += 1;
                return;
            }
        };
        self.seen(&at, newest);
        let exemplars = if to.family.0 == 1 {
            self.exemplars(&point.exemplars)
        } else {
            self.dropped.exemplars += point.exemplars.len() as u64;
            vec![]
        };
        self.put(to, &at, "", None, Value::Sample(value), exemplars);
    }

    fn histogram(&mut self, to: &To<'_>, point: &HistogramDataPoint, newest: &mut Option<i64>) {
        let bounds = &point.explicit_bounds;
        let sorted =
            bounds.windows(2).all(|pair| pair[0] < pair[1]) && !bounds.iter().any(|bound| bound.is_nan());
        let counts = point.bucket_counts.len();
        if !sorted || !(counts == bounds.len() + 1 || counts == 0 && bounds.is_empty()) {
            self.dropped.invalid += 1;
            return;
        }
        let at = Point {
            attributes: &point.attributes,
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            flags: point.flags,
        };
        self.seen(&at, newest);
        let exemplars = self.exemplars(&point.exemplars);
        let count = Value::Sample((point.count as f64).to_bits());
        if let Some(sum) = point.sum {
            self.put(to, &at, "_sum", None, Value::Sample(sum.to_bits()), vec![]);
        }
        self.put(to, &at, "_count", None, count.clone(), vec![]);
        let mut sum = 0;
        let finite: Vec<f64> = bounds.iter().copied().filter(|bound| *bound != f64::INFINITY).collect();
        for (index, bound) in finite.iter().enumerate() {
            sum += point.bucket_counts[index];
            let of = |exemplar: &&(Labels, u64, i64)| {
                let value = f64::from_bits(exemplar.1);
                finite.iter().position(|bound| value <= *bound) == Some(index)
            };
            let value = Value::Sample((sum as f64).to_bits());
            let exemplars = exemplars.iter().filter(of).cloned().collect();
            self.put(to, &at, "_bucket", Some(("le", *bound)), value, exemplars);
        }
        let beyond =
            |exemplar: &&(Labels, u64, i64)| !finite.iter().any(|bound| f64::from_bits(exemplar.1) <= *bound);
        let rest = exemplars.iter().filter(beyond).cloned().collect();
        self.put(to, &at, "_bucket", Some(("le", f64::INFINITY)), count, rest);
    }

    fn exponential(&mut self, to: &To<'_>, point: &ExponentialHistogramDataPoint, newest: &mut Option<i64>) {
        let schema = point.scale.min(8);
        let side = |side: &Option<
            opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets,
        >| {
            let mut buckets: BTreeMap<i64, u64> = BTreeMap::new();
            for (index, count) in side.iter().flat_map(|side| side.bucket_counts.iter().enumerate()) {
                let index = i64::from(side.as_ref().unwrap().offset) + index as i64;
                // The base is squared for each step down, so two neighbours become one.
                let mut merged = i128::from(index);
                for _ in 0..(i64::from(point.scale) - i64::from(schema)).min(64) {
                    merged = merged.div_euclid(2);
                }
                if *count > 0 {
                    *buckets.entry(i64::try_from(merged).unwrap() + 1).or_default() += count;
                }
            }
            buckets
        };
        let (positive, negative) = (side(&point.positive), side(&point.negative));
        let fits = |index: &i64| (i64::from(i32::MIN)..i64::from(i32::MAX)).contains(index);
        if schema < -4 || !positive.keys().chain(negative.keys()).all(fits) {
            self.dropped.scale += 1;
            return;
        }
        let at = Point {
            attributes: &point.attributes,
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            flags: point.flags,
        };
        self.seen(&at, newest);
        let exemplars = self.exemplars(&point.exemplars);
        let threshold = point.zero_threshold.to_bits();
        let histogram = Histogram {
            count: point.count,
            sum: point.sum.map_or(0x7ff8_0000_0000_0001, f64::to_bits),
            schema,
            zero_threshold: if threshold == 0 { 1e-128f64.to_bits() } else { threshold },
            zero_count: point.zero_count,
            positive,
            negative,
        };
        let stale = Histogram { sum: STALE_NAN, schema, ..Histogram::default() };
        let value = if point.flags & 1 != 0 { stale } else { histogram };
        self.put(to, &at, "", None, Value::Histogram(value), exemplars);
        if point.flags & 1 != 0 {
            self.series.last_mut().unwrap().start_timestamp = 0;
        }
    }

    fn summary(&mut self, to: &To<'_>, point: &SummaryDataPoint, newest: &mut Option<i64>) {
        let at = Point {
            attributes: &point.attributes,
            start: point.start_time_unix_nano,
            time: point.time_unix_nano,
            flags: point.flags,
        };
        self.seen(&at, newest);
        self.put(to, &at, "_sum", None, Value::Sample(point.sum.to_bits()), vec![]);
        self.put(to, &at, "_count", None, Value::Sample((point.count as f64).to_bits()), vec![]);
        for quantile in &point.quantile_values {
            let more = Some(("quantile", quantile.quantile));
            self.put(to, &at, "", more, Value::Sample(quantile.value.to_bits()), vec![]);
        }
    }
}

struct To<'a> {
    name: String,
    family: (u32, String, String),
    base: &'a Labels,
    own: &'a [&'a Labels],
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Both versions say what the model says, and count what it leaves out.
    #[test]
    fn translations_equal_the_model(
        request in strategies::metrics(),
        promote in proptest::sample::subsequence(vec!["a".to_owned(), "b".into(), "service.version".into()], 0..3),
    ) {
        // Keys that come twice are promoted in an order that nobody should rely on.
        for group in &request.resource_metrics {
            let keys: Vec<_> = group.resource.iter().flat_map(|resource| &resource.attributes).map(|attribute| &attribute.key).collect();
            prop_assume!(keys.iter().collect::<BTreeSet<_>>().len() == keys.len());
        }
        // As decoded: prost does not write the sign of a zero.
        let raw = request.encode_to_vec();
        let request = ExportMetricsServiceRequest::decode(&raw[..]).unwrap();
        let settings = Settings { promote: &promote, ..Settings::default() };
        let mut model = Model { settings: &settings, series: vec![], dropped: Dropped::default() };
        model.request(&request);
        for (version, body, translated) in translate(&raw, &settings) {
            let found = found::series(version, &body);
            let expected: Vec<Series> = model.series.iter().cloned().map(|mut series| {
                if version == Version::V1 {
                    series.start_timestamp = 0;
                    series.family = Default::default();
                }
                series
            }).collect();
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert_eq!(found, expected);
            }
            let start_timestamps = if version == Version::V1 { model.dropped.start_timestamps } else { 0 };
            prop_assert_eq!(translated.dropped, Dropped { start_timestamps, ..model.dropped });
        }
    }
}
