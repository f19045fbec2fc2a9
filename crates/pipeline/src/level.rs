//! Levels: which contexts are in which.

use crate::ottl::field::Context;
use tidegate_wire::otlp::Signal;

/// How many levels contexts have: resource, scope, item, and what is in an item.
pub(crate) const LEVELS: usize = 4;

impl Context {
    /// Its level.
    pub(crate) const fn level(self) -> usize {
        match self {
            Context::Resource => 0,
            Context::Scope => 1,
            Context::Span | Context::Log | Context::Metric => 2,
            Context::SpanEvent | Context::DataPoint => 3,
        }
    }

    /// Whether each `other` is in one of these, or is one.
    pub(crate) const fn encloses(self, other: Context) -> bool {
        match self {
            Context::Resource => true,
            Context::Scope => !matches!(other, Context::Resource),
            Context::Span => matches!(other, Context::Span | Context::SpanEvent),
            Context::Metric => matches!(other, Context::Metric | Context::DataPoint),
            Context::Log => matches!(other, Context::Log),
            Context::SpanEvent => matches!(other, Context::SpanEvent),
            Context::DataPoint => matches!(other, Context::DataPoint),
        }
    }

    /// Whether bodies of a signal have it.
    pub(crate) const fn is_in(self, signal: Signal) -> bool {
        match self {
            Context::Resource | Context::Scope => !matches!(signal, Signal::Profiles),
            Context::Span | Context::SpanEvent => matches!(signal, Signal::Traces),
            Context::Metric | Context::DataPoint => matches!(signal, Signal::Metrics),
            Context::Log => matches!(signal, Signal::Logs),
        }
    }
}
