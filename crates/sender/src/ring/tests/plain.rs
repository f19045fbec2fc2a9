use super::*;
use proptest::prelude::*;
use std::sync::Arc;

fn ring() -> Ring {
    Ring::new(MIN_BYTES, 40_000, 4)
}

/// An event that says who it is, and is as long as asked.
fn event(id: u32, len: usize) -> Vec<u8> {
    let mut event = id.to_le_bytes().to_vec();
    event.resize(len.max(4), id as u8);
    event
}

#[test]
fn events_come_out_as_they_went_in_and_oldest_first() {
    let ring = ring();
    let events: Vec<_> = (0..300).map(|id| event(id, 10 + id as usize % 90)).collect();
    for event in &events {
        ring.push(Kind::Span, 0, event.as_slice()).unwrap();
    }
    assert_eq!(drain(&ring), events);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn an_event_larger_than_a_block_comes_out_whole() {
    let ring = ring();
    let large = event(7, 39_999);
    ring.push(Kind::Log, 0, event(1, 20).as_slice()).unwrap();
    ring.push(Kind::Log, 0, large.as_slice()).unwrap();
    ring.push(Kind::Log, 0, event(2, 20).as_slice()).unwrap();
    let mut out = drain(&ring);
    out.sort_by_key(Vec::len);
    assert_eq!(out, [event(1, 20), event(2, 20), large]);
}

#[test]
fn an_event_larger_than_its_limit_is_refused() {
    let ring = ring();
    assert_eq!(ring.push(Kind::Log, 0, event(1, 40_001).as_slice()), Err(Reason::TooLarge));
    assert_eq!(ring.counters.stats().dropped(Class::Log, Reason::TooLarge), 1);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn the_oldest_of_the_least_valuable_class_goes_first() {
    let ring = ring();
    let len = ring.block_bytes - 10;
    for id in 0..100 {
        ring.push(Kind::Span, 0, event(id, len).as_slice()).unwrap();
    }
    for id in 100..156 {
        ring.push(Kind::Metric, 0, event(id, len).as_slice()).unwrap();
    }
    for id in 156..256 {
        ring.push(Kind::Log, 0, event(id, len).as_slice()).unwrap();
    }
    // 60 errors push out the 56 metrics and the 4 oldest spans.
    for id in 256..316 {
        ring.push(Kind::ErrorSpan, 0, event(id, len).as_slice()).unwrap();
    }
    let ids: Vec<u32> =
        drain(&ring).iter().map(|event| u32::from_le_bytes(event[..4].try_into().unwrap())).collect();
    assert_eq!(ids, (4..100).chain(156..316).collect::<Vec<_>>());
    let stats = ring.counters.stats();
    assert_eq!(stats.dropped(Class::Metric, Reason::Evicted), 56);
    assert_eq!(stats.dropped(Class::Span, Reason::Evicted), 4);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn an_event_below_all_queued_classes_is_dropped() {
    let ring = ring();
    let len = ring.block_bytes - 10;
    for id in 0..256 {
        ring.push(Kind::ErrorLog, 0, event(id, len).as_slice()).unwrap();
    }
    assert_eq!(ring.push(Kind::Metric, 0, event(9, 10).as_slice()), Err(Reason::Full));
    assert_eq!(drain(&ring).len(), 256);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn a_request_under_way_is_not_evicted_and_goes_back_as_the_oldest() {
    let ring = ring();
    let len = ring.block_bytes - 10;
    let mut batch = Batch::new(&ring, 10 * ring.block_bytes);
    for id in 0..20 {
        ring.push(Kind::Span, 0, event(id, len).as_slice()).unwrap();
    }
    ring.seal_open();
    ring.gather(Some(Signal::Traces), &mut batch);
    assert_eq!(bytes_of(&ring, &batch).len(), 10);
    for id in 20..300 {
        ring.push(Kind::Span, 0, event(id, len).as_slice()).unwrap();
    }
    assert_eq!(bytes_of(&ring, &batch)[0], event(0, len));
    ring.put_back(&mut batch);
    ring.push(Kind::Span, 0, event(300, len).as_slice()).unwrap();
    let out = drain(&ring);
    assert_eq!((out.len(), &out[0]), (256, &event(1, len)));
    assert_eq!(balance(&ring), 0);
}

#[test]
fn a_slow_writer_does_not_keep_others_waiting_not_even_itself() {
    // An event whose `Debug` enqueues another one, as happens under `tracing`.
    struct Nested<'a>(&'a Ring);
    impl Payload for Nested<'_> {
        fn len(&self) -> usize {
            4
        }
        fn write<O: EventOutput>(&self, out: &mut O) {
            self.0.push(Kind::Span, 0, event(2, 4).as_slice()).unwrap();
            out.put(&event(1, 4));
        }
    }
    let ring = ring();
    ring.push(Kind::Span, 0, &Nested(&ring)).unwrap();
    let mut out = drain(&ring);
    out.sort();
    assert_eq!(out, [event(1, 4), event(2, 4)]);
}

#[test]
fn a_panic_while_writing_leaves_the_block_as_it_was() {
    struct Broken;
    impl Payload for Broken {
        fn len(&self) -> usize {
            100
        }
        fn write<O: EventOutput>(&self, out: &mut O) {
            out.put(&[1; 50]);
            panic!("a value that cannot be shown");
        }
    }
    let ring = ring();
    ring.push(Kind::Span, 0, event(1, 30).as_slice()).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ring.push(Kind::Span, 0, &Broken)));
    assert!(caught.is_err());
    ring.push(Kind::Span, 0, event(2, 30).as_slice()).unwrap();
    assert_eq!(drain(&ring), [event(1, 30), event(2, 30)]);
    assert_eq!(ring.counters.stats().dropped(Class::Span, Reason::Unstable), 1);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn an_event_that_changes_its_length_is_dropped_and_no_other() {
    struct Changing(usize, usize);
    impl Payload for Changing {
        fn len(&self) -> usize {
            self.0
        }
        fn write<O: EventOutput>(&self, out: &mut O) {
            out.put(&vec![1; self.1]);
        }
    }
    let ring = ring();
    ring.push(Kind::Span, 0, event(1, 30).as_slice()).unwrap();
    for changing in [Changing(100, 99), Changing(100, 101), Changing(5_000, 4_000), Changing(5_000, 9_000)] {
        assert_eq!(ring.push(Kind::Span, 0, &changing), Err(Reason::Unstable));
    }
    ring.push(Kind::Span, 0, event(2, 30).as_slice()).unwrap();
    assert_eq!(drain(&ring), [event(1, 30), event(2, 30)]);
    assert_eq!(balance(&ring), 0);
}

#[test]
fn many_threads_and_a_draining_one_lose_and_invent_nothing() {
    let ring = Arc::new(ring());
    let threads: Vec<_> = (0..4_u32)
        .map(|thread| {
            let ring = Arc::clone(&ring);
            std::thread::spawn(move || {
                for n in 0..5_000 {
                    let kind = Kind::ALL[n as usize % 6];
                    let _ = ring.push(kind, 0, event(thread << 24 | n, 20 + n as usize % 700).as_slice());
                }
            })
        })
        .collect();
    let mut seen = Vec::new();
    while threads.iter().any(|thread| !thread.is_finished()) {
        seen.extend(drain(&ring));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    seen.extend(drain(&ring));
    assert_eq!(balance(&ring), 0);
    let mut ids = std::collections::HashSet::new();
    for event in &seen {
        let id = u32::from_le_bytes(event[..4].try_into().unwrap());
        assert!(ids.insert(id), "twice");
        assert_eq!(event, &self::event(id, 20 + (id & 0xff_ffff) as usize % 700), "mixed with another");
    }
    assert_eq!(seen.len() as u64, ring.counters.stats().sent_total());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is written, evicted, sent and put back in whatever order: each event that comes out is one
    /// that went in, whole, once, and the books balance.
    #[test]
    fn no_byte_of_one_event_is_ever_in_another(steps in prop::collection::vec((0..12_u8, 4..3_000_usize), 1..400)) {
        let ring = Ring::new(MIN_BYTES, 2_000, 2);
        let mut batch = Batch::new(&ring, 20 * ring.block_bytes);
        let (mut next, mut out) = (0_u32, Vec::new());
        let mut lens = Vec::new();
        for (step, len) in steps {
            match step {
                0 => ring.seal_open(),
                1 if batch.is_empty() => ring.gather(None, &mut batch),
                2 => ring.put_back(&mut batch),
                3 => {
                    out.extend(bytes_of(&ring, &batch));
                    for (class, filled) in Class::ALL.into_iter().zip(ring.classes(&batch)) {
                        ring.counters.sent(class, filled.events, filled.bytes);
                    }
                    ring.release_all(&mut batch);
                }
                _ => {
                    let _ = ring.push(Kind::ALL[step as usize % 6], 0, event(next, len).as_slice());
                    lens.push(len);
                    next += 1;
                }
            }
            prop_assert_eq!(balance(&ring), 0);
        }
        ring.put_back(&mut batch);
        out.extend(drain(&ring));
        let mut ids = std::collections::HashSet::new();
        for bytes in &out {
            let id = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            prop_assert!(ids.insert(id));
            prop_assert_eq!(bytes, &event(id, lens[id as usize]));
        }
        prop_assert_eq!(ring.filled_before(u64::MAX), Filled::default());
        prop_assert_eq!(ring.free.iter().map(|bits| bits.load(Ordering::Relaxed).count_ones()).sum::<u32>(), 256);
    }
}
