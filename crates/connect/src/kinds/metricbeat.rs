//! Metricbeat.

use super::beats::output;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "metricbeat",
    aliases: &[],
    title: "Metricbeat",
    snippets: |gateway| Ok(output(gateway, "metricbeat", "metricbeat.yml")),
};
