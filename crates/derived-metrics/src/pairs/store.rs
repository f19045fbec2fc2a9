//! The store of spans that wait for their other halves: slots of a fixed size, found by a hash, and linked from the oldest to the newest.
//!
//! Invariant: each slot is either in the chain of its bucket and in the list by age, or in the list of free slots.

use super::PairSettings;
use super::half::{HALF_MAX, Half};
use tidegate_pipeline::TraceId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// No slot.
const NONE: u32 = u32::MAX;

/// The spans of a measure that wait.
#[derive(Debug)]
pub(crate) struct EdgeStore {
    slots: Vec<Slot>,
    /// For each slot: the tenant, the service, the dimensions, the peer.
    bytes: Box<[u8]>,
    /// The first slot of each chain.
    buckets: Box<[u32]>,
    seed: u64,
    most: usize,
    len: usize,
    oldest: u32,
    newest: u32,
    /// The first slot that is free, linked to others by `newer`.
    free: u32,
}

/// The identity of an edge: its tenant, its trace, and the span of its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EdgeId<'a> {
    pub(crate) tenant: &'a [u8],
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: [u8; 8],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    trace_id: TraceId,
    span_id: [u8; 8],
    created_ms: u64,
    latency: f64,
    older: u32,
    newer: u32,
    /// The next in the chain of its bucket.
    chained: u32,
    service_len: u16,
    dimensions_len: u16,
    peer_len: u16,
    tenant_len: u8,
    is_client: bool,
    has_failed: bool,
    is_cut: bool,
}

impl EdgeStore {
    /// The bytes of a store that are not in it.
    pub(crate) fn heap_bytes(settings: &PairSettings) -> usize {
        let most = settings.max_items as usize;
        most * (size_of::<Slot>() + HALF_MAX) + buckets(most) * size_of::<u32>()
    }

    pub(crate) fn new(settings: &PairSettings, seed: u64) -> EdgeStore {
        let most = settings.max_items as usize;
        EdgeStore {
            slots: Vec::with_capacity(most),
            bytes: vec![0; most * HALF_MAX].into(),
            buckets: vec![NONE; buckets(most)].into(),
            seed,
            most,
            len: 0,
            oldest: NONE,
            newest: NONE,
            free: NONE,
        }
    }

    /// Follows a clock that was set back.
    pub(crate) fn created_at_most(&mut self, at_ms: u64) {
        self.slots.iter_mut().for_each(|slot| slot.created_ms = slot.created_ms.min(at_ms));
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot of an edge.
    pub(crate) fn find(&self, id: &EdgeId<'_>) -> Option<u32> {
        let mut number = *self.buckets.get(self.bucket(id))?;
        while let Some(slot) = self.slots.get(number as usize) {
            if slot.span_id == id.span_id && slot.trace_id == id.trace_id && self.tenant(number) == id.tenant
            {
                return Some(number);
            }
            number = slot.chained;
        }
        None
    }

    /// The span that waits in a slot.
    pub(crate) fn half(&self, number: u32) -> Option<Half<'_>> {
        let slot = self.slots.get(number as usize)?;
        let bytes = self.bytes_of(number).get(slot.tenant_len.into()..)?;
        let (service, rest) = bytes.split_at_checked(slot.service_len.into())?;
        let (dimensions, rest) = rest.split_at_checked(slot.dimensions_len.into())?;
        let peer = rest.get(..slot.peer_len.into())?;
        let Slot { is_client, has_failed, is_cut, latency, .. } = *slot;
        Some(Half { is_client, has_failed, is_cut, latency, service, dimensions, peer })
    }

    pub(crate) fn tenant(&self, number: u32) -> &[u8] {
        let len = self.slots.get(number as usize).map_or(0, |slot| slot.tenant_len.into());
        self.bytes_of(number).get(..len).unwrap_or_default()
    }

    pub(crate) fn trace_id(&self, number: u32) -> Option<TraceId> {
        self.slots.get(number as usize).map(|slot| slot.trace_id)
    }

    /// The id of the client's span; zero where a server's span has no parent.
    pub(crate) fn span_id(&self, number: u32) -> Option<[u8; 8]> {
        self.slots.get(number as usize).map(|slot| slot.span_id)
    }

    pub(crate) fn created_ms(&self, number: u32) -> Option<u64> {
        self.slots.get(number as usize).map(|slot| slot.created_ms)
    }

