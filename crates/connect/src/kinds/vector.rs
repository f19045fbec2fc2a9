//! Vector as a sender.

use crate::endpoint::{Abilities, Endpoint};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::{double, dollars};

pub(crate) const KIND: Kind = Kind {
    name: "vector",
    aliases: &["vector-dev", "datadog-vector"],
    title: "Vector: logs over Elasticsearch's API, metrics over remote write",
    snippets: |gateway| {
        let (logs, metrics) = (gateway.elasticsearch(), gateway.http());
        // The only tenant header that its sink for metrics has.
        let has_header = metrics.tenant_header().is_none_or(|(name, _)| name == "x-scope-orgid");
        let mut yaml = "sources:\n  logs:\n    type: internal_logs\n  metrics:\n    type: internal_metrics\n".to_owned();
        yaml += &format!(
            "sinks:\n  tidegate_logs:\n    type: elasticsearch\n    inputs: [logs]\n    endpoints: [{}]\n    api_version: v8\n    mode: bulk\n    \
             bulk:\n      action: create\n      index: logs-vector-default\n    request_retry_partial: true\n",
            dollars(&logs.url(""))
        );
        let token = logs.asks_for_token().then(|| "        Authorization: Bearer ${TIDEGATE_TOKEN}\n".to_owned());
        let tenant = logs.tenant_header().map(|(name, tenant)| format!("        {}: {}\n", dollars(name), dollars(tenant)));
        let headers: String = token.into_iter().chain(tenant).collect();
        if !headers.is_empty() {
            yaml += &format!("    request:\n      headers:\n{headers}");
        }
        yaml += &tls(&logs);
        yaml += &format!(
            "  tidegate_metrics:\n    type: prometheus_remote_write\n    inputs: [metrics]\n    endpoint: {}\n    healthcheck:\n      enabled: false\n",
            dollars(&metrics.url("/api/v1/write"))
        );
        if metrics.asks_for_token() {
            yaml += "    auth:\n      strategy: bearer\n      token: ${TIDEGATE_TOKEN}\n";
        }
        if let Some((_, tenant)) = metrics.tenant_header().filter(|_| has_header) {
            yaml += &format!("    tenant_id: {}\n", double(tenant));
        }
        yaml += &tls(&metrics);
        let mut notes = vec![
            "It sends Vector's own logs and metrics: name your sources and transforms in `inputs`.".to_owned(),
            "Without `request_retry_partial`, Vector drops documents that the gateway's cluster refuses for now.".to_owned(),
        ];
        if yaml.contains('$') {
            notes.push(
                "Vector 0.57 and later read variables in its configuration only when started with \
                 `--dangerously-allow-env-var-interpolation`. Without that flag, take the token from a `file` backend in `secret`, as \
                 `SECRET[backend.name]`."
                    .to_owned(),
            );
        }
        if !has_header {
            notes.push(
                "Vector's sink for remote write sends no other tenant header than `X-Scope-OrgID`: give its metrics a tenant by \
                 `tenants.default_at.http`, or a credential."
                    .to_owned(),
            );
        }
        Ok(vec![
            Snippet::file("a whole configuration", "vector.yaml", Language::Yaml, yaml)
                .with(notes)
                .with(gateway.bulk_notes())
                .with(metrics.notes(Abilities::ALL)),
        ])
    },
};

fn tls(endpoint: &Endpoint<'_>) -> String {
    let Some(file) = endpoint.ca_file() else { return String::new() };
    let mut yaml = format!("    tls:\n      ca_file: {}\n", double(file));
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        yaml += &format!("      crt_file: {}\n      key_file: {}\n", double(cert_file), double(key_file));
    }
    yaml
}
