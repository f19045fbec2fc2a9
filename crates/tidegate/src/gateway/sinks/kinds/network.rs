//! Shared by the kinds of sinks that send over the network.

use crate::Failure;
use hyper::header::{HeaderMap, HeaderName as Name, HeaderValue};
use std::collections::BTreeMap;
use tidegate_config::{self as config, HeaderName, Secret, Url};
use tidegate_sinks::{Compression, Tls};

/// The level of gzip: what most receivers' own clients use costs four times as much for 4 % less.
pub(super) const GZIP: i32 = 1;
/// The level of zstd.
pub(super) const ZSTD: i32 = 1;

/// The URLs for people: without secrets.
pub(super) fn target(urls: &[Url]) -> String {
    urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How many files connections over HTTP/1.1 to these endpoints have open: as many as are in flight, and as many idle ones
/// at each endpoint.
pub(super) fn files(max_in_flight: u32, endpoints: &[Url]) -> u64 {
    (endpoints.len() as u64 + 1) * u64::from(max_in_flight)
}

/// The same over HTTP/2: one connection to each endpoint, and one that is being given up.
pub(super) fn files_over_http2(endpoints: &[Url]) -> u64 {
    2 * endpoints.len() as u64
}

pub(super) fn compression(compression: config::Compression) -> Compression {
    match compression {
        config::Compression::None => Compression::None,
        config::Compression::Gzip => Compression::Gzip(GZIP),
        config::Compression::Zstd => Compression::Zstd(ZSTD),
    }
}

pub(super) fn tls(tls: &config::Tls) -> Tls {
    Tls {
        ca: tls.ca_file.clone(),
        certificate: tls.cert_file.clone().zip(tls.key_file.clone()),
        server_name: tls.server_name.clone(),
    }
}

pub(super) fn tenant_header(configured: Option<&HeaderName>) -> Result<Option<Name>, Failure> {
    Ok(configured.map(|name| Name::try_from(name.as_str())).transpose()?)
}

pub(super) fn headers(configured: &BTreeMap<HeaderName, Secret>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, value) in configured {
        let mut value = HeaderValue::from_str(value.expose())?;
        value.set_sensitive(true);
        headers.insert(Name::try_from(name.as_str())?, value);
    }
    Ok(headers)
}
