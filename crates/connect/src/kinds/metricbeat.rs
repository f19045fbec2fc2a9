//! Metricbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "metricbeat",
    aliases: &["packetbeat", "heartbeat", "auditbeat"],
    title: "Metricbeat; Packetbeat, Heartbeat and Auditbeat have the same output",
    snippets: |gateway| Ok(output(gateway, "metricbeat", "metricbeat.yml")),
};
