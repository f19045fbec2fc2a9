//! The OpenTelemetry Collector.

use crate::endpoint::{Abilities, Endpoint};
use crate::gateway::Gateway;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::dollars;

pub(crate) const KIND: Kind = Kind {
    name: "collector",
    aliases: &["otelcol", "otel-collector", "opentelemetry-collector", "otlphttp"],
    title: "OpenTelemetry Collector, with the exporters otlphttp and otlp",
    snippets: |gateway| {
        let (http, grpc) = (gateway.http(), gateway.grpc());
        Ok(vec![
            Snippet::file(
                "a whole configuration, over HTTP",
                "collector.yaml",
                Language::Yaml,
                whole(gateway, "otlphttp/tidegate", &exporter(&http, &http.url(""))),
            )
            .with([
                "In a configuration of yours, add the exporter, and its name to the `exporters` of your pipelines.".to_owned(),
            ])
            .with(http.notes(Abilities::ALL))
            .with(gateway.otlp_notes()),
            Snippet::file(
                "the same over gRPC",
                "collector-grpc.yaml",
                Language::Yaml,
                whole(gateway, "otlp/tidegate", &exporter(&grpc, &grpc.authority())),
            )
            .with(grpc.notes(Abilities::ALL)),
        ])
    },
};

/// A configuration with this exporter, which takes OTLP from programs of its machine.
fn whole(gateway: Gateway<'_>, name: &str, exporter: &str) -> String {
    // A gateway that only this machine reaches has the usual ports itself.
    let is_local = gateway.config.listen.http.ip().is_loopback() && gateway.sender.host.is_none();
    let (grpc, http) = if is_local { (14317, 14318) } else { (4317, 4318) };
    let pipelines: String = ["traces", "metrics", "logs"]
        .iter()
        .map(|signal| format!("    {signal}:\n      receivers: [otlp]\n      exporters: [{name}]\n"))
        .collect();
    format!(
        "receivers:\n  otlp:\n    protocols:\n      grpc:\n        endpoint: 127.0.0.1:{grpc}\n      http:\n        \
         endpoint: 127.0.0.1:{http}\nexporters:\n  {name}:\n{exporter}service:\n  pipelines:\n{pipelines}"
    )
}

/// The settings of an exporter.
pub(crate) fn exporter(endpoint: &Endpoint<'_>, address: &str) -> String {
    let mut yaml = format!("    endpoint: {}\n", dollars(address));
    match endpoint.ca_file() {
        None => yaml += "    tls:\n      insecure: true\n",
        Some(file) => yaml += &format!("    tls:\n      ca_file: {}\n", dollars(file)),
    }
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        yaml += &format!("      cert_file: {}\n      key_file: {}\n", dollars(cert_file), dollars(key_file));
    }
    let token = endpoint.asks_for_token().then(|| "      authorization: Bearer ${env:TIDEGATE_TOKEN}\n".to_owned());
    let tenant =
        endpoint.tenant_header().map(|(name, tenant)| format!("      {}: {}\n", dollars(name), dollars(tenant)));
    let headers: String = token.into_iter().chain(tenant).collect();
    if !headers.is_empty() {
        yaml += &format!("    headers:\n{headers}");
    }
    yaml
}
