//! The sink `thanos_receive`.

use super::{SinkKind, line, network, prometheus_remote_write, spread};
use crate::Failure;
use crate::gateway::sinks::start::{SinkEnvironment, Starter};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{
    Config, HandoffSettings, HashringAlgorithm, IngestorVersion, Sink, ThanosCompression, ThanosReceiveSink,
};
use tidegate_journal::{Protocol, Signal, Tenant};
use tidegate_ring::{Algorithm, MultiRing, RingConfig, RingSettings};
use tidegate_sinks::{
    Hashrings, Need, Probe, ThanosLayout, ThanosReceive, ThanosReceiveSettings, check_hashrings,
    describe_hashrings, log_reserve,
};

/// How many tenants' rings are cached.
const CACHED_TENANTS: usize = 1024;
/// The tenant of data without one, as Thanos has it.
pub(crate) const DEFAULT_TENANT: &str = "default-tenant";

impl SinkKind for ThanosReceiveSink {
    fn target(&self, _data: &Path) -> String {
        match &self.hashrings_file {
            Some(file) => format!("the hashrings in {}", file.display()),
            None => format!("{} members of its hashrings", addresses(&rings(self))),
        }
    }

    fn starter(&self) -> Starter {
        let config = self.clone();
        Starter::task(move |wiring| {
            let settings = settings(&config, wiring).map_err(|Failure(error)| error)?;
            let sink =
                ThanosReceive::start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
            Ok(sink.map_err(|error| error.to_string())?.run())
        })
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        ThanosReceive::need(protocol, signal)
    }

    fn log_reserve(&self, part: usize) -> usize {
        log_reserve(part, self.max_request_bytes.as_usize())
    }

    fn relabels_translated(&self) -> bool {
        true
    }

    fn declared(&self) -> Vec<Reservation> {
        let (configs, most) = (rings(self), max_members(self));
        let rings = MultiRing::footprint(&configs, &ring_settings(self));
        let members = Some("sinks.….max_members");
        let mut lines = vec![
            line(
                "a member of the hashrings, with its connection",
                most as u64,
                ThanosReceive::member_bytes(self.secure) as u64,
                members,
            ),
            line(
                "a request of each replica to each of them, while it fills",
                most as u64 * u64::from(self.replication_factor),
                ThanosReceive::request_bytes() as u64,
                members,
            ),
            // New ones are built while the old ones are in use.
            line("hashrings", 1, (rings.resident + rings.building) as u64, None),
            line("coders and records in flight", 1, ThanosReceive::bytes() as u64, None),
        ];
        lines.extend(handoff(self, Path::new("")).overhead());
        lines
    }

    fn handoff(&self) -> Option<&HandoffSettings> {
        Some(&self.handoff)
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        let (headers, tls) = (network::headers(&self.delivery.headers)?, network::tls(&self.delivery.tls));
        let (configs, _) = described(self)?;
        let addresses: BTreeSet<&str> =
            configs.iter().flat_map(|ring| &ring.endpoints).map(|endpoint| &*endpoint.address).collect();
        let probe = |address| Ok(ThanosReceive::probe(address, self.secure, &headers, &tls)?);
        addresses.into_iter().map(probe).collect()
    }

    fn files(&self) -> u64 {
        network::PER_CONNECTION * 2 * max_members(self) as u64
            + handoff(self, Path::new("")).descriptors()
            + 1
    }
}

/// The hashrings of a sink as they are described now, and how they are built.
///
/// # Errors
/// When their file cannot be read.
pub(crate) fn described(sink: &ThanosReceiveSink) -> Result<(Vec<RingConfig>, RingSettings), Failure> {
    Ok((describe_hashrings(&hashrings(sink))?, ring_settings(sink)))
}

/// The errors in the hashrings of all sinks, and what an operator should know of them.
pub(crate) fn check(config: &Config) -> (Vec<String>, Vec<String>) {
    let (mut errors, mut notes) = (Vec::new(), Vec::new());
    for (name, sink) in &config.sinks {
        let Sink::ThanosReceive(sink) = sink else { continue };
        let built = described(sink).and_then(|(configs, settings)| {
            check_hashrings(&configs, &settings, max_members(sink))?;
            Ok(MultiRing::warnings(&configs, &settings))
        });
        match built {
            Ok(warnings) => {
                notes.extend(warnings.iter().map(|warning| format!("sinks.{name}: {warning}")));
            }
            Err(Failure(error)) => errors.push(format!("sinks.{name}: {error}")),
        }
    }
    (errors, notes)
}

fn settings(sink: &ThanosReceiveSink, wiring: &SinkEnvironment) -> Result<ThanosReceiveSettings, Failure> {
    let tenant = sink.default_tenant.as_ref().map_or(DEFAULT_TENANT, |tenant| tenant.as_str());
    let folder = wiring.data.join("handoff").join(&wiring.name);
    Ok(ThanosReceiveSettings {
        hashrings: hashrings(sink),
        ring: ring_settings(sink),
        max_members: max_members(sink),
        default_tenant: Tenant::new(tenant).unwrap_or(Tenant::NONE),
        split_tenant_label: sink.split_tenant_label.clone(),
        otlp: prometheus_remote_write::translation(&sink.otlp),
        layout: match sink.ingestors {
            IngestorVersion::V042 => ThanosLayout::SingleTenant,
            IngestorVersion::V043 => ThanosLayout::TenantTuples,
        },
        is_compressed: sink.compression == ThanosCompression::Snappy,
        is_secure: sink.secure,
        tls: network::tls(&sink.delivery.tls),
        headers: network::headers(&sink.delivery.headers)?,
        max_request_bytes: sink.max_request_bytes.as_usize(),
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
        patience: sink.handoff.after.get(),
        handoff: handoff(sink, &folder),
    })
}

fn handoff(sink: &ThanosReceiveSink, folder: &Path) -> tidegate_handoff::Settings {
    spread::handoff(&sink.handoff, max_members(sink), folder)
}

fn ring_settings(sink: &ThanosReceiveSink) -> RingSettings {
    RingSettings {
        algorithm: match sink.algorithm {
            HashringAlgorithm::Hashmod => Algorithm::Hashmod,
            HashringAlgorithm::Ketama => Algorithm::Ketama,
        },
        replication: sink.replication_factor as usize,
        cached_tenants: CACHED_TENANTS,
    }
}

fn hashrings(sink: &ThanosReceiveSink) -> Hashrings {
    match (&sink.hashrings_file, &sink.hashrings) {
        (Some(file), _) => Hashrings::File(file.clone()),
        (None, rings) => Hashrings::Inline(
            rings.iter().flat_map(|rings| rings.iter()).map(|ring| ring.ring().clone()).collect(),
        ),
    }
}

/// The rings as they are described now. Those that cannot be read are refused at the start.
fn rings(sink: &ThanosReceiveSink) -> Vec<RingConfig> {
    describe_hashrings(&hashrings(sink)).unwrap_or_default()
}

fn addresses(rings: &[RingConfig]) -> usize {
    let endpoints = rings.iter().flat_map(|ring| &ring.endpoints);
    endpoints.map(|endpoint| &endpoint.address).collect::<HashSet<_>>().len()
}

/// The most members that are planned for.
fn max_members(sink: &ThanosReceiveSink) -> usize {
    /// Fewer are not worth a refusal.
    const LEAST: usize = 4;
    sink.max_members.map_or_else(|| (2 * addresses(&rings(sink))).max(LEAST), |most| most as usize)
}
