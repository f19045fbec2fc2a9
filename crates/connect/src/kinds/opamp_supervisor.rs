//! The supervisor of an OpenTelemetry Collector, over OpAMP.

use crate::endpoint::Abilities;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::missing::Missing;
use crate::quote::dollars;
use tidegate_config::{Listener, OpampAccess};

pub(crate) const KIND: Kind = Kind {
    name: "opamp-supervisor",
    aliases: &["opamp", "opampsupervisor", "supervisor"],
    title: "OpAMP supervisor: a Collector that is managed here",
    snippets: |gateway| {
        let (Some(endpoint), Some(settings)) = (gateway.listener(Listener::Opamp), &gateway.config.listen.opamp) else {
            return Err(Missing {
                protocol: "OpAMP",
                setting: "listen.opamp",
                lines: "listen:\n  opamp: {}\n".to_owned(),
                note: "For collectors on other machines, use `opamp: { address: 0.0.0.0:4320 }` with a certificate in `listen.tls`.".to_owned(),
            });
        };
        let scheme = if endpoint.tls.is_some() { "wss" } else { "ws" };
        let url = format!("{scheme}://{}/v1/opamp", endpoint.authority());
        let mut yaml = format!("server:\n  endpoint: {}\n", dollars(&url));
        let has_token = settings.access == OpampAccess::Tokens;
        if has_token {
            yaml += "  headers: { Authorization: \"Bearer ${env:TIDEGATE_OPAMP_TOKEN}\" }\n";
        }
        if let Some(file) = endpoint.ca_file() {
            yaml += &format!("  tls:\n    ca_file: {}\n", dollars(file));
            if let Some((cert_file, key_file)) = endpoint.client_certificate() {
                yaml += &format!("    cert_file: {}\n    key_file: {}\n", dollars(cert_file), dollars(key_file));
            }
        }
        yaml += "capabilities:\n  accepts_remote_config: true\n  reports_remote_config: true\n  accepts_restart_command: true\n\
                 agent:\n  executable: /usr/bin/otelcol\n  validate_config: true\n  config_apply_timeout: 15s\n  bootstrap_timeout: 30s\n\
                 storage:\n  directory: /var/lib/otelcol\n";
        let mut notes = endpoint.reach.clone();
        notes.extend(endpoint.tls_notes(Abilities::ALL));
        if has_token {
            notes.push(
                "`tidegate fleet collector token create`, on this machine, makes a token: give it to the supervisor as the environment variable \
                 TIDEGATE_OPAMP_TOKEN."
                    .to_owned(),
            );
        }
        notes.push(
            "It gets the configuration that `tidegate fleet config put FILE` has for it; `tidegate connect collector` has the exporters for that."
                .to_owned(),
        );
        Ok(vec![
            Snippet::file("the supervisor's configuration", "supervisor.yaml", Language::Yaml, yaml).with(notes),
        ])
    },
};
