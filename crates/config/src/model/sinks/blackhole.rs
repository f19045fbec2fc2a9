use super::{Signal, SinkRouting, SinkSettings};
use crate::declare::settings;

settings! {
    /// A sink that discards everything.
    pub struct BlackholeSink with routing: SinkRouting {
        /// Signals to accept; the sink skips everything else. It does not look into bodies: it accepts an Elastic APM
        /// body with several signals as a whole.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
    }
}

impl SinkSettings for BlackholeSink {
    fn routing(&self) -> &SinkRouting {
        &self.routing
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }
}
