//! The classes of events, and the signals that carry them.

/// How much an event is worth when there is no room for all, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// a metric: the next one says nearly the same
    Metric,
    /// a span inside a transaction
    Span,
    /// a log record below ERROR
    Log,
    /// a request served, or a root span
    Transaction,
    /// a span that failed, or a log record of ERROR and above
    Error,
}

impl Class {
    /// All classes, least valuable first.
    pub const ALL: [Class; 5] = [Class::Metric, Class::Span, Class::Log, Class::Transaction, Class::Error];

    /// Its name in counters and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Metric => "metric",
            Class::Span => "span",
            Class::Log => "log",
            Class::Transaction => "transaction",
            Class::Error => "error",
        }
    }
}

/// The three requests of OTLP. An intake v2 request takes all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// spans
    Traces,
    /// log records
    Logs,
    /// metrics
    Metrics,
}

impl Signal {
    /// All signals.
    pub const ALL: [Signal; 3] = [Signal::Traces, Signal::Logs, Signal::Metrics];

    /// Its name in addresses and environment variables, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Logs => "logs",
            Signal::Metrics => "metrics",
        }
    }
}

/// The contents of a block of the ring: one class of one signal, so that a block can be dropped or sent as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Metric,
    Span,
    Log,
    Transaction,
    ErrorSpan,
    ErrorLog,
}

impl Kind {
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Metric, Kind::Span, Kind::Log, Kind::Transaction, Kind::ErrorSpan, Kind::ErrorLog];

    pub(crate) const fn class(self) -> Class {
        match self {
            Kind::Metric => Class::Metric,
            Kind::Span => Class::Span,
            Kind::Log => Class::Log,
            Kind::Transaction => Class::Transaction,
            Kind::ErrorSpan | Kind::ErrorLog => Class::Error,
        }
    }

    pub(crate) const fn signal(self) -> Signal {
        match self {
            Kind::Metric => Signal::Metrics,
            Kind::Span | Kind::Transaction | Kind::ErrorSpan => Signal::Traces,
            Kind::Log | Kind::ErrorLog => Signal::Logs,
        }
    }
}

/// Why an event was not, or not any more, sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// it was in the ring, and had to make room for what is newer or more valuable
    Evicted,
    /// the ring holds nothing less valuable that could make room for it
    Full,
    /// larger than one event may be
    TooLarge,
    /// a `Display` or list showed another length the second time, or panicked
    Unstable,
    /// the peer answered that it will never take it
    Rejected,
    /// called after `shutdown`, or left over when its time was up
    Shutdown,
    /// the `tracing` layer had no place left to keep an open span
    TooManyOpen,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 7] = [
        Reason::Evicted,
        Reason::Full,
        Reason::TooLarge,
        Reason::Unstable,
        Reason::Rejected,
        Reason::Shutdown,
        Reason::TooManyOpen,
    ];

    /// Its name in counters and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Evicted => "evicted",
            Reason::Full => "full",
            Reason::TooLarge => "too_large",
            Reason::Unstable => "unstable",
            Reason::Rejected => "rejected",
            Reason::Shutdown => "shutdown",
            Reason::TooManyOpen => "too_many_open",
        }
    }
}
