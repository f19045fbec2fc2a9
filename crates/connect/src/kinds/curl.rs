//! curl: one log record over OTLP/JSON, and one over the source `http`.

use crate::endpoint::{Abilities, Endpoint};
use crate::instructions::Snippet;
use crate::kind::Kind;
use crate::quote::{path, shell};

pub(crate) const KIND: Kind = Kind {
    name: "curl",
    aliases: &["http", "webhook", "script", "json"],
    title: "curl: a log record as OTLP/JSON, or as plain JSON",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let otlp = r#"{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"your-service"}}]},"scopeLogs":[{"logRecords":[{"severityNumber":9,"body":{"stringValue":"hello"}}]}]}]}"#;
        let plain = r#"{"level":"info","message":"hello","service":"your-service"}"#;
        let plain_path = path(&gateway.config.sources.http.path);
        Ok(vec![
            Snippet::commands("send a log record over OTLP", command(&endpoint, "/v1/logs", "application/json", otlp))
                .with(endpoint.notes(Abilities::ALL)),
            Snippet::commands(
                "the same as plain JSON: each line is a record",
                command(&endpoint, &plain_path, "application/x-ndjson", plain),
            ),
        ])
    },
};

/// A command that posts this body.
pub(crate) fn command(endpoint: &Endpoint<'_>, path: &str, content_type: &str, body: &str) -> String {
    // Otherwise curl takes brackets of a path for a range.
    let globs = if format!("{}{path}", endpoint.base).contains('[') { " --globoff" } else { "" };
    let mut lines = vec![format!("curl --fail-with-body -sS{globs} {}", shell(&endpoint.url(path)))];
    lines.push(format!("  -H {}", shell(&format!("Content-Type: {content_type}"))));
    lines.extend(options(endpoint).into_iter().map(|option| format!("  {option}")));
    lines.push(format!("  --data-binary {}", shell(body)));
    lines.join(" \\\n") + "\n"
}

/// Credentials, tenant and certificates.
fn options(endpoint: &Endpoint<'_>) -> Vec<String> {
    let mut options = Vec::new();
    if endpoint.asks_for_token() {
        options.push("-H \"Authorization: Bearer $TIDEGATE_TOKEN\"".to_owned());
    }
    if let Some((name, tenant)) = endpoint.tenant_header() {
        options.push(format!("-H {}", shell(&format!("{name}: {tenant}"))));
    }
    if let Some(file) = endpoint.ca_file() {
        options.push(format!("--cacert {}", shell(file)));
    }
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        options.push(format!("--cert {} --key {}", shell(cert_file), shell(key_file)));
    }
    options
}
