//! Derived metrics as the engine has them: measures of items, and the instruments that sum them up.

mod service_graph;

use serde_json::Value as Json;
use tidegate_derived_metrics as engine;
use tidegate_derived_metrics::{Group, Instrument, InstrumentKind};
use tidegate_pipeline::{
    AttributeSource, AttributeValue, DERIVED_SCOPE, KeyAttribute, KeyAttributes, Measure, MeasureCount,
    MeasureValue, Measured,
};

use super::{
    BuiltInDimension, CountMetric, CountMetrics, Dimension, DurationHistogram, DurationUnit, ExplicitBuckets,
    SignalAttribute, SignalMetric, SignalToMetrics, SpanMetrics, Temporality,
};
use crate::model::DeriveSink;
use crate::values::{Duration, Fixture, Text};

/// The bounds of histograms without `buckets`: those of the Collector's connectors.
const DEFAULT_BOUNDS: [f64; 16] = [
    2.0, 4.0, 6.0, 8.0, 10.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1000.0, 1400.0, 2000.0, 5000.0, 10_000.0,
    15_000.0,
];
const SERVICE_NAME: &str = "service.name";
/// The dimensions that span metrics have without being asked.
const BUILT_IN: [(BuiltInDimension, AttributeSource); 4] = [
    (BuiltInDimension::ServiceName, AttributeSource::Resource),
    (BuiltInDimension::SpanName, AttributeSource::SpanName),
    (BuiltInDimension::SpanKind, AttributeSource::SpanKind),
    (BuiltInDimension::StatusCode, AttributeSource::StatusCode),
];

/// The measures of a sink that derives metrics, and the table of its series.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredDerivation {
    /// The measures.
    pub measures: Vec<Measure>,
    /// The table that sums them up.
    pub table: engine::Settings,
    /// Where each text of the measures is written: the settings below the sink.
    pub(crate) texts: Vec<Vec<String>>,
}

/// Something wrong with a derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DerivationProblem {
    /// The settings below the sink down to the one at fault.
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) help: String,
}

#[derive(Default)]
struct Compiler {
    /// Whether series have exemplars.
    tells_span: bool,
    measures: Vec<Measure>,
    groups: Vec<Group>,
    texts: Vec<Vec<String>>,
    problems: Vec<DerivationProblem>,
}

impl ConfiguredDerivation {
    /// What `sink` derives.
    ///
    /// # Errors
    /// Everything that is wrong with it, but for conditions and expressions.
    pub(crate) fn of(sink: &DeriveSink) -> Result<ConfiguredDerivation, Vec<DerivationProblem>> {
        let mut compiler = Compiler { tells_span: sink.exemplars, ..Compiler::default() };
        if let Some(spans) = &sink.span_metrics {
            compiler.span_metrics(spans);
        }
        if let Some(count) = &sink.count {
            compiler.count(count);
        }
        if let Some(metrics) = &sink.signal_to_metrics {
            compiler.signal_to_metrics(metrics);
        }
        if let Some(graph) = &sink.service_graph {
            compiler.service_graph(graph);
        }
        if compiler.measures.is_empty() && compiler.problems.is_empty() {
            compiler.problem(
                &[],
                "this sink derives nothing".to_owned(),
                "add `span_metrics: {}` or `service_graph: {}`, or a metric in `count` or `signal_to_metrics`",
            );
        }
        compiler.distinct_metrics();
        let Compiler { measures, groups, texts, problems, .. } = compiler;
        if !problems.is_empty() {
            return Err(problems);
        }
        let table = engine::Settings {
            measures: groups,
            temporality: match sink.temporality {
                Temporality::Cumulative => engine::Temporality::Cumulative,
                Temporality::Delta => engine::Temporality::Delta,
            },
            max_series: sink.max_series,
            // One that ends between two flushes would begin anew with each.
            expire_ms: match milliseconds(sink.expire) {
                0 => 0,
                expire => expire.max(2 * milliseconds(sink.interval)),
            },
            exemplars: sink.exemplars,
            scope: DERIVED_SCOPE.to_owned(),
            definition: format!("{measures:?}"),
        };
        Ok(ConfiguredDerivation { measures, table, texts })
    }
}

