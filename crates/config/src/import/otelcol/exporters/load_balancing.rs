//! The exporter that gives all items with one key to one of several backends.

use super::{compression, destination, grpc_url};
use crate::error::quote;
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::import::otelcol::client::Client;
use crate::import::otelcol::{Collector, set_duration, settings};
use crate::import::sinks::{Destination, SIGNALS};
use crate::model::Signal;
use crate::suggest::nearest;
use crate::yaml::Entry;

/// The port of a backend that is written without one.
const PORT: &str = "4317";
/// How often the Collector looks names up, where nothing else is said.
const INTERVAL: &str = "5s";
const KEYS: [&str; 6] = ["traceID", "service", "resource", "metric", "streamID", "attributes"];

/// Signals that are routed by one key, as `route_by` has it.
type Routed = (&'static str, Vec<Signal>);

impl Collector<'_> {
    /// The destinations of the exporter: one for each key, as traces have another default than other signals.
    pub(super) fn load_balancing(
        &mut self,
        entry: &Entry,
        reader: &mut FileReader<'_, '_>,
    ) -> Vec<Destination> {
        let Some(mut group) = settings(entry, "exporters", reader) else { return Vec::new() };
        let routed = routed(&mut group, reader);
        let mut common = Map::default();
        let mut client = self.protocol(&mut group, &mut common, reader);
        // The exporter has a queue, retries and a time-out before those of its backends.
        let outer = self.client(&mut group, reader);
        for key in ["timeout", "linger", "max_request_bytes", "backoff"] {
            if client.settings.get(key).is_none() {
                client.settings.set_some(key, outer.settings.get(key).cloned());
            }
        }
        if [&client, &outer].iter().any(|client| client.settings.get("max_in_flight").is_some()) {
            client.settings.remove("max_in_flight");
            let path = group.path_of("sending_queue.num_consumers");
            reader.note(&group.at, &path, "left out: each endpoint is sent one request at a time");
        }
        let backends = backends(&mut group, client.is_cleartext, reader);
        match &backends {
            Some(backends) => {
                client.allow_cleartext(backends.urls.iter().map(String::as_str), client.user.is_some());
                client.match_tls(backends.urls.iter().map(String::as_str), &group, reader);
            }
            None => {
                let message = format!("`exporters.{}` does not say where its backends are", entry.key);
                reader.error(
                    &entry.key_at,
                    message,
                    "add `resolver: { static: { hostnames: [HOST:PORT] } }`",
                );
            }
        }
        self.user_header(&mut client, entry, reader);
        group.finish(reader);
        let moved = "the ring is not the Collector's: a key is at another backend than behind a Collector, so send the data of \
                     one fleet through one of the two";
        reader.note(&entry.key_at, &format!("exporters.{}", entry.key), moved);
        let mut destinations = Vec::new();
        for (key, signals) in routed {
            let mut map = Map::default();
            if let Some(backends) = &backends {
                map.append(&backends.settings);
            }
            map.set("route_by", key);
            map.append(&common);
            map.append(&client.settings);
            destinations.push(Destination { signals, ..destination("otlp", map) });
        }
        destinations
    }

    /// The settings of the connections to backends; `map` takes the compression.
    fn protocol(&mut self, group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) -> Client {
        let Some(mut protocol) = group.group("protocol", reader) else { return Client::default() };
        let mut client = Client::default();
        if let Some(mut otlp) = protocol.group("otlp", reader) {
            client = self.client(&mut otlp, reader);
            compression(&mut otlp, map, reader);
            otlp.lacks(&[("endpoint", "not needed: the resolver says where the backends are")], reader);
            otlp.finish(reader);
        }
        protocol.finish(reader);
        client
    }
}

/// Which signals are routed by which key.
fn routed(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Vec<Routed> {
    let by_default =
        || vec![("trace_id", vec![Signal::Traces]), ("service", vec![Signal::Metrics, Signal::Logs])];
    let key = group.text("routing_key", reader);
    let attributes = group.texts("routing_attributes", reader);
    let path = group.path_of("routing_key");
    let Some(key) = key.filter(|key| !key.value.is_empty()) else {
        let message = "traces go by their trace id, metrics and logs by their service, as in the current Collector; an older one \
                       has logs go by their trace id";
        reader.note(&group.at, &path, message);
        return by_default();
    };
    let mut nearly = |by: &'static str, signals: Vec<Signal>, message: &str| {
        reader.note(&key.at, &path, message);
        vec![(by, signals)]
    };
    match key.value.as_str() {
        "traceID" => vec![("trace_id", vec![Signal::Traces, Signal::Logs])],
        "service" => vec![("service", SIGNALS.to_vec())],
        "resource" => vec![("resource", SIGNALS.to_vec())],
        "metric" => vec![("metric", vec![Signal::Metrics])],
        "streamID" => nearly(
            "resource",
            vec![Signal::Metrics],
            "all streams of a resource are at one backend: `route_by` has no key for a stream alone",
        ),
        "attributes" if matches!(attributes.as_slice(), [only] if only.value == "service.name") => {
            vec![("service", SIGNALS.to_vec())]
        }
        "attributes" => nearly(
            "service",
            SIGNALS.to_vec(),
            "the service was chosen: `route_by` has no key of single attributes; see whether `resource` or `trace_id` fits \
             better",
        ),
        _ if key.is_open() => {
            reader.note(&key.at, &path, "its value is not known here; the default was assumed");
            by_default()
        }
        other => {
            let help = match nearest(other, KEYS) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write one of {}", KEYS.join(", ")),
            };
            reader.error(&key.at, format!("there is no routing key {}", quote(other)), help);
            by_default()
        }
    }
}

