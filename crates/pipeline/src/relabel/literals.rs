//! A set of texts, for rules that are lists of names.

/// Texts that are looked up whole.
#[derive(Debug, Default)]
pub(super) struct LiteralSet {
    texts: Box<[Box<[u8]>]>,
    /// The number of a text plus one, by its hash; 0 for none. At most half of the slots are taken.
    slots: Box<[u16]>,
}

impl LiteralSet {
    /// The most texts.
    pub(super) const MOST: usize = 4_096;
    /// Fewer texts are compared one by one.
    const FEW: usize = 4;

    /// A set of `texts`, at most [`MOST`](Self::MOST).
    pub(super) fn new(mut texts: Vec<Box<[u8]>>) -> LiteralSet {
        texts.sort_unstable();
        texts.dedup();
        texts.truncate(Self::MOST);
        let mut slots = Vec::new();
        if texts.len() > Self::FEW {
            slots.resize((2 * texts.len()).next_power_of_two(), 0u16);
            for (number, text) in (1..).zip(&texts) {
                let mut at = hash(text) as usize & (slots.len() - 1);
                while slots.get(at).is_some_and(|slot| *slot != 0) {
                    at = (at + 1) & (slots.len() - 1);
                }
                if let Some(slot) = slots.get_mut(at) {
                    *slot = number;
                }
            }
        }
        LiteralSet { texts: texts.into(), slots: slots.into() }
    }

    /// Whether `text` is in the set.
    #[inline]
    pub(super) fn contains(&self, text: &[u8]) -> bool {
        if self.slots.is_empty() {
            return self.texts.iter().any(|own| **own == *text);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(text) as usize & mask;
        while let Some(&slot @ 1..) = self.slots.get(at) {
            if self.texts.get(usize::from(slot) - 1).is_some_and(|own| **own == *text) {
                return true;
            }
            at = (at + 1) & mask;
        }
        false
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

/// A hash of the length and both ends of a text: metric names that share one are rare, and a lookup compares them anyway.
#[inline]
fn hash(text: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_le_bytes(*bytes));
    let (first, last) = match (word(text.first_chunk()), word(text.last_chunk())) {
        (Some(first), Some(last)) => (first, last),
        _ => (text.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), 0),
    };
    let mixed = first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ last.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = mixed.wrapping_add(text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
