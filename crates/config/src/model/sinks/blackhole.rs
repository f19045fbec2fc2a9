use super::{Signal, SinkSettings};
use crate::declare::settings;

settings! {
    /// A sink that discards everything.
    pub struct BlackholeSink {
        /// Signals to accept; the sink skips everything else. It does not look into bodies: it accepts an Elastic APM
        /// body with several signals as a whole.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
    }
}

impl SinkSettings for BlackholeSink {
    fn signals(&self) -> &[Signal] {
        &self.signals
    }
}
