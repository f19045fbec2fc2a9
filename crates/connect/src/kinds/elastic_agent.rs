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
        // Its tenant is that of the policy.
        let needs_tenant = matches!(elasticsearch.tenant, Tenant::Header { default: None, .. } | Tenant::Credential { default: None });
        let tenant = if needs_tenant { format!(", tenant: {}", double(elasticsearch.sender.tenant())) } else { String::new() };
        let policy = format!(
            "outputs:\n  default: {{ type: tidegate, hosts: [{}]{tenant} }}\ninputs:\n  - type: filestream\n    id: syslog\n    use_output: default\n    \
             streams: [{{ id: syslog, paths: [/var/log/syslog] }}]\n",
            double(&elasticsearch.url(""))
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
                .with((needs_tenant && elasticsearch.sender.tenant.is_none()).then(|| {
                    "Replace TENANT: what these agents send is that tenant's.".to_owned()
                })),
            Snippet::commands("on this machine: put the policy, and get the command for hosts", commands).with(notes),
        ])
    },
};
