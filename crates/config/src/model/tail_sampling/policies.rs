//! The settings of policies: those of the Collector's tail sampling processor, under its names.

use std::ops::Deref;

use crate::declare::{choices, settings};
use crate::reader::Reader;
use crate::setting::{PlainValue, ScalarShape, Sequence, Setting, Shape};
use crate::values::{Integer, Percentage, Text};
use crate::yaml::Node;

/// The policies of a sink. Their settings have a page of their own, `docs/tail-sampling.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailPolicies(Sequence<TailPolicy>);

impl Deref for TailPolicies {
    type Target = [TailPolicy];

    fn deref(&self) -> &[TailPolicy] {
        &self.0
    }
}

impl Setting for TailPolicies {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<TailPolicies> {
        Sequence::read(node, reader).map(TailPolicies)
    }

    fn shape() -> Shape {
        Shape::Scalar(ScalarShape {
            what: "policies",
            example: "[{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]",
            notation: "A list of policies: docs/tail-sampling.md.",
            choices: Vec::new(),
            schema: || crate::schema::shape(&Sequence::<TailPolicy>::shape()),
        })
    }

    fn plain(&self) -> PlainValue {
        self.0.plain()
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.0.secrets(out);
    }
}

choices! {
    /// The type of a policy.
    pub enum PolicyType is "a type of policy" {
        /// Keeps all traces.
        AlwaysSample = "always_sample",
        /// By how long a trace took.
        Latency = "latency",
        /// By an attribute that is a number.
        NumericAttribute = "numeric_attribute",
        /// A part of the traces.
        Probabilistic = "probabilistic",
        /// By the status of spans.
        StatusCode = "status_code",
        /// By an attribute that is a text.
        StringAttribute = "string_attribute",
        /// So many spans a second.
        RateLimiting = "rate_limiting",
        /// By how many spans a trace has.
        SpanCount = "span_count",
        /// By a member of the trace state.
        TraceState = "trace_state",
        /// By an attribute that is true or false.
        BooleanAttribute = "boolean_attribute",
        /// By conditions in OTTL.
        OttlCondition = "ottl_condition",
        /// By the flag `sampled` of spans.
        TraceFlags = "trace_flags",
        /// Keeps the traces that all of some policies keep.
        And = "and",
        /// Keeps the traces that a policy does not keep.
        Not = "not",
        /// Drops what all of some policies keep.
        Drop = "drop",
        /// Some policies, each within a rate of its own.
        Composite = "composite",
    }
}

settings! {
    /// A policy.
    pub struct TailPolicy with details: PolicyDetails {
        /// Its name, for metrics and `tidegate sample explain`.
        name: String,
        /// Its type. The setting of that name has the details.
        r#type: PolicyType,
        /// Keeps the traces that all of some policies keep.
        and: Option<AndPolicy> = None,
        /// Keeps the traces that a policy does not keep.
        not: Option<NotPolicy> = None,
        /// Drops traces, whatever other policies keep.
        drop: Option<DropPolicy> = None,
        /// Some policies, each within a rate of its own.
        composite: Option<CompositePolicy> = None,
    }
}

settings! {
    /// A policy in `and`, `not` or `drop`.
    pub struct SubPolicy with details: PolicyDetails {
        /// Its name.
        name: String,
        /// Its type. The setting of that name has the details.
        r#type: PolicyType,
    }
}

settings! {
    /// A policy in `composite`.
    pub struct CompositeSubPolicy with details: PolicyDetails {
        /// Its name.
        name: String,
        /// Its type. The setting of that name has the details.
        r#type: PolicyType,
        /// Keeps the traces that all of some policies keep.
        and: Option<AndPolicy> = None,
    }
}

settings! {
    /// The details of a policy, by its type.
    pub struct PolicyDetails {
        /// The duration from the first start of a span to the last end.
        latency: Option<LatencyPolicy> = None,
        /// An attribute of a span or its resource that is a number.
        numeric_attribute: Option<NumericAttributePolicy> = None,
        /// A part of the traces, by a hash of the trace id.
        probabilistic: Option<ProbabilisticPolicy> = None,
        /// The status of a span.
        status_code: Option<StatusCodePolicy> = None,
        /// An attribute of a span or its resource that is a text.
        string_attribute: Option<StringAttributePolicy> = None,
        /// A rate.
        rate_limiting: Option<RateLimitingPolicy> = None,
        /// The number of spans.
        span_count: Option<SpanCountPolicy> = None,
        /// A member of a span's trace state.
        trace_state: Option<TraceStatePolicy> = None,
        /// An attribute of a span or its resource that is true or false.
        boolean_attribute: Option<BooleanAttributePolicy> = None,
        /// Conditions.
        ottl_condition: Option<OttlConditionPolicy> = None,
    }
}

