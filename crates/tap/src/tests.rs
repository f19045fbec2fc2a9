//! The tap with requests as SDKs and Prometheus servers send them.

mod filters;
mod hostile;
mod lines;
mod queue;

use crate::{LOOK_BYTES, RecordReader, Tap, TapError, TapFilter};
use serde_json::Value;
use tidegate_arena::{Arena, Floors};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_load::otlp;

/// Room for one look, and not for two.
fn arena() -> Arena {
    Arena::new(LOOK_BYTES * 3 / 2, Floors::NONE, 64 << 10, 4, 16).unwrap()
}

/// Room for so many looks.
fn arena_for(looks: usize) -> Arena {
    Arena::new(LOOK_BYTES * looks as u64, Floors::NONE, 64 << 10, 4, 16).unwrap()
}

fn open(tap: &Tap, query: &str) -> Result<RecordReader, TapError> {
    open_look(tap, TapFilter::from_query(query).unwrap())
}

fn open_look(tap: &Tap, look: TapFilter) -> Result<RecordReader, TapError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(tap.open(look))
}

/// The metadata of an uncompressed OTLP body.
fn meta(signal: Signal, items: u32, raw: &[u8]) -> Meta {
    Meta {
        tenant: Tenant::NONE,
        signal,
        protocol: Protocol::Otlp,
        encoding: Encoding::Identity,
        items,
        raw_len: u32::try_from(raw.len()).unwrap(),
        received_at_ns: 1_700_000_000_000_000_000,
    }
}

/// A request of so many items, numbered from 1,000 on.
fn request(signal: otlp::Signal, items: u64) -> Vec<u8> {
    otlp::ExportRequest { signal, items, first: 1_000, time_ns: 1_700_000_000_000_000_000 }.encode()
}

/// All lines that wait, each JSON.
fn lines(reading: &RecordReader) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut out = |line: &str| {
        assert!(line.len() <= crate::LONGEST_LINE, "{} bytes", line.len());
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        lines.push(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")));
        true
    };
    while reading.write_next(&mut out).is_some() {}
    lines
}
