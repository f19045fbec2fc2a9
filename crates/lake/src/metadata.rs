//! Metadata of metric families: Remote-Write 1.0 sends it separately from the series.

use std::collections::{HashMap, VecDeque};
use tidegate_wire::remote_write::Metadata;

/// Kind of family, as remote write numbers it.
pub(crate) mod kind {
    pub(crate) const COUNTER: u32 = 1;
    pub(crate) const GAUGE: u32 = 2;
    pub(crate) const HISTOGRAM: u32 = 3;
    pub(crate) const GAUGE_HISTOGRAM: u32 = 4;
    pub(crate) const SUMMARY: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const STATE_SET: u32 = 7;
}

/// Texts longer than this are cut: a description is a sentence.
const LONGEST: usize = 1024;

/// The metadata of one family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FamilyMetadata {
    pub(crate) kind: u32,
    pub(crate) unit: Box<str>,
    pub(crate) help: Box<str>,
}

/// The families seen last, bounded in number and bytes; the one first seen goes first.
pub(crate) struct MetadataCache {
    families: HashMap<Box<str>, FamilyMetadata>,
    order: VecDeque<Box<str>>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl MetadataCache {
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        MetadataCache { families: HashMap::new(), order: VecDeque::new(), bytes: 0, most, most_bytes }
    }

    /// Keeps what `metadata` says; a family without a name, or not in UTF-8, says nothing.
    pub(crate) fn learn(&mut self, metadata: &Metadata<'_>) {
        let Ok(name) = std::str::from_utf8(metadata.family) else { return };
        if name.is_empty() || name.len() > LONGEST || metadata.is_empty() {
            return;
        }
        let (unit, help) = (cut(metadata.unit), cut(metadata.help));
        if let Some(known) = self.families.get_mut(name) {
            if known.kind != metadata.kind || *known.unit != *unit || *known.help != *help {
                self.bytes -= known.unit.len() + known.help.len();
                self.bytes += unit.len() + help.len();
                *known = FamilyMetadata { kind: metadata.kind, unit: unit.into(), help: help.into() };
            }
        } else {
            self.bytes += 2 * name.len() + unit.len() + help.len();
            self.order.push_back(name.into());
            let family = FamilyMetadata { kind: metadata.kind, unit: unit.into(), help: help.into() };
            self.families.insert(name.into(), family);
        }
        while self.families.len() > self.most || self.bytes > self.most_bytes {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some(name) = self.order.pop_front() else { return };
        if let Some(family) = self.families.remove(&name) {
            self.bytes -= 2 * name.len() + family.unit.len() + family.help.len();
        }
    }

    /// The family that the metric `name` belongs to: its own, or the one of which it is a part.
    pub(crate) fn of(&self, name: &str) -> Option<&FamilyMetadata> {
        self.families.get(name).or_else(|| {
            ["_total", "_bucket", "_sum", "_count", "_created", "_info"]
                .iter()
                .find_map(|suffix| self.families.get(name.strip_suffix(suffix)?))
        })
    }
}

/// The text, cut at a character's end when it is long; nothing when it is not UTF-8.
fn cut(text: &[u8]) -> &str {
    let text = std::str::from_utf8(text).unwrap_or("");
    let end = (0..=text.len().min(LONGEST)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata<'a>(family: &'a str, help: &'a str) -> Metadata<'a> {
        Metadata { kind: kind::COUNTER, family: family.as_bytes(), help: help.as_bytes(), unit: b"s" }
    }

    #[test]
    fn parts_of_a_family_find_it() {
        let mut families = MetadataCache::new(10, 1000);
        families.learn(&metadata("requests", "how many"));
        families.learn(&metadata("a_count", "its own"));
        assert_eq!(families.of("requests_total").map(|family| &*family.help), Some("how many"));
        assert_eq!(families.of("a_count").map(|family| &*family.help), Some("its own"));
        assert_eq!(families.of("other"), None);
        families.learn(&metadata("requests", "changed"));
        assert_eq!(families.of("requests").map(|family| &*family.help), Some("changed"));
    }

    #[test]
    fn the_bounds_hold_and_the_oldest_goes_first() {
        let mut families = MetadataCache::new(3, 10_000);
        for name in ["a", "b", "c", "d"] {
            families.learn(&metadata(name, "help"));
        }
        assert_eq!(families.families.len(), 3);
        assert!(families.of("a").is_none() && families.of("d").is_some());

        let mut families = MetadataCache::new(100, 3000);
        for name in ["a", "b", "c", "d"] {
            families.learn(&metadata(name, &"é".repeat(5000)));
            assert!(families.bytes <= 3000);
        }
        assert_eq!(families.of("d").map(|family| family.help.len()), Some(LONGEST));
        families.forget_first();
        families.forget_first();
        assert_eq!((families.bytes, families.order.len()), (0, 0));
    }
}
