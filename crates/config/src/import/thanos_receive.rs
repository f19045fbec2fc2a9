//! The command line of a router of Thanos Receive.

mod command_line;
mod flags;
mod hashrings;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use super::document::{Map, Yaml};
use super::group;
use super::notes::{ARGUMENTS, Imported, Notes};
use super::otelcol::duration;
use super::references;
use super::relabel::{self, Dialect};
use super::thanos_limits::limits_into;
use crate::error::{Errors, Invalid, quote};
use crate::values::{Duration, HeaderName, TenantName};
use command_line::{CommandLine, mistake};

/// Reads a file that the command line names.
type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The name of the sink.
const SINK: &str = "ingestors";

/// The name of the pipeline that relabels.
const PIPELINE: &str = "relabel";

/// Converts the command line of a `thanos receive` that routes. `read` reads the files with limits, relabeling rules and
/// arguments that it names.
///
/// # Errors
/// A mistake in the command line, every mistake in a file, with its place, or the command line of a receiver that does not route.
pub fn thanos_receive(arguments: &[String], read: ReadFile<'_>) -> Result<Imported, Errors> {
    let mut notes = Notes::default();
    let mut line = CommandLine::parse(arguments, read)?;
    let mut configuration = Map::default();
    let mut sink = Map::default();
    sink.set("type", "thanos_receive");
    members(&mut line, &mut sink, &mut notes)?;
    senders(&mut line, &mut configuration, &mut sink, &mut notes)?;
    certificates(&mut line, &mut configuration, &mut notes)?;
    requests(&mut line, &mut sink, &mut notes)?;
    sink_tls(&mut line, &mut sink, &mut notes)?;
    otlp(&mut line, &mut sink);
    if let Some((source, text)) =
        content(&mut line, "receive.limits-config", "receive.limits-config-file", read)?
    {
        limits_into(&source, &text, &mut configuration, &mut notes)?;
    }
    if let Some((source, text)) =
        content(&mut line, "receive.relabel-config", "receive.relabel-config-file", read)?
    {
        let rules = group::file(&source, &text, &mut notes, references::kubernetes, |root, reader| {
            relabel::rules(root, "rules", Dialect::Prometheus, reader)
        })?;
        if !rules.is_empty() {
            let mut step = Map::default();
            step.set("relabel", Yaml::List(rules.into_iter().map(Yaml::Map).collect()));
            let steps = Yaml::List(vec![Yaml::Map(step)]);
            configuration.group("pipelines").group(PIPELINE).set("steps", steps);
            sink.set("pipeline", PIPELINE);
        }
    }
    line.note_rest(&mut notes);
    configuration.group("sinks").set(SINK, sink);
    let title = "Converted from the command line of a router of Thanos Receive.";
    Ok(notes.print(ARGUMENTS, title, &configuration, &[]))
}

/// The hashrings.
fn members(line: &mut CommandLine, sink: &mut Map, notes: &mut Notes) -> Result<(), Errors> {
    let file = line.text("receive.hashrings-file");
    let inline = line.verbatim("receive.hashrings");
    match (file, inline) {
        (Some(file), inline) => {
            sink.set("hashrings_file", file);
            if inline.is_some() {
                line.note("receive.hashrings", "not needed: `--receive.hashrings-file` has priority", notes);
            }
        }
        (None, Some(inline)) => sink.set("hashrings", hashrings::hashrings(&inline)?),
        (None, None) => {
            let message =
                "there is no `--receive.hashrings-file`: this receiver stores series and routes none";
            let help = "give the command line of the router: tidegate takes its place, and sends to the receivers that store";
            return Err(mistake(message.to_owned(), help));
        }
    }
    if line.verbatim("receive.local-endpoint").is_some() {
        let message = "left out: this receiver routes and stores, and tidegate only routes. Let it run as it is, as a member \
                       of the hashrings, and point the senders at tidegate";
        line.note("receive.local-endpoint", message, notes);
    }
    if let Some(algorithm) = one_of(line, "receive.hashrings-algorithm", &["hashmod", "ketama"])? {
        sink.set("algorithm", algorithm);
    }
    Ok(())
}

