//! Promise: spans that wait are read back whole or refused, and no input makes the reader panic or take memory.

use super::pairs::{CLIENT, SERVER, half, tell, told};
use super::states::read;
use super::*;
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

fn filled() -> Aggregator {
    let mut aggregator = told(&[]);
    for id in 0..9 {
        aggregator.begin(&[id % 3], START_MS + u64::from(id) * 100);
        let mut half = half([CLIENT, SERVER][usize::from(id % 2)], id, id, "shop");
        (half.key[1], half.key[3], half.has_failed) = (Some("eu"), Some("mailer"), id == 4);
        tell(&mut aggregator, &half);
    }
    aggregator
}

#[test]
fn pairs_of_other_settings_are_told() {
    let aggregator = filled();
    let bytes = state(&aggregator, 1);
    let with = |change: fn(&mut PairSettings)| {
        let mut settings = aggregator.settings().clone();
        change(settings.measures[1].pairs.as_mut().unwrap());
        read(&settings, &bytes)
    };
    for other in [
        with(|it| it.dimensions = 2),
        with(|it| it.peers = 1),
        with(|it| it.has_virtual_node_label = false),
        with(|it| it.max_items = 8),
    ] {
        assert!(matches!(other, Err(StateError::OtherSettings)));
    }
    let read = with(|it| (it.ttl_ms, it.max_items) = (9_000, 9)).unwrap();
    assert_eq!((read.waiting_spans(), state(&read, 1)), (9, bytes.clone()));
}

proptest! {
    /// A state with changed bytes is refused; with the right checksum it may be taken, and works.
    #[test]
    fn no_bytes_of_pairs_make_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let aggregator = filled();
        let (settings, mut bytes) = (aggregator.settings().clone(), state(&aggregator, 1));
        let end = bytes.len() - 8;
        for (place, byte) in changes {
            // The header says how it is to be read.
            bytes[20 + place.index(end - 20)] = byte;
        }
        let end = cut.map_or(end, |cut| 20 + cut.index(end - 20));
        bytes.truncate(end);
        bytes.extend(xxh64(&bytes, 0).to_le_bytes());
        let mut result = None;
        let used = allocation_counter::measure(|| result = Some(read(&settings, &bytes)));
        prop_assert!(used.bytes_max as usize <= settings.bytes());
        if let Ok(mut aggregator) = result.unwrap() {
            prop_assert!(aggregator.waiting_spans() <= 10);
            for round in 0..3 {
                aggregator.begin(&[1], START_MS * 2 + round * 5_000);
                (0..20).for_each(|id| tell(&mut aggregator, &half(CLIENT, id, 1, "shop")));
                (0..20).for_each(|id| tell(&mut aggregator, &half(SERVER, id, id, "cart")));
                aggregator.begin_flush(START_MS);
                let mut from = 0;
                while let Some(piece) = aggregator.piece(from, 10_000) {
                    written(&piece);
                    from = piece.next;
                }
                aggregator.end_flush();
            }
        }
    }
}
