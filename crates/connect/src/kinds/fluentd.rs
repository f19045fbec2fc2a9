//! Fluentd, over its forward protocol.

use crate::endpoint::Abilities;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "fluentd",
    aliases: &["td-agent", "fluent", "forward"],
    title: "Fluentd, over its forward protocol",
    snippets: |gateway| {
        let forward = gateway.forward()?;
        let endpoint = &forward.endpoint;
        let mut lines = vec!["<match **>".to_owned(), "  @type forward".to_owned(), "  require_ack_response true".to_owned()];
        if let Some(file) = endpoint.ca_file() {
            lines.push("  transport tls".to_owned());
            lines.push(format!("  tls_cert_path {file}"));
        }
        if let Some((cert_file, key_file)) = endpoint.client_certificate() {
            lines.push(format!("  tls_client_cert_path {cert_file}"));
            lines.push(format!("  tls_client_private_key_path {key_file}"));
        }
        if forward.asks_for_key {
            lines.push("  <security>".to_owned());
            lines.push("    self_hostname \"#{Socket.gethostname}\"".to_owned());
            lines.push("    shared_key \"#{ENV['TIDEGATE_SHARED_KEY']}\"".to_owned());
            lines.push("  </security>".to_owned());
        }
        lines.push("  <server>".to_owned());
        lines.push(format!("    host {}", endpoint.host));
        lines.push(format!("    port {}", endpoint.port));
        if forward.asks_for_user {
            lines.push("    username \"#{ENV['TIDEGATE_USER']}\"".to_owned());
            lines.push("    password \"#{ENV['TIDEGATE_PASSWORD']}\"".to_owned());
        }
        lines.push("  </server>".to_owned());
        lines.push("  <buffer tag>".to_owned());
        lines.push("    @type file".to_owned());
        lines.push("    path /var/log/fluent/tidegate-buffer".to_owned());
        lines.push("    flush_interval 1s".to_owned());
        lines.push("  </buffer>".to_owned());
        lines.push("</match>".to_owned());
        Ok(vec![
            Snippet::file("output", "fluent.conf", Language::Conf, lines.join("\n"))
                .with(["Fluentd takes the first `match` that fits: put it behind those for other destinations.".to_owned()])
                .with(forward.notes(Abilities::ALL)),
        ])
    },
};
