//! The traces that are not decided: a table of fixed size, found by their ids, and ordered by when they are to be decided.
//!
//! Invariant: an entry that is used is in the index, and in the list of all, in the order in which the traces were met first; one with a
//! root is in the list of roots, in the order in which their roots came, where there is one. Others are in the list of free ones.

use crate::index::{Fullness, Index};
use tidegate_pipeline::{SpanFacts, TraceId};

/// No entry.
const NONE: u32 = u32::MAX;
/// In the place of the entry before: this one is not in the list.
const ABSENT: u32 = u32::MAX - 1;

/// The traces that are not decided.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Box<[TraceFacts]>,
    /// The neighbours of each entry in the list of all; of a free one the next free one.
    order: Links,
    /// Those whose root was met; `None` where nobody asks for it.
    roots: Option<Roots>,
    /// Entries by the hashes of their ids.
    index: Index,
    free: u32,
    len: u32,
}

/// The facts about a trace: what policies ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TraceFacts {
    pub(crate) trace_id: TraceId,
    /// The earliest start of a span, and the latest end, in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// A bit for each test that a span has fulfilled.
    pub(crate) fulfilled: u64,
    pub(crate) spans: u32,
    /// When its first span was met, in milliseconds since 1970 modulo 2³².
    pub(crate) first_at: u32,
}

/// The entries whose root was met, in that order.
#[derive(Debug)]
struct Roots {
    links: Links,
    /// When it was met, as [`TraceFacts::first_at`].
    met_at: Box<[u32]>,
}

/// A list through the entries.
#[derive(Debug)]
struct Links {
    links: Box<[Link]>,
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    next: u32,
}

/// An entry of the table, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u32);

impl TraceFacts {
    /// The time from the first start to the last end, in whole milliseconds.
    pub(crate) fn duration_ms(&self) -> i64 {
        let ns = self.end_ns.cast_signed().saturating_sub(self.start_ns.cast_signed());
        ns / 1_000_000
    }

    /// Takes in a span.
    pub(crate) fn fold(&mut self, span: &SpanFacts) {
        if self.spans == 0 {
            (self.trace_id, self.start_ns, self.end_ns) = (span.trace_id, span.start_ns, span.end_ns);
        }
        self.start_ns = self.start_ns.min(span.start_ns);
        self.end_ns = self.end_ns.max(span.end_ns);
        self.fulfilled |= span.fulfilled;
        self.spans = self.spans.saturating_add(1);
    }
}

impl Table {
    /// The bytes of a table for so many traces, with a list of roots or without.
    pub(crate) fn bytes(traces: u32, has_roots: bool) -> usize {
        let of_root = if has_roots { size_of::<Link>() + size_of::<u32>() } else { 0 };
        traces as usize * (size_of::<TraceFacts>() + size_of::<Link>() + of_root)
            + Index::bytes(traces, Fullness::TwoThirds)
    }

    pub(crate) fn new(traces: u32, has_roots: bool) -> Table {
        let count = traces as usize;
        let mut order = Links::new(count);
        // All are free.
        for (number, link) in (1..).zip(&mut order.links) {
            link.next = if number < traces { number } else { NONE };
        }
        Table {
            entries: vec![TraceFacts::default(); count].into(),
            order,
            roots: has_roots.then(|| Roots { links: Links::new(count), met_at: vec![0; count].into() }),
            index: Index::new(traces, Fullness::TwoThirds),
            free: if traces == 0 { NONE } else { 0 },
            len: 0,
        }
    }

    /// How many traces are in it.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free == NONE
    }

    /// The entry of a trace whose id has this hash.
    pub(crate) fn find(&self, hash: u64, trace_id: &TraceId) -> Option<Entry> {
        self.index.find(hash, |entry| self.entries[entry as usize].trace_id == *trace_id).map(Entry)
    }

    /// Makes an entry of a trace's first span. `None` where the table is full.
    pub(crate) fn insert(&mut self, hash: u64, span: &SpanFacts, at: u32) -> Option<Entry> {
        if self.is_full() {
            return None;
        }
        let entry = self.free;
        self.free = self.order.links[entry as usize].next;
        self.entries[entry as usize] =
            TraceFacts { trace_id: span.trace_id, first_at: at, ..TraceFacts::default() };
        self.order.push(entry);
        self.index.insert(hash, entry);
        self.len += 1;
        let entry = Entry(entry);
        self.fold(entry, span, at);
        Some(entry)
    }

    /// Folds a span into the entry of its trace.
    pub(crate) fn fold(&mut self, Entry(entry): Entry, span: &SpanFacts, at: u32) {
        self.entries[entry as usize].fold(span);
        if let Some(roots) = self.roots.as_mut().filter(|roots| span.is_root && !roots.links.has(entry)) {
            roots.links.push(entry);
            roots.met_at[entry as usize] = at;
        }
    }

    /// Adds tests that the trace fulfils.
    pub(crate) fn fulfil(&mut self, Entry(entry): Entry, fulfilled: u64) {
        self.entries[entry as usize].fulfilled |= fulfilled;
    }

    /// The trace that was met first.
    pub(crate) fn oldest(&self) -> Option<(Entry, &TraceFacts)> {
        self.at(self.order.first)
    }

    /// The trace whose root was met first, and when that was.
    pub(crate) fn oldest_root(&self) -> Option<(Entry, u32)> {
        let roots = self.roots.as_ref()?;
        let first = roots.links.first;
        roots.met_at.get(first as usize).map(|met_at| (Entry(first), *met_at))
    }

    fn at(&self, entry: u32) -> Option<(Entry, &TraceFacts)> {
        self.entries.get(entry as usize).map(|facts| (Entry(entry), facts))
    }

    /// Takes a trace out. `hash` is that of an id.
    pub(crate) fn remove(&mut self, Entry(entry): Entry, hash: impl Fn(&TraceId) -> u64) -> TraceFacts {
        let facts = self.entries[entry as usize];
        self.order.remove(entry);
        if let Some(roots) = self.roots.as_mut().filter(|roots| roots.links.has(entry)) {
            roots.links.remove(entry);
        }
        self.order.links[entry as usize].next = self.free;
        self.free = entry;
        self.len -= 1;
        self.index.remove(entry, |entry| hash(&self.entries[entry as usize].trace_id));
        facts
    }
}

impl Links {
    fn new(count: usize) -> Links {
        Links { links: vec![Link { before: ABSENT, next: NONE }; count].into(), first: NONE, last: NONE }
    }

    fn has(&self, entry: u32) -> bool {
        self.links[entry as usize].before != ABSENT
    }

    fn push(&mut self, entry: u32) {
        self.links[entry as usize] = Link { before: self.last, next: NONE };
        match self.last {
            NONE => self.first = entry,
            last => self.links[last as usize].next = entry,
        }
        self.last = entry;
    }

    fn remove(&mut self, entry: u32) {
        let Link { before, next } = self.links[entry as usize];
        self.links[entry as usize].before = ABSENT;
        match before {
            NONE => self.first = next,
            before => self.links[before as usize].next = next,
        }
        match next {
            NONE => self.last = before,
            next => self.links[next as usize].before = before,
        }
    }
}
