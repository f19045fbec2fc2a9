//! The memory of the sinks, by which they are started.

use super::kinds;
use crate::gateway::plan::GatewayPlan;
use std::collections::BTreeMap;
use tidegate_arena::{Floors, Share};
use tidegate_config::{Name, Sink};

/// The memory of each sink, from the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SinkMemory {
    pub(super) total: u64,
    pub(super) floors: Floors,
    /// The lake writer's slice.
    pub(super) slice: u64,
    /// A lake's part of what is read from the journal.
    pub(super) lake: usize,
    /// Any other sink's.
    pub(super) other: usize,
}

impl SinkMemory {
    pub(super) fn of(planned: &GatewayPlan, sinks: &BTreeMap<Name, Sink>) -> SinkMemory {
        let others = sinks.values().filter(|sink| kinds::of(sink).share() != Share::Lake).count();
        // With those that read ahead of them.
        let others = others + usize::try_from(planned.pipelines.samplers()).unwrap_or(0);
        let floors = planned.plan.floors();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        SinkMemory {
            total: planned.plan.payload(),
            floors,
            slice: planned.slice,
            lake: bytes(planned.lake_part),
            other: bytes(floors.of(Share::Egress)) / others.max(1),
        }
    }

    /// The part of a sink that is charged to this share.
    pub(super) fn charged_to(&self, share: Share) -> usize {
        if share == Share::Lake { self.lake } else { self.other }
    }
}
