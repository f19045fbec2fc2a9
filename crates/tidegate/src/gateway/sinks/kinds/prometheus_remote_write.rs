//! The sink `prometheus_remote_write`.

pub(crate) mod sharded;

use super::{SinkKind, line, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, Deltas, HandoffSettings, RemoteWriteSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{
    Naming, Need, Prefer, Probe, RemoteWrite, RemoteWriteSettings, ShardedRemoteWrite, Translation,
    log_reserve,
};

impl SinkKind for RemoteWriteSink {
    fn target(&self, _data: &Path) -> String {
        if self.shard_by.is_some() { sharded::target(self) } else { network::target(self.endpoints()) }
    }

    fn starter(&self) -> Starter {
        match &self.shard_by {
            Some(shard_by) => sharded::starter(self, shard_by),
            None => network::starter(self, settings, RemoteWrite::start, RemoteWrite::run),
        }
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        if self.shard_by.is_some() {
            ShardedRemoteWrite::need(protocol, signal)
        } else {
            RemoteWrite::need(protocol, signal)
        }
    }

    fn relabels_translated(&self) -> bool {
        true
    }

    fn log_reserve(&self, part: usize) -> usize {
        self.shard_by.as_ref().map_or(0, |_| log_reserve(part, self.max_request_bytes.as_usize()))
    }

    fn declared(&self) -> Vec<Reservation> {
        if self.shard_by.is_some() {
            return sharded::declared(self);
        }
        let setting = Some("sinks.….max_in_flight");
        let connections = u64::from(self.max_in_flight()) * self.endpoints().len() as u64;
        let each = RemoteWrite::LANE_BYTES as u64;
        let mut lines = vec![line("a connection to a peer", connections, each, setting)];
        if self.otlp.deltas == Deltas::Accumulate {
            let bytes = RemoteWrite::delta_bytes(self.otlp.delta_series as usize) as u64;
            lines.push(line("series with accumulated deltas", 1, bytes, Some("sinks.….otlp.delta_series")));
        }
        let secure = self.endpoints().iter().filter(|url| url.is_https()).count() as u64;
        if secure > 0 {
            lines.push(line("the roots that TLS trusts", secure, RemoteWrite::ROOTS_BYTES as u64, None));
            lines.push(line("a TLS session", connections, 64 << 10, setting));
        }
        lines
    }

    fn handoff(&self) -> Option<&HandoffSettings> {
        self.shard_by.is_some().then_some(&self.handoff)
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        let mut settings = settings(self)?;
        if self.shard_by.is_some() {
            settings.endpoints.extend(network::looked_up(&self.discovery)?);
        }
        Ok(RemoteWrite::probes(&settings))
    }

    fn files(&self) -> u64 {
        if self.shard_by.is_some() {
            return sharded::files(self);
        }
        network::PER_CONNECTION * u64::from(self.max_in_flight()) * self.endpoints().len() as u64
    }
}

fn settings(sink: &RemoteWriteSink) -> Result<RemoteWriteSettings, Failure> {
    Ok(RemoteWriteSettings {
        endpoints: network::endpoints(sink.endpoints())?,
        tls: network::tls(&sink.delivery.tls),
        headers: network::headers(&sink.delivery.headers)?,
        tenant_header: network::tenant_header(sink.delivery.tenant_header.as_ref())?,
        prefer: match sink.protocol {
            config::Protocol::Auto => Prefer::AsReceived,
            config::Protocol::V1 => Prefer::V1,
            config::Protocol::V2 => Prefer::V2,
        },
        lanes: sink.max_in_flight() as usize,
        max_bytes: sink.max_request_bytes.as_usize(),
        max_items: u64::from(sink.max_request_samples),
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
        otlp: translation(&sink.otlp),
    })
}

pub(super) fn translation(otlp: &config::Translation) -> Translation {
    Translation {
        naming: match otlp.naming {
            config::Naming::UnderscoreEscapingWithSuffixes => Naming::UnderscoreEscapingWithSuffixes,
            config::Naming::UnderscoreEscapingWithoutSuffixes => Naming::UnderscoreEscapingWithoutSuffixes,
            config::Naming::NoUTF8EscapingWithSuffixes => Naming::NoUTF8EscapingWithSuffixes,
            config::Naming::NoTranslation => Naming::NoTranslation,
        },
        promote: otlp.promote.clone().unwrap_or_default(),
        scope_labels: otlp.scope_labels,
        target_info: otlp.target_info,
        delta_series: match otlp.deltas {
            config::Deltas::Refuse => 0,
            config::Deltas::Accumulate => otlp.delta_series as usize,
        },
    }
}
