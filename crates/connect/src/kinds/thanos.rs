//! Senders that were made for Thanos Receive.

use super::prometheus::remote_write;
use crate::kind::Kind;
use crate::missing::Missing;
use tidegate_config::Listener;

pub(crate) const KIND: Kind = Kind {
    name: "thanos",
    aliases: &["thanos-receive", "receive"],
    title: "Prometheus that sends to Thanos Receive, by its address and tenants",
    snippets: |gateway| {
        let endpoint = gateway.listener(Listener::ThanosReceive).ok_or_else(|| Missing {
            protocol: "what Thanos Receive does, at an address of its own",
            setting: "listen.thanos_receive",
            lines: "listen:\n  thanos_receive: { address: 127.0.0.1:19291 }\n".to_owned(),
            note: "For senders on other machines, use `address: 0.0.0.0:19291` with a certificate in `listen.tls`.".to_owned(),
        })?;
        Ok(vec![remote_write(&endpoint, "/api/v1/receive").with(gateway.remote_write_notes())])
    },
};
