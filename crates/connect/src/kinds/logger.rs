//! `logger` of util-linux.

use crate::gateway::Transport;
use crate::instructions::Snippet;
use crate::kind::Kind;
use crate::quote::shell;

pub(crate) const KIND: Kind = Kind {
    name: "logger",
    aliases: &["util-linux"],
    title: "logger, for scripts: a message over syslog",
    snippets: |gateway| {
        let title = "send a message";
        let target = match gateway.syslog(&[Transport::Tcp, Transport::Udp]) {
            Ok(target) => target,
            Err(missing) => {
                let socket = gateway.syslog_socket().ok_or(missing)?;
                let path = socket.path().display().to_string();
                return Ok(vec![Snippet::commands(
                    title,
                    format!("logger --socket {} --rfc5424 --tag your-service hello\n", shell(&path)),
                )]);
            }
        };
        let framing = match target.transport {
            Transport::Udp => "--udp",
            _ if target.counted => "--tcp --octet-count",
            _ => "--tcp",
        };
        let format = if target.old_format { "--rfc3164" } else { "--rfc5424" };
        let endpoint = &target.endpoint;
        let command = format!(
            "logger --server {} --port {} {framing} {format} --tag your-service hello\n",
            shell(&endpoint.host),
            endpoint.port
        );
        Ok(vec![Snippet::commands(title, command).with(["`logger` has no TLS.".to_owned()]).with(target.notes())])
    },
};
