//! Telegraf, over OTLP.

use crate::endpoint::Abilities;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "telegraf",
    aliases: &["influx-telegraf"],
    title: "Telegraf, over OTLP",
    snippets: |gateway| {
        let endpoint = gateway.grpc();
        let mut toml = format!("[[outputs.opentelemetry]]\n  service_address = {}\n", double(&endpoint.authority()));
        if let Some(file) = endpoint.ca_file() {
            toml += &format!("  tls_ca = {}\n", double(file));
        }
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            toml += &format!("  tls_cert = {}\n  tls_key = {}\n", double(cert_file), double(key_file));
        }
        let token = endpoint.asks_for_token().then(|| "    authorization = \"Bearer ${TIDEGATE_TOKEN}\"\n".to_owned());
        let tenant = endpoint.tenant_header().map(|(name, tenant)| format!("    {} = {}\n", double(name), double(tenant)));
        let headers: String = token.into_iter().chain(tenant).collect();
        if !headers.is_empty() {
            toml += &format!("  [outputs.opentelemetry.headers]\n{headers}");
        }
        Ok(vec![
            Snippet::file("output for metrics", "telegraf.conf", Language::Toml, toml)
                .with(["Add it to telegraf.conf, or as a file to /etc/telegraf/telegraf.d.".to_owned()])
                .with(endpoint.notes(Abilities::ALL))
                .with(gateway.otlp_notes()),
        ])
    },
};
