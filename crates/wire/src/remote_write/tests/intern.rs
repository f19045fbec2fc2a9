//! The interning table numbers as a map would.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::remote_write::intern::{Interner, location_of};

proptest! {
    /// Each distinct text gets the next number, and the same one ever after; the table's size is as declared.
    #[test]
    fn texts_are_numbered_as_by_a_map(texts in vec("[ab]{0,3}", 0..60)) {
        let whole = texts.concat();
        let whole = whole.as_bytes();
        let mut interner = Interner::new(16);
        let mut numbers = HashMap::new();
        let mut at = 0;
        for text in &texts {
            let part = &whole[at..at + text.len()];
            at += text.len();
            let next = u32::try_from(numbers.len()).unwrap();
            let expected = *numbers.entry(text).or_insert(next);
            let (number, first) = interner.intern(part, location_of(whole, part, 0).unwrap(), |p| p.of(whole)).unwrap();
            prop_assert_eq!((number, first), (expected, expected == next));
            prop_assert_eq!(interner.find(part, |p| p.of(whole)), Some(expected));
        }
    }
}

/// The table takes what it said, and refuses the text that is one too many.
#[test]
fn the_table_has_a_bound() {
    let whole = b"abc";
    let mut interner = Interner::new(2);
    let mut take =
        |part| interner.intern(part, location_of(whole, part, 0).unwrap(), |place| place.of(whole));
    assert!(take(&whole[0..1]).is_ok());
    assert!(take(&whole[1..2]).is_ok());
    assert!(take(&whole[0..1]).is_ok());
    assert!(take(&whole[2..3]).is_err());
}
