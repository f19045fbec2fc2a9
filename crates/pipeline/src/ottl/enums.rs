//! The enums of each context: names for integers.

use super::field::Context;

/// The value of the enum `name` in `context`.
pub(crate) fn find(context: Context, name: &str) -> Option<i64> {
    let enums = of(context).iter().copied().flatten();
    enums.copied().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The names of the enums of `context`.
pub(crate) fn names(context: Context) -> impl Iterator<Item = &'static str> {
    of(context).iter().copied().flatten().map(|(name, _)| *name)
}

/// The contexts that have the enum `name`.
pub(crate) fn contexts(name: &str) -> impl Iterator<Item = Context> {
    Context::ALL.into_iter().filter(move |context| find(*context, name).is_some())
}

type Enums = &'static [(&'static str, i64)];

const fn of(context: Context) -> &'static [Enums] {
    match context {
        Context::Resource | Context::Scope => &[],
        Context::Span | Context::SpanEvent => &[SPAN],
        Context::Metric => &[METRIC],
        Context::DataPoint => &[METRIC, DATA_POINT],
        Context::Log => &[LOG],
    }
}

const SPAN: Enums = &[
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
    ("STATUS_CODE_UNSET", 0),
    ("STATUS_CODE_OK", 1),
    ("STATUS_CODE_ERROR", 2),
];

const METRIC: Enums = &[
    ("AGGREGATION_TEMPORALITY_UNSPECIFIED", 0),
    ("AGGREGATION_TEMPORALITY_DELTA", 1),
    ("AGGREGATION_TEMPORALITY_CUMULATIVE", 2),
    ("METRIC_DATA_TYPE_NONE", 0),
    ("METRIC_DATA_TYPE_GAUGE", 1),
    ("METRIC_DATA_TYPE_SUM", 2),
    ("METRIC_DATA_TYPE_HISTOGRAM", 3),
    ("METRIC_DATA_TYPE_EXPONENTIAL_HISTOGRAM", 4),
    ("METRIC_DATA_TYPE_SUMMARY", 5),
];

const DATA_POINT: Enums = &[("FLAG_NONE", 0), ("FLAG_NO_RECORDED_VALUE", 1)];

const LOG: Enums = &[
    ("SEVERITY_NUMBER_UNSPECIFIED", 0),
    ("SEVERITY_NUMBER_TRACE", 1),
    ("SEVERITY_NUMBER_TRACE2", 2),
    ("SEVERITY_NUMBER_TRACE3", 3),
    ("SEVERITY_NUMBER_TRACE4", 4),
    ("SEVERITY_NUMBER_DEBUG", 5),
    ("SEVERITY_NUMBER_DEBUG2", 6),
    ("SEVERITY_NUMBER_DEBUG3", 7),
    ("SEVERITY_NUMBER_DEBUG4", 8),
    ("SEVERITY_NUMBER_INFO", 9),
    ("SEVERITY_NUMBER_INFO2", 10),
    ("SEVERITY_NUMBER_INFO3", 11),
    ("SEVERITY_NUMBER_INFO4", 12),
    ("SEVERITY_NUMBER_WARN", 13),
    ("SEVERITY_NUMBER_WARN2", 14),
    ("SEVERITY_NUMBER_WARN3", 15),
    ("SEVERITY_NUMBER_WARN4", 16),
    ("SEVERITY_NUMBER_ERROR", 17),
    ("SEVERITY_NUMBER_ERROR2", 18),
    ("SEVERITY_NUMBER_ERROR3", 19),
    ("SEVERITY_NUMBER_ERROR4", 20),
    ("SEVERITY_NUMBER_FATAL", 21),
    ("SEVERITY_NUMBER_FATAL2", 22),
    ("SEVERITY_NUMBER_FATAL3", 23),
    ("SEVERITY_NUMBER_FATAL4", 24),
];
