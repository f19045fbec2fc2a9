//! The sink `otlp`.

mod routed;

use super::{SinkKind, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use std::path::Path;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, HandoffSettings, OtlpSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{
    Need, Otlp, OtlpSettings, Probe, RoutedOtlp, SplunkHecSettings, Transport, log_reserve,
};

impl SinkKind for OtlpSink {
    fn target(&self, _data: &Path) -> String {
        if self.route_by.is_some() { routed::target(self) } else { network::target(self.endpoints()) }
    }

    fn starter(&self) -> Starter {
        match self.route_by {
            Some(key) => routed::starter(self, key),
            None => network::starter(self, settings, Otlp::start, Otlp::run),
        }
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        match self.route_by {
            Some(key) => RoutedOtlp::need(routed::key(key), protocol, signal),
            None => Otlp::need(protocol, signal),
        }
    }

    fn log_reserve(&self, part: usize) -> usize {
        self.route_by.as_ref().map_or(0, |_| log_reserve(part, self.max_request_bytes.as_usize()))
    }

    fn declared(&self) -> Vec<Reservation> {
        if self.route_by.is_some() {
            return routed::declared(self);
        }
        network::declared(
            "connections to receivers of OTLP, and coders",
            settings(self).map(|settings| Otlp::bytes(&settings)),
        )
    }

    fn handoff(&self) -> Option<&HandoffSettings> {
        self.route_by.is_some().then_some(&self.handoff)
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        let mut settings = settings(self)?;
        if self.route_by.is_some() {
            settings.endpoints.extend(network::looked_up(&self.discovery)?);
        }
        Ok(Otlp::probes(&settings, network::signal(&self.signals))?)
    }

    fn files(&self) -> u64 {
        if self.route_by.is_some() {
            return routed::files(self);
        }
        match self.protocol {
            config::OtlpTransport::Grpc => network::files_over_http2(self.endpoints()),
            config::OtlpTransport::Http => network::files(self.max_in_flight, self.endpoints()),
        }
    }
}

fn settings(sink: &OtlpSink) -> Result<OtlpSettings, Failure> {
    Ok(OtlpSettings {
        endpoints: network::endpoints(sink.endpoints())?,
        transport: match sink.protocol {
            config::OtlpTransport::Grpc => Transport::Grpc,
            config::OtlpTransport::Http => Transport::Http,
        },
        splunk_hec: SplunkHecSettings::default(),
        compression: network::compression(sink.compression),
        join_members: sink.join_members,
        headers: network::headers(&sink.delivery.headers)?,
        tenant_header: network::tenant_header(sink.delivery.tenant_header.as_ref())?,
        tls: network::tls(&sink.delivery.tls),
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
        labels: Arc::default(),
    })
}
