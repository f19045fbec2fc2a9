//! Shared by the kinds of sinks that send over the network.

use super::line;
use crate::Failure;
use crate::gateway::sinks::journal_signal;
use crate::gateway::sinks::start::Starter;
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName as Name, HeaderValue};
use std::collections::BTreeMap;
use tidegate_arena::Reservation;
use tidegate_config::{self as config, DiscoverySettings, HeaderName, Secret, Url};
use tidegate_journal::Signal;
use tidegate_sinks::{Compression, EgressBudget, SinkContext, StartError, StopSignal, Tls};

/// The level of gzip: what most receivers' own clients use costs four times as much for 4 % less.
pub(super) const GZIP: i32 = 1;
/// The level of zstd.
pub(super) const ZSTD: i32 = 1;

/// Starts a sink on the delivery engine with these settings, each time that its supervisor asks for it.
pub(super) fn starter<C, S, K, F>(
    config: &C,
    settings: fn(&C) -> Result<S, Failure>,
    start: fn(SinkContext<'_>, EgressBudget, S, StopSignal) -> Result<K, StartError>,
    run: fn(K) -> F,
) -> Starter
where
    C: Clone + Send + Sync + 'static,
    S: 'static,
    K: 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let config = config.clone();
    Starter::task(move |wiring| {
        let settings = settings(&config).map_err(|Failure(error)| error)?;
        let sink = start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
        Ok(run(sink.map_err(|error| error.to_string())?))
    })
}

/// The line of the plan for connections and coders. Settings that make no sense are refused when the sink is started.
pub(super) fn declared(what: &'static str, bytes: Result<usize, Failure>) -> Vec<Reservation> {
    vec![line(what, 1, bytes.unwrap_or(0) as u64, Some("sinks.….max_in_flight"))]
}

/// Where to send to.
pub(super) fn endpoints(urls: &[Url]) -> Result<Vec<Uri>, Failure> {
    Ok(urls.iter().map(|url| Uri::try_from(url.expose())).collect::<Result<_, _>>()?)
}

/// A URL for each name that is looked up in the way of connections: with addresses and the port that it says. Those that DNS has
/// ports for are not among them.
pub(super) fn looked_up(discovery: &DiscoverySettings) -> Result<Vec<Uri>, Failure> {
    let names = discovery.dns.iter().flatten().filter_map(|name| name.expose().strip_prefix("dns+"));
    Ok(names.map(Uri::try_from).collect::<Result<_, _>>()?)
}

/// The signal of a request without items.
pub(super) fn signal(configured: &[config::Signal]) -> Signal {
    configured.first().map_or(Signal::Logs, journal_signal)
}

/// The URLs for people: without secrets.
pub(super) fn target(urls: &[Url]) -> String {
    urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The file descriptors of a connection: its socket, which is known by two.
pub(super) const PER_CONNECTION: u64 = 2;

/// How many files connections over HTTP/1.1 to these endpoints have open: as many as are in flight, and as many idle ones
/// at each endpoint.
pub(super) fn files(max_in_flight: u32, endpoints: &[Url]) -> u64 {
    PER_CONNECTION * (endpoints.len() as u64 + 1) * u64::from(max_in_flight)
}

/// The same over HTTP/2: one connection to each endpoint, and one that is being given up.
pub(super) fn files_over_http2(endpoints: &[Url]) -> u64 {
    PER_CONNECTION * 2 * endpoints.len() as u64
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
