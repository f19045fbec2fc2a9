//! The address of Thanos Receive: its service, and the metrics that are published by Thanos' names.

use super::rules;
use super::sinks::SinkSet;
use std::sync::Arc;
use tidegate_admission::tenancy::Tenancy;
use tidegate_arena::{MemoryPlan, Reservation};
use tidegate_config::Config;
use tidegate_meters::{Counter, Name, Registry};
use tidegate_sources::{Http, Readiness, ThanosMeters, ThanosReceive};

/// The type of the sink that sends to Thanos' ingestors.
const SINK: &str = "thanos_receive";

/// The header that names a tenant to every Thanos Receive, whatever its own is.
const TENANT_HEADER: &str = "thanos-tenant";

const RELOADS: Name = Name::plain(
    "thanos_receive_limits_config_reload",
    "How many times the configuration was reloaded, which has the limits",
)
.exact();
const RELOAD_ERRORS: Name = Name::plain(
    "thanos_receive_limits_config_reload_err",
    "How many times the configuration, which has the limits, failed to reload",
)
.exact();

/// Whether metrics are published by Thanos' names.
pub(super) fn has_metrics(config: &Config) -> bool {
    config.listen.thanos_receive.as_ref().is_some_and(|listener| listener.thanos_metrics)
}

/// The meters by Thanos' names, where the configuration asks for them.
pub(super) fn meters(config: &Config, registry: &Registry) -> Option<ThanosMeters> {
    has_metrics(config).then(|| ThanosMeters::new(registry))
}

/// The outcomes of reloads by Thanos' names.
#[derive(Debug)]
pub(super) struct ReloadMeters {
    successes: Counter,
    failures: Counter,
}

impl ReloadMeters {
    /// Published in `registry` where the configuration asks for it.
    pub(super) fn of(config: &Config, registry: &Registry) -> Option<ReloadMeters> {
        has_metrics(config).then(|| ReloadMeters {
            successes: registry.counter(RELOADS),
            failures: registry.counter(RELOAD_ERRORS),
        })
    }

    /// Counts a reload.
    pub(super) fn count(&self, has_succeeded: bool) {
        if has_succeeded { self.successes.increment() } else { self.failures.increment() }
    }
}

/// Declares the memory of what is published by Thanos' names.
pub(super) fn declare(plan: &mut MemoryPlan, config: &Config) {
    if has_metrics(config) {
        plan.declare(Reservation {
            owner: "meters",
            what: "series by the names of Thanos",
            count: 1,
            each: ThanosMeters::BYTES as u64,
            setting: Some("listen.thanos_receive.thanos_metrics"),
        });
    }
}

/// The sources as they are served at the address of Thanos Receive, where there is one.
pub(super) fn of(http: &Http, config: &Config, meters: Option<&ThanosMeters>, sinks: &Arc<SinkSet>) -> Http {
    let Some(listener) = &config.listen.thanos_receive else { return http.clone() };
    let tenancy = Tenancy {
        certificate: listener.tenant_certificate_field.map(rules::subject_field),
        header: Some(listener.tenant_header.as_str().into()),
        second_header: Some(TENANT_HEADER.into()),
        default: Some(listener.default_tenant.as_str().into()),
        required: true,
    };
    let replica_header = listener.replica_header.as_str().into();
    let settings = ThanosReceive { replica_header, meters: meters.cloned(), readiness: readiness(sinks) };
    http.thanos_receive(&settings, tenancy)
}

/// Ready while every sink `thanos_receive` has its hashrings.
fn readiness(sinks: &Arc<SinkSet>) -> Readiness {
    let sinks = Arc::downgrade(sinks);
    Readiness::new(move || {
        let Some(sinks) = sinks.upgrade() else { return false };
        sinks.shown().iter().filter(|sink| sink.kind == SINK).all(|sink| sink.health.has_forwarding())
    })
}
