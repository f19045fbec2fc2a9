//! Packetbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "packetbeat",
    aliases: &[],
    title: "Packetbeat",
    snippets: |gateway| Ok(output(gateway, "packetbeat", "packetbeat.yml")),
};
