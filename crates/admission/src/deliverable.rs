//! What every configured sink can deliver: the largest record, and the largest item in it, that are accepted.
//!
//! A door that accepts more than a sink can hold has acknowledged what will be dropped. So the sinks declare what they
//! need, the plan turns that into one bound for each protocol and signal, and the gate refuses with 413 what exceeds
//! it: never "later", since time does not help, and never a drop afterwards.

use tidegate_journal::{Protocol, Signal};

/// All protocols in which records are journalled, in the order of their codes.
const PROTOCOLS: [Protocol; 7] = [
    Protocol::RemoteWrite1,
    Protocol::RemoteWrite2,
    Protocol::Otlp,
    Protocol::OtlpJson,
    Protocol::Intake,
    Protocol::Bulk,
    Protocol::Cri,
];
/// All signals, likewise.
const SIGNALS: [Signal; 5] =
    [Signal::Metrics, Signal::Logs, Signal::Traces, Signal::Events, Signal::Profiles];

/// How large a record is, as its sinks have to hold it. All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// As it is journalled.
    pub kept: usize,
    /// Decoded, where that is something else: zero for what is journalled as it is.
    pub decoded: usize,
    /// Its largest item with what encloses it.
    pub item: usize,
}

/// The bound on records of one protocol and signal:
/// `kept + decoded + factor × size.item ≤ most`, and `size.item ≤ item`, each in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The most bytes that every sink has for a record.
    pub most: usize,
    /// How many times its own length an item takes on its way out of the most demanding sink.
    pub factor: usize,
    /// The most bytes of an item, with what encloses it, whatever else there is.
    pub item: usize,
}

/// A record that some sink could not deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undeliverable {
    /// Its decoded length may be so many bytes at most.
    Body(usize),
    /// Its largest item, with what encloses it, may have so many bytes at most.
    Item(usize),
}

impl Bound {
    /// Nothing that a sink could not deliver.
    pub const NONE: Bound = Bound { most: usize::MAX, factor: 0, item: usize::MAX };

    /// What keeps to both bounds.
    #[must_use]
    pub const fn and(self, other: Bound) -> Bound {
        Bound {
            most: if self.most < other.most { self.most } else { other.most },
            factor: if self.factor > other.factor { self.factor } else { other.factor },
            item: if self.item < other.item { self.item } else { other.item },
        }
    }

    /// The loosest bound that is looser than both.
    const fn or(self, other: Bound) -> Bound {
        Bound {
            most: if self.most > other.most { self.most } else { other.most },
            factor: if self.factor < other.factor { self.factor } else { other.factor },
            item: if self.item > other.item { self.item } else { other.item },
        }
    }

    /// The longest body, in bytes: of small items, and not compressed.
    #[must_use]
    pub const fn largest_body(self) -> usize {
        self.most
    }

    /// The longest item, in bytes: alone in a body that is not compressed.
    #[must_use]
    pub const fn largest_item(self) -> usize {
        let alone = self.most / (1 + self.factor);
        if alone < self.item { alone } else { self.item }
    }

    /// Whether every sink can deliver a record of this size.
    ///
    /// # Errors
    /// What it exceeds: the item's length where a body as long of smaller items would do.
    pub const fn judge(self, size: Size) -> Result<(), Undeliverable> {
        let Size { kept, decoded, item } = size;
        let Some(left) = self.most.checked_sub(kept.saturating_add(decoded)) else {
            let other = if decoded == 0 { 0 } else { kept };
            return Err(Undeliverable::Body(self.most.saturating_sub(other)));
        };
        let beside = match left.checked_div(self.factor) {
            Some(beside) => beside,
            None => usize::MAX,
        };
        let most = if beside < self.item { beside } else { self.item };
        if item <= most { Ok(()) } else { Err(Undeliverable::Item(most)) }
    }
}

/// The bounds of all protocols and signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deliverable([[Bound; SIGNALS.len()]; PROTOCOLS.len()]);

impl Default for Deliverable {
    /// No sink, no bound.
    fn default() -> Deliverable {
        Deliverable([[Bound::NONE; SIGNALS.len()]; PROTOCOLS.len()])
    }
}

impl Deliverable {
    /// The bounds that `of` says.
    pub fn new(of: impl Fn(Protocol, Signal) -> Bound) -> Deliverable {
        Deliverable(PROTOCOLS.map(|protocol| SIGNALS.map(|signal| of(protocol, signal))))
    }

    /// All bounds, to be kept and given to [`of_rows`](Self::of_rows).
    pub fn rows(&self) -> impl Iterator<Item = Bound> {
        self.0.iter().flatten().copied()
    }

    /// What [`rows`](Self::rows) gave; nothing when that is of another number of protocols or signals.
    #[must_use]
    pub fn of_rows(rows: Vec<Bound>) -> Option<Deliverable> {
        let mut all = Deliverable::default();
        if rows.len() != all.rows().count() {
            return None;
        }
        all.0.iter_mut().flatten().zip(rows).for_each(|(place, bound)| *place = bound);
        Some(all)
    }

    /// What keeps to one of them, or to the other.
    #[must_use]
    pub fn or(&self, other: &Deliverable) -> Deliverable {
        Deliverable::new(|protocol, signal| self.bound(protocol, signal).or(other.bound(protocol, signal)))
    }

    /// The bound on records of this protocol and signal.
    #[must_use]
    pub fn bound(&self, protocol: Protocol, signal: Signal) -> Bound {
        let (row, column) = (protocol as usize, signal as usize);
        self.0.get(row).and_then(|row| row.get(column)).copied().unwrap_or(Bound::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each protocol and signal has a bound of its own.
    #[test]
    fn finds_the_bound_of_each_protocol_and_signal() {
        let distinct = |protocol: Protocol, signal: Signal| Bound {
            most: 100 * protocol as usize + signal as usize,
            factor: 1,
            item: 7,
        };
        let all = Deliverable::new(distinct);
        for protocol in PROTOCOLS {
            for signal in SIGNALS {
                assert_eq!(
                    all.bound(protocol, signal),
                    distinct(protocol, signal),
                    "{protocol:?} {signal:?}"
                );
            }
        }
    }

    /// A refusal names a length that is accepted in its place.
    #[test]
    fn names_a_length_that_would_do() {
        let bound = Bound { most: 1000, factor: 4, item: 190 };
        let sizes = [0, 1, 100, 190, 191, 200, 201, 500, 999, 1000, 1001, usize::MAX];
        for kept in sizes {
            for decoded in sizes {
                for item in sizes {
                    let size = Size { kept, decoded, item };
                    match bound.judge(size) {
                        Ok(()) => assert!(kept + decoded + 4 * item <= 1000 && item <= 190, "{size:?}"),
                        Err(Undeliverable::Body(most)) if decoded == 0 => {
                            assert_eq!(bound.judge(Size { kept: most, item: 0, ..size }), Ok(()), "{size:?}");
                        }
                        Err(Undeliverable::Body(most)) => {
                            let smaller = Size { decoded: most, item: 0, ..size };
                            assert!(kept > 1000 || bound.judge(smaller).is_ok(), "{size:?}");
                        }
                        Err(Undeliverable::Item(most)) => {
                            assert!(most < item, "{size:?}");
                            assert_eq!(bound.judge(Size { item: most, ..size }), Ok(()), "{size:?}");
                        }
                    }
                }
            }
        }
        assert_eq!(Bound::NONE.judge(Size { kept: usize::MAX, decoded: 0, item: usize::MAX }), Ok(()));
    }
}
