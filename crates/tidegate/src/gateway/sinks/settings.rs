//! What the configuration says of a sink, as the sink wants it.

use crate::Failure;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName as Name, HeaderValue};
use std::collections::BTreeMap;
use tidegate_config as config;
use tidegate_config::{ElasticsearchSink, HeaderName, OtlpSink, RemoteWriteSink, Secret};
use tidegate_sinks::{
    Compression, ElasticsearchSettings, Flavour, Index, Mapping, Naming, OtlpSettings, Piece, Prefer,
    RemoteWriteSettings, Tls, Translation, Transport,
};

/// The level of gzip: what most receivers' own clients use costs four times as much for 4 % less.
const GZIP: i32 = 1;
/// The level of zstd.
const ZSTD: i32 = 1;

pub(crate) fn remote_write(sink: &RemoteWriteSink) -> Result<RemoteWriteSettings, Failure> {
    Ok(RemoteWriteSettings {
        url: Uri::try_from(sink.url.expose())?,
        headers: headers(&sink.headers)?,
        tenant_header: tenant_header(sink.tenant_header.as_ref())?,
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
    let endpoints: Result<_, _> = sink.endpoints.iter().map(|url| Uri::try_from(url.expose())).collect();
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
        tenant_header: tenant_header(sink.tenant_header.as_ref())?,
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

pub(crate) fn elasticsearch(sink: &ElasticsearchSink) -> Result<ElasticsearchSettings, Failure> {
    let endpoints: Result<_, _> = sink.endpoints.iter().map(|url| Uri::try_from(url.expose())).collect();
    let mut headers = headers(&sink.headers)?;
    let secret = match (&sink.api_key, &sink.user, &sink.password) {
        (Some(key), ..) => Some(format!("ApiKey {}", key.expose())),
        (None, Some(user), Some(password)) => {
            Some(format!("Basic {}", base64(format!("{user}:{}", password.expose()).as_bytes())))
        }
        _ => None,
    };
    if let Some(secret) = secret {
        let mut value = HeaderValue::from_str(&secret)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    Ok(ElasticsearchSettings {
        endpoints: endpoints?,
        flavour: match sink.product {
            config::Product::Elasticsearch => Flavour::Elasticsearch,
            config::Product::OpenSearch => Flavour::OpenSearch,
        },
        headers,
        tenant_header: tenant_header(sink.tenant_header.as_ref())?,
        tls: Tls {
            ca: sink.tls.ca_file.clone(),
            certificate: sink.tls.cert_file.clone().zip(sink.tls.key_file.clone()),
            server_name: sink.tls.server_name.clone(),
        },
        gzip: match sink.compression {
            config::BulkCompression::None => None,
            config::BulkCompression::Gzip => Some(GZIP),
        },
        mapping: match sink.mapping {
            config::Mapping::Otel => Mapping::Otel,
            config::Mapping::Ecs => Mapping::Ecs,
        },
        dataset: sink.dataset.clone(),
        namespace: sink.namespace.clone(),
        index: sink.index.as_ref().map(index),
        ids: sink.ids,
        metric_ids: sink.metric_ids,
        max_request_bytes: sink.max_request_bytes.as_usize(),
        max_in_flight: sink.max_in_flight as usize,
        linger: sink.linger.get(),
        timeout: sink.timeout.get(),
        backoff: (sink.backoff.min.get(), sink.backoff.max.get()),
    })
}

/// The pattern that was configured, as documents are written by.
fn index(pattern: &config::IndexPattern) -> Index {
    let piece = |piece: &config::IndexPiece| match piece {
        config::IndexPiece::Text(text) => Piece::Text(text.clone()),
        config::IndexPiece::Type => Piece::Type,
        config::IndexPiece::Dataset => Piece::Dataset,
        config::IndexPiece::Namespace => Piece::Namespace,
        config::IndexPiece::Service => Piece::Service,
        config::IndexPiece::Tenant => Piece::Tenant,
        config::IndexPiece::Year => Piece::Year,
        config::IndexPiece::Month => Piece::Month,
        config::IndexPiece::Day => Piece::Day,
        config::IndexPiece::Hour => Piece::Hour,
    };
    Index::new(pattern.pieces().iter().map(piece).collect())
}

/// RFC 4648, section 4: how HTTP carries a user and a password.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

fn tenant_header(configured: Option<&HeaderName>) -> Result<Option<Name>, Failure> {
    Ok(configured.map(|name| Name::try_from(name.as_str())).transpose()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn a_user_and_a_password_are_carried_in_base64() {
        let table = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, encoded) in table {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
