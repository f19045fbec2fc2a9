//! Filebeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "filebeat",
    aliases: &["beats", "beat", "filebeats", "winlogbeat"],
    title: "Filebeat; Winlogbeat has the same output",
    snippets: |gateway| Ok(output(gateway, "filebeat", "filebeat.yml")),
};
