//! Damage to bodies, for tests of those who read them.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Debug, Clone)]
pub(crate) enum Damage {
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Repeat(Index, Index),
}

/// Something that can happen to a body on its way.
pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![any::<u8>(), 0u8..0x30];
    prop_oneof![
        4 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        2 => any::<Index>().prop_map(Damage::Remove),
        1 => any::<Index>().prop_map(Damage::Cut),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ]
}

/// Lets it happen.
pub(crate) fn apply(raw: &mut Vec<u8>, damages: &[Damage]) {
    for damage in damages {
        if raw.is_empty() {
            return;
        }
        let len = raw.len();
        match damage {
            Damage::Set(at, byte) => raw[at.index(len)] = *byte,
            Damage::Insert(at, byte) => raw.insert(at.index(len), *byte),
            Damage::Remove(at) => drop(raw.remove(at.index(len))),
            Damage::Cut(at) => raw.truncate(at.index(len)),
            Damage::Repeat(from, to) => {
                let (from, to) = (from.index(len), to.index(len));
                let part = raw[from.min(to)..from.max(to)].to_vec();
                raw.extend(part);
            }
        }
    }
}
