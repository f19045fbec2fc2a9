//! Promise: whatever the labels look like, the writer never holds more than its slice.
//!
//! Rust's allocations are counted exactly, at every allocation. zstd allocates in C: one context of about
//! 600 KiB lives at a time, which the allowance below stands for. What it does not prove: how much more the
//! allocator keeps resident for it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it measured")]

#[path = "support/body.rs"]
mod body;
#[path = "support/nasty.rs"]
mod nasty;
#[path = "support/nasty_otlp.rs"]
mod nasty_otlp;
#[path = "support/otlp.rs"]
mod otlp;

use nasty::{NOW_NS, bodies};
use std::path::Path;
use tidegate_lake::{BatchPosition, DroppedItems, Writer, WriterSettings, verify};
use tidegate_wire::remote_write::{Request, Symbols, Version, view};

/// zstd's memory in addition.
const ZSTD: u64 = 1 << 20;

/// The peak of the writer's allocations in bytes, and the rows that were sent.
fn peak(dir: &Path, slice: u64, rounds: u64) -> (u64, u64) {
    let (mut peak, mut sent) = (0, 0);
    let mut writer = None;
    let open = allocation_counter::measure(|| {
        let settings = WriterSettings { file_bytes: 32 << 20, ..WriterSettings::new(dir, slice, "memory") };
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
        let position = BatchPosition { sequence: sequence as u64, received_at_ns: NOW_NS };
        measured(&mut || {
            let pushed = writer.push(&position, &request, NOW_NS).unwrap();
            assert_eq!(pushed.dropped, DroppedItems::default());
            sent += pushed.rows;
        });
    }
    // Then all signals by turns.
    for (sequence, (signal, raw)) in nasty_otlp::bodies(rounds).enumerate() {
        let position = BatchPosition { sequence: (1 << 32) + sequence as u64, received_at_ns: NOW_NS };
        measured(&mut || {
            let pushed = writer.push_otlp(&position, signal, &raw, NOW_NS).unwrap();
            assert_eq!(pushed.dropped, DroppedItems::default());
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
    holds(Writer::smallest_slice(), 1);
}

#[test]
fn ten_mebibytes_are_kept() {
    holds(10 << 20, 1);
}

#[test]
fn twenty_four_mebibytes_are_kept() {
    holds(24 << 20, 1);
}

/// The whole of it: 100,000 series of 10 points each.
#[test]
#[ignore = "a minute in a debug build"]
fn a_million_points_are_kept() {
    for slice in [6 << 20, 10 << 20, 24 << 20, 32 << 20] {
        holds(slice, 10);
    }
}
