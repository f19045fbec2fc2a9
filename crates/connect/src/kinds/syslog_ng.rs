//! syslog-ng.

use crate::gateway::Transport;
use crate::instructions::{Language, Snippet};
use crate::kind::Kind;
use crate::quote::double;

pub(crate) const KIND: Kind = Kind {
    name: "syslog-ng",
    aliases: &["syslogng", "axosyslog"],
    title: "syslog-ng",
    snippets: |gateway| {
        let target = gateway.syslog(&[Transport::Tls, Transport::Tcp, Transport::Udp])?;
        let endpoint = &target.endpoint;
        let transport = match target.transport {
            Transport::Tls => "tls",
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        // Without that, it looks for an IPv4 address.
        let version = if endpoint.host.contains(':') { " ip-protocol(6)" } else { "" };
        let place =
            format!("{} port({}) transport(\"{transport}\"){version}", double(&endpoint.host), endpoint.port);
        let mut tls = String::new();
        if let Some(file) = endpoint.ca_file() {
            tls += &format!("\n    tls(ca-file({}) peer-verify(required-trusted)", double(file));
            if let Some((cert_file, key_file)) = endpoint.client_certificate() {
                tls += &format!(" cert-file({}) key-file({})", double(cert_file), double(key_file));
            }
            tls += ")";
        }
        let driver = if target.old_format {
            format!("network({place}{tls})")
        } else if target.counted {
            format!("syslog({place}{tls})")
        } else {
            format!("network({place} flags(syslog-protocol){tls})")
        };
        Ok(vec![
            Snippet::file(
                "forward everything",
                "/etc/syslog-ng/conf.d/tidegate.conf",
                Language::Conf,
                format!("destination d_tidegate {{\n  {driver};\n}};\nlog {{ source(s_src); destination(d_tidegate); }};"),
            )
            .with([
                "`s_src` is the source of the system's messages in Debian's configuration; name yours. Then `syslog-ng-ctl reload`.".to_owned(),
            ])
            .with(target.notes())
            // `network()` does not count.
            .with(target.framing_note(target.counted && !target.old_format)),
        ])
    },
};
