//! Promise: however a batch is cut, halved or taken apart, every series and every item of it is in exactly one
//! piece, in order.

use super::*;
use crate::room::Room;
use proptest::prelude::*;
use std::sync::Arc;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_load::remote_write::{Batch, Extras};
use tidegate_load::{Model, Timeline};
use tokio::sync::Semaphore;

/// Bodies of `version`: each with so many series, samples of each, and with or without metadata.
fn source(version: Version, bodies: &[(usize, u64, bool)]) -> Source {
    let arena = Arena::new(8 << 20, Floors::NONE, 4 << 20, 4, 4).unwrap();
    let room = Room::new(&arena, Share::Egress, 8 << 20, &Arc::new(Semaphore::new(1)));
    let model = Model::with_histograms(1, 40, Timeline { base_ms: 1, interval_ms: 1 }, 5);
    let mut encoded = Vec::new();
    let mut ranges = Vec::new();
    for (series, samples, metadata) in bodies {
        let batch = Batch {
            extras: Extras { exemplars: *metadata, metadata: *metadata, stale: false },
            ..Batch::of(&model, model.range(0..*series), 0, *samples)
        };
        let mut raw = Vec::new();
        let version = match version {
            Version::V1 => tidegate_load::remote_write::Version::V1,
            Version::V2 => tidegate_load::remote_write::Version::V2,
        };
        batch.encode(version, &mut raw);
        ranges.push(encoded.len()..encoded.len() + raw.len());
        encoded.extend(raw);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut window = runtime.block_on(room.window(encoded.len())).ok().unwrap();
    window.append(&encoded).unwrap();
    Source::new(Form::RemoteWrite(version), window, ranges)
}

/// Where a piece begins and ends, in whatever its version counts.
fn bounds(piece: &Piece) -> (u64, u64) {
    match piece {
        Piece::Bytes(range) => (range.start as u64, range.end as u64),
        Piece::Members(range) => (range.start, range.end),
    }
}

/// That `pieces` are all of `whole`, in order, without gaps.
fn covers(source: &Source, whole: &Piece, pieces: &[Piece]) -> Result<(), TestCaseError> {
    let mut at = bounds(whole).0;
    for piece in pieces {
        let (start, end) = bounds(piece);
        prop_assert_eq!(start, at);
        prop_assert!(end > start);
        at = end;
    }
    prop_assert_eq!(at, bounds(whole).1);
    let items: u64 = pieces.iter().map(|piece| source.items(piece)).sum();
    prop_assert_eq!(items, source.items(whole));
    Ok(())
}

/// Everything that halving `piece` comes to.
fn halved(source: &Source, piece: Piece) -> Vec<Piece> {
    match source.halve(&piece) {
        None => vec![piece],
        Some((first, second)) => [first, second].into_iter().flat_map(|half| halved(source, half)).collect(),
    }
}

fn bodies() -> impl Strategy<Value = Vec<(usize, u64, bool)>> {
    proptest::collection::vec((1usize..40, 1u64..4, any::<bool>()), 1..6)
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V1), Just(Version::V2)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn cutting_covers_everything_within_the_limits(
        version in version(),
        bodies in bodies(),
        bytes in 1usize..20_000,
        items in 1u64..200,
    ) {
        let source = source(version, &bodies);
        let whole = source.whole();
        let (mut pieces, mut rest) = (Vec::new(), Some(whole.clone()));
        while let Some(piece) = rest {
            let (first, left) = source.cut(piece, bytes, items, items);
            // One of several series keeps to the limit of items. (Exemplars and metadata of 1.0 do not count.)
            let counts = version == Version::V2 && source.halve(&first).is_some();
            prop_assert!(!counts || source.items(&first) <= items);
            if let Piece::Bytes(range) = &first {
                prop_assert!(range.len() <= bytes || source.halve(&first).is_none());
            }
            pieces.push(first);
            rest = left;
        }
        covers(&source, &whole, &pieces)?;
    }

    #[test]
    fn halving_ends_with_single_series_and_covers_everything(version in version(), bodies in bodies()) {
        let source = source(version, &bodies);
        let singles = halved(&source, source.whole());
        covers(&source, &source.whole(), &singles)?;
        let series = bodies.iter().map(|(series, ..)| series).sum::<usize>();
        prop_assert!(singles.len() >= series, "{} pieces of {series} series", singles.len());
    }

    #[test]
    fn apart_is_one_piece_for_each_record(version in version(), bodies in bodies()) {
        let source = source(version, &bodies);
        match source.apart(&source.whole()) {
            Some(pieces) => {
                prop_assert_eq!(pieces.len(), bodies.len());
                covers(&source, &source.whole(), &pieces)?;
                for piece in &pieces {
                    prop_assert_eq!(source.apart(piece), None);
                }
            }
            None => prop_assert_eq!(bodies.len(), 1),
        }
    }
}

/// Three records, of which the second is lost: what is left is the first's end and the third.
#[test]
fn the_rest_of_a_record_is_taken_out_of_what_is_left() {
    let source = source(Version::V2, &[(10, 1, false), (20, 1, false), (5, 1, false)]);
    let mut left = vec![Piece::Members(28..35), Piece::Members(15..28)];
    let lost = source.rest_of_record(Piece::Members(12..15), &mut left);
    assert_eq!((lost, left), (Piece::Members(12..30), vec![Piece::Members(30..35)]));
    assert_eq!(source.bodies_of(&(12..15)).1, 10);
    assert_eq!(source.bodies_of(&(12..15)).0.len(), 1);
    assert_eq!(source.bodies_of(&(9..31)).0.len(), 3);
}
