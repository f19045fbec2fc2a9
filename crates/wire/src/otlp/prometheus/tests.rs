//! The translation against a slow, plain model: maps of strings, made of what prost decodes.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

mod deltas;
mod found;
mod model;
mod names;
mod parts;
mod reverse;
mod rules;

use super::{Scratch, ScratchCapacity, Settings, Translated};
use crate::remote_write::{Limits, Symbols, Version, inspect};

/// Translates to both versions, checks what comes, and returns it with what was said of it.
fn translate(raw: &[u8], settings: &Settings<'_>) -> [(Version, Vec<u8>, Translated); 2] {
    let room = ScratchCapacity { labels: 256, label_bytes: 64 << 10, symbols: 10_000, symbol_bytes: 1 << 20 };
    let mut scratch = Scratch::new(room);
    let (mut v1, mut v2) = (Vec::new(), Vec::new());
    let of_v1 = super::to_v1(raw, settings, &mut scratch, &mut v1).unwrap();
    let of_v2 = super::to_v2(raw, settings, &mut scratch, &mut v2).unwrap();
    let made = [(Version::V1, v1, of_v1), (Version::V2, v2, of_v2)];
    for (version, body, translated) in &made {
        let found = inspect(*version, body, &Limits::default(), &mut Symbols::new()).unwrap();
        // Counts of observations are said as they came, also those that contradict themselves.
        let mut counts = found.counts;
        counts.histograms += found.rejected.counts.histograms;
        counts.series += found.rejected.counts.series;
        counts.exemplars += found.rejected.counts.exemplars;
        counts.metadata += found.rejected.counts.metadata;
        assert_eq!((found.irregular, found.rejected.counts.samples), (None, 0));
        let said = (translated.series, translated.samples, translated.histograms, translated.exemplars);
        assert_eq!((counts.series, counts.samples, counts.histograms, counts.exemplars), said);
    }
    made
}
