use super::*;
use crate::class::{Class, Reason, Signal};

#[cfg(loom)]
mod interleaved;
#[cfg(not(loom))]
mod plain;

fn bytes_of(ring: &Ring, batch: &Batch) -> Vec<Vec<u8>> {
    use std::cell::RefCell;
    let events = RefCell::new(Vec::<Vec<u8>>::new());
    ring.walk(
        batch,
        |_, _| {
            events.borrow_mut().push(Vec::new());
            true
        },
        |piece| {
            if let Some(event) = events.borrow_mut().last_mut() {
                event.extend_from_slice(piece);
            }
            Ok::<_, ()>(())
        },
    )
    .unwrap();
    events.into_inner()
}

/// Everything in the ring, released.
fn drain(ring: &Ring) -> Vec<Vec<u8>> {
    let mut batch = Batch::new(ring, usize::MAX);
    let mut all = Vec::new();
    loop {
        ring.seal_open();
        ring.gather(None, &mut batch);
        if batch.is_empty() {
            return all;
        }
        all.extend(bytes_of(ring, &batch));
        let classes = ring.classes(&batch);
        for (class, filled) in Class::ALL.into_iter().zip(classes) {
            ring.counters.sent(class, filled.events, filled.bytes);
        }
        ring.release_all(&mut batch);
    }
}

fn balance(ring: &Ring) -> i64 {
    let mut stats = ring.counters.stats();
    stats.queued = ring.filled_before(u64::MAX).events;
    stats.balance()
}
