use super::Signal;
use crate::declare::settings;

settings! {
    /// A sink that forgets.
    pub struct BlackholeSink {
        /// What is taken; everything else passes it by.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
    }
}
