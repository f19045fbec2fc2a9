//! The sink `loki`.

use super::{SinkKind, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use std::path::Path;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::LokiSink;
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{
    Compression, LabelRules, Loki, Need, Otlp, OtlpSettings, Probe, SplunkHecSettings, Transport,
};

impl SinkKind for LokiSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        network::starter(self, settings, Loki::start, Loki::run)
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Loki::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        network::declared(
            "connections to Loki, and coders",
            settings(self).map(|settings| Loki::bytes(&settings)),
        )
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        Ok(Otlp::probes(&settings(self)?, Signal::Logs)?)
    }

    fn files(&self) -> u64 {
        network::files(self.max_in_flight, &self.endpoints)
    }
}

fn settings(sink: &LokiSink) -> Result<OtlpSettings, Failure> {
    let labels = match &sink.labels {
        Some(attributes) => LabelRules::new(attributes.iter().map(String::as_str)),
        None => LabelRules::default(),
    };
    Ok(OtlpSettings {
        endpoints: network::endpoints(&sink.endpoints)?,
        transport: Transport::Loki,
        splunk_hec: SplunkHecSettings::default(),
        // Push requests are in Snappy already.
        compression: Compression::None,
        join_members: false,
        headers: network::headers(&sink.delivery.headers)?,
        tenant_header: network::tenant_header(sink.delivery.tenant_header.as_ref())?,
        tls: network::tls(&sink.delivery.tls),
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.delivery.backoff.min.get(), sink.delivery.backoff.max.get()),
        labels: Arc::new(labels),
    })
}
