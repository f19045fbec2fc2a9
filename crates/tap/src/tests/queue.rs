//! Promises: a closed tap costs nothing; an open one never waits, stays within its bounds, and closes by itself.

use super::{arena, arena_for, lines, meta, open, open_look, request};
use crate::watch::RECORDS;
use crate::{LONGEST_BODY, LOOK_BYTES, LOOKS, OPEN_FOR, RecordReader, Tap, TapError, TapFilter, TapPoint};
use tidegate_journal::Signal;
use tidegate_load::otlp;

#[test]
fn a_closed_tap_allocates_nothing() {
    let tap = Tap::new(arena());
    let body = request(otlp::Signal::Traces, 10);
    let meta = meta(Signal::Traces, 10, &body);
    let counted = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            tap.offer(TapPoint::Source("otlp"), &meta, Some(&body));
            tap.offer(TapPoint::Sink("out"), &meta, Some(&body));
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// Neither does an open one for records that it does not want.
#[test]
fn unwanted_records_are_not_copied() {
    let tap = Tap::new(arena());
    let reading = open(&tap, "sink=out&signal=logs&every=1000").unwrap();
    let body = request(otlp::Signal::Traces, 10);
    let (traces, logs) = (meta(Signal::Traces, 10, &body), meta(Signal::Logs, 10, &body));
    let counted = allocation_counter::measure(|| {
        tap.offer(TapPoint::Source("otlp"), &logs, Some(&body));
        tap.offer(TapPoint::Sink("other"), &logs, Some(&body));
        tap.offer(TapPoint::Sink("out"), &traces, Some(&body));
    });
    assert_eq!((counted.count_total, reading.waiting()), (0, 0));
    tap.offer(TapPoint::Sink("out"), &logs, Some(&body));
    assert_eq!((reading.waiting(), reading.missed()), (1, 0));
}

/// Several sources may journal the same protocol, and each is seen under its own name.
#[test]
fn a_source_is_known_by_its_name() {
    let body = request(otlp::Signal::Logs, 10);
    let logs = meta(Signal::Logs, 10, &body);
    for (look, [of_otlp, of_both]) in [("source=http", [0, 1]), ("source=otlp", [1, 1]), ("source=*", [1, 2])]
    {
        let tap = Tap::new(arena());
        let reading = open(&tap, look).unwrap();
        tap.offer(TapPoint::Source("otlp"), &logs, Some(&body));
        assert_eq!(reading.waiting(), of_otlp, "{look}");
        tap.offer(TapPoint::Source("http"), &logs, Some(&body));
        assert_eq!(reading.waiting(), of_both, "{look}");
        let said = lines(&reading);
        let of_http = said.iter().filter(|line| line["at"] == "source:http").count();
        assert_eq!(of_http > 0, look != "source=otlp", "{look}: {said:?}");
    }
}

/// However much passes: at most so many records and bytes are held, the others are counted.
#[test]
fn a_full_queue_counts_missed_records() {
    let tap = Tap::new(arena());
    let reading = open(&tap, "").unwrap();
    let body = vec![0; 1_000];
    let small = meta(Signal::Traces, 10, &body);
    (0..1_000).for_each(|_| tap.offer(TapPoint::Source("otlp"), &small, Some(&body)));
    assert_eq!((reading.waiting(), reading.missed(), reading.missed()), (RECORDS, 1_000 - RECORDS as u64, 0));
    lines(&reading);
    let body = vec![0; LONGEST_BODY];
    let large = meta(Signal::Traces, 10, &body);
    (0..10).for_each(|_| tap.offer(TapPoint::Source("otlp"), &large, Some(&body)));
    assert_eq!((reading.waiting(), reading.missed()), (4, 6));
    lines(&reading);
    tap.offer(TapPoint::Source("otlp"), &large, Some(&body));
    assert_eq!((reading.waiting(), reading.missed()), (1, 0), "there is room again");
}

/// Everything that a look holds, full and being shown, is within what is charged for it.
#[test]
fn the_charge_covers_all_memory_of_a_reader() {
    let tap = Tap::new(arena());
    let raw = request(otlp::Signal::Traces, 2_000);
    let body = otlp::ContentCoding::Gzip.encode(&raw).unwrap();
    let gzip = tidegate_journal::Meta {
        encoding: tidegate_journal::Encoding::Gzip,
        ..meta(Signal::Traces, 2_000, &raw)
    };
    assert!(body.len() > 64 << 10 && body.len() <= LONGEST_BODY && raw.len() <= 1 << 20, "{}", body.len());
    let counted = allocation_counter::measure(|| {
        let reading = open(&tap, "").unwrap();
        (0..100).for_each(|_| tap.offer(TapPoint::Source("otlp"), &gzip, Some(&body)));
        assert!(reading.missed() > 0);
        while reading.write_next(&mut |_| true).is_some() {}
        drop(reading);
        (0..OPEN_FOR).for_each(|_| tap.tick());
    });
    assert!(counted.bytes_max <= LOOK_BYTES, "{} of {LOOK_BYTES} bytes", counted.bytes_max);
    // But for what the runtime keeps for the thread.
    assert!(counted.bytes_current < 1_000, "and all of it is given back: {}", counted.bytes_current);
}

/// A source that offers while the queue is locked does not wait for it.
#[test]
fn a_source_does_not_wait_for_a_locked_queue() {
    let tap = Tap::new(arena());
    let reading = open(&tap, "").unwrap();
    let meta = meta(Signal::Traces, 1, &[]);
    reading.holding(|| tap.offer(TapPoint::Source("otlp"), &meta, Some(&[])));
    assert_eq!((reading.waiting(), reading.missed()), (0, 1));
}

/// A look that nobody reads any more ends, and gives its memory back; one that is being read does not.
#[test]
fn a_tap_closes_by_itself() {
    let arena = arena();
    let used = || arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
    let tap = Tap::new(arena.clone());
    let body = vec![0; 1_000];
    let meta = meta(Signal::Traces, 10, &body);
    let reading = open(&tap, "").unwrap();
    (0..10 * OPEN_FOR).for_each(|_| tap.tick());
    assert!(tap.is_open(), "it is being read");
    assert_eq!(used(), LOOK_BYTES);
    drop(reading);
    (1..OPEN_FOR).for_each(|_| tap.tick());
    tap.offer(TapPoint::Source("otlp"), &meta, Some(&body));
    let reading = open(&tap, "").unwrap();
    assert_eq!(reading.waiting(), 1, "what passes between two readings is kept");
    drop(reading);
    (0..OPEN_FOR).for_each(|_| tap.tick());
    assert!(!tap.is_open());
    assert_eq!(used(), 0);
    tap.offer(TapPoint::Source("otlp"), &meta, Some(&body));
    assert_eq!(open(&tap, "").unwrap().waiting(), 0);
}

/// Several look at the same time, each read by one at a time; whoever thinks better of it looks for something else.
#[test]
fn several_readers_are_served_independently() {
    let tap = Tap::new(arena_for(LOOKS));
    let refused = |query| open(&tap, query).err();
    let mut readings: Vec<_> =
        ["id=a", "id=b&signal=logs", "id=c&every=2", "id=d"].map(|query| open(&tap, query).unwrap()).into();
    assert_eq!(refused("id=e"), Some(TapError::Taken));
    assert_eq!(refused("id=a"), Some(TapError::Reading));
    let body = vec![0; 1_000];
    (0..4).for_each(|_| tap.offer(TapPoint::Source("otlp"), &meta(Signal::Traces, 10, &body), Some(&body)));
    assert_eq!(readings.iter().map(RecordReader::waiting).collect::<Vec<_>>(), [4, 0, 2, 4]);
    let first = readings.remove(0);
    drop(readings);
    assert_eq!(refused("id=e"), Some(TapError::Taken), "they may go on");
    (0..OPEN_FOR).for_each(|_| tap.tick());
    assert_eq!(refused("id=e"), None, "three are forgotten");
    lines(&first);
    drop(first);
    let body = vec![0; 1_000];
    tap.offer(TapPoint::Source("otlp"), &meta(Signal::Traces, 10, &body), Some(&body));
    assert_eq!(open(&tap, "id=a&service=x").unwrap().waiting(), 1, "items are chosen when they are shown");
    assert_eq!(open(&tap, "id=a&signal=logs").unwrap().waiting(), 0);
}

/// A look ends at once when that is said, and when the connection is gone that it is bound to; whoever reads it
/// learns of it.
#[test]
fn a_reader_ends_with_its_connection_or_on_request() {
    let arena = arena();
    let used = || arena.usage().shares.iter().map(|share| share.used).sum::<u64>();
    let tap = Tap::new(arena.clone());
    drop(open(&tap, "id=a").unwrap());
    tap.end("b");
    assert_eq!((tap.is_open(), used()), (true, LOOK_BYTES));
    tap.end("a");
    assert_eq!((tap.is_open(), used()), (false, 0));

    let (peer, other) = ("127.0.0.1:1000".parse().unwrap(), "127.0.0.1:1001".parse().unwrap());
    let bound = open_look(&tap, TapFilter::from_query("id=a&bound").unwrap().seen_by(peer)).unwrap();
    tap.gone(other);
    assert!(tap.is_open() && !bound.is_over());
    tap.gone(peer);
    assert!(!tap.is_open() && bound.is_over());
    drop(bound);
    assert_eq!(used(), 0);
    // One that is not bound outlives its connection: it may go on with the next.
    drop(open_look(&tap, TapFilter::from_query("id=a").unwrap().seen_by(peer)).unwrap());
    tap.gone(peer);
    assert!(tap.is_open());
}

/// Without memory there is no look, and nobody is kept waiting for ever.
#[test]
fn a_reader_without_memory_is_refused() {
    let full = arena();
    let charge = full.try_charge(tidegate_arena::Share::Ingest, LOOK_BYTES).unwrap();
    let tap = Tap::new(full);
    assert_eq!(open(&tap, "").err(), Some(TapError::Memory));
    drop(charge);
    assert!(open(&tap, "").is_ok());
    let small = tidegate_arena::Arena::new(1 << 20, tidegate_arena::Floors::NONE, 64 << 10, 4, 16).unwrap();
    assert_eq!(open(&Tap::new(small), "").err(), Some(TapError::Small));
}
