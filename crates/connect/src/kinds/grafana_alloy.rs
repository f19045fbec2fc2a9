//! Grafana Alloy.

use crate::endpoint::{Abilities, Endpoint};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "grafana-alloy",
    aliases: &["alloy", "grafana-agent", "grafana"],
    title: "Grafana Alloy: metrics, logs and OTLP",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let http = |block: &str, path: &str| {
            format!(
                "{block} \"tidegate\" {{\n  endpoint {{\n    url = {}\n{}  }}\n}}\n",
                double(&endpoint.url(path)),
                settings(&endpoint, "tls_config", "bearer_token = sys.env(\"TIDEGATE_TOKEN\")")
            )
        };
        let mut content = vec![
            http("prometheus.remote_write", "/api/v1/write"),
            http("loki.write", "/loki/api/v1/push"),
            format!(
                "otelcol.exporter.otlphttp \"tidegate\" {{\n  client {{\n    endpoint = {}\n{}  }}\n}}\n",
                double(&endpoint.url("")),
                settings(&endpoint, "tls", "auth = otelcol.auth.bearer.tidegate.handler")
            ),
        ];
        if endpoint.asks_for_token() {
            content.push("otelcol.auth.bearer \"tidegate\" {\n  token = sys.env(\"TIDEGATE_TOKEN\")\n}\n".to_owned());
        }
        Ok(vec![
            Snippet::file("components that send to the gateway", "config.alloy", Language::Alloy, content.join("\n"))
                .with([
                    "Add them to the configuration, and name in the `forward_to` of your components `prometheus.remote_write.tidegate.receiver` and \
                     `loki.write.tidegate.receiver`, and as their `output` `otelcol.exporter.otlphttp.tidegate.input`."
                        .to_owned(),
                ])
                .with(endpoint.notes(Abilities::ALL)),
        ])
    },
};

/// Credential, tenant and certificates of a client.
fn settings(endpoint: &Endpoint<'_>, tls: &str, token: &str) -> String {
    let mut content = String::new();
    let mut headers = Vec::new();
    if endpoint.asks_for_token() {
        content += &format!("    {token}\n");
    }
    if let Some((name, tenant)) = endpoint.tenant_header() {
        headers.push(format!("{} = {}", double(name), double(tenant)));
    }
    if !headers.is_empty() {
        content += &format!("    headers = {{ {} }}\n", headers.join(", "));
    }
    if let Some(file) = endpoint.ca_file() {
        content += &format!("    {tls} {{\n      ca_file = {}\n", double(file));
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            content += &format!("      cert_file = {}\n      key_file = {}\n", double(cert_file), double(key_file));
        }
        content += "    }\n";
    }
    content
}