impl Compiler {
    fn problem(&mut self, at: &[&str], message: String, help: &str) {
        let path = at.iter().map(|part| (*part).to_owned()).collect();
        self.problems.push(DerivationProblem { path, message, help: help.to_owned() });
    }

    /// Adds a measure, with the places of its texts in order.
    fn add(&mut self, measure: Measure, group: Group, texts: impl IntoIterator<Item = Vec<String>>) {
        self.measures.push(measure);
        self.groups.push(group);
        self.texts.extend(texts);
    }

    fn span_metrics(&mut self, settings: &SpanMetrics) {
        let excluded = settings.exclude_dimensions.as_deref().unwrap_or_default();
        let resource = match &settings.resource_metrics_key_attributes {
            None => KeyAttributes::All,
            Some(keys) => {
                let listed = keys.iter().map(|key| attribute(key, AttributeSource::Resource));
                KeyAttributes::Listed(listed.collect())
            }
        };
        let built_in = BUILT_IN.iter().filter(|(dimension, _)| !excluded.contains(dimension));
        let built_in = built_in
            .map(|(name, from)| KeyAttribute { is_optional: false, ..attribute(&name.to_string(), *from) })
            .collect::<Vec<_>>();
        let of = |more: [(&[Dimension], &str); 2], from, compiler: &mut Compiler| {
            let mut listed = built_in.clone();
            for (dimensions, at) in more {
                for (number, Dimension { name, default }) in dimensions.iter().enumerate() {
                    if listed.iter().any(|known| known.key == *name) {
                        let path: Vec<&str> = ["span_metrics"].into_iter().chain(at.split('.')).collect();
                        let number = number.to_string();
                        let path: Vec<&str> = path.into_iter().chain([number.as_str(), "name"]).collect();
                        compiler.problem(
                            &path,
                            format!("there are two dimensions `{name}`"),
                            "remove one of them",
                        );
                    }
                    let default = default.as_ref().map(|text| AttributeValue::Text(text.as_str().to_owned()));
                    listed.push(KeyAttribute { default, ..attribute(name, from) });
                }
            }
            listed
        };
        let metric = |name: &str| match settings.namespace.as_str() {
            "" => name.to_owned(),
            namespace => format!("{namespace}.{name}"),
        };
        let tells_span = self.tells_span;
        let measure = |of, listed, value| Measure {
            of,
            conditions: no_service(excluded),
            resource: resource.clone(),
            attributes: KeyAttributes::Listed(listed),
            value,
            count: MeasureCount::Adjusted,
            tells_span,
        };
        let dimensions = (&*settings.dimensions, "dimensions");
        let from = AttributeSource::ItemOrResource;
        let calls = of([dimensions, (&settings.calls_dimensions, "calls_dimensions")], from, self);
        let durations = (!settings.histogram.disable)
            .then(|| of([dimensions, (&settings.histogram.dimensions, "histogram.dimensions")], from, self));
        let (divisor, unit) = match settings.histogram.unit {
            DurationUnit::Milliseconds => (1e6, "ms"),
            DurationUnit::Seconds => (1e9, "s"),
        };
        let sum = instrument(metric("calls"), "", "", InstrumentKind::Count);
        let histogram =
            instrument(metric("duration"), "", unit, self.durations(&settings.histogram, divisor));
        let texts = || no_service(excluded).into_iter().map(|_| vec!["span_metrics".to_owned()]);
        match durations {
            Some(durations) if durations != calls => {
                let group = group(&calls, divisor, vec![sum]);
                self.add(measure(Measured::Spans, calls, MeasureValue::Duration), group, texts());
                let group = self::group(&durations, divisor, vec![histogram]);
                self.add(measure(Measured::Spans, durations, MeasureValue::Duration), group, texts());
            }
            durations => {
                let instruments = [Some(sum), durations.map(|_| histogram)].into_iter().flatten().collect();
                let group = group(&calls, divisor, instruments);
                self.add(measure(Measured::Spans, calls, MeasureValue::Duration), group, texts());
            }
        }
        if settings.events.enabled {
            let own = (&*settings.events.dimensions, "events.dimensions");
            let listed = of([dimensions, own], AttributeSource::SpanOrEventOrResource, self);
            let events = instrument(metric("events"), "", "", InstrumentKind::Count);
            let group = group(&listed, divisor, vec![events]);
            self.add(measure(Measured::SpanEvents, listed, MeasureValue::Duration), group, texts());
        }
    }

