//! The sink `otlp` with `route_by`.

use super::super::{line, network, spread};
use super::settings;
use crate::Failure;
use crate::gateway::sinks::start::{SinkEnvironment, Starter};
use tidegate_arena::Reservation;
use tidegate_config::{OtlpSink, RouteBy, Url};
use tidegate_ring::Ring;
use tidegate_sinks::{OtlpSettings, RouteKey, RoutedOtlp, Routing};

/// Where it sends, for people.
pub(super) fn target(sink: &OtlpSink) -> String {
    let names = sink.discovery.dns.iter().flatten().map(ToString::to_string);
    let file = sink.discovery.file.iter().map(|file| format!("the URLs in {}", file.display()));
    let endpoints = Some(network::target(sink.endpoints())).filter(|endpoints| !endpoints.is_empty());
    endpoints.into_iter().chain(names).chain(file).collect::<Vec<_>>().join(", ")
}

pub(super) fn key(key: RouteBy) -> RouteKey {
    match key {
        RouteBy::TraceId => RouteKey::TraceId,
        RouteBy::Service => RouteKey::Service,
        RouteBy::Resource => RouteKey::Resource,
        RouteBy::Metric => RouteKey::MetricName,
    }
}

pub(super) fn starter(sink: &OtlpSink, route_by: RouteBy) -> Starter {
    let config = sink.clone();
    Starter::task(move |wiring| {
        let settings = all_settings(&config, route_by, wiring).map_err(|Failure(error)| error)?;
        let sink = RoutedOtlp::start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
        Ok(sink.map_err(|error| error.to_string())?.run())
    })
}

pub(super) fn declared(sink: &OtlpSink) -> Vec<Reservation> {
    let (most, replicas) = (sink.max_members(), sink.replicas as usize);
    let setting = Some("sinks.….max_members");
    let ring = Ring::footprint(most, replicas);
    // Settings that make no sense are refused when the sink is started.
    let bytes = settings(sink)
        .map(|settings| (RoutedOtlp::member_bytes(&settings, is_secure(sink)), RoutedOtlp::bytes(&settings)));
    let (member, coders) = bytes.unwrap_or_default();
    let requests = (most * replicas) as u64;
    let request = RoutedOtlp::request_bytes() as u64;
    let mut lines = vec![
        line("an endpoint with its connection", most as u64, member as u64, setting),
        line("a request of each replica to each endpoint, while it fills", requests, request, setting),
        // A new one is built while the old one is in use.
        line("the ring of endpoints", 1, (2 * ring.resident + ring.building) as u64, setting),
        line("coders and records in flight", 1, coders as u64, None),
        line("the discovery of endpoints", 1, members(sink).bytes() as u64, setting),
    ];
    lines.extend(spread::handoff_overhead(&sink.handoff, most).0);
    lines
}

pub(super) fn files(sink: &OtlpSink) -> u64 {
    let most = sink.max_members();
    // Two connections to each endpoint, the file of endpoints, two sockets that ask for names.
    network::PER_CONNECTION * 2 * most as u64 + spread::handoff_overhead(&sink.handoff, most).1 + 3
}

fn all_settings(
    sink: &OtlpSink,
    route_by: RouteBy,
    wiring: &SinkEnvironment,
) -> Result<(OtlpSettings, Routing), Failure> {
    let folder = wiring.data.join("handoff").join(&wiring.name);
    let routing = Routing {
        route_by: key(route_by),
        replicas: sink.replicas as usize,
        members: members(sink),
        patience: sink.handoff.after.get(),
        handoff: spread::handoff(&sink.handoff, sink.max_members(), &folder),
    };
    Ok((settings(sink)?, routing))
}

fn members(sink: &OtlpSink) -> tidegate_members::Settings {
    let headers = &sink.delivery.headers;
    let has_credentials = headers.keys().any(|header| header.is_credential());
    let check = if has_credentials && !sink.delivery.insecure { encrypted } else { url };
    spread::members(sink.endpoints(), &sink.discovery, sink.max_members(), check)
}

/// Whether endpoints may speak TLS.
fn is_secure(sink: &OtlpSink) -> bool {
    let mut names = sink.discovery.dns.iter().flatten();
    sink.discovery.file.is_some()
        || sink.endpoints().iter().any(Url::is_https)
        || names.any(|url| url.example().is_https())
}

/// Whether a URL of the file can be used.
fn url(text: &str) -> Result<(), String> {
    parsed(text).map(|_| ())
}

/// The same where the sink has credentials that must not be sent in the clear.
fn encrypted(text: &str) -> Result<(), String> {
    let url = parsed(text)?;
    if url.is_https() || url.is_loopback() {
        return Ok(());
    }
    Err(format!("credentials would go unencrypted to {}: use `https`, or set `insecure: true`", url.host()))
}

fn parsed(text: &str) -> Result<Url, String> {
    let url = text.parse::<Url>().map_err(|invalid| invalid.message)?;
    if url.path().contains('?') { Err("a URL has a query, which is not sent".to_owned()) } else { Ok(url) }
}
