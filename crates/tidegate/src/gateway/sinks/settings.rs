//! What the configuration says of a sink, as the sink wants it.

use crate::Failure;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName as Name, HeaderValue};
use std::collections::BTreeMap;
use tidegate_config as config;
use tidegate_config::{HeaderName, OtlpSink, RemoteWriteSink, Secret};
use tidegate_sinks::{
    Compression, Naming, OtlpSettings, Prefer, RemoteWriteSettings, Tls, Translation, Transport,
};

/// The level of gzip: what most receivers' own clients use costs four times as much for 4 % less.
const GZIP: i32 = 1;
/// The level of zstd.
const ZSTD: i32 = 1;

pub(crate) fn remote_write(sink: &RemoteWriteSink) -> Result<RemoteWriteSettings, Failure> {
    Ok(RemoteWriteSettings {
        url: Uri::try_from(sink.url.as_str())?,
        headers: headers(&sink.headers)?,
        prefer: match sink.protocol {
            config::Protocol::Auto => Prefer::AsReceived,
            config::Protocol::V1 => Prefer::V1,
            config::Protocol::V2 => Prefer::V2,
        },
        lanes: sink.lanes as usize,
        max_bytes: sink.max_request_bytes.as_usize(),
        max_items: u64::from(sink.max_request_samples),
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
        otlp: translation(&sink.otlp),
    })
}

fn translation(otlp: &config::Translation) -> Translation {
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

pub(crate) fn otlp(sink: &OtlpSink) -> Result<OtlpSettings, Failure> {
    let endpoints: Result<_, _> = sink.endpoints.iter().map(|url| Uri::try_from(url.as_str())).collect();
    Ok(OtlpSettings {
        endpoints: endpoints?,
        transport: match sink.protocol {
            config::OtlpTransport::Grpc => Transport::Grpc,
            config::OtlpTransport::Http => Transport::Http,
        },
        compression: match sink.compression {
            config::Compression::None => Compression::None,
            config::Compression::Gzip => Compression::Gzip(GZIP),
            config::Compression::Zstd => Compression::Zstd(ZSTD),
        },
        join_members: sink.join_members,
        headers: headers(&sink.headers)?,
        tls: Tls {
            ca: sink.tls.ca_file.clone(),
            certificate: sink.tls.cert_file.clone().zip(sink.tls.key_file.clone()),
            server_name: sink.tls.server_name.clone(),
        },
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
    })
}

fn headers(configured: &BTreeMap<HeaderName, Secret>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in configured {
        let mut value = HeaderValue::from_str(value.expose())?;
        value.set_sensitive(true);
        headers.insert(Name::try_from(name.as_str())?, value);
    }
    Ok(headers)
}
