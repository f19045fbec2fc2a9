use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::value::{Readable, Value, Visit};
use crate::{Counter, Gauge, Histogram};

/// The label value of everything that no longer had room in its family.
pub const OTHER: &str = "other";

/// Longer label values are cut to this many bytes.
pub const MAX_LABEL_BYTES: usize = 64;

/// Series of one name that differ in `N` label values, at most a fixed number of them.
///
/// All meters are made at creation. A set of label values takes one when it is first asked for; when all
/// are taken, new sets share the series in which every label is [`OTHER`], and are counted as overflowed.
/// Resolving compares with each series taken so far, so resolve once and keep the meter.
pub struct Family<M, const N: usize>(Arc<Inner<M, N>>);

struct Inner<M, const N: usize> {
    slots: Box<[Slot<M, N>]>,
    used: AtomicUsize,
    registration: Mutex<()>,
    other: M,
    overflowed: Counter,
    meter_bytes: usize,
}

struct Slot<M, const N: usize> {
    labels: OnceLock<[Box<str>; N]>,
    meter: M,
}

/// The meters that can form a family.
pub trait Meter: Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn value_now(&self) -> Value;
    #[doc(hidden)]
    fn heap_bytes(&self) -> usize;
}

impl<M: Meter, const N: usize> Family<M, N> {
    /// A family of at most `max` series and the one for the rest, all made by `make`.
    pub fn new(max: usize, make: impl Fn() -> M) -> Self {
        let other = make();
        let meter_bytes = other.heap_bytes();
        let slots = (0..max).map(|_| Slot { labels: OnceLock::new(), meter: make() }).collect();
        let overflowed = Counter::default();
        Self(Arc::new(Inner {
            slots,
            used: AtomicUsize::new(0),
            registration: Mutex::new(()),
            other,
            overflowed,
            meter_bytes,
        }))
    }

    /// The meter for these label values. The same values always lead to the same meter.
    pub fn series(&self, values: [&str; N]) -> M {
        let values = values.map(cut);
        let inner = &*self.0;
        // Before the search: what is added during it is searched again under the lock.
        let searched = inner.used.load(Ordering::Acquire);
        if let Some(meter) = inner.find(0, &values) {
            return meter;
        }
        let _one_at_a_time = inner.registration.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meter) = inner.find(searched, &values) {
            return meter;
        }
        let next = inner.used.load(Ordering::Acquire);
        let Some(slot) = inner.slots.get(next) else {
            inner.overflowed.increment();
            return inner.other.clone();
        };
        // Only the holder of the lock fills slots, and each once: this one is empty.
        let _filled = slot.labels.set(values.map(Into::into));
        inner.used.store(next + 1, Ordering::Release);
        slot.meter.clone()
    }

    /// How often a set of label values was asked for that had no room.
    pub fn overflowed(&self) -> u64 {
        self.0.overflowed.value()
    }

    pub(crate) fn overflow_counter(&self) -> Counter {
        self.0.overflowed.clone()
    }
}

impl<M: Meter, const N: usize> Inner<M, N> {
    fn find(&self, from: usize, values: &[&str; N]) -> Option<M> {
        let slots = self.slots.get(from..self.used.load(Ordering::Acquire))?;
        let same = |slot: &&Slot<M, N>| {
            slot.labels.get().is_some_and(|labels| labels.iter().zip(values).all(|(a, b)| **a == **b))
        };
        slots.iter().find(same).map(|slot| slot.meter.clone())
    }
}

impl<M: Meter, const N: usize> Readable for Family<M, N> {
    fn read(&self, visit: &mut Visit<'_>) {
        for slot in &self.0.slots {
            let Some(labels) = slot.labels.get() else { break };
            visit(&labels.each_ref().map(|label| &**label), slot.meter.value_now());
        }
        if self.overflowed() > 0 {
            visit(&[OTHER; N], self.0.other.value_now());
        }
    }

    fn size_bytes(&self) -> usize {
        let slot = size_of::<Slot<M, N>>() + self.0.meter_bytes + N * MAX_LABEL_BYTES;
        size_of::<Inner<M, N>>() + self.0.slots.len() * slot + self.0.meter_bytes + Counter::SIZE_BYTES
    }

    fn max_series(&self) -> usize {
        self.0.slots.len() + 1
    }
}

impl<M, const N: usize> Clone for Family<M, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M, const N: usize> fmt::Debug for Family<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Family of {} series, {} taken", self.0.slots.len(), self.0.used.load(Ordering::Relaxed))
    }
}

impl Meter for Counter {
    fn value_now(&self) -> Value {
        Value::Counter(self.value())
    }

    fn heap_bytes(&self) -> usize {
        Self::SIZE_BYTES
    }
}

impl Meter for Gauge {
    fn value_now(&self) -> Value {
        Value::Gauge(self.value())
    }

    fn heap_bytes(&self) -> usize {
        Self::SIZE_BYTES
    }
}

impl Meter for Histogram {
    fn value_now(&self) -> Value {
        Value::Histogram(self.summary())
    }

    fn heap_bytes(&self) -> usize {
        self.size_bytes()
    }
}

/// `value`, cut between two characters so that it has at most [`MAX_LABEL_BYTES`].
fn cut(value: &str) -> &str {
    &value[..value.floor_char_boundary(MAX_LABEL_BYTES)]
}
