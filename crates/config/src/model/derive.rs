//! Metrics derived from what is received, in the words of the Collector's connectors.

mod compile;

use std::collections::BTreeMap;

pub use compile::ConfiguredDerivation;
pub(crate) use compile::DerivationProblem;

use crate::declare::{choices, settings};
use crate::setting::Sequence;
use crate::values::{Condition, Decimal, Duration, Fixture, Text};

choices! {
    /// How values of successive points relate.
    pub enum Temporality is "a temporality" {
        /// Each point has all since its series began.
        Cumulative = "cumulative",
        /// Each point has what came since the one before.
        Delta = "delta",
    }
}

choices! {
    /// A dimension that span metrics have without being asked.
    pub enum BuiltInDimension is "a built-in dimension" {
        /// The name of the service.
        ServiceName = "service.name",
        /// The name of the span.
        SpanName = "span.name",
        /// The kind of the span.
        SpanKind = "span.kind",
        /// The status of the span.
        StatusCode = "status.code",
    }
}

choices! {
    /// A unit of time.
    pub enum DurationUnit is "a unit of time" {
        /// Milliseconds.
        Milliseconds = "ms",
        /// Seconds.
        Seconds = "s",
    }
}

settings! {
    /// Calls and durations of spans, as the Collector's `spanmetrics` connector counts them. Spans whose resource has no `service.name` are not
    /// counted.
    pub struct SpanMetrics {
        /// The prefix of the metrics' names, before a dot. Empty: none.
        namespace: Text = Text::from("traces.span.metrics"),
        /// Attributes of spans, or else of their resources, that tell series apart, beside `service.name`, `span.name`, `span.kind` and
        /// `status.code`.
        dimensions: Sequence<Dimension> = Sequence::default(),
        /// Those of calls alone.
        calls_dimensions: Sequence<Dimension> = Sequence::default(),
        /// Built-in dimensions to leave out.
        exclude_dimensions: Option<Vec<BuiltInDimension>> = None,
        /// The resource attributes that tell series apart. Default: all.
        resource_metrics_key_attributes: Option<Vec<String>> = None,
        /// Durations.
        histogram: DurationHistogram = DurationHistogram::default(),
        /// Events of spans.
        events: SpanEvents = SpanEvents::default(),
    }
}

settings! {
    /// An attribute that tells series apart.
    pub struct Dimension {
        /// Its key.
        name: String,
        /// Its value for spans without one. Default: they are a series without it.
        default: Option<Text> = None,
    }
}

settings! {
    /// The histogram of durations.
    pub struct DurationHistogram {
        /// Whether there is none.
        disable: bool = false,
        /// The unit of its values.
        unit: DurationUnit = DurationUnit::Milliseconds,
        /// Buckets with these bounds. Default: 2 ms to 15 s.
        explicit: Option<ExplicitBuckets> = None,
        /// Buckets that fit the values: what Prometheus calls a native histogram.
        exponential: Option<ExponentialBuckets> = None,
        /// Dimensions of durations alone.
        dimensions: Sequence<Dimension> = Sequence::default(),
    }
}

settings! {
    /// Buckets with fixed bounds.
    pub struct ExplicitBuckets {
        /// The upper bounds, ascending.
        buckets: Sequence<Duration>,
    }
}

settings! {
    /// Exponential buckets.
    pub struct ExponentialBuckets {
        /// The most buckets of a series; it has memory for as many.
        max_size: u32 [2..=1_024] = 160,
    }
}

settings! {
    /// A count of the events of spans.
    pub struct SpanEvents {
        /// Whether there is one.
        enabled: bool = false,
        /// Attributes of spans, or else of events, or else of resources, that tell series apart, beside the built-in ones.
        dimensions: Sequence<Dimension> = Sequence::default(),
    }
}

settings! {
    /// Counts of items, by the names of the metrics, as the Collector's `count` connector makes them.
    pub struct CountMetrics {
        /// Of spans.
        spans: BTreeMap<Text, CountMetric> = BTreeMap::new(),
        /// Of events of spans.
        spanevents: BTreeMap<Text, CountMetric> = BTreeMap::new(),
        /// Of metrics.
        metrics: BTreeMap<Text, CountMetric> = BTreeMap::new(),
        /// Of data points.
        datapoints: BTreeMap<Text, CountMetric> = BTreeMap::new(),
        /// Of log records.
        logs: BTreeMap<Text, CountMetric> = BTreeMap::new(),
    }
}

settings! {
    /// A count.
    pub struct CountMetric {
        /// Its description.
        description: Option<Text> = None,
        /// OTTL conditions, in the context of the items: those that meet at least one are counted. Default: all.
        conditions: Sequence<Condition> = Sequence::default(),
        /// Attributes of the items, or else of their scopes, or else of their resources, that tell series apart. An item without one of them is not
        /// counted.
        attributes: Sequence<CountAttribute> = Sequence::default(),
    }
}

