//! Derives the bounds on accepted records from what the configured sinks can deliver.

use super::GatewayPlan;
use crate::Failure;
use crate::gateway::sinks::journal_signal;
use crate::gateway::sinks::kinds::{self, SinkKind};
use crate::gateway::sources::{self, SourceKind};
use std::fmt;
use tidegate_admission::{Deliverable, SizeLimit};
use tidegate_arena::Bytes;
use tidegate_config::{self as config, Config};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Signals, SinkCapacity, SinkPipeline};

/// A window's size beyond the requested length: a step of the arena each for the compressed and the decoded body.
const ROUNDING: u64 = 2 * (64 << 10);

/// The smallest useful bound on a body, in bytes: Prometheus sends 2,000 samples, an SDK 512 spans.
const LEAST_BODY: u64 = 256 << 10;
/// Where the search for a sufficient `memory` ends, in MiB.
const MOST_MIB: u64 = 16 << 10;

/// The largest requests that a source accepts.
#[derive(Clone)]
pub(crate) struct AcceptedSizes {
    /// Which source it is.
    pub(crate) source: &'static SourceKind,
    /// The value of its setting, in bytes.
    pub(crate) configured: u64,
    /// The largest body that every sink can deliver, in bytes: decompressed, and compressed if it came so.
    pub(crate) body: u64,
    /// The largest item with its envelope, in bytes.
    pub(crate) item: u64,
}

/// Checks that the plan fits its memory, and leaves room for requests of a usual size.
///
/// # Errors
/// The part that does not fit, and the memory that suffices.
pub(crate) fn check(config: &Config, planned: &GatewayPlan) -> Result<(), Failure> {
    planned.plan.check()?;
    let Some(small) = planned.announced.iter().find(|announced| announced.is_too_small()) else {
        return Ok(());
    };
    let memory = sufficient(config, planned, |more| !more.announced.iter().any(AcceptedSizes::is_too_small));
    Err(Failure(format!(
        "with `memory: {}` these sinks and pipelines can hold requests of at most {} (`{}`): raise `memory` to at least {memory}, or \
         configure fewer of them",
        planned.budget.bytes,
        Bytes(small.body),
        small.source.max_body_setting,
    )))
}

/// The least memory beyond the planned one, in whole MiB, whose plan `fits`; or the end of the search.
pub(crate) fn sufficient(
    config: &Config,
    planned: &GatewayPlan,
    fits: impl Fn(&GatewayPlan) -> bool,
) -> config::Bytes {
    // Compiled once.
    let compiled = (planned.pipelines.clone(), planned.source_pipelines.clone());
    let planned_with =
        |memory| super::with(&Config { memory: Some(memory), ..config.clone() }, compiled.clone());
    let mut mib = planned.budget.bytes.get() >> 20;
    loop {
        mib += 1;
        let memory = config::Bytes::mib(mib);
        if mib >= MOST_MIB || fits(&planned_with(memory)) {
            return memory;
        }
    }
}

/// The bounds that follow from the sinks of `config` and from the memory that `planned` gives each of them.
pub(super) fn bounds(config: &Config, planned: &GatewayPlan) -> Deliverable {
    Deliverable::new(|protocol, signal| {
        let takes = |(_, sink): &(&config::Name, &config::Sink)| {
            let signals: Signals = sink.signals().iter().map(journal_signal).collect();
            signals.take(protocol, signal)
        };
        let sinks = config.sinks.iter().filter(takes);
        let bounds = sinks.filter_map(|(name, sink)| {
            let (kind, memory) = (kinds::of(sink), (planned.most_of(sink), planned.slice));
            let pipeline = planned.pipelines.get(name.as_str());
            let capacity = capacity(kind, pipeline, memory, (protocol, signal));
            match planned.pipelines.copies(name.as_str(), protocol, signal) {
                Some(copies) => Some(through_pipeline(capacity, copies)),
                None => kind.need(protocol, signal).map(|_| {
                    let SinkCapacity { most, factor, item, .. } = capacity;
                    SizeLimit { most, factor, item }
                }),
            }
        });
        bounds.fold(SizeLimit::NONE, SizeLimit::and)
    })
}

/// The largest outputs of this `pipeline` that the sink can deliver, by protocol and signal. It can hold `most` bytes, and a
/// lake's writer has a slice of `slice` bytes.
pub(crate) fn capacities(
    kind: &dyn SinkKind,
    pipeline: &SinkPipeline,
    (most, slice): (u64, u64),
) -> Vec<(Protocol, Signal, SinkCapacity)> {
    let of = |(protocol, signal)| capacity(kind, Some(pipeline), (most, slice), (protocol, signal));
    SinkPipeline::RECORDS.into_iter().map(|record| (record.0, record.1, of(record))).collect()
}

/// The capacity of a sink that can hold `most` bytes for records of this protocol and signal.
fn capacity(
    kind: &dyn SinkKind,
    pipeline: Option<&SinkPipeline>,
    (most, slice): (u64, u64),
    (protocol, signal): (Protocol, Signal),
) -> SinkCapacity {
    let beside = |fixed: usize| {
        let left = most.saturating_sub(ROUNDING).saturating_sub(fixed as u64);
        usize::try_from(left).unwrap_or(usize::MAX)
    };
    let staging = beside(SinkPipeline::WORKING);
    let Some(need) = kind.need(protocol, signal) else {
        return SinkCapacity { staging, ..SinkCapacity::UNLIMITED };
    };
    let need = match pipeline {
        Some(pipeline) if kind.relabels_translated() && protocol == Protocol::Otlp => {
            pipeline.relabeled(need)
        }
        _ => need,
    };
    SinkCapacity { staging, most: beside(need.working), factor: need.factor, item: kind.largest_item(slice) }
}