/// The address of the senders, and their tenants.
fn senders(
    line: &mut CommandLine,
    configuration: &mut Map,
    sink: &mut Map,
    notes: &mut Notes,
) -> Result<(), Errors> {
    let listener = configuration.group("listen").group("thanos_receive");
    let address = line.text("remote-write.address").unwrap_or_else(|| "0.0.0.0:19291".to_owned());
    let (address, is_open) = match socket(&address) {
        Some(address) => (address.to_string(), !address.ip().is_loopback()),
        None if references::has_reference(&address) => (address, true),
        None => {
            let message = format!("{} is not an address of this machine", quote(&address));
            return Err(mistake(
                message,
                "give an IP address in `--remote-write.address`, such as 0.0.0.0:19291",
            ));
        }
    };
    listener.set("address", address);
    for (flag, setting) in
        [("receive.tenant-header", "tenant_header"), ("receive.replica-header", "replica_header")]
    {
        listener.set_some(setting, checked::<HeaderName>(line, flag)?);
    }
    if let Some(tenant) = checked::<TenantName>(line, "receive.default-tenant-id")? {
        listener.set("default_tenant", tenant.as_str());
        sink.set("default_tenant", tenant);
    } else {
        sink.set("default_tenant", "default-tenant");
    }
    sink.set_some("split_tenant_label", line.text("receive.split-tenant-label-name"));
    listener.set_with("thanos_metrics", "true", Some("For alerts and dashboards that were made for Thanos."));
    if is_open && line.text("remote-write.server-tls-cert").is_none() {
        let comment = "As before: other machines can connect, and nothing is encrypted.";
        configuration.group("listen").set_with("insecure", "true", Some(comment));
    }
    let metrics = line.text("http-address").unwrap_or_else(|| "0.0.0.0:10902".to_owned());
    match socket(&metrics).filter(|address| address.ip().is_loopback()) {
        Some(address) => configuration.group("listen").set("admin", address.to_string()),
        None => {
            let message = "left out: `/metrics` is served at `listen.admin`, 127.0.0.1:4319. To scrape it from other machines, set \
                           this address and `access.admin_credentials_file`. Probes of `/-/healthy` and `/-/ready` go to the \
                           port of `--remote-write.address`";
            line.note("http-address", message, notes);
        }
    }
    Ok(())
}

/// TLS for the senders, and the certificate field that names their tenant.
fn certificates(line: &mut CommandLine, configuration: &mut Map, notes: &mut Notes) -> Result<(), Errors> {
    let mut tls = Map::default();
    tls.set_some("cert_file", line.text("remote-write.server-tls-cert"));
    tls.set_some("key_file", line.text("remote-write.server-tls-key"));
    if tls.get("cert_file").is_some() != tls.get("key_file").is_some() {
        let message =
            "only one of `--remote-write.server-tls-cert` and `--remote-write.server-tls-key` is given";
        return Err(mistake(message.to_owned(), "give both"));
    }
    let authority = line.text("remote-write.server-tls-client-ca");
    if let Some(authority) = &authority {
        if tls.is_empty() {
            let message = "left out: nothing is encrypted, so clients have no certificates";
            line.note("remote-write.server-tls-client-ca", message, notes);
        } else {
            tls.set("client_ca_file", authority.as_str());
            tls.set("client_auth", "required");
        }
    }
    note_version(line, "remote-write.server-tls-min-version", notes);
    let fields = ["organization", "organizationalUnit", "commonName"];
    if let Some(field) = one_of(line, "receive.tenant-certificate-field", &fields)? {
        if authority.is_none() || tls.is_empty() {
            let message = "`--receive.tenant-certificate-field` is set, but clients are not asked for a certificate: Thanos \
                           refuses every request";
            return Err(mistake(
                message.to_owned(),
                "give `--remote-write.server-tls-cert`, `-key` and `-client-ca`",
            ));
        }
        let field =
            field.replace("organizationalUnit", "organizational_unit").replace("commonName", "common_name");
        configuration.group("listen").group("thanos_receive").set("tenant_certificate_field", field);
    }
    if !tls.is_empty() {
        configuration.group("listen").group("tls").set("thanos_receive", tls);
    }
    Ok(())
}

/// Replication, compression and retries.
fn requests(line: &mut CommandLine, sink: &mut Map, notes: &mut Notes) -> Result<(), Errors> {
    if let Some(factor) = line.text("receive.replication-factor") {
        let is_possible = factor.parse::<u32>().is_ok_and(|factor| (1..=7).contains(&factor));
        if !is_possible && !references::has_reference(&factor) {
            let message = format!("`--receive.replication-factor` is {}", quote(&factor));
            return Err(mistake(message, "tidegate keeps 1 to 7 replicas"));
        }
        sink.set("replication_factor", factor);
    }
    if let Some(compression) = one_of(line, "receive.grpc-compression", &["snappy", "none"])? {
        sink.set("compression", compression);
    }
    let protocol = one_of(line, "receive.replication-protocol", &["protobuf", "capnproto"])?;
    if protocol.as_deref() == Some("capnproto") {
        let message =
            "left out: tidegate sends gRPC to `address` of each endpoint, which Thanos' ingestors serve too";
        line.note("receive.replication-protocol", message, notes);
    }
    let least = Duration::milliseconds(100);
    if let Some(timeout) =
        bounded_duration(line, "receive-forward-timeout", least, Duration::minutes(10), notes)
    {
        sink.set("timeout", timeout);
    }
    let least = Duration::milliseconds(30);
    if let Some(max) = bounded_duration(line, "receive-forward-max-backoff", least, Duration::hours(1), notes)
    {
        sink.group("backoff").set("max", max);
    }
    Ok(())
}

