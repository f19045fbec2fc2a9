//! The sink `splunk_hec`.

use super::{SinkKind, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use hyper::header::{AUTHORIZATION, HeaderValue};
use std::path::Path;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{BulkCompression, SplunkHecSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{
    Compression, IndexerAcknowledgement, Metadata, MetadataField, Need, Otlp, OtlpSettings, Probe, SplunkHec,
    SplunkHecSettings, Transport,
};

impl SinkKind for SplunkHecSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        network::starter(self, settings, SplunkHec::start, SplunkHec::run)
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        SplunkHec::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        network::declared(
            "connections to Splunk, and coders",
            settings(self).map(|settings| SplunkHec::bytes(&settings)),
        )
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        Ok(Otlp::probes(&settings(self)?, Signal::Logs)?)
    }

    fn files(&self) -> u64 {
        // One more connection asks whether events are indexed.
        network::files(self.max_in_flight.saturating_add(self.acknowledgement.into()), &self.endpoints)
    }
}

fn settings(sink: &SplunkHecSink) -> Result<OtlpSettings, Failure> {
    let mut headers = network::headers(&sink.delivery.headers)?;
    let mut token = HeaderValue::from_str(&format!("Splunk {}", sink.token.expose()))?;
    token.set_sensitive(true);
    headers.insert(AUTHORIZATION, token);
    let field = |attribute: &str, default: &Option<String>| MetadataField {
        attribute: attribute.to_owned(),
        default: default.clone(),
    };
    let metadata = Metadata {
        host: field(&sink.host_attribute, &sink.host),
        source: field(&sink.source_attribute, &sink.source),
        sourcetype: field(&sink.sourcetype_attribute, &sink.sourcetype),
        index: field(&sink.index_attribute, &sink.index),
    };
    let acknowledgement = IndexerAcknowledgement {
        interval: sink.acknowledgement_interval.get(),
        timeout: sink.acknowledgement_timeout.get(),
    };
    Ok(OtlpSettings {
        endpoints: network::endpoints(&sink.endpoints)?,
        transport: Transport::SplunkHec,
        splunk_hec: SplunkHecSettings {
            metadata: Arc::new(metadata),
            acknowledgement: sink.acknowledgement.then_some(acknowledgement),
        },
        compression: match sink.compression {
            BulkCompression::None => Compression::None,
            BulkCompression::Gzip => Compression::Gzip(network::GZIP),
        },
        join_members: false,
        headers,
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