/// Where the backends are.
struct Backends {
    /// Their URLs, or what is looked up, as URLs.
    urls: Vec<String>,
    /// `endpoints` or `discovery`.
    settings: Map,
}

impl Backends {
    /// Those that a name stands for, each at these URLs.
    fn looked_up(urls: Vec<String>, mut discovery: Map) -> Backends {
        let mut settings = Map::default();
        discovery.set("dns", Yaml::Flow(urls.iter().map(|url| format!("dns+{url}")).collect()));
        settings.set("discovery", discovery);
        Backends { urls, settings }
    }
}

/// Reads the resolver; none where there is none.
fn backends(group: &mut Group<'_>, is_cleartext: bool, reader: &mut FileReader<'_, '_>) -> Option<Backends> {
    let mut resolver = group.group("resolver", reader)?;
    // As the Collector chooses where there are several; those that are not taken are noted.
    let backends = if let Some(service) = resolver.group("k8s", reader) {
        kubernetes(service, is_cleartext, reader)
    } else if let Some(name) = resolver.group("dns", reader) {
        dns(name, is_cleartext, reader)
    } else if let Some(list) = resolver.group("static", reader) {
        listed(list, is_cleartext, reader)
    } else if let Some(mut map) = resolver.group("aws_cloud_map", reader) {
        map.take_all();
        let message = "left out: have the addresses written to a file, and name it in `discovery.file`";
        reader.note(&map.at, &map.path, message);
        Some(Backends { urls: Vec::new(), settings: Map::default() })
    } else {
        None
    };
    resolver.finish(reader);
    backends
}

fn listed(mut list: Group<'_>, is_cleartext: bool, reader: &mut FileReader<'_, '_>) -> Option<Backends> {
    let path = list.path_of("hostnames");
    let names = list.texts("hostnames", reader);
    list.finish(reader);
    let mut urls = Vec::new();
    for name in names {
        let socket = Text { value: with_port(&name.value), ..name };
        urls.push(grpc_url(&socket, is_cleartext, &path, reader));
    }
    let mut settings = Map::default();
    settings.set("endpoints", Yaml::Flow(urls.clone()));
    (!urls.is_empty()).then_some(Backends { urls, settings })
}

fn dns(mut name: Group<'_>, is_cleartext: bool, reader: &mut FileReader<'_, '_>) -> Option<Backends> {
    let host = name.text("hostname", reader);
    let port = name.text("port", reader).map_or_else(|| PORT.to_owned(), |port| port.value);
    let mut discovery = Map::default();
    discovery.set("interval", INTERVAL);
    if let Some(interval) = name.text("interval", reader) {
        set_duration(&mut discovery, "interval", &interval, &name.path_of("interval"), reader);
    }
    name.lacks(&[("timeout", "not needed: a failed look-up leaves the known backends in use")], reader);
    name.finish(reader);
    let url = format!("{}://{}:{port}", scheme(is_cleartext), host?.value);
    Some(Backends::looked_up(vec![url], discovery))
}

/// A service of Kubernetes, whose DNS name has the addresses of its pods if it is headless.
fn kubernetes(
    mut service: Group<'_>,
    is_cleartext: bool,
    reader: &mut FileReader<'_, '_>,
) -> Option<Backends> {
    let name = service.text("service", reader);
    let ports = service.texts("ports", reader);
    if service.flag("return_hostnames", reader) == Some(true) {
        let message = "addresses are used: for the names of a StatefulSet's pods write `dnssrv+` and the service's SRV name";
        reader.note(&service.at, &service.path_of("return_hostnames"), message);
    }
    service.lacks(&[("timeout", "not needed: a failed look-up leaves the known backends in use")], reader);
    let name = name?;
    let message = "the service's DNS name is looked up: it has to be headless (`clusterIP: None`), and no permission is needed";
    reader.note(&name.at, &service.path_of("service"), message);
    service.finish(reader);
    // With a namespace behind the name, the search domains of a pod need `svc`.
    let host = if name.value.contains('.') { format!("{}.svc", name.value) } else { name.value };
    let url = |port: &str| format!("{}://{host}:{port}", scheme(is_cleartext));
    let mut urls: Vec<String> = ports.iter().map(|port| url(&port.value)).collect();
    if urls.is_empty() {
        urls.push(url(PORT));
    }
    let mut discovery = Map::default();
    discovery.set("interval", INTERVAL);
    Some(Backends::looked_up(urls, discovery))
}

fn scheme(is_cleartext: bool) -> &'static str {
    if is_cleartext { "http" } else { "https" }
}

/// A host with its port, which may be left out.
fn with_port(host: &str) -> String {
    let has_port =
        host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    if has_port || host.contains("${") { host.to_owned() } else { format!("{host}:{PORT}") }
}
