//! Translating in parts.

use proptest::prelude::*;
use prost::Message;

use super::found::{self, Series};
use crate::otlp::prometheus::{
    Dropped, PointPlace, Scratch, ScratchCapacity, Settings, points_from_to_v1, points_to_v1, points_to_v2,
    to_v1,
};
use crate::otlp::tests::strategies;
use crate::otlp::{Signal, items};
use crate::remote_write::Version;

fn is_target_info(series: &Series) -> bool {
    series.labels.get("__name__").is_some_and(|name| name == "target_info")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The parts of a request say together what the whole says, in the same order, and no resource has
    /// more than one `target_info`, which is not older than any of its points.
    #[test]
    fn the_parts_equal_the_whole(request in strategies::metrics(), most in 1u64..5) {
        let raw = request.encode_to_vec();
        let settings = Settings::default();
        let room = ScratchCapacity { symbols: 10_000, symbol_bytes: 1 << 20, ..ScratchCapacity::default() };
        let mut scratch = Scratch::new(room);
        let mut body = Vec::new();
        let whole = to_v1(&raw, &settings, &mut scratch, &mut body).unwrap();
        let (info, expected): (Vec<_>, Vec<_>) = found::series(Version::V1, &body).into_iter().partition(is_target_info);

        // Of 1.0 both ways: each part from the beginning, and from where the one before ended.
        for (version, goes_on) in [(Version::V1, false), (Version::V1, true), (Version::V2, false)] {
            let (mut found, mut dropped, mut place) = (Vec::new(), 0, PointPlace::default());
            let points = items(Signal::Metrics, &raw);
            for from in (0..points).step_by(usize::try_from(most).unwrap()) {
                let part = from..(from + most).min(points);
                let mut body = Vec::new();
                let done = match version {
                    Version::V1 if goes_on => {
                        let from = (place, part.clone());
                        points_from_to_v1(&raw, from, &settings, &mut scratch, None, &mut body).map(|(done, end)| {
                            place = end;
                            done
                        })
                    }
                    Version::V1 => points_to_v1(&raw, part.clone(), &settings, &mut scratch, None, &mut body),
                    Version::V2 => points_to_v2(&raw, part.clone(), &settings, &mut scratch, None, &mut body),
                }.unwrap();
                prop_assert!(done.dropped.points() <= part.end - part.start);
                dropped += done.dropped.points();
                found.extend(found::series(version, &body));
            }
            let (found_info, mut found): (Vec<_>, Vec<_>) = found.into_iter().partition(is_target_info);
            for series in &mut found {
                (series.start_timestamp, series.family) = (0, Default::default());
            }
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(dropped, Dropped::points(&whole.dropped));
            // A resource without a point that can be said has none in the whole.
            prop_assert!(found_info.len() <= request.resource_metrics.len());
            for info in &info {
                let same = |found: &Series| found.labels == info.labels && found.timestamp >= info.timestamp;
                prop_assert!(found_info.iter().any(same));
            }
        }
    }
}
