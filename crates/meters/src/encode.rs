//! The bridge to `prometheus-client`: publishes our values through its encoder.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{
    EncodeLabel, EncodeLabelSet, EncodeMetric, LabelSetEncoder, MetricEncoder,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

use crate::registry::Published;
use crate::unit::Unit;
use crate::value::{Kind, Value};

/// A published name, as `prometheus-client` wants it.
pub(crate) struct Exposed(pub(crate) Arc<Published>);

impl EncodeMetric for Exposed {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let published = &*self.0;
        let mut outcome = Ok(());
        published.values.read(&mut |values, value| {
            if outcome.is_ok() {
                outcome = encode_series(&mut encoder, published, values, &value);
            }
        });
        outcome
    }

    fn metric_type(&self) -> MetricType {
        match self.0.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        }
    }
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

fn encode_series(encoder: &mut MetricEncoder, of: &Published, values: &[&str], value: &Value) -> fmt::Result {
    if values.is_empty() {
        return encode_value(encoder, of.unit, value);
    }
    let labels = Labels { names: &of.labels, values };
    encode_value(&mut encoder.encode_family(&labels)?, of.unit, value)
}

const NO_EXEMPLAR: Option<&Exemplar<[(&str, &str); 0], f64>> = None;

fn encode_value(encoder: &mut MetricEncoder, unit: Unit, value: &Value) -> fmt::Result {
    match value {
        Value::Counter(total) => match unit.scaled(*total as f64) {
            Some(shown) => encoder.encode_counter(&shown, NO_EXEMPLAR),
            None => encoder.encode_counter(total, NO_EXEMPLAR),
        },
        Value::Gauge(held) => match unit.scaled(*held as f64) {
            Some(shown) => encoder.encode_gauge(&shown),
            None => encoder.encode_gauge(held),
        },
        Value::Histogram(summary) => {
            let shown = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| unit.shown(bound as f64));
            let buckets: Vec<(f64, u64)> = summary.buckets.iter().map(|(le, n)| (shown(*le), *n)).collect();
            let sum = unit.shown(summary.sum as f64);
            encoder.encode_histogram::<[(&str, &str); 0]>(sum, summary.count(), &buckets, None)
        }
    }
}

struct Labels<'a> {
    names: &'a [&'static str],
    values: &'a [&'a str],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        self.names
            .iter()
            .zip(self.values)
            .try_for_each(|(name, value)| (*name, *value).encode(encoder.encode_label()))
    }
}
