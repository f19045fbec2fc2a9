//! Winlogbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "winlogbeat",
    aliases: &[],
    title: "Winlogbeat",
    snippets: |gateway| Ok(output(gateway, "winlogbeat", "winlogbeat.yml")),
};
