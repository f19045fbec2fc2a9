//! The sink `prometheus_remote_write` with `shard_by`.

use super::super::{line, network, spread};
use super::settings;
use crate::Failure;
use crate::gateway::sinks::start::{SinkEnvironment, Starter};
use tidegate_arena::Reservation;
use tidegate_config::{self as config, RemoteWriteSink, Url};
use tidegate_ring::{Algorithm, Endpoint, Ring, RingConfig, RingSettings};
use tidegate_sinks::{RemoteWriteSettings, ShardBy, ShardedRemoteWrite, Sharding};

/// Where it sends, for people.
pub(super) fn target(sink: &RemoteWriteSink) -> String {
    let names = sink.discovery.dns.iter().flatten().map(ToString::to_string);
    let file = sink.discovery.file.iter().map(|file| format!("the URLs in {}", file.display()));
    sink.endpoints().iter().map(ToString::to_string).chain(names).chain(file).collect::<Vec<_>>().join(", ")
}

pub(super) fn starter(sink: &RemoteWriteSink, shard_by: &config::ShardBy) -> Starter {
    let (config, shard_by) = (sink.clone(), shard_by.clone());
    Starter::task(move |wiring| {
        let settings = all_settings(&config, &shard_by, wiring).map_err(|Failure(error)| error)?;
        let sink =
            ShardedRemoteWrite::start(wiring.context(), wiring.room.clone(), settings, wiring.stop.clone());
        Ok(sink.map_err(|error| error.to_string())?.run())
    })
}

pub(super) fn declared(sink: &RemoteWriteSink) -> Vec<Reservation> {
    let (most, replicas) = (sink.max_members(), sink.replicas as usize);
    let setting = Some("sinks.….max_members");
    let ring = Ring::footprint(most, replicas);
    let mut lines = vec![
        line(
            "an endpoint with its connection",
            most as u64,
            ShardedRemoteWrite::member_bytes(is_secure(sink)) as u64,
            setting,
        ),
        line(
            "a request of each replica to each endpoint, while it fills",
            (most * replicas) as u64,
            ShardedRemoteWrite::request_bytes() as u64,
            setting,
        ),
        // A new one is built while the old one is in use.
        line("the ring of endpoints", 1, (2 * ring.resident + ring.building) as u64, setting),
        line("coders and records in flight", 1, ShardedRemoteWrite::bytes() as u64, None),
        line("the discovery of endpoints", 1, members(sink).bytes() as u64, setting),
    ];
    lines.extend(spread::handoff_overhead(&sink.handoff, most).0);
    lines
}

pub(super) fn files(sink: &RemoteWriteSink) -> u64 {
    let most = sink.max_members();
    // Two connections to each endpoint, the file of endpoints, two sockets that ask for names.
    network::PER_CONNECTION * 2 * most as u64 + spread::handoff_overhead(&sink.handoff, most).1 + 3
}

fn all_settings(
    sink: &RemoteWriteSink,
    shard_by: &config::ShardBy,
    wiring: &SinkEnvironment,
) -> Result<(RemoteWriteSettings, Sharding), Failure> {
    let folder = wiring.data.join("handoff").join(&wiring.name);
    let sharding = Sharding {
        shard_by: key(shard_by),
        replicas: sink.replicas as usize,
        members: members(sink),
        patience: sink.handoff.after.get(),
        handoff: spread::handoff(&sink.handoff, sink.max_members(), &folder),
    };
    Ok((settings(sink)?, sharding))
}

fn key(shard_by: &config::ShardBy) -> ShardBy {
    match shard_by {
        config::ShardBy::All => ShardBy::All,
        config::ShardBy::Labels(names) => ShardBy::Labels(names.clone()),
        config::ShardBy::Without(names) => ShardBy::Without(names.clone()),
    }
}

/// The labels that place a series, and the ring of the endpoints; nothing where there is no `shard_by`.
///
/// # Errors
/// Where endpoints are discovered: they are known to a gateway that runs.
pub(crate) fn described(
    sink: &RemoteWriteSink,
) -> Option<Result<(ShardBy, RingConfig, RingSettings), Failure>> {
    let shard_by = sink.shard_by.as_ref()?;
    if sink.discovery.is_used() {
        let found = "its endpoints are found by `discovery`: a gateway that runs has them in /status, under `members`";
        return Some(Err(Failure(found.to_owned())));
    }
    let mut urls: Vec<_> = sink.endpoints().iter().map(Url::expose).collect();
    urls.sort_unstable();
    urls.dedup();
    let endpoints = urls.into_iter().map(|url| Endpoint::new(tidegate_sinks::member_name(url))).collect();
    let settings = RingSettings {
        algorithm: Algorithm::Ketama,
        replication: sink.replicas as usize,
        ..RingSettings::default()
    };
    Some(Ok((key(shard_by), RingConfig { endpoints, ..RingConfig::default() }, settings)))
}

fn members(sink: &RemoteWriteSink) -> tidegate_members::Settings {
    let headers = &sink.delivery.headers;
    let has_credentials = headers.keys().any(|header| header.is_credential());
    let check = if has_credentials && !sink.delivery.insecure { encrypted } else { url };
    spread::members(sink.endpoints(), &sink.discovery, sink.max_members(), check)
}

/// Whether endpoints may speak TLS.
fn is_secure(sink: &RemoteWriteSink) -> bool {
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
    if url.path().starts_with('/') { Ok(url) } else { Err("a URL has no path".to_owned()) }
}