settings! {
    /// Keeps traces by their duration.
    pub struct LatencyPolicy {
        /// The least duration, in milliseconds. With `upper_threshold_ms` it is left out itself.
        threshold_ms: u32 = 0,
        /// The greatest duration, in milliseconds; 0 for none.
        upper_threshold_ms: u32 = 0,
    }
}

settings! {
    /// Keeps traces by a number. What is no integer counts as 0.
    pub struct NumericAttributePolicy {
        /// The attribute.
        key: String,
        /// The least value. Default: any.
        min_value: Option<Integer> = None,
        /// The greatest value. Default: any.
        max_value: Option<Integer> = None,
        /// Keeps traces without such a span instead.
        invert_match: bool = false,
    }
}

settings! {
    /// Keeps a part of the traces.
    pub struct ProbabilisticPolicy {
        /// Gateways with the same salt keep the same traces. Default: the Collector's.
        hash_salt: Option<String> = None,
        /// The part, in percent.
        sampling_percentage: Percentage,
    }
}

choices! {
    /// The status of a span.
    pub enum SpanStatus is "a status" {
        /// None was set.
        Unset = "UNSET",
        /// It succeeded.
        Ok = "OK",
        /// It failed.
        Error = "ERROR",
    }
}

settings! {
    /// Keeps traces by the status of their spans.
    pub struct StatusCodePolicy {
        /// The statuses.
        status_codes: Vec<SpanStatus>,
    }
}

settings! {
    /// Keeps traces by a text.
    pub struct StringAttributePolicy {
        /// The attribute.
        key: String,
        /// The values, or patterns.
        values: Sequence<Text>,
        /// Whether they are regular expressions, which match anywhere in a value.
        enabled_regex_matching: bool = false,
        /// Without effect: no results are cached.
        cache_max_size: Option<u32> = None,
        /// Keeps traces without such a span instead.
        invert_match: bool = false,
    }
}

settings! {
    /// Keeps traces within a rate.
    pub struct RateLimitingPolicy {
        /// Fewer spans than this are kept in a second.
        spans_per_second: u32,
    }
}

settings! {
    /// Keeps traces by the number of their spans.
    pub struct SpanCountPolicy {
        /// The least.
        min_spans: u32 = 0,
        /// The most; 0 for any number.
        max_spans: u32 = 0,
    }
}

settings! {
    /// Keeps traces by a member of the trace state.
    pub struct TraceStatePolicy {
        /// The key of the member.
        key: String,
        /// Its values.
        values: Sequence<Text>,
    }
}

settings! {
    /// Keeps traces by an attribute that is true or false. What is neither counts as false.
    pub struct BooleanAttributePolicy {
        /// The attribute.
        key: String,
        /// Its value.
        value: bool,
        /// Keeps traces without such a span instead.
        invert_match: bool = false,
    }
}

choices! {
    /// Treatment of conditions that fail.
    pub enum ConditionErrors is "a treatment of errors" {
        /// The span does not meet the condition, and the failure is counted.
        Ignore = "ignore",
        /// The same.
        Silent = "silent",
        /// The same. The Collector does not keep the trace by this policy then.
        Propagate = "propagate",
    }
}

settings! {
    /// Keeps traces with a span or an event that meets a condition.
    pub struct OttlConditionPolicy {
        /// Treatment of conditions that fail.
        error_mode: ConditionErrors = ConditionErrors::Ignore,
        /// Conditions on spans.
        span: Option<Sequence<Text>> = None,
        /// Conditions on events of spans.
        spanevent: Option<Sequence<Text>> = None,
    }
}

settings! {
    /// Keeps what all of these keep.
    pub struct AndPolicy {
        /// The policies.
        and_sub_policy: Sequence<SubPolicy>,
    }
}

settings! {
    /// Keeps what this does not keep.
    pub struct NotPolicy {
        /// The policy.
        not_sub_policy: SubPolicy,
    }
}

settings! {
    /// Drops what all of these keep.
    pub struct DropPolicy {
        /// The policies.
        drop_sub_policy: Sequence<SubPolicy>,
    }
}

settings! {
    /// The first of these that keeps a trace decides, within a rate of its own.
    pub struct CompositePolicy {
        /// The most spans a second of each of them.
        max_total_spans_per_second: u32,
        /// The names of the policies, in their order: as in the Collector they are asked in the order of `composite_sub_policy`.
        policy_order: Option<Sequence<Text>> = None,
        /// The policies.
        composite_sub_policy: Sequence<CompositeSubPolicy>,
        /// The rates. Without an entry a policy keeps nothing.
        rate_allocation: Sequence<RateAllocation> = Sequence::from(Vec::new()),
    }
}

settings! {
    /// The rate of a policy in `composite`.
    pub struct RateAllocation {
        /// The name of the policy.
        policy: String,
        /// Its part of `max_total_spans_per_second`, in percent; 0 for an equal part.
        percent: u32 = 0,
    }
}
