//! The settings of all sinks about what they take, and in which form.

use crate::declare::settings;
use crate::setting::Sequence;
use crate::values::{Condition, Name};

settings! {
    /// The items that a sink takes, and the pipeline that they pass.
    pub struct SinkRouting {
        /// The pipeline that items pass through on their way to this sink: a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// OTTL conditions: the sink takes only items that meet at least one of them. A condition about one kind of
        /// telemetry leaves the others as they are.
        when: Option<Sequence<Condition>> = None,
        /// Whether the sink takes what no other sink takes by its `when`.
        otherwise: bool = false,
    }
}
