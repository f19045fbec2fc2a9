use super::{Signal, SinkSettings};
use crate::declare::settings;
use crate::model::Route;
use crate::setting::Sequence;
use crate::values::{Condition, Name};

settings! {
    /// A sink that discards everything.
    pub struct BlackholeSink {
        /// Signals to accept; the sink skips everything else. It does not look into bodies: it accepts an Elastic APM
        /// body with several signals as a whole.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
        /// The pipeline that items pass through on their way to this sink: a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// OTTL conditions: the sink takes only items that meet at least one of them. A condition about one kind of
        /// telemetry leaves the others as they are.
        when: Option<Sequence<Condition>> = None,
        /// Whether the sink takes what no other sink takes by its `when`.
        otherwise: bool = false,
    }
}

impl SinkSettings for BlackholeSink {
    fn route(&self) -> Route<'_> {
        Route {
            pipeline: self.pipeline.as_ref(),
            when: self.when.as_deref().unwrap_or_default(),
            otherwise: self.otherwise,
            relabel: &[],
        }
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }
}
