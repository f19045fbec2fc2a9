//! Paths that statements of a context can name.

/// A context of statements.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) name: &'static str,
    /// The path of its map.
    pub(crate) map: &'static str,
    /// The maps of the contexts around it.
    pub(crate) maps_around: &'static [&'static str],
    pub(crate) fields: &'static [&'static str],
}

const OWNERS: &[&str] = &["resource.attributes", "scope.attributes"];

pub(crate) static LOG: Context = Context {
    name: "log",
    map: "log.attributes",
    maps_around: OWNERS,
    fields: &[
        "log.time",
        "log.time_unix_nano",
        "log.observed_time",
        "log.observed_time_unix_nano",
        "log.severity_number",
        "log.severity_text",
        "log.body.string",
        "log.trace_id",
        "log.trace_id.string",
        "log.span_id",
        "log.span_id.string",
        "log.flags",
        "log.event_name",
        "log.dropped_attributes_count",
        "resource.schema_url",
        "scope.schema_url",
        "scope.name",
        "scope.version",
        "resource.dropped_attributes_count",
        "scope.dropped_attributes_count",
    ],
};

pub(crate) static RESOURCE: Context = Context {
    name: "resource",
    map: "resource.attributes",
    maps_around: &["resource.cache"],
    fields: &["resource.schema_url", "resource.dropped_attributes_count"],
};

pub(crate) static SCOPE: Context = Context {
    name: "scope",
    map: "scope.attributes",
    maps_around: &["resource.attributes"],
    fields: &["scope.name", "scope.version", "scope.schema_url", "resource.schema_url"],
};

pub(crate) static SPAN: Context = Context {
    name: "span",
    map: "span.attributes",
    maps_around: OWNERS,
    fields: &[
        "span.name",
        "span.kind",
        "span.kind.string",
        "span.kind.deprecated_string",
        "span.status.code",
        "span.status.message",
        "span.trace_id",
        "span.trace_id.string",
        "span.span_id",
        "span.span_id.string",
        "span.parent_span_id",
        "span.parent_span_id.string",
        "span.trace_state",
        "span.trace_state[\"k\"]",
        "span.trace_state[\"n\"]",
        "span.start_time",
        "span.end_time",
        "span.start_time_unix_nano",
        "span.end_time_unix_nano",
        "span.flags",
        "span.dropped_attributes_count",
        "span.dropped_events_count",
        "span.dropped_links_count",
        "scope.name",
    ],
};

pub(crate) static SPAN_EVENT: Context = Context {
    name: "spanevent",
    map: "spanevent.attributes",
    maps_around: &["resource.attributes", "scope.attributes", "span.attributes"],
    fields: &[
        "spanevent.name",
        "spanevent.time",
        "spanevent.time_unix_nano",
        "spanevent.event_index",
        "spanevent.dropped_attributes_count",
        "span.name",
        "span.status.message",
        "span.kind",
    ],
};

pub(crate) static METRIC: Context = Context {
    name: "metric",
    map: "metric.metadata",
    maps_around: OWNERS,
    fields: &[
        "metric.name",
        "metric.description",
        "metric.unit",
        "metric.type",
        "metric.is_monotonic",
        "metric.aggregation_temporality",
        "resource.schema_url",
    ],
};

pub(crate) static DATA_POINT: Context = Context {
    name: "datapoint",
    map: "datapoint.attributes",
    maps_around: &["resource.attributes", "scope.attributes", "metric.metadata"],
    fields: &[
        "datapoint.value_int",
        "datapoint.value_double",
        "datapoint.time",
        "datapoint.time_unix_nano",
        "datapoint.start_time",
        "datapoint.start_time_unix_nano",
        "datapoint.flags",
        "datapoint.count",
        "datapoint.sum",
        "datapoint.bucket_counts",
        "datapoint.explicit_bounds",
        "datapoint.scale",
        "datapoint.zero_count",
        "datapoint.positive.offset",
        "datapoint.positive.bucket_counts",
        "datapoint.negative.offset",
        "datapoint.negative.bucket_counts",
        "metric.name",
        "metric.unit",
        "metric.type",
        "metric.is_monotonic",
        "metric.aggregation_temporality",
    ],
};
