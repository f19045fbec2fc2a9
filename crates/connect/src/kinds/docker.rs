//! Docker's log drivers: `fluentd`, or else `syslog`.

use crate::endpoint::Abilities;
use crate::gateway::{Gateway, SyslogTarget, Transport};
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use serde_json::{Map, Value, json};

pub(crate) const KIND: Kind = Kind {
    name: "docker",
    aliases: &["docker-log-driver", "dockerd", "container"],
    title: "Docker, with its log driver fluentd or syslog",
    snippets: |gateway| {
        let (driver, options, notes) = match (fluentd(gateway), gateway.syslog(&[Transport::Tls, Transport::Tcp, Transport::Udp])) {
            (Ok((options, notes)), _) => ("fluentd", options, notes),
            (Err(_), Ok(target)) => {
                // It counts octets only so.
                let counts = target.transport == Transport::Tls && !target.old_format;
                let notes = target.notes().into_iter().chain(target.framing_note(counts)).collect();
                ("syslog", syslog(&target), notes)
            }
            (Err(missing), Err(_)) => return Err(missing),
        };
        let file = serde_json::to_string_pretty(&json!({"log-driver": driver, "log-opts": options})).unwrap_or_default();
        let run: String = options
            .iter()
            .filter_map(|(name, value)| Some(format!(" \\\n  --log-opt {}", crate::quote::shell(&format!("{name}={}", value.as_str()?)))))
            .collect();
        Ok(vec![
            Snippet::file("for all containers of a machine", "/etc/docker/daemon.json", Language::Json, file)
                .with(["Restart Docker. Containers that are there keep their driver.".to_owned()])
                .with(notes),
            Snippet::commands(
                "for one container",
                format!("docker run --log-driver {driver}{run} \\\n  hello-world\n"),
            ),
        ])
    },
};

type Options = Map<String, Value>;

/// The driver has neither a shared key nor certificates of its own.
fn fluentd(gateway: Gateway<'_>) -> Result<(Options, Vec<String>), crate::missing::Missing> {
    let forward = gateway.forward()?;
    let endpoint = &forward.endpoint;
    if forward.asks_for_key || endpoint.client_certificate().is_some() {
        return Err(crate::missing::Missing {
            protocol: "Fluentd's forward protocol without a key and without client certificates, which is all that Docker speaks",
            setting: "sources.syslog.listeners",
            lines: "sources:\n  syslog:\n    listeners:\n      docker: { address: \"tcp://127.0.0.1:5514\" }\n".to_owned(),
            note: "Or put a Fluent Bit in between: see `tidegate connect fluent-bit`.".to_owned(),
        });
    }
    let scheme = if endpoint.tls.is_some() { "tls" } else { "tcp" };
    let mut options = Map::new();
    options.insert("fluentd-address".to_owned(), json!(format!("{scheme}://{}", endpoint.authority())));
    // Otherwise a container does not start while the gateway is away.
    options.insert("fluentd-async".to_owned(), json!("true"));
    options.insert("fluentd-request-ack".to_owned(), json!("true"));
    options.insert("tag".to_owned(), json!("{{.Name}}"));
    let abilities = Abilities { ca_file: false, client_certificate: false, ..Abilities::ALL };
    Ok((options, forward.notes(abilities)))
}

fn syslog(target: &SyslogTarget<'_>) -> Options {
    let endpoint = &target.endpoint;
    let scheme = match target.transport {
        Transport::Tls => "tcp+tls",
        Transport::Tcp => "tcp",
        Transport::Udp => "udp",
    };
    let mut options = Map::new();
    options.insert("syslog-address".to_owned(), json!(format!("{scheme}://{}", endpoint.authority())));
    let format = if target.old_format { "rfc3164" } else { "rfc5424micro" };
    options.insert("syslog-format".to_owned(), json!(format));
    options.insert("tag".to_owned(), json!("{{.Name}}"));
    if let Some(file) = endpoint.ca_file() {
        options.insert("syslog-tls-ca-cert".to_owned(), json!(file));
    }
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        options.insert("syslog-tls-cert".to_owned(), json!(cert_file));
        options.insert("syslog-tls-key".to_owned(), json!(key_file));
    }
    options
}
