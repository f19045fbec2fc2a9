//! Promise: a flush has what a map of all observations has, whatever their order, and whenever the process was restarted.

use super::*;
use crate::exponential::tests::naive;
use opentelemetry_proto::tonic::metrics::v1::{self as otlp, exponential_histogram_data_point::Buckets};
use proptest::prelude::*;

const MAX_SERIES: usize = 7;
const EXPIRE_MS: u64 = 4_000;
const TENANTS: [&str; 3] = ["", "b", "a"];
const TEXTS: [&str; 3] = ["x", "yy", ""];

#[derive(Debug, Clone)]
enum Step {
    /// A tenant, and the milliseconds since the record before.
    Begin(usize, u64),
    /// A measure, and attributes.
    Resource(usize, usize),
    Observe {
        measure: usize,
        attributes: [usize; 2],
        value: Number,
        count: u64,
        span: u8,
    },
    /// An observation with too many attributes.
    Cut(usize),
    /// The most bytes of a piece, the time since the flush before, and whether the process is restarted after each piece.
    Flush(usize, u64, bool),
    Restart,
}

/// Tenant, resource, whether it is an overflow series, measure, and attributes.
type ModelKey = (&'static str, usize, bool, usize, [usize; 2]);

#[derive(Debug, Clone)]
struct ModelSeries {
    start_ms: u64,
    seen_ms: u64,
    /// Value, count, and the time and id of the span.
    all: Vec<(Number, u64)>,
    exemplar: Option<(u8, Number, u64)>,
}

struct Model {
    temporality: Temporality,
    series: BTreeMap<ModelKey, ModelSeries>,
    tenant: &'static str,
    now_ms: u64,
    resources: [usize; 2],
    flushed_ms: Option<u64>,
    expired: u64,
}

impl Model {
    fn begin(&mut self, tenant: usize, step_ms: u64) {
        (self.tenant, self.resources) = (TENANTS[tenant], [0, 0]);
        self.now_ms += step_ms;
    }

    fn observe(&mut self, key: Option<ModelKey>, measure: usize, value: Number, count: u64, span: u8) {
        let overflow = (self.tenant, 0, true, measure, [0, 0]);
        let is_full = self.series.keys().filter(|(_, _, is_overflow, ..)| !is_overflow).count() == MAX_SERIES;
        let key = key.filter(|key| !is_full || self.series.contains_key(key)).unwrap_or(overflow);
        let start_ms = match (self.temporality, self.flushed_ms) {
            (Temporality::Delta, Some(flushed_ms)) => flushed_ms,
            _ => self.now_ms,
        };
        let new = ModelSeries { start_ms, seen_ms: 0, all: vec![], exemplar: None };
        let series = self.series.entry(key).or_insert(new);
        let value = if measure == 0 { Number::Double(value.as_f64() / 4.0) } else { value };
        series.seen_ms = self.now_ms;
        series.all.push((value, count));
        if span > 0 {
            series.exemplar = Some((span, value, self.now_ms));
        }
    }

    fn points(&mut self, at_ms: u64) -> Points {
        let mut points = Points::new();
        for ((tenant, resource, is_overflow, measure, attributes), series) in &mut self.series {
            series.start_ms = series.start_ms.min(at_ms);
            let resource = if *is_overflow { vec![] } else { resource_attributes(*resource) };
            let resource: Vec<_> = resource.iter().map(|(key, value)| attribute(key, value)).collect();
            let attributes = match is_overflow {
                true => vec![KeyValue {
                    key: "otel.metric.overflow".into(),
                    value: Some(AnyValue { value: Some(any_value::Value::BoolValue(true)) }),
                    ..KeyValue::default()
                }],
                false => pairs(*attributes).iter().map(|(key, value)| attribute(key, value)).collect(),
            };
            for (metric, data) in series.metrics(*measure, self.temporality, at_ms, &attributes) {
                points.insert(key(tenant, &names(&resource), metric, &names(&attributes)), data);
            }
        }
        points
    }

    fn end_flush(&mut self, at_ms: u64) {
        self.flushed_ms = Some(at_ms);
        if self.temporality == Temporality::Delta {
            self.series.clear();
        }
        let (now_ms, before) = (self.now_ms, self.series.len());
        // As the table has it: by whole seconds, and not early.
        self.series.retain(|_, series| now_ms < (series.seen_ms / 1000 + 1) * 1000 + EXPIRE_MS);
        self.series.values_mut().for_each(|series| series.exemplar = None);
        self.expired += (before - self.series.len()) as u64;
    }
}

impl ModelSeries {
    fn metrics(
        &self,
        measure: usize,
        temporality: Temporality,
        at_ms: u64,
        attributes: &[KeyValue],
    ) -> Vec<(&'static str, Data)> {
        let temporality = if temporality == Temporality::Delta { 1 } else { 2 };
        let (start, time) = (self.start_ms * 1_000_000, at_ms * 1_000_000);
        let exemplar = self.exemplar.map(|(span, value, at_ms)| otlp::Exemplar {
            time_unix_nano: at_ms * 1_000_000,
            trace_id: vec![span; 16],
            span_id: vec![span; 8],
            value: Some(match value {
                Number::Int(value) => otlp::exemplar::Value::AsInt(value),
                Number::Double(value) => otlp::exemplar::Value::AsDouble(value),
            }),
            ..otlp::Exemplar::default()
        });
        let exemplars: Vec<_> = exemplar.into_iter().collect();
        let number = |value: Number| otlp::NumberDataPoint {
            attributes: attributes.to_vec(),
            start_time_unix_nano: start,
            time_unix_nano: time,
            exemplars: exemplars.clone(),
            value: Some(match value {
                Number::Int(value) => otlp::number_data_point::Value::AsInt(value),
                Number::Double(value) => otlp::number_data_point::Value::AsDouble(value),
            }),
            ..otlp::NumberDataPoint::default()
        };
        let sum = |value: Number| {
            Data::Sum(otlp::Sum {
                data_points: vec![number(value)],
                aggregation_temporality: temporality,
                is_monotonic: true,
            })
        };
        let count: u64 = self.all.iter().map(|(_, count)| count).sum();
        // In delta a point says what came, and nothing did.
        let has_nothing = count == 0 && temporality == 1;
        let double_sum: f64 =
            self.all.iter().fold(0.0, |sum, (value, count)| sum + value.as_f64() * *count as f64);
        if measure == 0 {
            let bounds = [1.0, 2.5, 10.0];
            let mut bucket_counts = vec![0; 4];
            for (value, count) in &self.all {
                let bucket = bounds.iter().position(|bound| value.as_f64() <= *bound).unwrap_or(3);
                bucket_counts[bucket] += count;
            }
            let point = otlp::HistogramDataPoint {
                attributes: attributes.to_vec(),
                start_time_unix_nano: start,
                time_unix_nano: time,
                count,
                sum: Some(double_sum),
                bucket_counts,
                explicit_bounds: bounds.to_vec(),
                exemplars: exemplars.clone(),
                ..otlp::HistogramDataPoint::default()
            };
            let histogram =
                otlp::Histogram { data_points: vec![point], aggregation_temporality: temporality };
            let points =
                vec![("calls", sum(Number::Int(count as i64))), ("duration", Data::Histogram(histogram))];
            return if has_nothing { Vec::new() } else { points };
        }
        let total = self.all.iter().fold(Number::Int(0), |sum, (value, count)| match (sum, *value) {
            (Number::Int(sum), Number::Int(value)) => Number::Int(sum + value * *count as i64),
            (sum, value) => Number::Double(sum.as_f64() + value.as_f64() * *count as f64),
        });
        let values: Vec<_> = self.all.iter().map(|(value, count)| (value.as_f64(), *count)).collect();
        let counted = || values.iter().filter(|(_, count)| *count > 0).map(|(value, _)| *value);
        let (scale, [positive, negative]) = naive(&values, 6);
        let buckets = |(offset, bucket_counts): (i32, Vec<u64>)| Some(Buckets { offset, bucket_counts });
        let point = otlp::ExponentialHistogramDataPoint {
            attributes: attributes.to_vec(),
            start_time_unix_nano: start,
            time_unix_nano: time,
            count,
            sum: Some(double_sum),
            scale,
            zero_count: values.iter().filter(|(value, _)| *value == 0.0).map(|(_, count)| count).sum(),
            positive: buckets(positive),
            negative: buckets(negative),
            exemplars: exemplars.clone(),
            min: counted().reduce(f64::min),
            max: counted().reduce(f64::max),
            ..otlp::ExponentialHistogramDataPoint::default()
        };
        let gauge = otlp::Gauge { data_points: vec![number(self.all.last().unwrap().0)] };
        let spread =
            otlp::ExponentialHistogram { data_points: vec![point], aggregation_temporality: temporality };
        let mut points = vec![("total", sum(total)), ("last", Data::Gauge(gauge))];
        if !has_nothing {
            points.push(("spread", Data::ExponentialHistogram(spread)));
        }
        points
    }
}

fn resource_attributes(number: usize) -> Vec<(&'static str, &'static str)> {
    [("service.name", "shop"), ("host", "h1")].into_iter().take(number).collect()
}

/// The text with the number 2 stands for no attribute.
fn pairs(attributes: [usize; 2]) -> Vec<(&'static str, &'static str)> {
    let pairs = ["name", "kind"].into_iter().zip(attributes.map(|number| TEXTS[number]));
    pairs.filter(|(_, text)| !text.is_empty()).collect()
}

fn key_of(measure: usize, attributes: [usize; 2]) -> Vec<u8> {
    match measure {
        0 => listed(&attributes.map(|number| Some(TEXTS[number]).filter(|text| !text.is_empty()))),
        _ => fields(&pairs(attributes)),
    }
}

fn restart(aggregator: &mut Aggregator) {
    let bytes = state(aggregator, 42);
    let (restored, position) = Aggregator::read_state(aggregator.settings().clone(), &mut &*bytes).unwrap();
    assert_eq!((position, restored.flush()), (42, aggregator.flush()));
    assert_eq!(state(&restored, 42), bytes, "a state is whole");
    *aggregator = restored;
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        (-3_i64..40).prop_map(Number::Int),
        (-20_i32..400).prop_map(|value| Number::Double(f64::from(value) / 7.0)),
    ];
    let observe = (0_usize..2, prop::array::uniform2(0_usize..3), value, 0_u64..4, 0_u8..3).prop_map(
        |(measure, attributes, value, count, span)| Step::Observe { measure, attributes, value, count, span },
    );
    prop_oneof![
        3 => (0_usize..3, 0_u64..1_500).prop_map(|(tenant, step_ms)| Step::Begin(tenant, step_ms)),
        2 => (0_usize..2, 0_usize..3).prop_map(|(measure, resource)| Step::Resource(measure, resource)),
        10 => observe,
        1 => (0_usize..2).prop_map(Step::Cut),
        2 => (1_000_usize..4_000, 0_u64..3_000, any::<bool>()).prop_map(|(most, step, is)| Step::Flush(most, step, is)),
        1 => Just(Step::Restart),
    ]
}

