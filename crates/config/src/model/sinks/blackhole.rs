use super::{Signal, SinkSettings};
use crate::declare::settings;

settings! {
    /// A sink that forgets.
    pub struct BlackholeSink {
        /// What is taken; everything else passes it by. Bodies are not looked into: of Elastic APM one with several
        /// signals is taken whole.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
    }
}

impl SinkSettings for BlackholeSink {
    fn signals(&self) -> &[Signal] {
        &self.signals
    }
}
