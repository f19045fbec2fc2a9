//! The sink `http`.

use super::{SinkKind, line, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use hyper::Uri;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{HttpFormat, HttpMethod, HttpSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Http, Json, Layout, Need, OtlpSettings, Transport};

impl SinkKind for HttpSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        let config = self.clone();
        Starter::task(move |wiring| {
            let settings = settings(&config).map_err(|Failure(error)| error)?;
            let sink = Http::start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
            Ok(sink.map_err(|error| error.to_string())?.run())
        })
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Http::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        // Settings that make no sense are refused when the sink is started.
        let bytes = settings(self).map_or(0, |settings| Http::bytes(&settings)) as u64;
        let what = "connections to receivers of JSON, and coders";
        vec![line(what, 1, bytes, Some("sinks.….max_in_flight"))]
    }

    fn files(&self) -> u64 {
        network::files(self.max_in_flight, &self.endpoints)
    }
}

fn settings(sink: &HttpSink) -> Result<OtlpSettings, Failure> {
    let endpoints: Result<_, _> = sink.endpoints.iter().map(|url| Uri::try_from(url.expose())).collect();
    let layout = match sink.format {
        HttpFormat::Ndjson => Layout::Lines,
        HttpFormat::JsonArray => Layout::Array,
        HttpFormat::OtlpJson => Layout::Request,
    };
    let mut headers = network::headers(&sink.headers)?;
    if let Some(content_type) = &sink.content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type.as_str())?);
    }
    Ok(OtlpSettings {
        endpoints: endpoints?,
        transport: Transport::Json(Json { layout, put: sink.method == HttpMethod::Put }),
        compression: network::compression(sink.compression),
        join_members: false,
        headers,
        tenant_header: network::tenant_header(sink.tenant_header.as_ref())?,
        tls: network::tls(&sink.tls),
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
    })
}
