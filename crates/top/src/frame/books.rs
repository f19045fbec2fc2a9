//! The books: items and requests since the process started.

use serde::Deserialize;
use std::collections::BTreeMap;

/// All books.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Books {
    /// Zero, or the program has a mistake.
    pub(crate) difference: u64,
    pub(crate) sources: Vec<SourceBook>,
}

/// Requests of one source.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SourceBook {
    pub(crate) name: String,
    pub(crate) received: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: BTreeMap<String, u64>,
    pub(crate) open: u64,
    pub(crate) items: BTreeMap<String, u64>,
    pub(crate) items_refused: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
    /// Items that a cluster answers itself, and that no journal has.
    pub(crate) forwarded: u64,
}

impl SourceBook {
    /// Items received, of all signals.
    pub(crate) fn all_items(&self) -> u64 {
        self.items.values().fold(self.forwarded, |sum, items| sum.saturating_add(*items))
    }

    /// Requests refused, for any reason.
    pub(crate) fn all_refused(&self) -> u64 {
        self.refused.values().fold(0, |sum, requests| sum.saturating_add(*requests))
    }
}
