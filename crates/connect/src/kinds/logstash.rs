//! Logstash.

use crate::endpoint::{Abilities, Credential};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "logstash",
    aliases: &["logstash-output-elasticsearch"],
    title: "Logstash, with its output for Elasticsearch",
    snippets: |gateway| {
        let endpoint = gateway.elasticsearch();
        let mut lines = vec![format!("hosts => [{}]", double(&endpoint.url("")))];
        if endpoint.asks_for_token() {
            lines.push("user => \"sender\"".to_owned());
            lines.push("password => \"${TIDEGATE_PASSWORD}\"".to_owned());
        }
        if let Some((name, tenant)) = endpoint.tenant_header() {
            lines.push(format!("custom_headers => {{ {} => {} }}", double(name), double(tenant)));
        }
        if let Some(file) = endpoint.ca_file() {
            lines.push(format!("ssl_certificate_authorities => [{}]", double(file)));
        }
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            lines.push(format!("ssl_certificate => {}", double(cert_file)));
            lines.push(format!("ssl_key => {}", double(key_file)));
        }
        lines.push("manage_template => false".to_owned());
        lines.push("ilm_enabled => false".to_owned());
        let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
        Ok(vec![
            Snippet::file(
                "output of the pipeline",
                "logstash.conf",
                Language::Conf,
                format!("output {{\n  elasticsearch {{\n{lines}  }}\n}}"),
            )
            .with(gateway.bulk_notes())
            .with(endpoint.notes(Abilities { credential: Credential::Password, ..Abilities::ALL })),
        ])
    },
};
