use super::{Signal, SinkRouting, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::settings;
use crate::model::Durability;
use crate::model::derive::{
    ConfiguredDerivation, CountMetrics, ServiceGraph, SignalToMetrics, SpanMetrics, Temporality,
};
use crate::values::{Duration, Name};

settings! {
    /// Metrics derived from what is received: the gateway receives them as OTLP metrics, and other sinks deliver them.
    pub struct DeriveSink {
        /// The pipeline that items pass before they are measured: a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// How often they are given out. The Collector's `metrics_flush_interval`.
        interval: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(60),
        /// How values of successive points relate.
        temporality: Temporality = Temporality::Cumulative,
        /// The most series. Items of others are counted in one with the attribute `otel.metric.overflow`.
        max_series: u32 [10..=10_000_000] = 10_000,
        /// How long a cumulative series is given out that gets nothing any more: two intervals at least. 0: always.
        expire: Duration [Duration::seconds(0)..=Duration::days(365)] = Duration::minutes(5),
        /// Whether points have an exemplar: the trace and the span that was counted last.
        exemplars: bool = false,
        /// Calls and durations of spans.
        span_metrics: Option<SpanMetrics> = None,
        /// Counts of items.
        count: Option<CountMetrics> = None,
        /// Metrics whose values are OTTL expressions.
        signal_to_metrics: Option<SignalToMetrics> = None,
        /// Requests between services, from pairs of spans.
        service_graph: Option<ServiceGraph> = None,
    }
}

impl DeriveSink {
    /// Its measures and the table of its series; `None` where the settings have errors, which are reported elsewhere.
    pub fn derivation(&self) -> Option<ConfiguredDerivation> {
        ConfiguredDerivation::of(self).ok()
    }
}

impl SinkSettings for DeriveSink {
    /// It takes nothing away from other sinks: items that it reads go to them as well.
    fn routing(&self) -> Option<&SinkRouting> {
        None
    }

    fn pipeline(&self) -> Option<&Name> {
        self.pipeline.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        use Signal::{Logs, Metrics, Traces};
        let signal_to_metrics = self.signal_to_metrics.as_ref();
        let count = self.count.as_ref();
        let traces = self.span_metrics.is_some()
            || self.service_graph.is_some()
            || count.is_some_and(|it| !it.spans.is_empty() || !it.spanevents.is_empty())
            || signal_to_metrics.is_some_and(|it| !it.spans.is_empty());
        let metrics = count.is_some_and(|it| !it.metrics.is_empty() || !it.datapoints.is_empty())
            || signal_to_metrics.is_some_and(|it| !it.datapoints.is_empty());
        let logs = count.is_some_and(|it| !it.logs.is_empty())
            || signal_to_metrics.is_some_and(|it| !it.logs.is_empty());
        match (traces, metrics, logs) {
            (true, true, true) => &[Traces, Metrics, Logs],
            (true, true, false) => &[Traces, Metrics],
            (true, false, true) => &[Traces, Logs],
            (true, false, false) => &[Traces],
            (false, true, true) => &[Metrics, Logs],
            (false, true, false) => &[Metrics],
            (false, false, true) => &[Logs],
            (false, false, false) => &[],
        }
    }

    fn derive(&self) -> Option<&DeriveSink> {
        Some(self)
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        if check.config.journal.durability == Durability::Memory {
            let message = format!("`sinks.{name}` derives metrics, and the journal is kept in memory");
            let help = "a request would be answered when what it counts is kept, which takes a minute: set `journal.durability` to `fsync` or `page_cache`";
            check.clash_with(["journal", "durability"], message, help);
        }
    }
}
