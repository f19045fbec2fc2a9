//! rsyslog.

use crate::gateway::Transport;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "rsyslog",
    aliases: &["rsyslogd", "syslog"],
    title: "rsyslog",
    snippets: |gateway| {
        let target = gateway.syslog(&[Transport::Tls, Transport::Tcp, Transport::Udp])?;
        let endpoint = &target.endpoint;
        let protocol = if target.transport == Transport::Udp { "udp" } else { "tcp" };
        let mut lines = vec![
            format!("target={} port=\"{}\" protocol=\"{protocol}\"", double(&endpoint.host), endpoint.port),
        ];
        lines.push(
            if target.old_format { "template=\"RSYSLOG_ForwardFormat\"" } else { "template=\"RSYSLOG_SyslogProtocol23Format\"" }
                .to_owned(),
        );
        if target.counted {
            lines.push("tcp_framing=\"octet-counted\"".to_owned());
        }
        let mut globals = String::new();
        if let Some(file) = endpoint.ca_file() {
            globals += &format!("global(defaultNetstreamDriver=\"gtls\" defaultNetstreamDriverCAFile={}", double(file));
            if let Some((cert_file, key_file)) = endpoint.client_certificate() {
                globals += &format!(
                    "\n       defaultNetstreamDriverCertFile={} defaultNetstreamDriverKeyFile={}",
                    double(cert_file),
                    double(key_file)
                );
            }
            globals += ")\n";
            lines.push("streamDriver=\"gtls\" streamDriverMode=\"1\" streamDriverAuthMode=\"x509/name\"".to_owned());
            lines.push(format!("streamDriverPermittedPeers={}", double(&endpoint.host)));
        }
        // On disk while the gateway is away.
        lines.push("queue.type=\"linkedList\" queue.filename=\"tidegate\" queue.saveOnShutdown=\"on\"".to_owned());
        lines.push("action.resumeRetryCount=\"-1\"".to_owned());
        let lines = lines.join("\n           ");
        Ok(vec![
            Snippet::file(
                "forward everything",
                "/etc/rsyslog.d/50-tidegate.conf",
                Language::Conf,
                format!("{globals}*.* action(type=\"omfwd\" {lines})"),
            )
            .with(["Restart rsyslog. It needs a `workDirectory` for its queue, which distributions set.".to_owned()])
            .with(endpoint.ca_file().map(|_| "TLS needs the package `rsyslog-gnutls`.".to_owned()))
            .with(endpoint.ca_file().filter(|_| endpoint.host.parse::<std::net::IpAddr>().is_ok()).map(|_| {
                "rsyslog compares the names of a certificate, and refuses one by an IP address: print this with `--host NAME`, a name that is in \
                 the gateway's certificate."
                    .to_owned()
            }))
            .with(target.notes()),
        ])
    },
};
