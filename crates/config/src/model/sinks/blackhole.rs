use super::{Signal, SinkRouting, SinkSample, SinkSettings};
use crate::declare::settings;

settings! {
    /// A sink that discards everything.
    pub struct BlackholeSink with routing: SinkRouting {
        /// Signals to accept; the sink skips everything else. It does not look into bodies: it accepts an Elastic APM
        /// body with several signals as a whole.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
        /// The part of the traces that it takes, decided when they are complete. Default: all.
        sample: Option<SinkSample> = None,
    }
}

impl SinkSettings for BlackholeSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn sample(&self) -> Option<&SinkSample> {
        self.sample.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }
}
