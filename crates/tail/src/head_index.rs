//! Finds what begins like a file, among files of which different lengths were hashed.

use crate::identity::{Head, SAMPLE};
use std::collections::BTreeSet;

/// Values by the head of their file.
#[derive(Debug)]
pub(crate) struct HeadIndex<T> {
    values: BTreeSet<(Head, T)>,
    /// How many values there are by the length of their head.
    lengths: Box<[u32]>,
}

/// A value by which others can be found.
pub(crate) trait Number: Copy + Ord {
    /// The smallest one.
    const MIN: Self;
}

impl Number for u32 {
    const MIN: u32 = u32::MIN;
}

impl Number for u64 {
    const MIN: u64 = u64::MIN;
}

impl<T: Number> HeadIndex<T> {
    pub(crate) fn new() -> HeadIndex<T> {
        HeadIndex { values: BTreeSet::new(), lengths: vec![0; SAMPLE + 1].into() }
    }

    /// Adds a value. One without any bytes is not added: everything begins like it.
    pub(crate) fn insert(&mut self, head: Head, value: T) {
        if head.len > 0
            && self.values.insert((head, value))
            && let Some(count) = self.lengths.get_mut(usize::from(head.len))
        {
            *count += 1;
        }
    }

    /// Removes a value that was added under `head`.
    pub(crate) fn remove(&mut self, head: Head, value: T) {
        if self.values.remove(&(head, value))
            && let Some(count) = self.lengths.get_mut(usize::from(head.len))
        {
            *count -= 1;
        }
    }

    /// The values with a head.
    pub(crate) fn with(&self, head: Head) -> impl Iterator<Item = T> {
        self.values
            .range((head, T::MIN)..)
            .take_while(move |(other, _)| *other == head)
            .map(|(_, value)| *value)
    }

    /// The values whose file began with the beginning of `bytes`, the longest beginnings first.
    pub(crate) fn matches(&self, bytes: &[u8]) -> Vec<T> {
        /// Files with equal heads are compared one by one; more than this many have a header in common.
        const MOST: usize = 64;
        let mut found = Vec::new();
        for (len, _) in
            self.lengths.iter().enumerate().take(bytes.len() + 1).rev().filter(|(_, count)| **count > 0)
        {
            let head = Head::of(bytes.get(..len).unwrap_or_default());
            found.extend(self.with(head).take(MOST - found.len()));
            if found.len() == MOST {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds exactly the files that a file begins like.
    #[test]
    fn finds_what_begins_alike() {
        let mut index = HeadIndex::<u32>::new();
        let long = [b'x'; SAMPLE];
        index.insert(Head::of(&long), 1);
        index.insert(Head::of(b"xx"), 2);
        index.insert(Head::of(b"y"), 3);
        index.insert(Head::of(b""), 4);
        assert_eq!(index.matches(&long), [1, 2]);
        assert_eq!(index.matches(b"xxx"), [2]);
        assert_eq!(index.matches(b"x"), [0_u32; 0]);
        index.remove(Head::of(b"xx"), 2);
        assert_eq!(index.matches(b"xxx"), [0_u32; 0]);
    }
}
