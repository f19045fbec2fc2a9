//! Fluent Bit: over the forward protocol where that is received, else over OTLP.

use crate::endpoint::Abilities;
use crate::gateway::{Forward, Gateway};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "fluent-bit",
    aliases: &["fluentbit", "td-agent-bit"],
    title: "Fluent Bit, over the forward protocol or OTLP",
    snippets: |gateway| {
        let (settings, notes) = match gateway.forward() {
            Ok(forward) => (by_forward(&forward), forward.notes(Abilities::ALL)),
            Err(_) => (by_otlp(gateway), gateway.http().notes(Abilities::ALL)),
        };
        let settings: String = settings.iter().map(|line| format!("      {line}\n")).collect();
        Ok(vec![
            Snippet::file(
                "a whole configuration, which reads log files",
                "fluent-bit.yaml",
                Language::Yaml,
                format!(
                    "pipeline:\n  inputs:\n    - name: tail\n      path: /var/log/*.log\n      tag: files\n  outputs:\n    - match: '*'\n{settings}"
                ),
            )
            .with(["Run it with `fluent-bit -c fluent-bit.yaml`; in a configuration of yours, add the output.".to_owned()])
            .with(notes),
        ])
    },
};

/// With acknowledgements.
fn by_forward(forward: &Forward<'_>) -> Vec<String> {
    let endpoint = &forward.endpoint;
    let mut lines = vec![
        "name: forward".to_owned(),
        format!("host: {}", double(&endpoint.host)),
        format!("port: {}", endpoint.port),
        "require_ack_response: true".to_owned(),
    ];
    if forward.asks_for_key {
        lines.push("shared_key: ${TIDEGATE_SHARED_KEY}".to_owned());
    }
    if forward.asks_for_user {
        lines.push("username: ${TIDEGATE_USER}".to_owned());
        lines.push("password: ${TIDEGATE_PASSWORD}".to_owned());
    }
    lines.extend(tls(endpoint));
    lines
}

fn by_otlp(gateway: Gateway<'_>) -> Vec<String> {
    let endpoint = gateway.http();
    let mut lines = vec![
        "name: opentelemetry".to_owned(),
        format!("host: {}", double(&endpoint.host)),
        format!("port: {}", endpoint.port),
        "logs_uri: /v1/logs".to_owned(),
        "metrics_uri: /v1/metrics".to_owned(),
        "traces_uri: /v1/traces".to_owned(),
        // The member with the line that the input `tail` makes.
        "logs_body_key: log".to_owned(),
    ];
    let token = endpoint.asks_for_token().then(|| "  - Authorization Bearer ${TIDEGATE_TOKEN}".to_owned());
    let tenant = endpoint.tenant_header().map(|(name, tenant)| format!("  - {}", double(&format!("{name} {tenant}"))));
    let headers: Vec<String> = token.into_iter().chain(tenant).collect();
    if !headers.is_empty() {
        lines.push("header:".to_owned());
        lines.extend(headers);
    }
    lines.extend(tls(&endpoint));
    lines
}

fn tls(endpoint: &crate::endpoint::Endpoint<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(file) = endpoint.ca_file() {
        lines.push("tls: on".to_owned());
        lines.push("tls.verify: on".to_owned());
        lines.push(format!("tls.ca_file: {}", double(file)));
    }
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        lines.push(format!("tls.crt_file: {}", double(cert_file)));
        lines.push(format!("tls.key_file: {}", double(key_file)));
    }
    lines
}
