/// What kind of telemetry an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Samples, histograms, exemplars, metadata.
    Metrics,
    /// Log records.
    Logs,
    /// Spans.
    Traces,
    /// Everything else: documents, profiles, agent events.
    Events,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::Logs, Self::Traces, Self::Events];

    /// The label value and the word for it on the pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::Events => "events",
        }
    }
}

/// What one request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The kind of its items.
    pub signal: Signal,
    /// How many items.
    pub items: u64,
    /// The body's bytes as they came.
    pub bytes: u64,
}