    fn durations(&mut self, settings: &DurationHistogram, divisor: f64) -> InstrumentKind {
        let at = ["span_metrics", "histogram"];
        match (&settings.explicit, &settings.exponential) {
            (Some(_), Some(_)) => {
                let help = "remove one of the two";
                self.problem(&at, "this histogram has `explicit` and `exponential` buckets".to_owned(), help);
                InstrumentKind::Histogram { bounds: Vec::new() }
            }
            (None, Some(exponential)) => {
                InstrumentKind::ExponentialHistogram { max_size: exponential.max_size }
            }
            (Some(ExplicitBuckets { buckets }), None) => {
                let bounds: Vec<f64> =
                    buckets.iter().map(|bound| bound.get().as_nanos() as f64 / divisor).collect();
                self.ascending(&bounds, &["span_metrics", "histogram", "explicit", "buckets"]);
                InstrumentKind::Histogram { bounds }
            }
            (None, None) => {
                let of_unit = |bound: &f64| bound * 1e6 / divisor;
                InstrumentKind::Histogram { bounds: DEFAULT_BOUNDS.iter().map(of_unit).collect() }
            }
        }
    }

    fn ascending(&mut self, bounds: &[f64], at: &[&str]) {
        if !bounds.is_sorted_by(|one, next| one < next) {
            self.problem(
                at,
                "these bounds are not ascending".to_owned(),
                "write each once, the smallest first",
            );
        }
    }

    fn count(&mut self, settings: &CountMetrics) {
        let CountMetrics { spans, spanevents, metrics, datapoints, logs } = settings;
        let all = [
            ("spans", Measured::Spans, spans),
            ("spanevents", Measured::SpanEvents, spanevents),
            ("metrics", Measured::Metrics, metrics),
            ("datapoints", Measured::DataPoints, datapoints),
            ("logs", Measured::Logs, logs),
        ];
        for (setting, of, counts) in all {
            for (name, CountMetric { description, conditions, attributes }) in counts {
                let at = ["count", setting, name.as_str()];
                if name.as_str().is_empty() {
                    self.problem(&at, "this metric has no name".to_owned(), "give it one");
                }
                if of == Measured::Metrics && !attributes.is_empty() {
                    self.problem(
                        &["count", setting, name.as_str(), "attributes"],
                        "metrics have no attributes; their data points do".to_owned(),
                        "count `datapoints`, or remove `attributes`",
                    );
                }
                let from = AttributeSource::ItemOrScopeOrResource;
                let listed: Vec<KeyAttribute> = attributes
                    .iter()
                    .map(|own| KeyAttribute {
                        default: own.default_value.as_ref().map(value_of),
                        is_optional: false,
                        ..attribute(&own.key, from)
                    })
                    .collect();
                self.distinct(&listed, &["count", setting, name.as_str(), "attributes"]);
                let description = description.as_ref().map_or("", Text::as_str);
                let sum = instrument(name.as_str().to_owned(), description, "", InstrumentKind::Count);
                let group = group(&listed, 1.0, vec![sum]);
                let measure = Measure {
                    of,
                    conditions: conditions.iter().map(|it| it.as_str().to_owned()).collect(),
                    resource: KeyAttributes::All,
                    attributes: KeyAttributes::Listed(listed),
                    value: MeasureValue::One,
                    count: MeasureCount::One,
                    tells_span: self.tells_span,
                };
                let texts = (0..conditions.len()).map(|it| below(&at, ["conditions", &it.to_string()]));
                self.add(measure, group, texts.collect::<Vec<_>>());
            }
        }
    }

