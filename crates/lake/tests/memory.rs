//! Promise: whatever the labels look like, the writer never holds more than its slice.
//!
//! Rust's allocations are counted exactly, at every allocation. zstd allocates in C: one context of about
//! 600 KiB lives at a time, which the allowance below stands for. What it does not prove: how much more the
//! allocator keeps resident for it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it measured")]

#[path = "support/body.rs"]
mod body;

use body::{Body, custom_histogram, int_histogram, labels};
use std::path::Path;
use tidegate_lake::{Dropped, Position, Settings, Writer, verify};
use tidegate_wire::remote_write::{Request, Symbols, Version, view};

/// What zstd may hold beside.
const ZSTD: u64 = 1 << 20;
const NOW_NS: u64 = 1_700_000_000_000_000_000;
const NOW_MS: i64 = 1_700_000_000_000;

/// Bodies of at most 2,000 series, made one after the other.
fn bodies(rounds: u64) -> impl Iterator<Item = Body> {
    let plain = (0..50).flat_map(move |chunk| {
        (0..rounds).map(move |round| {
            (0..2000).fold(Body::default(), |body, series| {
                let serial = chunk * 2000 + series;
                let labels = labels(&[
                    ("__name__", &format!("http_request_duration_seconds_{}", serial % 400)),
                    ("a_long_label_as_some_people_have_them", &format!("{serial:0>64x}")),
                    ("instance", &format!("10.0.{}.{}:9100", chunk, serial % 256)),
                    ("job", "node"),
                    ("path", &format!("/api/{}/{}", serial * 7919 % 100_003, round % 2)),
                ]);
                let value = (serial * 31 + round) as f64 * 0.1;
                body.series(&labels, &[(NOW_MS + round as i64 * 1000, value.to_bits())])
            })
        })
    });
    let wide = (0..40).map(|series| {
        let values: Vec<(String, String)> = (0..64)
            .map(|label| (format!("l{label:02}"), format!("{series:x}{label:x}").repeat(300)))
            .collect();
        let pairs: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (name.as_str(), &value[..1024.min(value.len())])).collect();
        let body = Body::default().series(&labels(&pairs), &[(NOW_MS, 1); 50]);
        body.metadata(&"m".repeat(series % 900), 1, "", &"h".repeat(1000))
    });
    let traced = (0..20).map(|chunk| {
        (0..500).fold(Body::default(), |body, series| {
            let labels = labels(&[("__name__", "traced"), ("serial", &format!("{}", chunk * 500 + series))]);
            let trace = body::labels(&[("trace_id", &format!("{series:032x}")), ("user", &"u".repeat(100))]);
            body.exemplar(&labels, &[(NOW_MS, 1)], &trace, (NOW_MS, 2))
        })
    });
    let histograms = (0..40).map(|chunk| {
        (0..200).fold(Body::default(), |body, series| {
            let labels = labels(&[("__name__", "native"), ("serial", &format!("{}", chunk * 200 + series))]);
            let deltas: Vec<i64> = (0..160).map(|bucket| (bucket * series) % 13 - 6).collect();
            let counts: Vec<f64> = (0..300).map(|bucket| f64::from(bucket) * 0.7).collect();
            body.histogram(&labels, &int_histogram(NOW_MS, series - 100, &deltas))
                .histogram(&labels, &custom_histogram(NOW_MS, &counts[1..], &counts))
        })
    });
    plain.chain(wide).chain(traced).chain(histograms)
}

/// The peak of the writer's allocations in bytes, and the rows that were sent.
fn peak(dir: &Path, slice: u64, rounds: u64) -> (u64, u64) {
    let (mut peak, mut sent) = (0, 0);
    let mut writer = None;
    let open = allocation_counter::measure(|| {
        let settings = Settings { file_bytes: 32 << 20, ..Settings::new(dir, slice, "memory") };
        writer = Some(Writer::open(settings).unwrap().0);
    });
    let mut writer = writer.unwrap();
    let mut held = open.bytes_current;
    peak = open.bytes_max.max(peak);
    let mut measured = |run: &mut dyn FnMut()| {
        let measured = allocation_counter::measure(run);
        peak = peak.max(held.cast_unsigned() + measured.bytes_max);
        held += measured.bytes_current;
    };
    for (sequence, body) in bodies(rounds).enumerate() {
        let mut symbols = Symbols::new();
        let request: Request<'_> = view(Version::V1, &body.0, &mut symbols).unwrap();
        let position = Position { sequence: sequence as u64, received_at_ns: NOW_NS };
        measured(&mut || {
            let pushed = writer.push(&position, &request, NOW_NS).unwrap();
            assert_eq!(pushed.dropped, Dropped::default());
            sent += pushed.rows;
        });
    }
    measured(&mut || drop(writer.close_files().unwrap()));
    drop(writer);
    (peak, sent)
}

fn holds(slice: u64, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let (peak, sent) = peak(dir.path(), slice, rounds);
    let report = verify(dir.path()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.rows, sent);
    println!(
        "slice {:5.2} MiB: peak {:5.2} MiB of Rust's heap, {sent} rows in {} files, {:.1} bytes a row",
        slice as f64 / 1048576.0,
        peak as f64 / 1048576.0,
        report.files,
        report.bytes as f64 / sent as f64,
    );
    assert!(peak + ZSTD <= slice, "{peak} bytes of heap and {ZSTD} of zstd in a slice of {slice}");
}

#[test]
fn the_smallest_slice_is_enough() {
    holds(Writer::smallest_slice(), 2);
}

#[test]
fn ten_mebibytes_are_kept() {
    holds(10 << 20, 2);
}

#[test]
fn twenty_four_mebibytes_are_kept() {
    holds(24 << 20, 2);
}

/// The whole of it: 100,000 series of 10 points each.
#[test]
#[ignore = "a minute in a debug build"]
fn a_million_points_are_kept() {
    for slice in [6 << 20, 10 << 20, 24 << 20, 32 << 20] {
        holds(slice, 10);
    }
}
