//! A batch's checkpoints read back as they were set, within the bounds of a record's note.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn as_map(checkpoints: &Checkpoints) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let all = changes(checkpoints.note());
    all.map(|(_, change)| (change.key.to_vec(), change.value.map(<[u8]>::to_vec))).collect()
}

proptest! {
    /// The last change of each key counts, a change that does not fit changes nothing, and a note is never too long.
    #[test]
    fn the_last_change_of_a_key_counts(
        all in prop::collection::vec((0u8..40, 0usize..=300, prop::bool::weighted(0.8)), 0..60),
    ) {
        let (mut checkpoints, mut expected) = (Checkpoints::default(), BTreeMap::new());
        for (number, len, sets) in all {
            let key = vec![number; usize::from(number)];
            let value = sets.then(|| vec![number; len]);
            let before = checkpoints.clone();
            let outcome = match &value {
                Some(value) => checkpoints.set(&key, value),
                None => checkpoints.remove(&key),
            };
            match outcome {
                Ok(()) => { expected.insert(key, value); }
                Err(CheckpointError::Full) => {
                    prop_assert!(before.note().len() + len + key.len() + 2 > NOTE_MAX);
                    prop_assert_eq!(&checkpoints, &before);
                }
                Err(CheckpointError::Key) => prop_assert!(key.is_empty() || key.len() > CHECKPOINT_KEY_MAX),
                Err(CheckpointError::Value) => prop_assert!(len > CHECKPOINT_VALUE_MAX),
            }
            prop_assert!(checkpoints.note().len() <= NOTE_MAX);
            prop_assert_eq!(as_map(&checkpoints), expected.clone());
        }
        let heap = checkpoints.0.as_ref().map_or(0, |note| note.bytes.capacity() + size_of::<Note>());
        prop_assert!(heap <= Checkpoints::MOST_BYTES);
    }

    /// No bytes make the reader panic or go on for ever.
    #[test]
    fn any_note_can_be_read(mut note in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(changes(&note).count() <= note.len());
        if let Some(first) = note.first_mut() {
            *first = VERSION;
        }
        prop_assert!(changes(&note).count() <= note.len());
    }
}

#[test]
fn no_checkpoints_are_one_null_pointer() {
    assert_eq!(size_of::<Checkpoints>(), size_of::<usize>());
    let counted = allocation_counter::measure(|| assert!(Checkpoints::default().is_empty()));
    assert_eq!(counted.count_total, 0);
}
