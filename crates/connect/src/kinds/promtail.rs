//! Promtail, over Loki's push API.

use crate::endpoint::Abilities;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "promtail",
    aliases: &["loki", "loki-push"],
    title: "Promtail, and other clients of Loki",
    snippets: |gateway| {
        let endpoint = gateway.http();
        let mut yaml = format!("clients:\n  - url: {}\n", double(&endpoint.url("/loki/api/v1/push")));
        if endpoint.asks_for_token() {
            yaml += &format!("    bearer_token_file: {}\n", double(endpoint.sender.token_file()));
        }
        match endpoint.tenant_header() {
            Some(("x-scope-orgid", tenant)) => yaml += &format!("    tenant_id: {}\n", double(tenant)),
            Some((name, tenant)) => yaml += &format!("    headers:\n      {}: {}\n", double(name), double(tenant)),
            None => {}
        }
        if let Some(file) = endpoint.ca_file() {
            yaml += &format!("    tls_config:\n      ca_file: {}\n", double(file));
        }
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            yaml += &format!("      cert_file: {}\n      key_file: {}\n", double(cert_file), double(key_file));
        }
        Ok(vec![
            Snippet::file("section of the configuration", "promtail.yaml", Language::Yaml, yaml)
                .with([format!("Other clients need the same URL: {}.", endpoint.url("/loki/api/v1/push"))])
                .with(endpoint.notes(Abilities::TOKEN_FILE)),
        ])
    },
};
