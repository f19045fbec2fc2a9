//! Promise: however a batch is cut, halved or taken apart, every series and every item of it is in exactly one
//! piece, in order.

use super::*;
use crate::egress_budget::EgressBudget;
use proptest::prelude::*;
use std::sync::Arc;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_load::remote_write::{RequestExtras, SampleBatch};
use tidegate_load::{SeriesModel, Timeline};

/// Bodies of `version`: each with so many series, samples of each, and with or without metadata.
fn source(version: Version, bodies: &[(usize, u64, bool)]) -> Source {
    let arena = Arena::new(8 << 20, Floors::NONE, 4 << 20, 4, 4).unwrap();
    let room = EgressBudget::new(&arena, Share::Egress, 8 << 20, &Arc::default());
    let model = SeriesModel::with_histograms(1, 40, Timeline { base_ms: 1, interval_ms: 1 }, 5);
    let mut encoded = Vec::new();
    let mut ranges = Vec::new();
    for (series, samples, metadata) in bodies {
        let batch = SampleBatch {
            extras: RequestExtras { exemplars: *metadata, metadata: *metadata, stale: false },
            ..SampleBatch::of(&model, model.range(0..*series), 0, *samples)
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
    Source::new(BodyFormat::RemoteWrite(version), window, ranges)
}

/// Where a piece begins and ends, in whatever its version counts.
fn bounds(piece: &RequestPart) -> (u64, u64) {
    match piece {
        RequestPart::Bytes(range) => (range.start as u64, range.end as u64),
        RequestPart::Members(range) => (range.start, range.end),
        RequestPart::Slice(_, items) => (items.start, items.end),
    }
}

/// That `pieces` are all of `whole`, in order, without gaps.
fn covers(source: &Source, whole: &RequestPart, pieces: &[RequestPart]) -> Result<(), TestCaseError> {
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
fn halved(source: &Source, piece: RequestPart) -> Vec<RequestPart> {
    match source.halve(&piece) {
        _ if source.is_single(&piece) => vec![piece],
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
            let counts = version == Version::V2 && !source.is_single(&first);
            prop_assert!(!counts || source.items(&first) <= items);
            if let RequestPart::Bytes(range) = &first {
                prop_assert!(range.len() <= bytes || source.is_single(&first) || source.halve(&first).is_none());
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

/// A single series is cut between its samples, each of which is in one slice with all of the labels.
#[test]
fn a_series_is_cut_between_its_samples() {
    for version in [Version::V1, Version::V2] {
        let source = source(version, &[(3, 1, true), (1, 9, true), (2, 1, false)]);
        let single = source.apart(&source.whole()).unwrap().swap_remove(1);
        let single = halved(&source, single).swap_remove(0);
        let (mut slices, mut done) = (vec![single.clone()], Vec::new());
        while let Some(piece) = slices.pop() {
            match source.halve(&piece) {
                Some((first, second)) => slices.extend([second, first]),
                None => done.push(piece),
            }
        }
        assert!(done.len() >= 9, "{version:?}: {}", done.len());
        assert_eq!(done.iter().map(|slice| source.items(slice)).sum::<u64>(), source.items(&single));
        let mut next = 0;
        for slice in &done {
            let RequestPart::Slice(of, items) = slice else { panic!("{slice:?}") };
            assert_eq!((items.start, items.end), (next, next + 1));
            next = items.end;
            let message = source.message(of).unwrap();
            let mut space = vec![0; message.len() + 16];
            let mut out = tidegate_wire::output::SliceOutput::new(&mut space);
            put_slice((version, message), source.sliced_fields(), items, &mut out).unwrap();
            let len = out.len();
            assert_eq!(items_of(version, &space[..len]), source.items(slice), "{version:?}");
        }
    }
}

/// However many series there are, each is found where it is.
#[test]
fn series_are_found_by_their_numbers() {
    let bodies: Vec<_> = (0..150).map(|_| (40, 1, false)).collect();
    let source = source(Version::V2, &bodies);
    assert!(source.stride > 1);
    let all: Vec<&[u8]> = source.bodies().flat_map(series_of).collect();
    for start in (0..all.len()).step_by(97) {
        let range = start as u64..(start as u64 + 100).min(all.len() as u64);
        let found: Vec<&[u8]> = source.series_in(&range).collect();
        assert_eq!(found, all[start..usize::try_from(range.end).unwrap()]);
    }
}

/// The bodies of some series are those that have any of them.
#[test]
fn series_are_of_their_bodies() {
    let source = source(Version::V2, &[(10, 1, false), (20, 1, false), (5, 1, false)]);
    assert_eq!(source.bodies_of(&(12..15)).1, 10);
    assert_eq!(source.bodies_of(&(12..15)).0.len(), 1);
    assert_eq!(source.bodies_of(&(9..31)).0.len(), 3);
}
