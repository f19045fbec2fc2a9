//! Auditbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "auditbeat",
    aliases: &[],
    title: "Auditbeat",
    snippets: |gateway| Ok(output(gateway, "auditbeat", "auditbeat.yml")),
};