/// The bound of a sink with a pipeline that, behind the pipeline, has this `capacity`: the pipeline has to hold a record so many
/// times, and the sink what comes out of it, which may be twice as long.
fn through_pipeline(capacity: SinkCapacity, copies: usize) -> SizeLimit {
    let SinkCapacity { staging, most, factor, item } = capacity;
    let staging = SizeLimit { most: staging / copies.max(1), ..SizeLimit::NONE };
    let grown = SinkPipeline::GROWTH.saturating_mul(factor + 1);
    let item = if item == usize::MAX { item } else { item.saturating_sub(SinkPipeline::GROWTH) / 2 };
    staging.and(SizeLimit { most: most.saturating_sub(grown) / 2, factor, item })
}

/// The largest requests that each source accepts.
pub(crate) fn announced(config: &Config, planned: &GatewayPlan) -> Vec<AcceptedSizes> {
    let of = |source: &'static SourceKind| {
        let bounds = source.records.iter().map(|(protocol, signal)| planned.bound(*protocol, *signal));
        let bound = bounds.fold(SizeLimit::NONE, SizeLimit::and);
        let of_pipeline = planned
            .source_pipelines
            .copies(source)
            .map_or(u64::MAX, |copies| planned.most_for_source_pipeline(copies));
        let (body, item) = (bound.largest_body() as u64, bound.largest_item() as u64);
        let (body, item) = (body.min(of_pipeline), item.min(of_pipeline));
        AcceptedSizes { source, configured: (source.max_body)(&config.sources), body, item }
    };
    sources::configured(config).map(of).collect()
}

impl AcceptedSizes {
    /// The longest body, in bytes.
    pub(crate) fn max_body(&self) -> usize {
        usize::try_from(self.configured.min(self.body)).unwrap_or(usize::MAX)
    }

    /// The longest item with its envelope, in bytes.
    pub(crate) fn max_item(&self) -> usize {
        usize::try_from(self.item).unwrap_or(usize::MAX)
    }

    /// Whether even requests of a usual size are too large.
    pub(super) fn is_too_small(&self) -> bool {
        self.body < self.configured.min(LEAST_BODY)
    }

    /// The warning about a setting that allows more than the sinks can deliver.
    pub(crate) fn shortfall(&self) -> String {
        format!(
            "requests of up to {} are accepted, not {}: the sinks, or the source's pipeline, cannot hold more with this `memory`",
            Bytes(self.body),
            Bytes(self.configured)
        )
    }

    /// Whether the setting allows more than can be delivered.
    pub(crate) fn is_short(&self) -> bool {
        // A page or two are not worth a warning.
        self.body < self.configured / 100 * 99 && self.source.runs.is_none()
    }
}

impl fmt::Display for AcceptedSizes {
    /// A line of `tidegate plan`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = Bytes(self.configured.min(self.body)).to_string();
        let item = Bytes(self.configured.min(self.item)).to_string();
        write!(f, "  {:<42} {body:>10} {item:>10}", self.source.max_body_setting)?;
        if self.is_short() { write!(f, "  of {} configured", Bytes(self.configured)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A sink can deliver whatever comes out of its pipeline, of every record that is accepted; and a record and an item
        /// may always become twice as long and 64 KiB longer.
        #[test]
        fn a_sink_can_deliver_what_its_pipeline_lets_through(
            staging in 1_usize << 21..1 << 28,
            most in 1_usize << 20..1 << 28,
            factor in 0_usize..20,
            item in prop_oneof![Just(usize::MAX), 1_usize << 16..1 << 24],
            passes in 1_usize..4,
            (body, share, packed) in (0.0..1.0, 0.0..1.0, any::<bool>()),
        ) {
            let capacity = SinkCapacity { staging, most, factor, item };
            let bound = through_pipeline(capacity, if passes > 1 { 9 } else { 6 });
            // With less the gateway does not start.
            prop_assume!(bound.largest_body() as u64 >= LEAST_BODY);
            let part = |of: f64, all: usize| (of * all as f64) as usize;
            let raw = part(body, bound.largest_body());
            let kept = if packed { raw / 10 } else { 0 };
            let largest = part(share, raw);
            let size = match packed {
                true => tidegate_admission::Size { kept, decoded: raw, item: largest },
                false => tidegate_admission::Size { kept: raw, decoded: 0, item: largest },
            };
            prop_assume!(bound.check(size).is_ok());
            let limits = capacity.limits(kept, raw, passes);
            let grown = largest + passes * limits.growth;
            prop_assert!(limits.body >= 2 * raw + SinkPipeline::GROWTH);
            prop_assert!(largest + passes * (limits.growth + 1) > 2 * largest + SinkPipeline::GROWTH);
            let longest = grown.min(limits.body);
            prop_assert!(limits.body + factor * longest <= most, "{limits:?}");
            prop_assert!(longest <= item, "{limits:?}");
            prop_assert!(passes > 1 || limits.body <= 2 * raw + SinkPipeline::GROWTH
                || kept + raw + tidegate_pipeline::Pipeline::scratch_bytes(raw) + limits.body <= staging);
        }
    }
}
