//! The sink `http`.

use super::{SinkKind, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::path::Path;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{HttpFormat, HttpMethod, HttpSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Http, Json, Layout, Need, Otlp, OtlpSettings, Probe, SplunkHecSettings, Transport};

impl SinkKind for HttpSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        network::starter(self, settings, Http::start, Http::run)
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Http::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        network::declared(
            "connections to receivers of JSON, and coders",
            settings(self).map(|settings| Http::bytes(&settings)),
        )
    }

    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        Ok(Otlp::probes(&settings(self)?, network::signal(&self.signals))?)
    }

    fn files(&self) -> u64 {
        network::files(self.max_in_flight, &self.endpoints)
    }
}

fn settings(sink: &HttpSink) -> Result<OtlpSettings, Failure> {
    let layout = match sink.format {
        HttpFormat::Ndjson => Layout::Lines,
        HttpFormat::JsonArray => Layout::Array,
        HttpFormat::OtlpJson => Layout::Request,
    };
    let mut headers = network::headers(&sink.delivery.headers)?;
    if let Some(content_type) = &sink.content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type.as_str())?);
    }
    Ok(OtlpSettings {
        endpoints: network::endpoints(&sink.endpoints)?,
        transport: Transport::Json(Json { layout, put: sink.method == HttpMethod::Put }),
        splunk_hec: SplunkHecSettings::default(),
        compression: network::compression(sink.compression),
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
