//! The sources that listen on addresses.

use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking, Text};
use crate::import::otelcol::address;
use crate::import::sinks::{name_of, numbered};
use crate::import::vector::components::Component;
use crate::values::Bytes;

const LACKING: &Lacking = &[
    ("acknowledgements", "not needed: an item is acknowledged when it is in the journal"),
    ("keepalive", "not needed: `limits` bounds what clients may use"),
    ("connection_limit", "not needed: `limits.connections` bounds connections"),
    ("receive_buffer_bytes", "not needed: buffers are part of the memory plan"),
    ("shutdown_timeout_secs", "not needed: what was read is written to the journal"),
    ("permit_origin", "left out: allow addresses in the firewall"),
    ("host_key", "left out: the attribute is `host.name` of the resource"),
    ("port_key", "left out: the attribute is `network.peer.port`"),
    ("log_namespace", "left out: fields have the names of OpenTelemetry"),
    (
        "auth",
        "tidegate authenticates clients with `access.credentials_file`: `tidegate token` writes its lines",
    ),
    ("headers", "left out: headers of requests are no attributes"),
    ("query_parameters", "left out: parameters of requests are no attributes"),
    ("host_key_path", "left out"),
    ("path_key", "left out: the path of a request is no attribute"),
    ("strict_path", "not needed: each source has its paths"),
    ("method", "not needed: requests are POST"),
    ("response_code", "left out: the answer is that of the protocol"),
    ("encoding", "read as the codec of the lines"),
    ("decoding", "read as the codec of the lines"),
    ("framing", "not needed: messages and lines end with a line feed"),
    ("use_otlp_decoding", "not needed: what came as OTLP stays OTLP"),
    ("skip_nan_values", "left out: all samples are taken"),
    ("metadata_conflict_strategy", "not needed: metadata goes on as received"),
    ("socket_file_mode", "not needed: sockets are for their group"),
    ("max_connection_duration_secs", "not needed"),
];

/// A listener of the source `syslog`, which takes lines that are no syslog, too.
pub(super) fn syslog(
    component: &Component<'_>,
    group: &mut Group<'_>,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let mode = group.text("mode", reader);
    let at = group.text("address", reader);
    let path = group.text("path", reader);
    let tls = server_tls(group, reader);
    let mut map = Map::default();
    match (mode.as_ref().map(|mode| mode.value.as_str()), &at, &path) {
        (Some(mode @ ("tcp" | "udp")), Some(text), _) => {
            let at = address(text, &group.path_of("address"), reader);
            if tls.is_empty() {
                open(out, &at);
            }
            map.set("address", format!("{}://{at}", if tls.is_empty() { mode } else { "tls" }));
        }
        (Some("unix" | "unix_stream"), _, Some(path)) => map.set("address", format!("unix:{}", path.value)),
        (Some("unix_datagram"), _, Some(path)) => map.set("address", format!("unixgram:{}", path.value)),
        _ => {
            let message = format!("`{}` needs a `mode`, and its `address` or `path`", component.path());
            let help = "write `mode: tcp`, `udp` or `unix`, and where to listen";
            return reader.error(&component.entry.key_at, message, help);
        }
    }
    map.set_group("tls", tls);
    if let Some(bytes) = group.number("max_length", reader) {
        if !(1 << 10..=64 << 10).contains(&bytes) {
            let message = "messages are 1 KiB to 64 KiB long";
            reader.note(&group.at.clone(), &group.path_of("max_length"), message);
        }
        map.set("max_message", Bytes::new(bytes.clamp(1 << 10, 64 << 10)).to_string());
    }
    group.lacks(LACKING, reader);
    if component.kind == "socket" {
        let message = "a listener of the source `syslog` takes its lines: those that are no syslog are kept as they are";
        component.note(message, reader);
    }
    let listeners = out.group("sources").group("syslog").group("listeners");
    let name = numbered(&name_of(component.name), |name| listeners.get(name).is_some());
    listeners.set(&name, map);
}

