//! Prometheus, over remote write.

use crate::endpoint::{Abilities, Endpoint};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "prometheus",
    aliases: &["prom", "remote-write", "prometheus-agent"],
    title: "Prometheus, over remote write",
    snippets: |gateway| Ok(vec![remote_write(&gateway.http(), "/api/v1/write").with(gateway.remote_write_notes())]),
};

/// The section of `prometheus.yml` that sends to this path.
pub(crate) fn remote_write(endpoint: &Endpoint<'_>, path: &str) -> Snippet {
    let mut yaml = format!("remote_write:\n  - url: {}\n", double(&endpoint.url(path)));
    if endpoint.asks_for_token() {
        yaml += &format!(
            "    authorization:\n      credentials_file: {}\n",
            double(endpoint.sender.token_file())
        );
    }
    if let Some((name, tenant)) = endpoint.tenant_header() {
        yaml += &format!("    headers:\n      {}: {}\n", double(name), double(tenant));
    }
    if let Some(file) = endpoint.ca_file() {
        yaml += &format!("    tls_config:\n      ca_file: {}\n", double(file));
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            yaml += &format!("      cert_file: {}\n      key_file: {}\n", double(cert_file), double(key_file));
        }
    }
    yaml += "    queue_config:\n      retry_on_http_429: true\n";
    let notes = [
        "Add this to prometheus.yml, and reload Prometheus (SIGHUP).".to_owned(),
        "Without `retry_on_http_429`, Prometheus drops what a rate limit of the gateway refuses.".to_owned(),
    ];
    let old = endpoint.tenant_header().map(|_| {
        "The Prometheus of Debian 12 (2.42) sends no `headers`: give it a credential, or a default tenant at this address.".to_owned()
    });
    Snippet::file("section of the configuration", "prometheus.yml", Language::Yaml, yaml)
        .with(notes)
        .with(old)
        .with(endpoint.notes(Abilities::TOKEN_FILE))
}
