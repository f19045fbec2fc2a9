//! vmagent, over remote write.

use crate::endpoint::Abilities;
use crate::instructions::Snippet;
use crate::kind::Kind;
use crate::quote::shell;

pub(crate) const KIND: Kind = Kind {
    name: "vmagent",
    aliases: &["victoriametrics", "victoria-metrics"],
    title: "vmagent, over remote write",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let mut flags = vec![("url", endpoint.url("/api/v1/write"))];
        if endpoint.asks_for_token() {
            flags.push(("bearerTokenFile", endpoint.sender.token_file().to_owned()));
        }
        if let Some((name, tenant)) = endpoint.tenant_header() {
            flags.push(("headers", format!("{name}:{tenant}")));
        }
        if let Some(file) = endpoint.ca_file() {
            flags.push(("tlsCAFile", file.to_owned()));
        }
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            flags.push(("tlsCertFile", cert_file.to_owned()));
            flags.push(("tlsKeyFile", key_file.to_owned()));
        }
        let flags: String =
            flags.iter().map(|(name, value)| format!(" \\\n  -remoteWrite.{name}={}", shell(value))).collect();
        // Without that, it looks for IPv4 addresses alone.
        let version = if endpoint.host.contains(':') { " -enableTCP6" } else { "" };
        Ok(vec![
            Snippet::commands("run it", format!("vmagent -promscrape.config=prometheus.yml{version}{flags}\n"))
                .with(endpoint.notes(Abilities::TOKEN_FILE))
                .with(gateway.remote_write_notes()),
        ])
    },
};
