//! Functions that the Collector's processors add to the language, each in the contexts that have it, and those that are refused.

use super::field::Context;
use tidegate_wire::otlp::Signal;

/// The contexts that have the function `name`; `None` for one that all contexts have.
pub(crate) fn contexts(name: &str) -> Option<&'static [Context]> {
    Some(match name {
        "IsRootSpan" | "set_semconv_span_name" => &[Context::Span],
        "ParseCEF" | "ParseCLF" | "ParseELF" | "ParseLEEF" => &[Context::Log],
        "HasAttrKeyOnDatapoint"
        | "HasAttrOnDatapoint"
        | "convert_gauge_to_sum"
        | "convert_sum_to_gauge"
        | "scale_metric" => &[Context::Metric],
        "merge_histogram_buckets" => &[Context::DataPoint],
        _ => return None,
    })
}

/// The signal whose items alone have the function `name`.
#[must_use]
pub fn signal_of_function(name: &str) -> Option<Signal> {
    let (first, more) = contexts(name)?.split_first()?;
    let mut signals = [Signal::Traces, Signal::Metrics, Signal::Logs].into_iter();
    let signal = signals.find(|signal| first.is_in(*signal))?;
    more.iter().all(|context| context.is_in(signal)).then_some(signal)
}

/// Why a function that the Collector has is not here. `docs/pipelines.md` lists them.
pub(crate) fn refused(name: &str) -> Option<&'static str> {
    Some(match name {
        "GetXML"
        | "InsertXML"
        | "RemoveXML"
        | "ParseXML"
        | "ParseSimplifiedXML"
        | "ConvertAttributesToElementsXML"
        | "ConvertTextToElementsXML" => "XML needs a tree of objects for each record",
        "UserAgent" => {
            "it tries a thousand regular expressions of a database that changes; use `IsMatch` for those agents that matter"
        }
        "All" | "Any" | "Filter" | "Find" | "MapEach" | "MapKeys" | "Reduce" | "When" => {
            "it takes a lambda expression, which the Collector has behind a feature gate of an early stage"
        }
        "ProfileID" => "profiles pass unchanged",
        "route" => "it belongs to the Collector's routing connector; use `when` on sinks",
        "copy_metric"
        | "extract_count_metric"
        | "extract_sum_metric"
        | "extract_avg_metric"
        | "extract_percentile_metric"
        | "convert_summary_count_val_to_sum"
        | "convert_summary_quantile_val_to_gauge"
        | "convert_summary_sum_val_to_sum" => {
            "it makes a metric beside another, and a pipeline delivers no items that it did not receive"
        }
        "aggregate_on_attributes" | "aggregate_on_attribute_value" => {
            "it merges data points, and each that was received is delivered or counted as dropped"
        }
        "convert_exponential_histogram_to_histogram" => {
            "what it makes of the same histogram differs from version to version, and by default from call to call"
        }
        _ => return None,
    })
}