/// TLS towards the ingestors.
fn sink_tls(line: &mut CommandLine, sink: &mut Map, notes: &mut Notes) -> Result<(), Errors> {
    let is_secure = line.switch("remote-write.client-tls-secure").unwrap_or_default();
    let mut tls = Map::default();
    for (flag, setting) in [
        ("remote-write.client-tls-ca", "ca_file"),
        ("remote-write.client-tls-cert", "cert_file"),
        ("remote-write.client-tls-key", "key_file"),
        ("remote-write.client-server-name", "server_name"),
    ] {
        let Some(value) = line.text(flag) else { continue };
        if is_secure {
            tls.set(setting, value);
        } else {
            line.note(
                flag,
                "left out: without `--remote-write.client-tls-secure` nothing is encrypted",
                notes,
            );
        }
    }
    if line.switch("remote-write.client-tls-skip-verify") == Some(true) && is_secure {
        let message =
            "left out: certificates are always verified; trust the ingestors' authority with `tls.ca_file`";
        line.note("remote-write.client-tls-skip-verify", message, notes);
    }
    if tls.get("cert_file").is_some() != tls.get("key_file").is_some() {
        let message =
            "only one of `--remote-write.client-tls-cert` and `--remote-write.client-tls-key` is given";
        return Err(mistake(message.to_owned(), "give both"));
    }
    if is_secure {
        note_version(line, "remote-write.client-tls-min-version", notes);
        sink.set("secure", "true");
        sink.set_group("tls", tls);
    }
    Ok(())
}

/// The translation of OTLP.
fn otlp(line: &mut CommandLine, sink: &mut Map) {
    if line.switch("receive.otlp-enable-target-info") == Some(false) {
        sink.group("otlp").set("target_info", "false");
    }
    let attributes = line.all("receive.otlp-promote-resource-attributes");
    let attributes: Vec<String> = attributes.iter().map(|text| references::kubernetes(text).0).collect();
    if !attributes.is_empty() {
        sink.group("otlp").set("promote", Yaml::Flow(attributes));
    }
}

/// The text of a file or of a flag, with its name.
fn content(
    line: &mut CommandLine,
    flag: &'static str,
    file_flag: &'static str,
    read: ReadFile<'_>,
) -> Result<Option<(String, String)>, Errors> {
    match (line.verbatim(file_flag), line.verbatim(flag)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            let message = format!("`--{file_flag}` and `--{flag}` exclude each other");
            Err(mistake(message, "remove one of the two"))
        }
        (None, Some(text)) if text.trim().starts_with("$(") && !text.trim().contains(char::is_whitespace) => {
            let message = format!("`--{flag}` is the variable {}", text.trim());
            Err(mistake(message, "write its value instead, or a file with it"))
        }
        (None, Some(text)) => Ok(Some((format!("--{flag}"), text))),
        (Some(path), None) => match read(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) => {
                let message = format!("cannot read {path} of `--{file_flag}`: {error}");
                let help = "copy the file here and change the path in the flag, or remove the flag";
                Err(Errors::of_file(&path, message, help))
            }
        },
    }
}

/// The value of a flag, which must be one of `choices` or a variable.
fn one_of(line: &mut CommandLine, flag: &'static str, choices: &[&str]) -> Result<Option<String>, Errors> {
    let Some(value) = line.text(flag) else { return Ok(None) };
    if choices.contains(&value.as_str()) || references::has_reference(&value) {
        return Ok(Some(value));
    }
    let help = format!("write one of {}", choices.join(", "));
    Err(mistake(format!("`--{flag}` cannot be {}", quote(&value)), &help))
}

/// The value of a flag, which must be valid here or a variable.
fn checked<T: FromStr<Err = Invalid>>(
    line: &mut CommandLine,
    flag: &'static str,
) -> Result<Option<String>, Errors> {
    let Some(value) = line.text(flag) else { return Ok(None) };
    if !references::has_reference(&value)
        && let Err(Invalid { message, help }) = value.parse::<T>()
    {
        return Err(mistake(format!("`--{flag}`: {message}"), &help));
    }
    Ok(Some(value))
}

/// The duration in a flag, within what can be set here.
fn bounded_duration(
    line: &mut CommandLine,
    flag: &'static str,
    least: Duration,
    most: Duration,
    notes: &mut Notes,
) -> Option<String> {
    let value = line.text(flag)?;
    if references::has_reference(&value) {
        return Some(value);
    }
    let known = duration(&value).unwrap_or(value).parse::<Duration>();
    if known.is_err() {
        line.note(flag, "left out: not a duration that is known here", notes);
    }
    known.ok().map(|duration| duration.clamp(least, most).to_string())
}

/// Notes a lowest version of TLS.
fn note_version(line: &mut CommandLine, flag: &'static str, notes: &mut Notes) {
    match line.verbatim(flag).as_deref() {
        None | Some("1.2") => {}
        Some("1.3") => line.note(flag, "left out: TLS 1.2 is accepted, too", notes),
        Some(_) => line.note(flag, "left out: TLS 1.2 is the lowest", notes),
    }
}

/// An address as Go reads it.
fn socket(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    match host {
        "" => Some((IpAddr::V4(Ipv4Addr::UNSPECIFIED), port).into()),
        "localhost" => Some((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into()),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
