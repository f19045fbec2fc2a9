//! The open spans: a fixed table of slots, found by the registry's id.
//!
//! A slot belongs to the span whose id stands in its `owner`. Taking one is a compare-and-swap on a free one
//! among the few that the id's hash allows; so finding one looks at the same few, and nothing has to be moved
//! when spans close in any order.

use super::record::Store;
use crate::random;
use crate::record::{Nanos, SpanContext, SpanKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tracing_core::span::Id;

/// How many slots an id may have.
const PROBES: usize = 32;

pub(super) struct OpenSpans {
    slots: Box<[Slot]>,
    bytes: usize,
}

struct Slot {
    /// The id of the span that has it; 0 when free.
    owner: AtomicU64,
    span: Mutex<OpenSpan>,
}

/// An open span's fields.
pub(super) struct OpenSpan {
    pub(super) context: SpanContext,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) parent_is_remote: bool,
    pub(super) static_name: &'static str,
    pub(super) kind: Option<SpanKind>,
    pub(super) start: Nanos,
    pub(super) error: bool,
    pub(super) ok: bool,
    pub(super) dropped: u32,
    pub(super) store: Store,
}

/// A span at its beginning.
pub(super) struct SpanStart {
    pub(super) name: &'static str,
    pub(super) parent: Option<SpanContext>,
    pub(super) start: Nanos,
}

impl OpenSpans {
    pub(super) fn new(spans: usize, bytes: usize) -> OpenSpans {
        // One in two may be taken, so that the few slots of an id are rarely all taken.
        let slots = (spans.max(1) * 2).next_power_of_two();
        let slot = |_| Slot { owner: AtomicU64::new(0), span: Mutex::new(OpenSpan::new(bytes)) };
        OpenSpans { slots: (0..slots).map(slot).collect(), bytes }
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.len() * (size_of::<Slot>() + self.bytes)
    }

    /// Gives the span a slot; false when there is none.
    pub(super) fn begin(&self, id: &Id, start: SpanStart, record: impl FnOnce(&mut OpenSpan)) -> bool {
        let id = id.into_u64();
        for slot in self.slots(id) {
            // Whoever releases the slot unlocks it first.
            if slot.owner.load(Ordering::Relaxed) != 0 {
                continue;
            }
            let mut span = slot.span.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.owner.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            span.begin(&start);
            record(&mut span);
            return true;
        }
        false
    }

    /// Does something to the span, if it has a slot.
    pub(super) fn with<T>(&self, id: &Id, act: impl FnOnce(&mut OpenSpan) -> T) -> Option<T> {
        let id = id.into_u64();
        let slot = self.slots(id).find(|slot| slot.owner.load(Ordering::Acquire) == id)?;
        // Held for as long as one field takes to be shown. One that is shown by a `Debug` which itself comes
        // back to this span would wait for itself, so nobody waits here.
        let mut span = match slot.span.try_lock() {
            Ok(span) => span,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        (slot.owner.load(Ordering::Acquire) == id).then(|| act(&mut span))
    }

    /// Releases the slot.
    pub(super) fn end(&self, id: &Id, send: impl FnOnce(&OpenSpan)) {
        let id = id.into_u64();
        let Some(slot) = self.slots(id).find(|slot| slot.owner.load(Ordering::Acquire) == id) else { return };
        let span = slot.span.lock().unwrap_or_else(PoisonError::into_inner);
        send(&span);
        slot.owner.store(0, Ordering::Release);
    }

    fn slots(&self, id: u64) -> impl Iterator<Item = &Slot> {
        // The slots are a power of two.
        let mask = self.slots.len() - 1;
        let start = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..PROBES.min(self.slots.len())).filter_map(move |probe| self.slots.get((start + probe) & mask))
    }
}

impl OpenSpan {
    fn new(bytes: usize) -> OpenSpan {
        OpenSpan {
            context: SpanContext::default(),
            parent: None,
            parent_is_remote: false,
            static_name: "",
            kind: None,
            start: 0,
            error: false,
            ok: false,
            dropped: 0,
            store: Store::new(bytes),
        }
    }

    fn begin(&mut self, start: &SpanStart) {
        self.context = SpanContext {
            trace_id: start.parent.map_or_else(random::trace_id, |parent| parent.trace_id),
            span_id: random::span_id(),
            flags: start.parent.map_or(1, |parent| parent.flags),
        };
        self.parent = start.parent.map(|parent| parent.span_id);
        self.parent_is_remote = false;
        self.static_name = start.name;
        self.kind = None;
        self.start = start.start;
        self.error = false;
        self.ok = false;
        self.dropped = 0;
        self.store.clear();
    }
}
