//! Heartbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "heartbeat",
    aliases: &[],
    title: "Heartbeat",
    snippets: |gateway| Ok(output(gateway, "heartbeat", "heartbeat.yml")),
};
