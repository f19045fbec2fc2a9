//! Filebeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "filebeat",
    aliases: &["beats", "beat", "filebeats"],
    title: "Filebeat",
    snippets: |gateway| Ok(output(gateway, "filebeat", "filebeat.yml")),
};
