//! Promise: a state is read back whole or refused, and no input makes the reader panic or take memory.

use super::*;
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

fn filled() -> Aggregator {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 20));
    for number in 0..40_u8 {
        aggregator.begin(&[number % 3], START_MS + u64::from(number) * 100);
        set_resource(&mut aggregator, 0, &[("host", &(number % 2).to_string())]);
        let observation =
            Observation { value: Number::Int(number.into()), count: 2, span: Some(span(number)) };
        aggregator.key().push(&listed(&[Some(&(number % 9).to_string()), None]));
        aggregator.observe(0, &observation);
        aggregator.key().push(&fields(&[("name", &(number % 5).to_string())]));
        aggregator.observe(1, &observation);
    }
    aggregator.begin_flush(START_MS + 10_000);
    aggregator
}

pub(super) fn read(settings: &Settings, mut bytes: &[u8]) -> Result<Aggregator, StateError> {
    Aggregator::read_state(settings.clone(), &mut bytes).map(|(aggregator, _)| aggregator)
}

#[test]
fn another_version_is_not_damage() {
    let aggregator = filled();
    let mut bytes = state(&aggregator, 1);
    bytes[8] = 2;
    assert!(matches!(read(aggregator.settings(), &bytes), Err(StateError::Version(2))));
}

#[test]
fn other_settings_are_told() {
    let aggregator = filled();
    let bytes = state(&aggregator, 1);
    let same = aggregator.settings().clone();
    let mut other_bound = same.clone();
    other_bound.measures[0].instruments[1].kind = InstrumentKind::Histogram { bounds: vec![1.0, 2.5, 11.0] };
    let mut other_name = same.clone();
    other_name.measures[0].attributes = Some(vec!["name".into(), "king".into()]);
    for other in [
        other_bound,
        other_name,
        Settings { temporality: Temporality::Delta, ..same.clone() },
        Settings { exemplars: false, ..same.clone() },
        // Too small.
        Settings { max_series: 2, ..same.clone() },
        Settings { definition: "another".into(), ..same.clone() },
    ] {
        assert!(matches!(read(&other, &bytes), Err(StateError::OtherSettings)));
    }
    assert!(read(&Settings { max_series: 50, ..same }, &bytes).is_ok());
}

#[test]
fn the_fingerprint_is_stable() {
    assert_eq!(settings(Temporality::Delta, 5).fingerprint(), FINGERPRINT);
}

const FINGERPRINT: u64 = 16_667_286_983_616_384_434;

#[test]
fn an_input_that_ends_early_is_damaged() {
    let aggregator = filled();
    let bytes = state(&aggregator, 1);
    for len in 0..bytes.len() {
        assert!(matches!(read(aggregator.settings(), &bytes[..len]), Err(StateError::Damaged)), "{len}");
    }
}

proptest! {
    /// A state with changed bytes is refused; with the right checksum it may be taken, and works.
    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        has_checksum: bool,
    ) {
        let aggregator = filled();
        let (settings, original) = (aggregator.settings().clone(), state(&aggregator, 1));
        let mut bytes = original.clone();
        let end = bytes.len() - 8;
        for (place, byte) in changes {
            // The header says how it is to be read.
            bytes[20 + place.index(end - 20)] = byte;
        }
        if has_checksum {
            let checksum = xxh64(&bytes[..end], 0);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        }
        let mut read = None;
        let used = allocation_counter::measure(|| {
            read = Some(Aggregator::read_state(settings.clone(), &mut &*bytes));
        });
        // The copy of the settings is a part of them.
        prop_assert!(used.bytes_max as usize <= settings.bytes());
        match read.unwrap() {
            Ok((mut aggregator, _)) => {
                prop_assert!(has_checksum || bytes == original);
                for _ in 0..2 {
                    let mut from = 0;
                    aggregator.begin_flush(START_MS);
                    while let Some(piece) = aggregator.piece(from, 10_000) {
                        written(&piece);
                        from = piece.next;
                    }
                    aggregator.end_flush();
                    aggregator.begin(&[1], START_MS * 2);
                    observe(&mut aggregator, 1, &[], Number::Double(-1e300), u64::MAX);
                    observe(&mut aggregator, 1, &fields(&[("name", "1")]), Number::Double(1e-300), u64::MAX);
                }
            }
            Err(error) => prop_assert!(!matches!(error, StateError::Read(_) | StateError::Version(_))),
        }
    }
}