settings! {
    /// An attribute of a count.
    pub struct CountAttribute {
        /// Its key.
        key: String,
        /// Its value for items without one.
        default_value: Option<Fixture> = None,
    }
}

settings! {
    /// Requests between services, from pairs of a client's and a server's span, as the Collector's `servicegraph` connector counts them. Spans whose
    /// resource has no `service.name` are not counted.
    pub struct ServiceGraph {
        /// The upper bounds of the buckets of times, ascending. Default: 2 ms to 15 s.
        latency_histogram_buckets: Sequence<Duration> = Sequence::default(),
        /// The most buckets of a series where they are to fit the times, which is exclusive with bounds. 0: fixed bounds.
        exponential_histogram_max_size: u32 [0..=1_024] = 0,
        /// Attributes of resources, or else of spans, that tell series apart, for the client and for the server.
        dimensions: Sequence<String> = Sequence::default(),
        /// The spans that wait for their other half.
        store: EdgeStore = EdgeStore::default(),
        /// Attributes of a client's span that name its peer, should that send no span: the first that is there. Empty: no node is virtual. Default:
        /// `peer.service`, `db.name`, `db.system`.
        virtual_node_peer_attributes: Option<Sequence<String>> = None,
        /// Whether series have the attribute `virtual_node`: `client`, `server`, or empty where both sent spans.
        virtual_node_extra_label: bool = false,
        /// Attributes of resources, or else of a client's span, that name a database: such a request is counted at once. Default: `db.name`.
        database_name_attributes: Sequence<String> = Sequence::default(),
    }
}

settings! {
    /// Room for spans that wait for their other half.
    pub struct EdgeStore {
        /// How long one waits, by the time of receipt.
        ttl: Duration [Duration::milliseconds(1)..=Duration::hours(1)] = Duration::seconds(2),
        /// The most that wait at a time: 580 bytes each. More are not counted.
        max_items: u32 [1..=1_000_000] = 1_000,
    }
}

settings! {
    /// Metrics whose values are OTTL expressions, as the Collector's `signal_to_metrics` connector has them.
    pub struct SignalToMetrics {
        /// Of spans.
        spans: Sequence<SignalMetric> = Sequence::default(),
        /// Of data points.
        datapoints: Sequence<SignalMetric> = Sequence::default(),
        /// Of log records.
        logs: Sequence<SignalMetric> = Sequence::default(),
    }
}

settings! {
    /// A metric: exactly one of `sum`, `gauge`, `histogram` and `exponential_histogram` says of which type.
    pub struct SignalMetric {
        /// Its name.
        name: String,
        /// Its description.
        description: Option<Text> = None,
        /// Its unit.
        unit: Option<Text> = None,
        /// OTTL conditions, in the context of the items: those that meet at least one are measured. Default: all.
        conditions: Sequence<Condition> = Sequence::default(),
        /// Attributes of the items that tell series apart. Default: none.
        attributes: Sequence<SignalAttribute> = Sequence::default(),
        /// Attributes of the resource that tell series apart. Default: all.
        include_resource_attributes: Sequence<SignalAttribute> = Sequence::default(),
        /// The sum of values.
        sum: Option<SumOf> = None,
        /// The last value.
        gauge: Option<GaugeOf> = None,
        /// A histogram of values with fixed buckets.
        histogram: Option<HistogramOf> = None,
        /// A histogram of values with buckets that fit them.
        exponential_histogram: Option<ExponentialHistogramOf> = None,
    }
}

settings! {
    /// An attribute that tells series apart.
    pub struct SignalAttribute {
        /// Its key.
        key: String,
        /// Whether items without it are measured, as a series without it.
        optional: bool = false,
        /// Its value for items without one.
        default_value: Option<Fixture> = None,
    }
}

settings! {
    /// A sum.
    pub struct SumOf {
        /// An OTTL expression: a number. `AdjustedCount()` stands for how many spans a sampled one does.
        value: Text,
        /// Whether it only grows.
        monotonic: bool = false,
    }
}

settings! {
    /// A last value.
    pub struct GaugeOf {
        /// An OTTL expression: a number.
        value: Text,
    }
}

settings! {
    /// A histogram with fixed buckets.
    pub struct HistogramOf {
        /// An OTTL expression: a number.
        value: Text,
        /// An OTTL expression for how often it counts; `AdjustedCount()` for as many spans as a sampled one stands for. Default: once.
        count: Option<Text> = None,
        /// The upper bounds of the buckets, ascending. Default: 2 to 15000.
        buckets: Option<Sequence<Decimal>> = None,
    }
}

settings! {
    /// A histogram with buckets that fit its values.
    pub struct ExponentialHistogramOf {
        /// An OTTL expression: a number.
        value: Text,
        /// An OTTL expression for how often it counts; `AdjustedCount()` for as many spans as a sampled one stands for. Default: once.
        count: Option<Text> = None,
        /// The most buckets of a series, and as many for negative values; it has memory for all.
        max_size: u32 [2..=1_024] = 160,
    }
}