    /// Two metrics of one name would be told apart by nobody.
    fn distinct_metrics(&mut self) {
        let instruments = self.groups.iter().flat_map(|group| &group.instruments);
        let mut names: Vec<String> = instruments.map(|instrument| instrument.name.clone()).collect();
        names.sort_unstable();
        let twice: Vec<&[String]> =
            names.chunk_by(|one, next| one == next).filter(|same| same.len() > 1).collect();
        if let Some([name, ..]) = twice.first() {
            let message = format!("two metrics of this sink are called `{name}`");
            self.problem(&[], message, "give each a name of its own, or a sink of its own");
        }
    }

    fn distinct(&mut self, listed: &[KeyAttribute], at: &[&str]) {
        for (number, own) in listed.iter().enumerate() {
            if listed.iter().take(number).any(|known| known.key == own.key) {
                let number = number.to_string();
                let path: Vec<&str> = at.iter().copied().chain([number.as_str(), "key"]).collect();
                self.problem(&path, format!("there are two attributes `{}`", own.key), "remove one of them");
            }
        }
    }

    fn signal_to_metrics(&mut self, settings: &SignalToMetrics) {
        let SignalToMetrics { spans, datapoints, logs } = settings;
        let all = [
            ("spans", Measured::Spans, spans),
            ("datapoints", Measured::DataPoints, datapoints),
            ("logs", Measured::Logs, logs),
        ];
        for (setting, of, metrics) in all {
            for (number, metric) in metrics.iter().enumerate() {
                self.signal_metric(&["signal_to_metrics", setting, &number.to_string()], of, metric);
            }
        }
    }

    fn signal_metric(&mut self, at: &[&str], of: Measured, metric: &SignalMetric) {
        let Some((setting, value, count, kind)) = self.value_of_metric(at, metric) else { return };
        if metric.name.trim().is_empty() {
            let path: Vec<&str> = at.iter().copied().chain(["name"]).collect();
            self.problem(&path, "this metric has no name".to_owned(), "give it one");
        }
        let listed = self.attributes_of(at, "attributes", AttributeSource::Item, &metric.attributes);
        let resource = match metric.include_resource_attributes.is_empty() {
            true => KeyAttributes::All,
            false => {
                let (from, own) = (AttributeSource::Resource, &metric.include_resource_attributes);
                let listed = self.attributes_of(at, "include_resource_attributes", from, own);
                let optional = |own: KeyAttribute| KeyAttribute { is_optional: true, ..own };
                KeyAttributes::Listed(listed.into_iter().map(optional).collect())
            }
        };
        let text = |text: &Option<Text>| text.as_ref().map_or(String::new(), |text| text.as_str().to_owned());
        let group = group(
            &listed,
            1.0,
            vec![instrument(metric.name.clone(), &text(&metric.description), &text(&metric.unit), kind)],
        );
        let mut texts: Vec<Vec<String>> =
            (0..metric.conditions.len()).map(|it| below(at, ["conditions", &it.to_string()])).collect();
        // A span that was sampled stands for others, where the expression says so.
        let adjusted = |text: &str| {
            let text: String = text.chars().filter(|char| !char.is_whitespace()).collect();
            of == Measured::Spans && matches!(text.as_str(), "AdjustedCount()" | "Int(AdjustedCount())")
        };
        let is_adjusted_sum = setting == "sum" && adjusted(&value);
        let value = match is_adjusted_sum {
            true => MeasureValue::One,
            false => {
                texts.push(below(at, [setting, "value"]));
                MeasureValue::Expression(value)
            }
        };
        let count = match count {
            None if is_adjusted_sum => MeasureCount::Adjusted,
            None => MeasureCount::One,
            Some(count) if adjusted(&count) => MeasureCount::Adjusted,
            Some(count) => {
                texts.push(below(at, [setting, "count"]));
                MeasureCount::Expression(count)
            }
        };
        let conditions = metric.conditions.iter().map(|it| it.as_str().to_owned()).collect();
        let attributes = KeyAttributes::Listed(listed);
        let tells_span = self.tells_span;
        self.add(Measure { of, conditions, resource, attributes, value, count, tells_span }, group, texts);
    }

