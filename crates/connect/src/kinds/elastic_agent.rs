//! Elastic Agent, enrolled in the fleet of this gateway.

use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::missing::Missing;
use crate::endpoint::{Abilities, Tenant};
use crate::quote::{double, shell};
use tidegate_config::Listener;

pub(crate) const KIND: Kind = Kind {
    name: "elastic-agent",
    aliases: &["agent", "fleet", "elastic-agents"],
    title: "Elastic Agent, enrolled here",
    snippets: |gateway| {
        let listen = &gateway.config.listen;
        let (Some(fleet), Some(elasticsearch)) =
            (gateway.listener(Listener::Fleet), gateway.listener(Listener::Elasticsearch))
        else {
            return Err(Missing {
                protocol: "what Elastic Agents send",
                setting: if listen.fleet.is_none() { "listen.fleet" } else { "listen.elasticsearch" },
                lines: "listen:\n  fleet: {}\n  elasticsearch: 127.0.0.1:9200\n".to_owned(),
                note: "For agents on other machines, use `fleet: { address: 0.0.0.0:8220 }` and `elasticsearch: 0.0.0.0:9200`, with a certificate \
                       in `listen.tls`."
                    .to_owned(),
            });
        };
        // The policy names their tenant, unless a certificate does. Without tenants, a policy that names one is refused.
        let is_named = gateway.config.tenants.are_on() || (gateway.config.has_tenants() && gateway.sender.tenant.is_some());
        let has_tenant = is_named && !matches!(elasticsearch.tenant, Tenant::Certificate { .. });
        let mut output = format!("    type: tidegate\n    hosts: [{}]\n", double(&elasticsearch.url("")));
        if has_tenant {
            output += &format!("    tenant: {}\n", double(gateway.sender.tenant()));
        }
        if let Some(file) = elasticsearch.ca_file() {
            output += &format!("    ssl:\n      certificate_authorities: [{}]\n", double(file));
            if let Some((cert_file, key_file)) = elasticsearch.client_certificate() {
                output += &format!("      certificate: {}\n      key: {}\n", double(cert_file), double(key_file));
            }
        }
        let policy = format!(
            "outputs:\n  default:\n{output}inputs:\n  - type: filestream\n    id: syslog\n    use_output: default\n    \
             streams: [{{ id: syslog, paths: [/var/log/syslog] }}]\n"
        );
        let commands = format!(
            "tidegate fleet policy put web.yaml\ntidegate fleet enroll-command --policy web --url {}\n",
            shell(&fleet.url(""))
        );
        // Agents get their keys from the fleet.
        let mut notes = fleet.reach.clone();
        notes.extend(elasticsearch.reach.clone());
        notes.extend(fleet.tls_notes(Abilities { client_certificate: false, ..Abilities::ALL }));
        notes.push(
            "The second command makes an enrolment token, and prints the command to run on each host. Where the host does not trust the \
             certificate, add `--certificate-authorities=FILE` to that."
                .to_owned(),
        );
        Ok(vec![
            Snippet::file("a policy, for this machine", "web.yaml", Language::Yaml, policy)
                .with(["Each agent gets an API key of its own for this output.".to_owned()])
                .with((has_tenant && gateway.sender.tenant.is_none()).then(|| tenant_note(&elasticsearch.tenant)))
                .with(elasticsearch.tls.map(|_| elasticsearch.tls_notes(Abilities::ALL)).into_iter().flatten()),
            Snippet::commands("on this machine: put the policy, and get the command for hosts", commands).with(notes),
        ])
    },
};

fn tenant_note(tenant: &Tenant<'_>) -> String {
    let default = match tenant {
        Tenant::Header { default: Some(default), .. } | Tenant::Credential { default: Some(default) } => {
            format!(" Without that line, it is that of `{default}`.")
        }
        _ => String::new(),
    };
    format!("Replace TENANT: what these agents send is that tenant's.{default}")
}
