//! What an item costs, as measured in this repository.
//!
//! Bytes on disk are those of the load generator's requests in a real journal: the test `plan` of the whole program measures
//! them again. Processor time is from `bench/results/latest.md`, which a test reads.

use crate::rate::ItemKind;

/// The costs of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Bytes in the journal when bodies come compressed, as agents send them by default.
    pub compressed_bytes: f64,
    /// Bytes in the journal when bodies come uncompressed; Remote-Write is always compressed.
    pub plain_bytes: f64,
    /// The requests that were measured.
    pub shape: &'static str,
    /// Nanoseconds of processor time until the journal has it.
    pub intake_ns: f64,
    /// Nanoseconds of processor time for each sink that sends it.
    pub delivery_ns: f64,
    /// Where the processor time was measured: rows of `bench/run`.
    pub rows: &'static str,
    /// Items a second that one sink delivered to a receiver that takes everything, on two cores with the load beside it.
    pub delivered_per_second: Option<f64>,
}

/// Bytes that the journal adds to a record: its header, and up to a multiple of 8.
pub const RECORD_BYTES: f64 = 72.0;

/// How long a request stays in memory until the disk has it, in seconds: two groups of 2 ms, and two syncs of a slow disk.
pub const SECONDS_IN_MEMORY: f64 = 0.025;

impl ItemKind {
    /// Its costs.
    pub const fn figures(self) -> Figures {
        match self {
            ItemKind::Samples => Figures {
                compressed_bytes: 26.5,
                plain_bytes: 26.5,
                shape: "Remote-Write 1.0, 2,000 series with 9 labels a request, Snappy",
                intake_ns: 148.0,
                delivery_ns: 33.0,
                rows: "cpu-ingest, cpu-forwarding",
                delivered_per_second: Some(7.89e6),
            },
            ItemKind::Points => Figures {
                compressed_bytes: 29.1,
                plain_bytes: 354.0,
                shape: "OTLP, 200 points with 8 attributes a request, gzip",
                intake_ns: 480.0,
                delivery_ns: 900.0,
                rows: "otlp-ingest, otlp-forwarding (measured with spans)",
                delivered_per_second: Some(0.87e6),
            },
            ItemKind::Spans => Figures {
                compressed_bytes: 49.4,
                plain_bytes: 416.0,
                shape: "OTLP, 200 spans with 8 attributes a request, gzip",
                intake_ns: 480.0,
                delivery_ns: 900.0,
                rows: "otlp-ingest, otlp-forwarding",
                delivered_per_second: Some(0.87e6),
            },
            ItemKind::Logs => Figures {
                compressed_bytes: 72.3,
                plain_bytes: 465.0,
                shape: "OTLP, 200 log records with 8 attributes a request, gzip",
                intake_ns: 480.0,
                delivery_ns: 900.0,
                rows: "otlp-ingest, otlp-forwarding (measured with spans)",
                delivered_per_second: Some(0.87e6),
            },
        }
    }
}

#[cfg(test)]
mod tests;