    /// The setting that says of which type a metric is; its value, its count, and its type.
    fn value_of_metric(
        &mut self,
        at: &[&str],
        metric: &SignalMetric,
    ) -> Option<(&'static str, String, Option<String>, InstrumentKind)> {
        let text = |text: &Text| text.as_str().to_owned();
        let sum = metric
            .sum
            .as_ref()
            .map(|sum| ("sum", text(&sum.value), None, InstrumentKind::Sum { is_monotonic: sum.monotonic }));
        let gauge =
            metric.gauge.as_ref().map(|gauge| ("gauge", text(&gauge.value), None, InstrumentKind::Gauge));
        let histogram = metric.histogram.as_ref().map(|histogram| {
            let bounds: Vec<f64> = match &histogram.buckets {
                None => DEFAULT_BOUNDS.to_vec(),
                Some(bounds) => bounds.iter().map(|bound| bound.get()).collect(),
            };
            let path: Vec<&str> = at.iter().copied().chain(["histogram", "buckets"]).collect();
            self.ascending(&bounds, &path);
            let count = histogram.count.as_ref().map(text);
            ("histogram", text(&histogram.value), count, InstrumentKind::Histogram { bounds })
        });
        let exponential = metric.exponential_histogram.as_ref().map(|histogram| {
            let kind = InstrumentKind::ExponentialHistogram { max_size: histogram.max_size };
            ("exponential_histogram", text(&histogram.value), histogram.count.as_ref().map(text), kind)
        });
        let mut types: Vec<_> = [sum, gauge, histogram, exponential].into_iter().flatten().collect();
        if types.len() != 1 {
            let message = format!("the metric `{}` has {} types", metric.name, types.len());
            let help = "write exactly one of `sum`, `gauge`, `histogram` and `exponential_histogram`";
            self.problem(at, message, help);
            return None;
        }
        types.pop()
    }

    fn attributes_of(
        &mut self,
        at: &[&str],
        setting: &str,
        from: AttributeSource,
        attributes: &[SignalAttribute],
    ) -> Vec<KeyAttribute> {
        let mut listed = Vec::new();
        for (number, SignalAttribute { key, optional, default_value }) in attributes.iter().enumerate() {
            if *optional && default_value.is_some() {
                let number = number.to_string();
                let path: Vec<&str> = at.iter().copied().chain([setting, number.as_str()]).collect();
                self.problem(
                    &path,
                    format!("`{key}` is optional, and has a default"),
                    "an attribute with a default is never missing: remove one of the two",
                );
            }
            let default = default_value.as_ref().map(value_of);
            listed.push(KeyAttribute { default, is_optional: *optional, ..attribute(key, from) });
        }
        let path: Vec<&str> = at.iter().copied().chain([setting]).collect();
        self.distinct(&listed, &path);
        listed
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.get().as_millis()).unwrap_or(u64::MAX)
}

/// The condition of span metrics where the name of the service is no dimension, which would say it.
fn no_service(excluded: &[BuiltInDimension]) -> Vec<String> {
    let is_excluded = excluded.contains(&BuiltInDimension::ServiceName);
    is_excluded.then(|| format!("resource.attributes[\"{SERVICE_NAME}\"] != nil")).into_iter().collect()
}

fn attribute(key: &str, from: AttributeSource) -> KeyAttribute {
    KeyAttribute { key: key.to_owned(), from, default: None, is_optional: true }
}

fn instrument(name: String, description: &str, unit: &str, kind: InstrumentKind) -> Instrument {
    Instrument { name, description: description.to_owned(), unit: unit.to_owned(), kind }
}

fn group(listed: &[KeyAttribute], divisor: f64, instruments: Vec<Instrument>) -> Group {
    let attributes = Some(listed.iter().map(|attribute| attribute.key.clone()).collect());
    Group { attributes, divisor, instruments, pairs: None }
}

/// A default as an attribute's value: what is no text, number or boolean is its JSON.
fn value_of(default: &Fixture) -> AttributeValue {
    match default.as_json() {
        Json::String(text) => AttributeValue::Text(text.clone()),
        Json::Bool(value) => AttributeValue::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => AttributeValue::Int(number),
            None => AttributeValue::Double(number.as_f64().unwrap_or_default()),
        },
        other => AttributeValue::Text(other.to_string()),
    }
}

fn below<const N: usize>(at: &[&str], more: [&str; N]) -> Vec<String> {
    at.iter().copied().chain(more).map(str::to_owned).collect()
}