/// The source `fluent_forward`.
pub(super) fn fluent(
    component: &Component<'_>,
    group: &mut Group<'_>,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let is_unix = group.text("mode", reader).is_some_and(|mode| mode.value == "unix");
    let setting = if is_unix { "path" } else { "address" };
    let Some(text) = group.text(setting, reader) else {
        let message = format!("`{}` has no `{setting}`", component.path());
        return reader.error(&component.entry.key_at, message, "add where to listen");
    };
    let tls = server_tls(group, reader);
    group.lacks(LACKING, reader);
    let ours = if is_unix { "unix" } else { "address" };
    if out.group("sources").group("fluent_forward").get(ours).is_some() {
        let message =
            "left out: tidegate has one address for the forward protocol, and another source has set it";
        return component.note(message, reader);
    }
    let at = if is_unix { text.value } else { address(&text, &group.path_of(setting), reader) };
    if !is_unix && tls.is_empty() {
        open(out, &at);
    }
    let source = out.group("sources").group("fluent_forward");
    source.set(ours, at);
    source.set_group("tls", tls);
}

/// The addresses of OTLP.
pub(super) fn opentelemetry(
    component: &Component<'_>,
    group: &mut Group<'_>,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    for protocol in ["http", "grpc"] {
        let Some(mut inner) = group.group(protocol, reader) else { continue };
        let text = inner.text("address", reader);
        let tls = server_tls(&mut inner, reader);
        inner.lacks(LACKING, reader);
        inner.finish(reader);
        if let Some(text) = text {
            listen(protocol, component, &text, tls, out, reader);
        }
    }
    group.lacks(LACKING, reader);
}

/// A protocol at the address of HTTP.
pub(super) fn http(
    component: &Component<'_>,
    group: &mut Group<'_>,
    what: &str,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let text = group.text("address", reader);
    let path = group.text("path", reader);
    let tls = server_tls(group, reader);
    group.lacks(LACKING, reader);
    let is_other = |path: &Text| path.value != "/api/v1/write" && path.value != "/";
    if let Some(path) = path.filter(is_other).filter(|_| component.kind == "prometheus_remote_write") {
        reader.note(&path.at, &group.path_of("path"), format!("left out: tidegate receives {what}"));
    }
    component.note(format!("tidegate receives {what}: change the senders' URL"), reader);
    if let Some(text) = text {
        listen("http", component, &text, tls, out, reader);
    }
}

/// Sets an address, unless another source has.
fn listen(
    protocol: &str,
    component: &Component<'_>,
    text: &Text,
    tls: Map,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let path = format!("{}.address", component.path());
    let at = address(text, &path, reader);
    match out.group("listen").get(protocol) {
        Some(Yaml::Text(other)) if *other == at => return,
        Some(_) => {
            let message = format!(
                "left out: `listen.{protocol}` is the address of another source, and receives this as well"
            );
            return reader.note(&text.at, &path, message);
        }
        None => {}
    }
    if tls.is_empty() {
        open(out, &at);
    } else {
        out.group("listen").group("tls").set(protocol, tls);
    }
    out.group("listen").set(protocol, at);
}

/// Allows others to connect without TLS, if they could before.
fn open(out: &mut Map, at: &str) {
    if !at.starts_with("127.") && !at.starts_with("[::1]") {
        let comment = "As in Vector: other machines can connect, and nothing is encrypted.";
        out.group("listen").set_with("insecure", "true", Some(comment));
    }
}

fn server_tls(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Map {
    let mut map = Map::default();
    let Some(mut tls) = group.group("tls", reader) else { return map };
    let is_off = tls.flag("enabled", reader) == Some(false);
    for (theirs, ours) in [("crt_file", "cert_file"), ("key_file", "key_file"), ("ca_file", "client_ca_file")]
    {
        map.set_some(ours, tls.text(theirs, reader).map(|text| text.value));
    }
    match tls.flag("verify_certificate", reader) {
        Some(true) => map.set("client_auth", "required"),
        _ => map.remove("client_ca_file"),
    }
    tls.lacks(
        &[
            ("key_pass", "left out: keys are read without a password"),
            ("alpn_protocols", "not needed: HTTP/1.1 and HTTP/2 are accepted"),
            ("verify_hostname", "left out: names of clients are not looked at"),
            ("client_metadata_key", "left out: certificates of clients are no attributes"),
        ],
        reader,
    );
    tls.finish(reader);
    if is_off { Map::default() } else { map }
}
