//! Kinds of senders, and finding one by its name.

use crate::gateway::Gateway;
use crate::instructions::{Instructions, Snippet};
use crate::kinds::KINDS;
use crate::missing::Missing;
use std::collections::BTreeMap;

/// A kind of sender: a program, a library or a device.
#[derive(Debug)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is, in a few words.
    pub title: &'static str,
    pub(crate) snippets: fn(Gateway<'_>) -> Result<Vec<Snippet>, Missing>,
}

/// What was found under a name.
#[derive(Debug, Clone, Copy)]
pub enum Lookup {
    /// The kind.
    Found(&'static Kind),
    /// Nothing is received from these; the sentence says what to use instead.
    NotReceived(&'static str),
    /// There is no such kind; perhaps this one is meant.
    Unknown(Option<&'static str>),
}

impl Kind {
    /// What to paste for this gateway.
    ///
    /// # Errors
    /// When its configuration does not receive what this kind speaks.
    pub fn instructions(&self, gateway: Gateway<'_>) -> Result<Instructions, Missing> {
        (self.snippets)(gateway).map(|snippets| Instructions { snippets })
    }
}

/// Protocols that people look for here, and that no source receives.
const NOT_RECEIVED: &[(&[&str], &str)] = &[
    (
        &["splunk-hec", "splunk", "hec"],
        "tidegate sends to Splunk's HTTP Event Collector and does not receive it. Docker and Kubernetes can send the same logs otherwise: see \
         `tidegate connect docker` and `tidegate connect fluent-bit`",
    ),
    (
        &["statsd", "zipkin", "jaeger", "graphite", "influxdb", "kafka", "opencensus"],
        "tidegate does not receive that protocol. An OpenTelemetry Collector in between does, and sends on: see `tidegate connect collector`",
    ),
];

/// The kind with this name or alias, in any case, with `_` or blanks for `-`.
pub fn find(name: &str) -> Lookup {
    let folded = name.to_lowercase().replace(['_', ' '], "-");
    let is_named = |kind: &&Kind| kind.name == folded || kind.aliases.contains(&folded.as_str());
    if let Some(kind) = KINDS.iter().copied().find(|kind| is_named(kind)) {
        return Lookup::Found(kind);
    }
    if let Some((_, why)) = NOT_RECEIVED.iter().find(|(names, _)| names.contains(&folded.as_str())) {
        return Lookup::NotReceived(why);
    }
    // As the names of settings, which `nearest` is for.
    let known: BTreeMap<String, &'static str> = KINDS
        .iter()
        .flat_map(|kind| {
            std::iter::once(&kind.name).chain(kind.aliases).map(|known| (known.replace('-', "_"), kind.name))
        })
        .collect();
    let nearest = tidegate_config::nearest(&folded, known.keys().map(String::as_str));
    Lookup::Unknown(nearest.and_then(|nearest| known.get(nearest)).copied())
}