    /// The slot that was taken first.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// All slots, the oldest first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = u32> {
        let newer = |number: &u32| self.slots.get(*number as usize).map(|slot| slot.newer);
        std::iter::successors(self.oldest(), move |number| newer(number).filter(|newer| *newer != NONE))
    }

    /// Takes a slot for a span, whose edge has none. Returns whether there was one.
    pub(crate) fn insert(&mut self, id: &EdgeId<'_>, half: &Half<'_>, created_ms: u64) -> bool {
        let bucket = self.bucket(id);
        let chained = self.buckets.get(bucket).copied().unwrap_or(NONE);
        let slot = Slot {
            trace_id: id.trace_id,
            span_id: id.span_id,
            created_ms,
            latency: 0.0,
            older: self.newest,
            newer: NONE,
            chained,
            service_len: 0,
            dimensions_len: 0,
            peer_len: 0,
            tenant_len: id.tenant.len() as u8,
            is_client: false,
            has_failed: false,
            is_cut: false,
        };
        let number = if let Some(free) = self.slots.get_mut(self.free as usize) {
            let next = std::mem::replace(free, slot).newer;
            std::mem::replace(&mut self.free, next)
        } else if self.slots.len() < self.most {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            return false;
        };
        self.len += 1;
        let bytes = self.bytes_of_mut(number);
        bytes.iter_mut().zip(id.tenant).for_each(|(to, from)| *to = *from);
        self.replace(number, id.tenant.len(), half);
        if let Some(first) = self.buckets.get_mut(bucket) {
            *first = number;
        }
        match self.slots.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
        true
    }

    /// Replaces the span in a slot of a tenant with so many bytes. The slot stays as old as it is.
    pub(crate) fn replace(&mut self, number: u32, tenant_len: usize, half: &Half<'_>) {
        let parts = [half.service, half.dimensions, half.peer];
        let bytes = self.bytes_of_mut(number).iter_mut().skip(tenant_len);
        bytes.zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        if let Some(slot) = self.slots.get_mut(number as usize) {
            [slot.service_len, slot.dimensions_len, slot.peer_len] = parts.map(|part| part.len() as u16);
            slot.latency = half.latency;
            (slot.is_client, slot.has_failed, slot.is_cut) = (half.is_client, half.has_failed, half.is_cut);
        }
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(slot) = self.slots.get(number as usize).copied() else { return };
        let bucket = self.bucket(&EdgeId {
            tenant: self.tenant(number),
            trace_id: slot.trace_id,
            span_id: slot.span_id,
        });
        self.unchain(bucket, number, slot.chained);
        match self.slots.get_mut(slot.older as usize) {
            Some(older) => older.newer = slot.newer,
            None => self.oldest = slot.newer,
        }
        match self.slots.get_mut(slot.newer as usize) {
            Some(newer) => newer.older = slot.older,
            None => self.newest = slot.older,
        }
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.newer = std::mem::replace(&mut self.free, number);
        }
        self.len -= 1;
    }

    /// Takes a slot out of its chain; `next` is the one behind it.
    fn unchain(&mut self, bucket: usize, number: u32, next: u32) {
        let Some(first) = self.buckets.get_mut(bucket) else { return };
        if *first == number {
            *first = next;
            return;
        }
        let mut before = *first;
        while let Some(slot) = self.slots.get_mut(before as usize) {
            if slot.chained == number {
                slot.chained = next;
                return;
            }
            before = slot.chained;
        }
    }

    fn bucket(&self, id: &EdgeId<'_>) -> usize {
        let mut ids = [0; 24];
        let from = id.trace_id.iter().chain(&id.span_id);
        ids.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        let hash = xxh3_64_with_seed(&ids, xxh3_64_with_seed(id.tenant, self.seed));
        (((hash >> 32) * self.buckets.len() as u64) >> 32) as usize
    }

    fn bytes_of(&self, number: u32) -> &[u8] {
        let start = number as usize * HALF_MAX;
        self.bytes.get(start..start + HALF_MAX).unwrap_or_default()
    }

    fn bytes_of_mut(&mut self, number: u32) -> &mut [u8] {
        let start = number as usize * HALF_MAX;
        self.bytes.get_mut(start..start + HALF_MAX).unwrap_or_default()
    }
}

/// A bucket for each slot.
fn buckets(slots: usize) -> usize {
    slots.max(1)
}
