//! Size bounds: the largest record, and the largest item in it, that every configured sink can deliver.
//!
//! A source that accepts more than a sink can hold acknowledges data that will be dropped. So the sinks declare the memory
//! that they need, the plan derives one bound for each protocol and signal from that, and the gate answers 413 to requests
//! beyond it. The answer is never "later", since time does not help, and accepted records are never dropped for their size.

use tidegate_journal::{Encoding, Meta, Protocol, Signal};

/// All protocols of journalled records, in the order of their codes.
const PROTOCOLS: [Protocol; 7] = [
    Protocol::RemoteWrite1,
    Protocol::RemoteWrite2,
    Protocol::Otlp,
    Protocol::OtlpJson,
    Protocol::Intake,
    Protocol::Bulk,
    Protocol::Cri,
];
/// All signals, in the order of their codes.
const SIGNALS: [Signal; 5] =
    [Signal::Metrics, Signal::Logs, Signal::Traces, Signal::Events, Signal::Profiles];

/// The size of a record as its sinks have to hold it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Length in the journal.
    pub kept: usize,
    /// Length after decompression; zero for a record that is journalled uncompressed.
    pub decoded: usize,
    /// Length of its largest item with its envelope: resource and scope, metadata line, or labels.
    pub item: usize,
}

impl Size {
    /// The size of a record of `kept` bytes as far as its header tells: the lengths of its items are only known where it has
    /// a single one.
    #[must_use]
    pub fn of_record(meta: &Meta, kept: usize) -> Size {
        let raw_len = meta.raw_len as usize;
        let decoded = if meta.encoding == Encoding::Identity { 0 } else { raw_len };
        Size { kept, decoded, item: if meta.items == 1 { raw_len } else { 0 } }
    }
}

/// The bound on records of one protocol and signal:
/// `kept + decoded + factor × size.item ≤ most`, and `size.item ≤ item`, each in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimit {
    /// Memory that every sink has for a record.
    pub most: usize,
    /// Memory that the most demanding sink needs for an item, in multiples of the item's length.
    pub factor: usize,
    /// The longest item with its envelope, however short the rest of the record is.
    pub item: usize,
}

/// Why some sink could not deliver a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undeliverable {
    /// It is too long; so many decoded bytes would do.
    Body(usize),
    /// Its largest item is too long; so many bytes with its envelope would do.
    Item(usize),
}

impl SizeLimit {
    /// No bound.
    pub const NONE: SizeLimit = SizeLimit { most: usize::MAX, factor: 0, item: usize::MAX };

    /// The bound that allows only what both allow.
    #[must_use]
    pub const fn and(self, other: SizeLimit) -> SizeLimit {
        SizeLimit {
            most: if self.most < other.most { self.most } else { other.most },
            factor: if self.factor > other.factor { self.factor } else { other.factor },
            item: if self.item < other.item { self.item } else { other.item },
        }
    }

    /// The tightest bound that allows everything that either allows.
    const fn or(self, other: SizeLimit) -> SizeLimit {
        SizeLimit {
            most: if self.most > other.most { self.most } else { other.most },
            factor: if self.factor < other.factor { self.factor } else { other.factor },
            item: if self.item > other.item { self.item } else { other.item },
        }
    }

    /// The longest body, in bytes: uncompressed and of small items.
    #[must_use]
    pub const fn largest_body(self) -> usize {
        self.most
    }

    /// The longest item, in bytes: alone in an uncompressed body.
    #[must_use]
    pub const fn largest_item(self) -> usize {
        let alone = self.most / (1 + self.factor);
        if alone < self.item { alone } else { self.item }
    }

    /// Whether every sink can deliver a record of this size.
    ///
    /// # Errors
    /// Whether the item or the body is too long: the item, if a body of this length with smaller items would fit.
    pub const fn check(self, size: Size) -> Result<(), Undeliverable> {
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
pub struct Deliverable([[SizeLimit; SIGNALS.len()]; PROTOCOLS.len()]);

impl Default for Deliverable {
    /// No sink, no bound.
    fn default() -> Deliverable {
        Deliverable([[SizeLimit::NONE; SIGNALS.len()]; PROTOCOLS.len()])
    }
}

impl Deliverable {
    /// The bounds that `of` gives.
    pub fn new(of: impl Fn(Protocol, Signal) -> SizeLimit) -> Deliverable {
        Deliverable(PROTOCOLS.map(|protocol| SIGNALS.map(|signal| of(protocol, signal))))
    }

    /// All bounds, in the order that [`of_rows`](Self::of_rows) expects.
    pub fn rows(&self) -> impl Iterator<Item = SizeLimit> {
        self.0.iter().flatten().copied()
    }

    /// The inverse of [`rows`](Self::rows); `None` for another number of rows.
    #[must_use]
    pub fn of_rows(rows: Vec<SizeLimit>) -> Option<Deliverable> {
        let mut all = Deliverable::default();
        if rows.len() != all.rows().count() {
            return None;
        }
        all.0.iter_mut().flatten().zip(rows).for_each(|(place, bound)| *place = bound);
        Some(all)
    }

    /// For each protocol and signal, a bound that allows what either allows.
    #[must_use]
    pub fn or(&self, other: &Deliverable) -> Deliverable {
        Deliverable::new(|protocol, signal| {
            self.size_limit(protocol, signal).or(other.size_limit(protocol, signal))
        })
    }

    /// The bound on records of this protocol and signal.
    #[must_use]
    pub fn size_limit(&self, protocol: Protocol, signal: Signal) -> SizeLimit {
        let (row, column) = (protocol as usize, signal as usize);
        self.0.get(row).and_then(|row| row.get(column)).copied().unwrap_or(SizeLimit::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each protocol and signal has a bound of its own.
    #[test]
    fn finds_the_bound_of_each_protocol_and_signal() {
        let distinct = |protocol: Protocol, signal: Signal| SizeLimit {
            most: 100 * protocol as usize + signal as usize,
            factor: 1,
            item: 7,
        };
        let all = Deliverable::new(distinct);
        for protocol in PROTOCOLS {
            for signal in SIGNALS {
                assert_eq!(
                    all.size_limit(protocol, signal),
                    distinct(protocol, signal),
                    "{protocol:?} {signal:?}"
                );
            }
        }
    }

    /// A refusal names a length that is accepted in its place.
    #[test]
    fn names_a_length_that_would_do() {
        let bound = SizeLimit { most: 1000, factor: 4, item: 190 };
        let sizes = [0, 1, 100, 190, 191, 200, 201, 500, 999, 1000, 1001, usize::MAX];
        for kept in sizes {
            for decoded in sizes {
                for item in sizes {
                    let size = Size { kept, decoded, item };
                    match bound.check(size) {
                        Ok(()) => assert!(kept + decoded + 4 * item <= 1000 && item <= 190, "{size:?}"),
                        Err(Undeliverable::Body(most)) if decoded == 0 => {
                            assert_eq!(bound.check(Size { kept: most, item: 0, ..size }), Ok(()), "{size:?}");
                        }
                        Err(Undeliverable::Body(most)) => {
                            let smaller = Size { decoded: most, item: 0, ..size };
                            assert!(kept > 1000 || bound.check(smaller).is_ok(), "{size:?}");
                        }
                        Err(Undeliverable::Item(most)) => {
                            assert!(most < item, "{size:?}");
                            assert_eq!(bound.check(Size { item: most, ..size }), Ok(()), "{size:?}");
                        }
                    }
                }
            }
        }
        assert_eq!(SizeLimit::NONE.check(Size { kept: usize::MAX, decoded: 0, item: usize::MAX }), Ok(()));
    }
}