fn run(temporality: Temporality, steps: &[Step]) {
    let settings = Settings { expire_ms: EXPIRE_MS, ..settings(temporality, MAX_SERIES as u32) };
    let mut aggregator = Aggregator::new(settings);
    let mut model = Model {
        temporality,
        series: BTreeMap::new(),
        tenant: "",
        now_ms: START_MS,
        resources: [0, 0],
        flushed_ms: None,
        expired: 0,
    };
    let (mut at_ms, mut number, mut expired) = (START_MS, 0, 0);
    let begin = |aggregator: &mut Aggregator, model: &mut Model, tenant, step_ms| {
        model.begin(tenant, step_ms);
        aggregator.begin(model.tenant.as_bytes(), model.now_ms);
    };
    begin(&mut aggregator, &mut model, 0, 0);
    for step in steps {
        match step {
            Step::Begin(tenant, step_ms) => begin(&mut aggregator, &mut model, *tenant, *step_ms),
            Step::Resource(measure, resource) => {
                model.resources[*measure] = *resource;
                set_resource(&mut aggregator, *measure, &resource_attributes(*resource));
            }
            Step::Observe { measure, attributes, value, count, span: id } => {
                let key = (model.tenant, model.resources[*measure], false, *measure, *attributes);
                model.observe(Some(key), *measure, *value, *count, *id);
                aggregator.key().push(&key_of(*measure, *attributes));
                let span = Some(span(*id));
                aggregator.observe(*measure, &Observation { value: *value, count: *count, span });
            }
            Step::Cut(measure) => {
                model.observe(None, *measure, Number::Int(1), 1, 0);
                observe(&mut aggregator, *measure, &[0; 5_000], Number::Int(1), 1);
            }
            Step::Flush(most_bytes, step_ms, is_restarted) => {
                (at_ms, number) =
                    ((at_ms + step_ms).max(model.flushed_ms.map_or(0, |at| at + 1)), number + 1);
                assert_eq!(aggregator.begin_flush(at_ms), Flush { number, at_ms });
                let (mut seen, mut from) = (Points::new(), 0);
                while let Some(piece) = aggregator.piece(from, *most_bytes) {
                    assert!(piece.bytes <= *most_bytes);
                    decode(&piece, &mut seen);
                    from = piece.next;
                    if *is_restarted {
                        expired += aggregator.counts().expired;
                        restart(&mut aggregator);
                    }
                }
                assert_eq!(seen, model.points(at_ms));
                aggregator.end_flush();
                model.end_flush(at_ms);
                if *is_restarted {
                    begin(&mut aggregator, &mut model, 1, 0);
                }
            }
            Step::Restart => {
                expired += aggregator.counts().expired;
                restart(&mut aggregator);
                begin(&mut aggregator, &mut model, 2, 0);
            }
        }
        assert_eq!(aggregator.series(), model.series.len());
    }
    assert_eq!(expired + aggregator.counts().expired, model.expired);
    assert_eq!(aggregator.counts().lost, 0);
}

proptest! {
    /// Cumulative output is that of a map of all observations.
    #[test]
    fn cumulative_flushes_are_those_of_a_map(steps in prop::collection::vec(step(), 1..120)) {
        run(Temporality::Cumulative, &steps);
    }

    /// Delta output is that of a map of all observations since the last flush.
    #[test]
    fn delta_flushes_are_those_of_a_map(steps in prop::collection::vec(step(), 1..120)) {
        run(Temporality::Delta, &steps);
    }
}
