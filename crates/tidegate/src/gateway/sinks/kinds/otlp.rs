//! The sink `otlp`.

use super::{SinkKind, line, network};
use crate::Failure;
use crate::gateway::sinks::start::Starter;
use hyper::Uri;
use std::path::Path;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, OtlpSink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Need, Otlp, OtlpSettings, Transport};

impl SinkKind for OtlpSink {
    fn target(&self, _data: &Path) -> String {
        network::target(&self.endpoints)
    }

    fn starter(&self) -> Starter {
        let config = self.clone();
        Starter::task(move |wiring| {
            let settings = settings(&config).map_err(|Failure(error)| error)?;
            let sink = Otlp::start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
            Ok(sink.map_err(|error| error.to_string())?.run())
        })
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Otlp::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        // Settings that make no sense are refused when the sink is started.
        let bytes = settings(self).map_or(0, |settings| Otlp::bytes(&settings)) as u64;
        let what = "connections to receivers of OTLP, and coders";
        vec![line(what, 1, bytes, Some("sinks.….max_in_flight"))]
    }

    fn files(&self) -> u64 {
        match self.protocol {
            config::OtlpTransport::Grpc => network::files_over_http2(&self.endpoints),
            config::OtlpTransport::Http => network::files(self.max_in_flight, &self.endpoints),
        }
    }
}

fn settings(sink: &OtlpSink) -> Result<OtlpSettings, Failure> {
    let endpoints: Result<_, _> = sink.endpoints.iter().map(|url| Uri::try_from(url.expose())).collect();
    Ok(OtlpSettings {
        endpoints: endpoints?,
        transport: match sink.protocol {
            config::OtlpTransport::Grpc => Transport::Grpc,
            config::OtlpTransport::Http => Transport::Http,
        },
        compression: network::compression(sink.compression),
        join_members: sink.join_members,
        headers: network::headers(&sink.headers)?,
        tenant_header: network::tenant_header(sink.tenant_header.as_ref())?,
        tls: network::tls(&sink.tls),
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
    })
}
